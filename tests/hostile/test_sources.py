"""Hostile servers of sources: each is a real process, and the session goes on."""

import os
from pathlib import Path
from typing import Any

import anyio
import pytest

from handrail.protocol.events import QuestionAsked, ToolFinished
from tests.engine.conversation import Conversation, call, conversation, eventually
from tests.hostile.http_source import HostileServer, serving
from tests.interfaces.cli.program import command, environment, script
from tests.processes import gone, lasting
from tests.tools.sources.places import PYTHON, own, words

pytestmark = pytest.mark.anyio

LIMITS: dict[str, Any] = {"start_seconds": 30, "call_seconds": 3, "tools": {"unasked": ["*"]}}
ACT = call("mcp", source="plain", tool="act")
MEMORY = 400_000_000


def memory() -> int:
    """Bytes of memory that this process has ever used."""
    status = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) * 1024 for line in status if line.startswith("VmHWM"))


async def act(folder: Path, how: str, *more: object, **keys: Any) -> tuple[Conversation, int]:
    """A turn in which the model calls the tool `act`, and goes on; and the memory that it took."""
    own(os.environ, **{**LIMITS, "command": words(how, folder, *more), "writes": [str(folder)], **keys})
    async with conversation(folder, [ACT, {"text": "I go on."}], mode="auto") as talk:
        before = memory()
        ended = await talk.turn("Act")
        assert ended.reason == "answered"
        return talk, memory() - before


def failures(talk: Conversation) -> list[str]:
    ends = talk.all(ToolFinished)
    assert all(end.error and end.error.reason == "source_failed" for end in ends), ends
    return [end.content for end in ends]


@pytest.mark.promise("SOURCE-12")
@pytest.mark.parametrize(
    ("how", "why"),
    [
        ("hangs at start", "it did not start within 3 s"),
        ("ends at start", "it ended with status 1. It printed: no configuration found"),
    ],
)
async def test_a_server_that_does_not_start_is_an_error_within_the_limit(
    tmp_path: Path, how: str, why: str
) -> None:
    talk, _ = await act(tmp_path, how, start_seconds=3 if "hangs" in how else 60)
    (content,) = failures(talk)
    assert why in content
    assert await gone(str(tmp_path))


@pytest.mark.promise("SOURCE-12")
@pytest.mark.parametrize("variables", [{}, {"PLAIN": "set inside"}], ids=["direct", "with variables"])
async def test_a_program_that_is_not_installed_is_named_with_what_has_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, variables: dict[str, str]
) -> None:
    """The ready definitions need `uvx` and `npx`, and a first user may have neither."""
    monkeypatch.setenv("PATH", "/nowhere")
    talk, _ = await act(tmp_path, "serves", command=["uvx", "some-server"], env=variables)
    (content,) = failures(talk)
    assert "Install uv, which has `uvx`" in content


@pytest.mark.promise("SOURCE-12")
@pytest.mark.parametrize("how", ["hangs", "stalls"])
async def test_a_server_that_never_answers_is_an_error_within_the_limit_and_ended(
    tmp_path: Path, how: str
) -> None:
    talk, _ = await act(tmp_path, how, call_seconds=1)
    (content,) = failures(talk)
    assert "act did not answer within 1 s" in content
    assert "It is not repeated" in content
    assert await gone(str(tmp_path))


@pytest.mark.promise("SOURCE-13")
@pytest.mark.parametrize(
    ("how", "why"),
    [("floods", "sent a message of more than 16 MB"), ("chatters", "sent more than 64 MB at once")],
)
async def test_a_server_that_sends_without_end_is_ended_in_bounded_memory(
    tmp_path: Path, how: str, why: str
) -> None:
    talk, used = await act(tmp_path, how, call_seconds=60)
    (content,) = failures(talk)
    assert why in content
    assert used < MEMORY
    assert await gone(str(tmp_path))


@pytest.mark.promise("SOURCE-14")
async def test_broken_json_is_an_error_at_once(tmp_path: Path) -> None:
    talk, _ = await act(tmp_path, "breaks", call_seconds=600)
    (content,) = failures(talk)
    assert "not valid JSON-RPC" in content
    assert await gone(str(tmp_path))


async def test_lines_that_are_no_messages_are_left_alone(tmp_path: Path) -> None:
    talk, _ = await act(tmp_path, "logs on its output")
    (ended,) = talk.all(ToolFinished)
    assert ended.status == "ok"


