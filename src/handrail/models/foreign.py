"""Errors of the libraries below, turned into ours; nothing else may leave an adapter.

The request may already have been billed when the failure came after bytes of the answer.
"""

import json
import ssl
import zlib

from handrail.protocol.errors import FixRequest, GiveUp, ModelProblem, RetryLater


def foreign_errors() -> tuple[type[Exception], ...]:
    """Every kind of error that HTTP, TLS, JSON and text decoding can raise below an adapter."""
    import h11
    import httpcore2
    import httpx2

    return (
        httpx2.HTTPError,
        httpx2.InvalidURL,
        httpx2.CookieConflict,
        httpx2.StreamError,
        httpcore2.TimeoutException,
        httpcore2.NetworkError,
        httpcore2.ProtocolError,
        httpcore2.ProxyError,
        httpcore2.UnsupportedProtocol,
        httpcore2.ConnectionNotAvailable,
        h11.ProtocolError,
        ssl.SSLError,
        OSError,
        zlib.error,
        json.JSONDecodeError,
        UnicodeError,
        RecursionError,
    )


def translate(error: Exception, host: str, *, billed: bool) -> ModelProblem:
    """Our word for a library's error. The library's own text is left out where it could hold a key."""
    import h11
    import httpcore2
    import httpx2

    if _is_certificate(error):
        return GiveUp(
            f"{host} showed a certificate that this machine does not trust. "
            "Set SSL_CERT_FILE to the file that holds your organisation's certificates."
        )
    if isinstance(error, httpx2.InvalidURL | httpx2.UnsupportedProtocol | httpcore2.UnsupportedProtocol):
        return FixRequest(f"The address of {host} cannot be used: check base_url of the connection.")
    if isinstance(error, httpx2.LocalProtocolError | httpcore2.LocalProtocolError | h11.LocalProtocolError):
        return FixRequest(
            f"The request to {host} cannot be sent: a header or the key holds forbidden characters."
        )
    if isinstance(error, httpx2.ProxyError | httpcore2.ProxyError):
        return RetryLater(f"The proxy on the way to {host} failed: {_words(error)}", billed=billed)
    if isinstance(error, httpx2.ConnectTimeout | httpcore2.ConnectTimeout):
        return RetryLater(f"{host} did not accept a connection in time.")
    if isinstance(error, httpx2.ConnectError | httpcore2.ConnectError):
        return RetryLater(f"{host} cannot be reached ({_words(error)}): is the address right, is it running?")
    unreadable = httpx2.DecodingError | zlib.error | json.JSONDecodeError | UnicodeError | RecursionError
    if isinstance(error, unreadable):
        return RetryLater(f"{host} sent data that cannot be read ({type(error).__name__}).", billed=billed)
    if isinstance(error, httpx2.TooManyRedirects | httpx2.CookieConflict | httpx2.HTTPStatusError):
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
