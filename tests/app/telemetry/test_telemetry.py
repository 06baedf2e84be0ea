"""Traces of turns: nested spans at a real collector, no content unless asked for, and never a wait."""

import os
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from handrail.app.telemetry.export import MAX_QUEUED, SEND_SECONDS, SpanExporter
from handrail.app.telemetry.export import Collector as Address
from handrail.app.telemetry.follow import CLOSE_SECONDS, telemetry_settings
from handrail.app.telemetry.spans import Span
from handrail.config.settings import Settings, TelemetrySettings
from handrail.protocol.events import TurnFinished
from tests.app.telemetry.collector import Collector, attributes
from tests.engine.conversation import call, conversation

pytestmark = pytest.mark.anyio

SECRET = "sk-live-0123456789abcdef"
SPAN = Span(name="x", trace_id=1, span_id=1, start=1.0, end=2.0, attributes={})
ANSWERS = [call("read", path="notes.txt"), call("read", path="missing.txt"), {"text": f"It is {SECRET}."}]


def end_of_exporters() -> None:
    for thread in threading.enumerate():
        if thread.name == "telemetry":
            thread.join(2 * SEND_SECONDS)
            assert not thread.is_alive()


@pytest.fixture(autouse=True)
def no_exporter_is_left() -> Iterator[None]:
    """A thread that goes on draws from the random numbers that Hypothesis watches in the next tests."""
    yield
    end_of_exporters()


async def traced_turn(
    workspace: Path, settings: str, environ: Mapping[str, str] = os.environ
) -> TurnFinished:
    (workspace / "notes.txt").write_text("buy milk\n", encoding="utf-8")
    async with conversation(workspace, ANSWERS, settings=settings, environ=environ) as talk:
        return await talk.turn("What is in notes.txt and missing.txt?")


@pytest.mark.promise("TEL-1")
async def test_turn_requests_and_tools_are_nested_spans_of_one_trace(tmp_path: Path) -> None:
    with Collector() as collector:
        await traced_turn(tmp_path, f'[telemetry]\nendpoint = "{collector.url}"\n')
        assert collector.has("invoke_agent handrail")
    turn = collector.named("invoke_agent handrail")
    stage = collector.named("stage work")
    chats = [each for each in collector.spans if each.name.startswith("chat ")]
    tools = [each for each in collector.spans if each.name == "execute_tool read"]
    assert (len(chats), len(tools)) == (3, 2)
    assert {each.trace_id for each in collector.spans} == {turn.trace_id}
    assert turn.parent_span_id == b""
    assert stage.parent_span_id == turn.span_id
    assert {each.parent_span_id for each in (*chats, *tools)} == {stage.span_id}
    assert all(each.start_time_unix_nano <= each.end_time_unix_nano for each in collector.spans)
    assert attributes(turn)["gen_ai.operation.name"] == "invoke_agent"
    assert attributes(turn)["handrail.finish_reason"] == "answered"
    first = attributes(min(chats, key=lambda each: each.start_time_unix_nano))
    assert first["gen_ai.operation.name"] == "chat"
    assert first["gen_ai.provider.name"] == "scripted"
    assert first["gen_ai.usage.input_tokens"] == 10
    assert first["gen_ai.response.finish_reasons"] == ["tool_calls"]
    assert sorted(attributes(each).get("error.type", "") for each in tools) == ["", "file_missing"]
    assert collector.resources[0]["service.name"] == "handrail"


@pytest.mark.promise("TEL-1")
async def test_calls_with_the_same_id_are_spans_of_their_own(tmp_path: Path) -> None:
    """Some servers count the calls of each answer from zero."""
    same = {"id": "call_0", "name": "list", "arguments": {}}
    with Collector() as collector:
        settings = f'[telemetry]\nendpoint = "{collector.url}"\n'
        answers: list[dict[str, Any]] = [{"calls": [same]}, {"calls": [same]}, {"text": "two"}]
        async with conversation(tmp_path, answers, settings=settings, environ=os.environ) as talk:
            await talk.turn("list it twice")
        assert collector.has("invoke_agent handrail")
    ids = [each.span_id for each in collector.spans if each.name == "execute_tool list"]
    assert len(set(ids)) == len(ids) == 2


