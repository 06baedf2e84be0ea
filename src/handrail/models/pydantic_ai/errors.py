"""Errors of pydantic-ai and the providers' libraries, mapped to our own.

Error responses never get this far: our transport reads them (`exchange`). What is left are errors inside an
answer, answers that a library cannot read, and requests that it refuses to send.
"""

import sys

from handrail.models.providers import RequestTarget
from handrail.models.pydantic_ai.exchange import Exchange
from handrail.models.wire.http_client import library_errors
from handrail.models.wire.provider_errors import ErrorResponse, to_model_problem
from handrail.models.wire.sse import cut_off, no_answer, unreadable_event
from handrail.protocol.errors import Authenticate, FixRequest, ModelProblem, RetryLater

UNREADABLE = (LookupError, TypeError, AttributeError, ValueError, RecursionError, AssertionError)
"""What a library raises for an answer of a form that it does not know."""
ERROR_ROOTS = {
    "pydantic_ai.exceptions": ("AgentRunError", "UserError"),
    "groq": ("GroqError",),
    "mistralai.client.errors": ("MistralError", "NoResponseError", "ResponseValidationError"),
    "cohere.core.api_error": ("ApiError",),
    "google.genai.errors": (
        *("APIError", "ContinuationInterruptedError", "UnknownFunctionCallArgumentError"),
    ),
    "google.auth.exceptions": ("GoogleAuthError",),
    "botocore.exceptions": (
        *("BotoCoreError", "ClientError", "MissingServiceIdError", "UndefinedModelAttributeError"),
    ),
    "http.client": ("HTTPException",),
    "botocore.eventstream": ("ParserError",),
    "urllib3.exceptions": ("HTTPError",),
    "httpx": ("HTTPError", "InvalidURL", "CookieConflict", "StreamError"),
    "httpx2": ("HTTPError", "InvalidURL", "CookieConflict", "StreamError"),
    "httpx_sse": ("SSEError",),
}


def sdk_errors() -> tuple[type[Exception], ...]:
    """Every error that a loaded library can raise below the adapter."""
    roots = [
        getattr(sys.modules[module], name)
        for module, names in ERROR_ROOTS.items()
        if module in sys.modules
        for name in names
        if hasattr(sys.modules[module], name)
    ]
    return (ModelProblem, *roots, *library_errors(), *UNREADABLE)


def map_sdk_error(error: Exception, exchange: Exchange, asked: RequestTarget, *, begun: bool) -> ModelProblem:
    """Our error for a library's. `begun`: something of an answer was understood before it."""
    from pydantic_ai.exceptions import ModelAPIError, ModelHTTPError, UnexpectedModelBehavior, UserError

    if exchange.problem is not None:
        return exchange.problem
    if isinstance(error, ModelProblem):
        return error
    if isinstance(error, ModelHTTPError):
        refusal = ErrorResponse(
            error.status_code, _first_line(error.message), f"{error.message} {error.body}"
        )
        headers = {"retry-after": str(error.retry_after)} if error.retry_after else {}
        return to_model_problem(refusal, asked, headers, billed=exchange.clock.answering)
    if not exchange.clock.answering and not exchange.head:
        kind = type(error)
        login = kind.__module__.startswith("google.auth") and kind.__name__ != "TransportError"
        if login or "Credentials" in kind.__name__:
            return Authenticate(f"There is no login for {asked.connection}: {_first_line(str(error))}")
        if isinstance(error, (UserError, ModelAPIError, *UNREADABLE)):
            return FixRequest(f"{asked.connection} cannot be sent this request: {_first_line(str(error))}")
        return RetryLater(f"{asked.connection} was not asked: {_first_line(str(error))}")
    cut = isinstance(error, UnexpectedModelBehavior) or exchange.in_event
    if not begun and cut and exchange.may_be_cut_events:
        return cut_off(exchange.host)  # it ended before there was anything to understand
    if not begun:
        return no_answer(exchange.host, asked.connection, exchange.head)
    return unreadable_event(exchange.host, error)


def _first_line(text: str) -> str:
    return " ".join(text.split())[:300].rstrip(".")
