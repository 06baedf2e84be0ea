"""No error of a library leaves an adapter."""

import json
import ssl
import zlib
from collections.abc import Iterator

import h11
import httpcore2
import httpx2
import pytest

from handrail.models.wire.http_client import library_errors, map_library_error
from handrail.protocol.errors import Authenticate, FixRequest, GiveUp, ModelProblem, RetryLater

NOT_HTTP = {"HTTPXWSException", "WebSocketUpgradeError", "WebSocketDisconnect"}


def exceptions_of(module: object) -> Iterator[type[Exception]]:
    for name in dir(module):
        value = getattr(module, name)
        if isinstance(value, type) and issubclass(value, Exception) and not issubclass(value, Warning):
            yield value


FOREIGN = sorted(
    {
        *exceptions_of(httpx2),
        *exceptions_of(httpcore2),
        *exceptions_of(h11),
        ssl.SSLError,
        ssl.SSLCertVerificationError,
        ConnectionResetError,
        BrokenPipeError,
        TimeoutError,
        zlib.error,
        json.JSONDecodeError,
        UnicodeDecodeError,
        UnicodeEncodeError,
        RecursionError,
    },
    key=lambda kind: f"{kind.__module__}.{kind.__name__}",
)


def made(kind: type[Exception]) -> Exception:
    error = kind.__new__(kind)
    error.args = ("Bearer sk-secret",)
    return error


@pytest.mark.promise("MOD-6")
@pytest.mark.parametrize("kind", FOREIGN, ids=lambda kind: f"{kind.__module__}.{kind.__name__}")
def test_every_error_of_the_libraries_is_ours(kind: type[Exception]) -> None:
    assert issubclass(kind, library_errors())
    found = map_library_error(made(kind), "host", billed=True)
    assert isinstance(found, RetryLater | FixRequest | Authenticate | GiveUp)
    assert type(found) is not ModelProblem


def test_libraries_have_the_errors_that_are_walked() -> None:
    assert httpx2.ReadError in FOREIGN
    assert len(list(exceptions_of(httpx2))) >= 25


def test_errors_that_could_quote_a_header_do_not() -> None:
    for kind in (httpx2.LocalProtocolError, h11.LocalProtocolError, UnicodeEncodeError):
        assert "sk-secret" not in str(map_library_error(made(kind), "host", billed=False))


def test_untrusted_certificate_says_what_to_do() -> None:
    error = httpx2.ConnectError("[SSL] failed")
    error.__cause__ = ssl.SSLCertVerificationError("self-signed")
    found = map_library_error(error, "host", billed=False)
    assert isinstance(found, GiveUp)
    assert "SSL_CERT_FILE" in str(found)


def test_mistakes_of_our_own_are_not_hidden() -> None:
    with pytest.raises(ZeroDivisionError):
        map_library_error(ZeroDivisionError(), "host", billed=False)
