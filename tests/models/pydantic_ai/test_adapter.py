"""Models through their provider's library: one request, our key, bytes read again, errors of ours."""

import json
import sys
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from types import ModuleType

import pytest
from cryptography.hazmat.primitives.asymmetric.rsa import generate_private_key
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from msgspec.structs import replace

from handrail.config.extras import install_command
from handrail.config.settings import ConnectionSettings
from handrail.models import connect as connect_module
from handrail.models.connect import check_reachable, connect, no_credential
from handrail.models.model import (
    AssistantTurn,
    Deadlines,
    EndOfBytes,
    RawBytes,
    Request,
    RequestBytes,
    ToolResult,
    UserTurn,
)
from handrail.models.providers import PROVIDER_SDKS, RequestTarget, build_connection
from handrail.models.pydantic_ai.errors import map_sdk_error, sdk_errors
from handrail.models.pydantic_ai.exchange import Exchange
from handrail.models.reading.collector import collect_answer
from handrail.models.wire.transport import Transport
from handrail.protocol.errors import ConfigProblem, ModelProblem, RetryLater
from tests.models.fake_server import FakeServer, Reply, Said
from tests.models.sdk_formats import bedrock_bytes, google_bytes
from tests.models.wires import CALL, KEY, SDK_FORMATS, WireFormat, model_at, request

pytestmark = pytest.mark.anyio
LIBRARIES = (
    "pydantic_ai.exceptions",
    *("groq", "mistralai.client.errors", "cohere.errors", "cohere.core.api_error"),
    *("google.genai.errors", "google.auth.exceptions", "botocore.exceptions", "botocore.eventstream"),
    *("urllib3.exceptions", "httpx", "httpx2"),
)
NOT_RAISED = {
    *(
        "ModelRetry",
        "ToolFailed",
        "CallDeferred",
        "ApprovalRequired",
        "SkipModelRequest",
        "RetryModelRequest",
    ),
    *("SkipToolValidation", "SkipToolExecution", "ToolRetryError", "ToolFailedError"),
    *(
        "ExceptionGroup",
        "RunTimedOut",
        "_CategorizedHTTPError",
        "FallbackExceptionGroup",
        "HTTPXWSException",
        "WebSocketUpgradeError",
    ),
    "WebSocketDisconnect",
}
"""Of pydantic-ai's agents, which are not used, and of web sockets."""


FACTS = {
    "status_code": 500,
    "message": "words",
    "body": "",
    "retry_after": None,
    "headers": {},
    "partial": b"",
    "expected": None,
    "code": 500,
    "status": "",
    "details": {},
    "raw_response": None,
}
"""What the errors name in their texts."""


@pytest.fixture(params=SDK_FORMATS, ids=lambda wire: wire.name)
def wire(request: pytest.FixtureRequest) -> WireFormat:
    return WireFormat(*request.param)


@pytest.mark.promise("PROV-1")
async def test_failed_request_is_sent_once_with_our_key_alone(
    wire: WireFormat, monkeypatch: pytest.MonkeyPatch
) -> None:
    for sdk in PROVIDER_SDKS.values():
        for name in sdk.key_env:
            monkeypatch.setenv(name, "sk-of-the-environment-0123456789")
    for name in ("GROQ_BASE_URL", "CO_API_URL", "CO_BASE_URL", "GOOGLE_GEMINI_BASE_URL"):
        monkeypatch.setenv(name, "http://127.0.0.1:9")
    busy = Reply(b'{"message": "slow down"}', status=503, content_type="application/json", framing="length")
    with FakeServer([busy]) as server:
        async with model_at(server, wire) as model:
            with pytest.raises(RetryLater, match="slow down"):
                await collect_answer(model.stream(request()))
    [asked] = server.requests
    assert any(KEY in value for value in asked.headers.values())
    assert not any("sk-of-the" in value for value in asked.headers.values())
    assert asked.headers["user-agent"] == "handrail"
    assert not [name for name in asked.headers if "stainless" in name or "fern" in name]


@pytest.mark.promise("PROV-2")
async def test_stored_bytes_are_read_again_and_nothing_is_sent(wire: WireFormat) -> None:
    body = wire.write(CALL)
    with FakeServer([Reply(body)]) as server:
        async with model_at(server, wire) as model:
            sent = [part async for part in model.stream(request())]
            first = await collect_answer(model.stream(request()))
            asked = len(server.requests)
            again = [part async for part in model.stream(replace(request(), received=first.raw))]
            assert len(server.requests) == asked
    assert next(each for each in sent if isinstance(each, RequestBytes)).pieces[0] == server.requests[0].body
    assert b"".join(each.data for each in again if isinstance(each, RawBytes)) == body
    kinds = (RequestBytes, RawBytes)
    assert [each for each in again if not isinstance(each, kinds)] == [
        each for each in sent if not isinstance(each, kinds)
    ]
    assert EndOfBytes() in again


async def test_turn_goes_back_as_it_came_and_a_changed_one_as_plain_text(wire: WireFormat) -> None:
    with FakeServer([Reply(wire.write(CALL)), Reply(wire.write(Said(text=("Done.",))))]) as server:
        async with model_at(server, wire) as model:
            got = await collect_answer(model.stream(request()))
            turn = AssistantTurn(got.text, got.calls, got.opaque)
            result = ToolResult(got.calls[0].id, "read", "no such file", is_error=True)
            conversation = Request(system="You help.", messages=(UserTurn("Read a.py"), turn, result))
            await collect_answer(model.stream(conversation))
            changed = replace(turn, text="Other words.")
            await collect_answer(
                model.stream(replace(conversation, messages=(UserTurn("x"), changed, result)))
            )
    text = server.requests[1].body.decode().encode().decode("unicode_escape", "replace")
    assert "read" in text
    assert "no such file" in text
    assert "Other words." in server.requests[2].body.decode()


