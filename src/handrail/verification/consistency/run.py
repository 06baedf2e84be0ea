"""Run the consistency check in a child process, which hostile files can crash without harm.

The child is this module: `python -m handrail.verification.consistency.run ROOT SECONDS`, with the touched
files as JSON on standard input and what it found as JSON on standard output.
"""

import os
import resource
import sys
import time
from collections.abc import Sequence
from pathlib import Path

import msgspec

from handrail.tools.process import run_for_output
from handrail.tools.reports.issue import CheckResult, CheckStatus
from handrail.tools.secrets import without_secrets
from handrail.verification.consistency.source_tree import SECONDS, Consistency, TouchedFile

SOURCE_ROOT = Path(__file__).resolve().parents[3]
MEMORY = 2_000_000_000
MAX_OUTPUT = 4_000_000
GRACE = 15.0
"""Seconds beyond its own deadline until the child is stopped."""


async def run_consistency(
    root: Path, touched: Sequence[TouchedFile], seconds: float = SECONDS
) -> CheckResult:
    """The result of the check; unverified if a file crashed it, or a part was not looked at in time."""
    began = time.monotonic()
    words = [sys.executable, "-P", "-m", "handrail.verification.consistency.run", str(root), str(seconds)]
    code, output = await run_for_output(
        words,
        folder=SOURCE_ROOT,
        environment=without_secrets(os.environ) | {"PYTHONPATH": str(SOURCE_ROOT)},
        timeout=seconds + GRACE,
        limit=MAX_OUTPUT,
        stdin=msgspec.json.encode(touched),
    )
    took = time.monotonic() - began
    try:
        found = msgspec.json.decode(output, type=Consistency) if code == 0 else None
    except msgspec.DecodeError:
        found = None
    if found is None:
        reason = "The check crashed or took too long on a file. The other checks are not affected."
        return CheckResult("consistency", "consistency", "unverified", reason=reason, seconds=took)
    reason = "" if found.complete else "The change is too large to be looked at completely: split it."
    status: CheckStatus = "failed" if found.issues else "passed" if found.complete else "unverified"
    return CheckResult("consistency", "consistency", status, found.issues, reason=reason, seconds=took)


def main() -> None:
    from handrail.verification.consistency.check import check_consistency

    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    resource.setrlimit(resource.RLIMIT_DATA, (MEMORY, MEMORY))
    touched = msgspec.json.decode(sys.stdin.buffer.read(), type=list[TouchedFile])
    found = check_consistency(Path(sys.argv[1]), touched, float(sys.argv[2]))
    sys.stdout.buffer.write(msgspec.json.encode(found))


if __name__ == "__main__":
    main()