@pytest.mark.promise("SOURCE-12")
@pytest.mark.promise("SOURCE-13")
@pytest.mark.promise("SOURCE-14")
@pytest.mark.parametrize(
    ("how", "why"),
    [
        ("hangs at start", "it did not start within 3 s"),
        ("hangs", "act did not answer within 3 s"),
        ("stalls", "act did not answer within 3 s"),
        ("floods", "it sent more than 64 MB at once"),
        ("floods an event", "exceeded the 4000000 byte limit"),
        ("is compressed", "it sent a compressed answer"),
        ("breaks", ""),
        ("goes away", ""),
        ("redirects", "elsewhere not followed"),
    ],
)
async def test_a_hostile_server_over_http_is_an_error_within_the_limit_and_called_once(
    tmp_path: Path, how: str, why: str
) -> None:
    server = HostileServer(how)
    async with serving(server) as url:
        seconds: dict[str, Any] = {"start_seconds": 3 if how == "hangs at start" else 60}
        seconds["call_seconds"] = 3 if how in ("hangs", "stalls") else 60
        own(
            os.environ,
            url=url,
            headers={"authorization": "Bearer of-this-server"},
            tools={"unasked": ["*"]},
            **seconds,
        )
        async with conversation(tmp_path, [ACT, {"text": "I go on."}], mode="auto") as talk:
            before = memory()
            assert (await talk.turn("Act")).reason == "answered"
            assert memory() - before < MEMORY
    (content,) = failures(talk)
    assert why in content, content
    assert server.calls == (how != "hangs at start")
    assert server.elsewhere == []


@pytest.mark.promise("SOURCE-15")
async def test_a_server_that_ends_after_its_effect_is_not_called_again(tmp_path: Path) -> None:
    talk, _ = await act(tmp_path, "exits", call_seconds=60)
    (content,) = failures(talk)
    assert "it ended with status 7" in content
    assert "What the call did before that is unknown. It is not repeated" in content
    assert (tmp_path / "effect").read_text() == "once\n"


@pytest.mark.promise("SOURCE-16")
async def test_no_process_of_a_server_is_left_behind(tmp_path: Path) -> None:
    word = lasting()
    talk, _ = await act(tmp_path, "forks", word)
    failures(talk)
    assert (tmp_path / "forked").exists()
    assert await gone(word)
    assert await gone(str(tmp_path))


@pytest.mark.promise("SOURCE-16")
async def test_no_process_of_a_server_is_left_when_handrail_is_killed(tmp_path: Path) -> None:
    word = lasting()
    own(
        os.environ,
        **{**LIMITS, "command": words("forks", tmp_path, word), "call_seconds": 600},
        writes=[str(tmp_path)],
    )
    asked = ["run", "--model", script(tmp_path, ACT), "--mode", "auto", "--route", "agent", "act"]
    async with await anyio.open_process(command(*asked), cwd=tmp_path, env=environment()) as process:
        await eventually((tmp_path / "forked").exists)
        process.kill()
    assert await gone(word)
    assert await gone(str(tmp_path))


async def test_a_server_cannot_ask_the_user_without_end(tmp_path: Path) -> None:
    own(os.environ, **{**LIMITS, "command": words("asks without end"), "call_seconds": 60})
    async with conversation(tmp_path, [ACT, {"text": "on"}], mode="auto", answerable=False) as talk:
        await talk.turn("Act")
    (ended,) = talk.all(ToolFinished)
    assert len(talk.all(QuestionAsked)) == 5
    assert ended.content.endswith('", '.join(['"cancel'] * 5 + ['"decline'] * 15) + '"]')


@pytest.mark.promise("SOURCE-17")
async def test_a_server_writes_only_where_its_definition_says(tmp_path: Path) -> None:
    allowed = tmp_path / "allowed"
    allowed.mkdir()
    script = "import sys, pathlib; pathlib.Path(sys.argv[1]).write_text('x')"
    for place, there in ((tmp_path / "forbidden", False), (allowed / "file", True)):
        command = [PYTHON, "-I", "-S", "-c", script, str(place)]
        own(os.environ, command=command, writes=[str(allowed)])
        async with conversation(tmp_path, [call("mcp", source="plain"), {"text": "on"}]) as talk:
            await talk.turn("List")
        assert place.exists() is there
