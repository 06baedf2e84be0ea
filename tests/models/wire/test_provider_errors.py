"""Delays are understood in every form that servers say them."""

from datetime import UTC, datetime

import pytest

from handrail.models.providers import RequestTarget
from handrail.models.wire.provider_errors import read_error_response, retry_delay, to_model_problem
from handrail.protocol.errors import Authenticate, FixRequest

NOW = datetime(2026, 11, 15, 12, 0, 0, tzinfo=UTC)


@pytest.mark.parametrize(
    ("headers", "raw", "seconds"),
    [
        ({"retry-after": "12"}, "", 12.0),
        ({"retry-after": "0.5"}, "", 0.5),
        ({"retry-after": "Sun, 15 Nov 2026 12:00:30 GMT"}, "", 30.0),
        ({"retry-after": "Sun, 15 Nov 2026 11:00:00 GMT"}, "", 0.0),
        ({"retry-after": "soon"}, "", None),
        ({"retry-after": "-3"}, "", 0.0),
        ({"retry-after": "inf"}, "", None),
        ({"retry-after-ms": "250"}, "", 0.25),
        ({"x-ratelimit-reset-requests": "6m0s", "x-ratelimit-remaining-requests": "0"}, "", 360.0),
        ({"x-ratelimit-reset-tokens": "20ms", "x-ratelimit-remaining-tokens": "0"}, "", 0.02),
        (
            {
                "anthropic-ratelimit-tokens-reset": "2026-11-15T12:00:09Z",
                "anthropic-ratelimit-tokens-remaining": "0",
            },
            "",
            9.0,
        ),
        ({"x-ratelimit-reset": "1794744010000", "x-ratelimit-remaining": "0"}, "", 10.0),
        ({}, '{"details": [{"retryDelay": "34s"}]}', 34.0),
        ({}, "", None),
    ],
)
def test_delay_is_read(headers: dict[str, str], raw: str, seconds: float | None) -> None:
    assert retry_delay(headers, raw, NOW) == seconds


ASKED = RequestTarget("mine", "big-model", ("MINE_KEY",), local=False)


@pytest.mark.parametrize(
    "body", [b"", b"\xff\xfe", b"[]", b"null", b'{"error": null}', b"[" * 100_000, b"<html>"]
)
def test_error_body_of_any_shape_is_an_error_of_ours(body: bytes) -> None:
    assert isinstance(to_model_problem(read_error_response(400, body), ASKED, {}), FixRequest)


def test_key_quoted_by_the_provider_is_not_passed_on() -> None:
    found = to_model_problem(
        read_error_response(403, b'{"error": "key sk-proj-abcdefgh12345 may not"}'), ASKED, {}
    )
    assert isinstance(found, Authenticate)
    assert "abcdefgh" not in str(found)
    assert "MINE_KEY" in str(found)
