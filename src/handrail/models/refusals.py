"""What a provider says instead of an answer, by HTTP status or inside the stream, turned into our errors."""

import json
import re
from collections.abc import Mapping
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Any, NamedTuple

from handrail.models.connections import Asked
from handrail.models.sendable import joined
from handrail.protocol.errors import Authenticate, FixRequest, GiveUp, ModelProblem, RetryLater

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
EFFORT = re.compile(r"effort", re.IGNORECASE)
NO_EFFORT = (
    "{model!r} does not take the effort that it was told ({says}). Set `effort = false` below"
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


class Refusal(NamedTuple):
    """A provider's no: HTTP status (0 when it came inside a stream without one), its words, the raw text."""

    status: int
    message: str
    raw: str


def read_refusal(status: int, body: bytes) -> Refusal:
    """The provider's own words out of an error body of any shape."""
    raw = body.decode(errors="replace")
    try:
        value = json.loads(raw)
    except (ValueError, RecursionError):
        value = None
    return Refusal(status=status, message=_message(value) or _plain(raw), raw=raw)


def read_stream_error(error: Any) -> Refusal:
    """The same for an error object inside a stream."""
    status = 0
    if isinstance(error, dict):
        code = error.get("code", error.get("status"))
        kind = str(error.get("type", ""))
        status = code if isinstance(code, int) and 400 <= code < 600 else STREAM_STATUS.get(kind, 0)
    return Refusal(status=status, message=_message({"error": error}), raw=json.dumps(error, default=str))


def problem(
    refusal: Refusal, asked: Asked, headers: Mapping[str, str], *, billed: bool = False
) -> ModelProblem:
    """Our error for a provider's no, saying what to do next."""
    status, raw = refusal.status, refusal.raw
    says = f"{asked.connection}: {refusal.message}" if refusal.message else f"{asked.connection} said no"
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
    if asked.effort and status in {0, 400, 422} and EFFORT.search(raw):
        return FixRequest(NO_EFFORT.format(says=says, model=asked.model, connection=asked.connection))
    if is_unknown_model(refusal):
        return FixRequest(f"{asked.connection} does not know the model {asked.model!r} ({refusal.message}).")
    if status in {408, 409, 425, 429} or status >= 500 or (status == 0 and OVERLOADED.search(raw)):
        return RetryLater(_busy(refusal, asked), delay(headers, raw), billed=billed)
    if status == 404:
        return FixRequest(f"{asked.connection} has nothing at this address: check its base_url ({says}).")
    if 300 <= status < 400:
        return GiveUp(
            f"{asked.connection} has moved: set its base_url to {headers.get('location', 'the new one')}."
        )
    if status == 0:
        return RetryLater(
            f"The answer ended with an error ({says}). Go on later, or choose another model with --model.",
            billed=billed,
        )
    return FixRequest(f"The request was refused ({says}, status {status}).")


def _busy(refusal: Refusal, asked: Asked) -> str:
    if refusal.status == 429:
        words, advice = "is asked too often", "Wait a little and go on"
    elif asked.local:
        words, advice = "is overloaded or broken at the moment", "Look at what the server itself says"
    else:
        words, advice = "is overloaded or broken at the moment", "Go on later"
    said = refusal.message or refusal.status or "no reason given"
    return f"{asked.connection} {words} ({said}). {advice}, or choose another model with --model."


def is_unknown_model(refusal: Refusal) -> bool:
    """Whether the provider says that it has no such model."""
    return refusal.status in {0, 400, 403, 404, 422} and bool(UNKNOWN_MODEL.search(refusal.raw))


def _message(value: Any) -> str:
    if isinstance(value, list) and value:
        value = value[0]
    for key in ("error", "message", "detail", "msg"):
        if isinstance(value, dict) and value.get(key):
            return _message(value[key])
    return _plain(value) if isinstance(value, str) else ""


def _plain(text: str) -> str:
    if re.match(r"\s*<(!doctype|html)", text, re.IGNORECASE):
        title = re.search(r"<title>(.*?)</title>", text, re.IGNORECASE | re.DOTALL)
        text = f"a web page: {title[1]}" if title else "a web page"
    return SECRET.sub("[key]", " ".join(joined(text).split()))[:300].rstrip(".")


def delay(headers: Mapping[str, str], raw: str = "", now: datetime | None = None) -> float | None:
    """Seconds the server wants us to wait, from whichever header or field it says it with."""
    now = now or datetime.now(UTC)
    if (milliseconds := _number(headers.get("retry-after-ms", ""))) is not None:
        return milliseconds / 1000
    after = headers.get("retry-after", "")
    if (seconds := _number(after)) is not None:
        return seconds
    if after:
        return _until_date(after, now)
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


def _until_date(text: str, now: datetime) -> float | None:
    try:
        moment = parsedate_to_datetime(text)
    except ValueError:
        return None
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
            moment = datetime.fromisoformat(text)
        except ValueError:
            return None
        return max(0.0, (moment.replace(tzinfo=moment.tzinfo or UTC) - now).total_seconds())
    if value > 1e11:
        value /= 1000
    return max(0.0, value - now.timestamp()) if value > 1e9 else max(0.0, value)
