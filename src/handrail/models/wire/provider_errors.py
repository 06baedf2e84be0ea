"""A provider's error responses, by HTTP status or inside the stream, mapped to our errors."""

import json
import re
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any, Literal, NamedTuple

from handrail.models.providers import RequestTarget
from handrail.models.reading.sanitize import join_surrogates
from handrail.protocol.errors import (
    Authenticate,
    FixRequest,
    GiveUp,
    ModelProblem,
    RetryLater,
    SchemaRefused,
)

NO_CREDIT = re.compile(
    r"insufficient_quota|billing_error|credit balance|insufficient (credits|balance|funds)|payment required"
    r"|exceeded your current quota, please check your plan",
    re.IGNORECASE,
)
TOO_LONG = re.compile(
    r"context_length_exceeded|context (length|window|size)|prompt is too long|maximum (prompt|context) length"
    r"|too many (input )?tokens|exceeds? the (available|maximum) (context|number of tokens)"
    r"|request_too_large",
    re.IGNORECASE,
)
UNKNOWN_MODEL = re.compile(
    r"model_not_found|model\b.{0,80}(not found|does not exist|is not available)"
    r"|not a valid model|(unknown|invalid|unsupported|no such) model|not_found_error.{0,40}model",
    re.IGNORECASE | re.DOTALL,
)
BAD_KEY = re.compile(
    r"authentication_error|invalid_api_key|(invalid|incorrect|missing) (x-)?api[- ]key", re.IGNORECASE
)
OVERLOADED = re.compile(
    r"overloaded|rate_limit|server_error|api_error|timeout|unavailable|try again", re.IGNORECASE
)
SCHEMA_WORDS = re.compile(
    r"response[_ ]format|json[_ ]?schema|json[_ ]object|output_(config|format)|structured[_ ]output|grammar",
    re.IGNORECASE,
)
EFFORT_HELP = (
    "{model!r} does not accept the requested effort ({says}). Set `effort = false` below"
    " `[connections.{connection}]`, or empty `models.effort.main`, `models.effort.fast` or the `effort` of"
    " the agent's stage."
)
STREAM_STATUS = {
    "overloaded_error": 529,
    "rate_limit_error": 429,
    "api_error": 500,
    "timeout_error": 504,
    "server_error": 500,
    "authentication_error": 401,
    "permission_error": 403,
    "not_found_error": 404,
    "invalid_request_error": 400,
    "billing_error": 402,
    "request_too_large": 413,
}
SECRET = re.compile(r"\b(sk|xai|AIza|gsk|key)[-_]?[\w*.-]{8,}")


class ErrorResponse(NamedTuple):
    """An error response: HTTP status (0 inside a stream without one), its message, the raw text."""

    status: int
    message: str
    raw: str


def read_error_response(status: int, body: bytes) -> ErrorResponse:
    """The provider's message from an error body of any shape."""
    raw = body.decode(errors="replace")
    try:
        value = json.loads(raw)
    except (ValueError, RecursionError):
        value = None
    return ErrorResponse(status, _message(value) or _cleaned(raw), raw)


def read_stream_error(error: Any) -> ErrorResponse:
    """The same for an error object inside a stream."""
    status = 0
    if isinstance(error, dict):
        code = error.get("code", error.get("status"))
        kind = str(error.get("type", ""))
        status = code if isinstance(code, int) and 400 <= code < 600 else STREAM_STATUS.get(kind, 0)
    return ErrorResponse(status, _message({"error": error}), json.dumps(error, default=str))


def to_model_problem(
    refusal: ErrorResponse, asked: RequestTarget, headers: Mapping[str, str], *, billed: bool = False
) -> ModelProblem:
    """Our error for an error response, with what to do next."""
    status, raw = refusal.status, refusal.raw
    says = f"{asked.connection}: {refusal.message}" if refusal.message else f"{asked.connection} refused it"
    if status == 402 or (status in {0, 400, 403, 429} and NO_CREDIT.search(raw)):
        return Authenticate(
            f"The account behind connection {asked.connection!r} has no credit left ({refusal.message}). "
            "Top it up, or choose another model with --model."
        )
    if status == 401 or (status in {0, 400, 403} and BAD_KEY.search(raw)):
        return Authenticate(f"{asked.connection} refuses the key. {asked.key_advice}")
    if status == 403:
        return Authenticate(f"{says}. The key may not be allowed to use {asked.model!r}. {asked.key_advice}")
    if status == 413 or (status in {0, 400, 404, 422, 500} and TOO_LONG.search(raw)):
        return FixRequest(f"The conversation is too long for {asked.model!r} ({says}).", too_long=True)
    if asked.effort and status in {0, 400, 422} and "effort" in raw.lower():
        return FixRequest(EFFORT_HELP.format(says=says, model=asked.model, connection=asked.connection))
    if asked.structured and (suspicion := _schema_suspicion(refusal)):
        plain = to_model_problem(refusal, asked._replace(structured=False), headers, billed=billed)
        return SchemaRefused(str(plain), plain, sure=suspicion == "sure")
    if is_unknown_model(refusal):
        return FixRequest(f"{asked.connection} does not know the model {asked.model!r} ({refusal.message}).")
    if status in {408, 409, 425, 429} or status >= 500 or (status == 0 and OVERLOADED.search(raw)):
        return RetryLater(_busy_text(refusal, asked), retry_delay(headers, raw), billed=billed)
    if status == 404:
        return FixRequest(f"{asked.connection} has nothing at this address: check its base_url ({says}).")
    if 300 <= status < 400:
        location = headers.get("location", "the new one")
        return GiveUp(f"{asked.connection} has moved: set its base_url to {location}.")
    if status == 0:
        advice = "Try again, or choose another model with --model."
        return RetryLater(f"The answer ended with an error ({says}). {advice}", billed=billed)
    return FixRequest(f"The request was refused ({says}, status {status}).")


