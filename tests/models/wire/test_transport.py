"""The way to the server: connecting, proxies."""

import gzip
import socket
import tracemalloc
import zlib

import anyio
import pytest

from handrail.config.settings import ConnectionSettings
from handrail.models.connect import connect
from handrail.models.model import Capabilities, Deadlines
from handrail.models.providers import build_connection
from handrail.models.reading.collector import collect_answer
from handrail.models.wire import transport as wire_module
from handrail.models.wire.openai import OpenAIModel
from handrail.models.wire.transport import Transport
from handrail.protocol.errors import ConfigProblem, GiveUp, RetryLater
from tests.models.fake_server import FakeServer, Reply, Said
from tests.models.wires import FORMATS, model_at, request

pytestmark = pytest.mark.anyio


@pytest.mark.promise("MOD-8")
async def test_server_that_accepts_no_connection_is_left_in_time() -> None:
    with socket.socket() as full:
        full.bind(("127.0.0.1", 0))
        full.listen(0)
        waiting = [socket.socket() for _ in range(4)]
        for each in waiting:
            each.settimeout(0)
            each.connect_ex(full.getsockname())
        settings = ConnectionSettings(base_url=f"http://127.0.0.1:{full.getsockname()[1]}/v1")
        model = await connect("mine/m", environment={}, settings={"mine": settings})
        with pytest.raises(RetryLater, match="did not accept a connection"):
            await collect_answer(model.stream(request(Deadlines(connect=0.2))))
        await model.aclose()
        for each in waiting:
            each.close()


async def test_server_on_this_machine_is_reached_past_any_proxy(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY"):
        monkeypatch.setenv(name, "http://127.0.0.1:9")
    with FakeServer([Said(text=("Hi",))]) as server:
        async with model_at(server, FORMATS[0]) as model:
            assert (await collect_answer(model.stream(request()))).text == "Hi"


async def test_proxy_that_cannot_be_used_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HTTPS_PROXY", "gopher://127.0.0.1:9")
    model = await connect("claude-x", environment={"ANTHROPIC_API_KEY": "k"})
    with pytest.raises(GiveUp, match="proxy"):
        await collect_answer(model.stream(request()))


def bomb(layers: int) -> bytes:
    """200 MB of blanks, so many times compressed."""
    packer = zlib.compressobj(9, zlib.DEFLATED, 31)
    body = b"".join([*(packer.compress(b" " * 1_000_000) for _ in range(200)), packer.flush()])
    for _ in range(layers - 1):
        body = gzip.compress(body)
    return body


@pytest.mark.promise("MOD-9")
@pytest.mark.parametrize("layers", [1, 2])
@pytest.mark.parametrize("asked", ["answer", "models"])
async def test_answer_that_unfolds_without_end_is_given_up_within_bounded_memory(
    layers: int, asked: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(wire_module, "MAX_ANSWER_BYTES", 4_000_000)
    headers = (("content-encoding", ", ".join(["gzip"] * layers)),)
    reply = Reply(bomb(layers), headers=headers, framing="length")
    with FakeServer([reply], listed=reply) as server:
        wire = Transport(build_connection("mine", ConnectionSettings(base_url=f"{server.url}/v1")), "")
        model = OpenAIModel(
            build_connection("mine", ConnectionSettings(base_url=f"{server.url}/v1")), "m", "", Capabilities()
        )
        tracemalloc.start()
        with pytest.raises(GiveUp, match=r"MB|compressed"):
            if asked == "answer":
                async for _ in model.stream(request()):
                    pass
            else:
                await wire.model_names(10)
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        await model.aclose()
        await wire.aclose()
    assert peak < 20_000_000


async def test_damaged_compression_means_retry() -> None:
    reply = Reply(b"no gzip at all", headers=(("content-encoding", "gzip"),))
    with FakeServer([reply]) as server:
        async with model_at(server, FORMATS[0]) as model:
            with pytest.raises(RetryLater, match="cannot be read"):
                await collect_answer(model.stream(request()))


async def test_list_of_models_that_never_ends_is_left_in_time() -> None:
    drip = Reply(b" ", step=1, pause=0.01, repeat=100_000, content_type="application/json")
    with FakeServer([], listed=drip) as server:
        wire = Transport(build_connection("mine", ConnectionSettings(base_url=f"{server.url}/v1")), "")
        with anyio.fail_after(50), pytest.raises(RetryLater):
            await wire.model_names(0.3)
        await wire.aclose()


async def test_header_that_cannot_be_sent_is_refused_before_sending() -> None:
    settings = ConnectionSettings(base_url="http://127.0.0.1:9/v1", headers={"x-team": "größe"})
    with pytest.raises(ConfigProblem, match="x-team"):
        await connect("mine/m", environment={}, settings={"mine": settings})


async def test_azure_is_a_connection_like_the_others() -> None:
    with FakeServer([Said(text=("Hi",))]) as server:
        settings = ConnectionSettings(
            base_url=f"{server.url}/openai/deployments/gpt",
            key_env=("AZURE_KEY",),
            key_header="api-key",
            query={"api-version": "2026-06-01"},
            output_limit="max_completion_tokens",
            stream_usage=False,
        )
        model = await connect("azure/gpt", environment={"AZURE_KEY": "k"}, settings={"azure": settings})
        assert (await collect_answer(model.stream(request()))).text == "Hi"
        await model.aclose()
        sent = server.requests[-1]
    assert sent.path == "/openai/deployments/gpt/chat/completions?api-version=2026-06-01"
    assert sent.headers["api-key"] == "k"
    assert "authorization" not in sent.headers
    assert "stream_options" not in sent.json