@pytest.mark.promise("TEL-2")
async def test_spans_hold_no_content(tmp_path: Path) -> None:
    with Collector() as collector:
        await traced_turn(tmp_path, f'[telemetry]\nendpoint = "{collector.url}"\n')
        assert collector.has("invoke_agent handrail")
    everything = "".join(map(str, collector.spans))
    for text in ("notes.txt", "milk", SECRET, "missing"):
        assert text not in everything.replace("file_missing", "")


@pytest.mark.promise("TEL-2")
async def test_content_that_was_asked_for_has_no_secrets(tmp_path: Path) -> None:
    with Collector() as collector:
        environ = os.environ | {"MY_API_KEY": SECRET}
        settings = f'[telemetry]\nendpoint = "{collector.url}"\ncontent = true\n'
        await traced_turn(tmp_path, settings, environ)
        assert collector.has("invoke_agent handrail")
    everything = "".join(map(str, collector.spans))
    assert "notes.txt" in everything
    assert "milk" in everything
    assert "MY_API_KEY" in everything
    assert SECRET not in everything


@pytest.mark.promise("TEL-3")
@pytest.mark.parametrize("way", ["hangs", "refuses"])
async def test_collector_that_does_not_answer_holds_nobody_up(tmp_path: Path, way: str) -> None:
    with Collector(way) as collector:  # type: ignore[arg-type]
        begun = time.monotonic()
        finished = await traced_turn(tmp_path, f'[telemetry]\nendpoint = "{collector.url}"\n')
        assert finished.reason == "answered"
        assert time.monotonic() - begun < 45  # the collector hangs for 60 s


def test_full_queue_drops_spans_and_ends_all_the_same() -> None:
    with Collector("hangs") as collector:
        exporter = SpanExporter(Address(collector.url))
        for _ in range(3 * MAX_QUEUED):
            exporter.add(SPAN)
        assert exporter.dropped >= MAX_QUEUED - 512
        exporter.give_up()


def test_exporter_that_gives_up_does_not_try_again() -> None:
    with Collector("unavailable") as collector:
        exporter = SpanExporter(Address(collector.url))
        exporter.add(SPAN)
        assert collector.wait_until(lambda: collector.requests > 1)  # it tries again
        exporter.give_up()
        end_of_exporters()
        assert not exporter.alive
        assert collector.requests < 5


@pytest.mark.promise("TEL-3")
def test_process_ends_while_a_collector_hangs(tmp_path: Path) -> None:
    script = tmp_path / "script.json"
    script.write_text('[{"text": "Hello."}]', encoding="utf-8")
    with Collector("hangs") as collector:
        ran = subprocess.run(
            [sys.executable, "-m", "handrail", "run", "hi", "--model", f"scripted/{script}"],
            env=os.environ | {"OTEL_EXPORTER_OTLP_ENDPOINT": collector.url},
            cwd=tmp_path,
            capture_output=True,
            text=True,
            timeout=50,
            check=False,
        )
        assert ran.returncode == 0
        assert len(ran.stderr.splitlines()) == 1, ran.stderr  # the line of costs
        assert "Hello." in ran.stdout
        assert collector.wait_until(lambda: collector.requests > 0)
    assert CLOSE_SECONDS < 5


@pytest.mark.parametrize(
    ("environ", "on"),
    [
        ({}, False),
        ({"OTEL_EXPORTER_OTLP_ENDPOINT": "http://h:4318"}, True),
        ({"OTEL_EXPORTER_OTLP_TRACES_ENDPOINT": "http://h:4318/v1/traces"}, True),
        ({"OTEL_EXPORTER_OTLP_ENDPOINT": "http://h", "OTEL_SDK_DISABLED": "true"}, False),
        ({"OTEL_EXPORTER_OTLP_ENDPOINT": "http://h", "OTEL_TRACES_EXPORTER": "none"}, False),
    ],
)
@pytest.mark.promise("TEL-4")
def test_telemetry_is_off_unless_settings_or_variables_turn_it_on(environ: dict[str, str], on: bool) -> None:
    assert telemetry_settings(Settings(), environ).on == on
    own = Settings(telemetry=TelemetrySettings(endpoint="http://h:4318"))
    assert telemetry_settings(own, environ).on == (
        "none" not in environ.values() and "true" not in environ.values()
    )


@pytest.mark.promise("TEL-4")
def test_nothing_of_opentelemetry_is_imported_where_it_is_off(tmp_path: Path) -> None:
    code = "import sys, handrail.app.app; print(*sys.modules)"
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert not [
        name for name in ran.stdout.split() if name.startswith(("opentelemetry", "handrail.app.telemetry.e"))
    ]
