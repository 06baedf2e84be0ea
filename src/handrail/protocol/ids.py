"""Ids that sort by creation time, and stream names."""

import os
import time

ALPHABET = "0123456789abcdefghjkmnpqrstvwxyz"
WORKSPACE_STREAM = "workspace"


def new_id(prefix: str) -> str:
    """A fresh id such as `m_06f2k8q1x3b7t9zd`: 45 bits of milliseconds, then 35 random bits."""
    number = (time.time_ns() // 1_000_000) << 35 | int.from_bytes(os.urandom(5)) >> 5
    digits = []
    for _ in range(16):
        number, digit = divmod(number, 32)
        digits.append(ALPHABET[digit])
    return f"{prefix}_{''.join(reversed(digits))}"


def session_stream(session_id: str) -> str:
    return f"session:{session_id}"
