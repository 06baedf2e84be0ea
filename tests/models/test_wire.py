"""The way to the server: connecting, proxies."""

import socket

import pytest

from handrail.config.connections import ConnectionSettings
from handrail.models.base import Deadlines
from handrail.models.connect import connect
from handrail.models.reading import collect
from handrail.protocol.errors import ConfigProblem, GiveUp, RetryLater
from tests.models.fake_server import FakeServer, Said
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
            await collect(model.stream(request(Deadlines(connect=0.2))))
        await model.aclose()
        for each in waiting:
            each.close()


async def test_server_on_this_machine_is_reached_past_any_proxy(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY"):
        monkeypatch.setenv(name, "http://127.0.0.1:9")
    with FakeServer([Said(text=("Hi",))]) as server:
        async with model_at(server, FORMATS[0]) as model:
            assert (await collect(model.stream(request()))).text == "Hi"


async def test_proxy_that_cannot_be_used_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HTTPS_PROXY", "gopher://127.0.0.1:9")
    model = await connect("claude-x", environment={"ANTHROPIC_API_KEY": "k"})
    with pytest.raises(GiveUp, match="proxy"):
        await collect(model.stream(request()))


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
        assert (await collect(model.stream(request()))).text == "Hi"
        await model.aclose()
        sent = server.requests[-1]
    assert sent.path == "/openai/deployments/gpt/chat/completions?api-version=2026-06-01"
    assert sent.headers["api-key"] == "k"
    assert "authorization" not in sent.headers
    assert "stream_options" not in sent.json
