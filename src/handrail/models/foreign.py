"""Errors of the libraries below, turned into ours; nothing else may leave an adapter.

The request may already have been billed when the failure came after bytes of the answer.
"""

import json
import ssl
import sys
import zlib
from importlib import import_module

from handrail.protocol.errors import FixRequest, GiveUp, ModelProblem, RetryLater

LIBRARIES = ("httpcore2", "h11")
FETCHING = "httpx2"
"""Fetches files, not answers: where it was never imported, it cannot have failed."""
ROOTS = (
    "TimeoutException",
    "NetworkError",
    "ProtocolError",
    "ProxyError",
    "UnsupportedProtocol",
    "ConnectionNotAvailable",
    "HTTPError",
    "InvalidURL",
    "CookieConflict",
    "StreamError",
)
"""The errors of these libraries that all their others derive from."""


def foreign_errors() -> tuple[type[Exception], ...]:
    """Every kind of error that HTTP, TLS, JSON and text decoding can raise below an adapter."""
    return (
        *_named(*ROOTS),
        ssl.SSLError,
        OSError,
        zlib.error,
        json.JSONDecodeError,
        UnicodeError,
        RecursionError,
    )


def _named(*names: str) -> tuple[type[Exception], ...]:
    """The errors of these names, of every library that is there to raise them."""
    there = (*LIBRARIES, FETCHING) if FETCHING in sys.modules else LIBRARIES
    loaded = [import_module(name) for name in there]
    return tuple(getattr(module, name) for module in loaded for name in names if hasattr(module, name))


def translate(error: Exception, host: str, *, billed: bool) -> ModelProblem:
    """Our word for a library's error. The library's own text is left out where it could hold a key."""
    if _is_certificate(error):
        return GiveUp(
            f"{host} showed a certificate that this machine does not trust. "
            "Set SSL_CERT_FILE to the file that holds your organisation's certificates."
        )
    if isinstance(error, _named("InvalidURL", "UnsupportedProtocol")):
        return FixRequest(f"The address of {host} cannot be used: check base_url of the connection.")
    if isinstance(error, _named("LocalProtocolError")):
        return FixRequest(
            f"The request to {host} cannot be sent: a header or the key holds forbidden characters."
        )
    if isinstance(error, _named("ProxyError")):
        return RetryLater(f"The proxy on the way to {host} failed: {_words(error)}", billed=billed)
    if isinstance(error, _named("ConnectTimeout")):
        return RetryLater(f"{host} did not accept a connection in time.")
    if isinstance(error, _named("ConnectError")):
        return RetryLater(f"{host} cannot be reached ({_words(error)}): is the address right, is it running?")
    unreadable = (zlib.error, json.JSONDecodeError, UnicodeError, RecursionError)
    if isinstance(error, (*_named("DecodingError"), *unreadable)):
        return RetryLater(f"{host} sent data that cannot be read ({type(error).__name__}).", billed=billed)
    if isinstance(error, _named("TooManyRedirects", "CookieConflict", "HTTPStatusError")):
        return GiveUp(f"{host} answered in a way that is not understood ({type(error).__name__}).")
    if isinstance(error, foreign_errors()):
        return RetryLater(f"The connection to {host} broke ({_words(error)}).", billed=billed)
    raise error


def _is_certificate(error: BaseException | None) -> bool:
    while error is not None:
        if isinstance(error, ssl.SSLCertVerificationError):
            return True
        error = error.__cause__ or error.__context__
    return False


def _words(error: Exception) -> str:
    return str(error).splitlines()[0][:200] if str(error) else type(error).__name__