async def test_vertex_asks_googles_library_at_its_own_address() -> None:
    settings = ConnectionSettings(provider="vertex", region="europe-west4", key_env=("MINE",))
    assert build_connection("mine", settings).base_url == "https://europe-west4-aiplatform.googleapis.com"
    everywhere = ConnectionSettings(provider="vertex", region="global")
    assert build_connection("mine", everywhere).base_url == "https://aiplatform.googleapis.com"
    with pytest.raises(ConfigProblem, match="needs a region"):
        build_connection("mine", ConnectionSettings(provider="bedrock"))


@pytest.mark.promise("PROV-5")
async def test_bedrock_signs_with_the_login_of_the_cloud_where_there_is_no_key(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "AKIAEXAMPLE")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "swordfish-0123456789")
    said = Said(text=("Signed in.",))
    with FakeServer([Reply(bedrock_bytes(said))]) as server:
        settings = ConnectionSettings(
            provider="bedrock", region="eu-central-1", base_url=server.url, cloud_login=True
        )
        model = await connect("aws/m", environment={}, settings={"aws": settings})
        assert (await collect_answer(model.stream(request()))).text == "Signed in."
        await model.aclose()
    signature = server.requests[-1].headers["authorization"]
    assert signature.startswith("AWS4-HMAC-SHA256 Credential=AKIAEXAMPLE/")
    assert "swordfish" not in str(server.requests)


@pytest.mark.promise("PROV-5")
async def test_vertex_gets_its_token_from_the_login_of_the_cloud(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    token = Reply(b'{"access_token": "tok-1", "expires_in": 3600}', framing="length")
    with FakeServer([token]) as tokens, FakeServer([Reply(google_bytes(Said(text=("Hi.",))))]) as server:
        key = generate_private_key(65537, 2048).private_bytes(
            Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()
        )
        login = {
            "type": "service_account",
            "client_email": "robot@project.example",
            "private_key": key.decode(),
            "token_uri": f"{tokens.url}/v1/messages",
        }
        (tmp_path / "login.json").write_text(json.dumps(login))
        monkeypatch.setenv("GOOGLE_APPLICATION_CREDENTIALS", str(tmp_path / "login.json"))
        settings = ConnectionSettings(
            provider="vertex", region="europe-west4", project="p", base_url=server.url, cloud_login=True
        )
        model = await connect("g/m", environment={}, settings={"g": settings})
        assert (await collect_answer(model.stream(request()))).text == "Hi."
        await model.aclose()
        offline = await connect("g/m", environment={}, settings={"g": settings})
        tokens.stop()
        with pytest.raises(RetryLater, match="was not asked"):
            await collect_answer(offline.stream(request()))
        await offline.aclose()
    assert server.requests[-1].headers["authorization"] == "Bearer tok-1"
    assert "/projects/p/locations/europe-west4/" in server.requests[-1].path


@pytest.mark.promise("PROV-3")
async def test_missing_library_is_named_with_the_line_that_installs_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(
        connect_module, "find_spec", lambda name: None if name == "groq" else ModuleType(name)
    )
    settings = {"fast": ConnectionSettings(provider="groq")}
    with pytest.raises(ConfigProblem, match="needs groq: `") as missing:
        await connect("fast/llama", environment={"GROQ_API_KEY": KEY}, settings=settings)
    assert install_command("providers", "groq") in str(missing.value)
    reach = check_reachable("fast/llama", environment={}, settings=settings, credential=no_credential)
    assert "pip install" in reach.problem


def exceptions() -> Iterator[type[Exception]]:
    for name in LIBRARIES:
        module = import_module(name)
        for each in list(vars(module).values()):
            if isinstance(each, type) and issubclass(each, Exception) and not issubclass(each, Warning):
                yield each


@pytest.mark.promise("PROV-4")
def test_every_error_of_the_libraries_is_ours() -> None:
    found = {each for each in exceptions() if each.__name__ not in NOT_RAISED}
    assert len(found) > 120
    assert {each for each in found if not issubclass(each, sdk_errors())} == set()
    connection = build_connection("mine", ConnectionSettings(provider="groq", base_url="http://127.0.0.1:9"))
    asked = RequestTarget("mine", "m", ("MINE",), local=True)
    exchange = Exchange(
        Transport(connection, KEY), Request(system="", messages=(), deadlines=Deadlines()), asked, "x"
    )
    for kind in found:
        # Without its constructor it lacks what its own text would name.
        worded: type[Exception] = type(
            kind.__name__, (kind,), {"__str__": lambda _: "words", "__module__": kind.__module__}
        )
        error: Exception = worded.__new__(worded)
        error.args = ("words",)
        vars(error).update(FACTS)
        for begun in (False, True):
            assert isinstance(map_sdk_error(error, exchange, asked, begun=begun), ModelProblem)


def test_no_library_is_imported_before_a_connection_needs_it() -> None:
    import subprocess

    imports = "sys, handrail.app.app, handrail.models.connect, handrail.models.wire.openai"
    code = f"import {imports}; print(*sys.modules)"
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    roots = {name.partition(".")[0] for name in ran.stdout.split()}
    assert not roots & {"pydantic_ai", "pydantic", "groq", "mistralai", "cohere", "google", "boto3", "httpx"}
    assert "handrail.models.pydantic_ai.adapter" not in ran.stdout