def _schema_suspicion(refusal: ErrorResponse) -> Literal["", "sure", "perhaps"]:
    """Whether the schema of the answer may be why a request was refused."""
    if refusal.status in {0, 400, 404, 415, 422, 500, 501} and SCHEMA_WORDS.search(refusal.raw):
        return "sure"
    if refusal.status in {400, 415, 422, 501} and not is_unknown_model(refusal):
        return "sure"
    return "perhaps" if refusal.status == 500 else ""


def _busy_text(refusal: ErrorResponse, asked: RequestTarget) -> str:
    what, advice = "is overloaded or broken at the moment", "Try again later"
    if refusal.status == 429:
        what, advice = "limits how often it is asked", "Wait a little and try again"
    elif asked.local:
        advice = "Check the server's own log"
    reason = refusal.message or refusal.status or "no reason given"
    return f"{asked.connection} {what} ({reason}). {advice}, or choose another model with --model."


def is_unknown_model(refusal: ErrorResponse) -> bool:
    return refusal.status in {0, 400, 403, 404, 422} and bool(UNKNOWN_MODEL.search(refusal.raw))


def _message(value: Any) -> str:
    if isinstance(value, list) and value:
        value = value[0]
    for key in ("error", "message", "detail", "msg"):
        if isinstance(value, dict) and value.get(key):
            return _message(value[key])
    return _cleaned(value) if isinstance(value, str) else ""


def _cleaned(text: str) -> str:
    if re.match(r"\s*<(!doctype|html)", text, re.IGNORECASE):
        title = re.search(r"<title>(.*?)</title>", text, re.IGNORECASE | re.DOTALL)
        text = f"a web page: {title[1]}" if title else "a web page"
    return SECRET.sub("[key]", " ".join(join_surrogates(text).split()))[:300].rstrip(".")


def retry_delay(headers: Mapping[str, str], raw: str = "", now: datetime | None = None) -> float | None:
    """Seconds that the server asks us to wait, from any of its headers or fields."""
    now = now or datetime.now(UTC)
    if (milliseconds := _number(headers.get("retry-after-ms", ""))) is not None:
        return milliseconds / 1000
    after = headers.get("retry-after", "")
    if (seconds := _number(after)) is not None:
        return seconds
    if after:
        from email.utils import parsedate_to_datetime

        try:
            return _seconds_until(parsedate_to_datetime(after), now)
        except ValueError:
            return None
    if match := re.search(r'"retryDelay"\s*:\s*"([\d.]+)s"', raw):
        return _number(match[1])
    waits = [
        wait
        for name, value in headers.items()
        if "ratelimit" in name
        and "reset" in name
        and headers.get(name.replace("reset", "remaining")) == "0"
        and (wait := _reset(value, now)) is not None
    ]
    return max(waits, default=None)


def _number(text: str) -> float | None:
    try:
        value = float(text)
    except ValueError:
        return None
    return max(0.0, value) if value < 1e9 else None


def _seconds_until(moment: datetime, now: datetime) -> float:
    return max(0.0, (moment.replace(tzinfo=moment.tzinfo or UTC) - now).total_seconds())


def _reset(text: str, now: datetime) -> float | None:
    """`6m0s`, `20ms`, `12`, an ISO date, or the epoch in seconds or milliseconds."""
    if parts := re.findall(r"([\d.]+)(ms|h|m|s)", text):
        scale = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0}
        return sum((_number(amount) or 0.0) * scale[unit] for amount, unit in parts)
    try:
        value = float(text)
    except ValueError:
        try:
            return _seconds_until(datetime.fromisoformat(text), now)
        except ValueError:
            return None
    if value > 1e11:
        value /= 1000
    return max(0.0, value - now.timestamp()) if value > 1e9 else max(0.0, value)
