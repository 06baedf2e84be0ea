"""Hooks in a conversation: before a turn ends, when a session starts, over restarts, and whose they are."""

import os
from pathlib import Path

import pytest

from handrail.config.layers import load_settings
from handrail.config.places import find_places
from handrail.config.trust import trust
from handrail.protocol.commands import AnswerApproval, Cancel, SendMessage
from handrail.protocol.errors import ConfigProblem
from handrail.protocol.events import (
    ApprovalAsked,
    Delta,
    HookSpoke,
    SessionHooked,
    ToolFinished,
    ToolStarted,
    TurnFinished,
)
from handrail.protocol.values import HookPoint
from tests.engine.conversation import call, conversation, eventually, words, write_settings
from tests.processes import gone, lasting, running
from tests.tools.hook_programs import program, section

pytestmark = pytest.mark.anyio


def settings_folder() -> Path:
    return find_places(os.environ).settings.parent


def hook(on: HookPoint, body: str, name: str = "hook.py", **more: object) -> str:
    """A hook of the user's, as text of their settings, its program beside them."""
    return section(on, program(settings_folder(), body, name), **more)


@pytest.fixture
def shop(tmp_path: Path) -> Path:
    folder = tmp_path / "shop"
    folder.mkdir()
    return folder


# Before a turn ends

CHANGELOG = """
if "code.py" in asked["files"] and "CHANGES" not in asked["files"]: say(demand="Say it in CHANGES too.")
"""


@pytest.mark.promise("HOOK-4")
async def test_a_hook_sends_the_model_on_until_it_is_content(shop: Path) -> None:
    answers = [
        call("write", path="code.py", text="x = 1\n"),
        {"text": "Done."},
        call("write", path="CHANGES", text="x\n"),
        {"text": "Now it is."},
    ]
    async with conversation(shop, answers, settings=hook("before_end", CHANGELOG), mode="edit") as talk:
        ended = await talk.turn("write it")
        assert (ended.reason, ended.detail) == ("answered", "")
        assert (shop / "CHANGES").exists()
        (spoke,) = talk.all(HookSpoke)
        assert (spoke.on, spoke.did, spoke.text) == ("before_end", "demanded", "Say it in CHANGES too.")
        assert "does not let the turn end yet: Say it in CHANGES too.]" in words(talk.requests[2])


@pytest.mark.promise("HOOK-4")
async def test_a_hook_that_is_never_content_is_heard_three_times(shop: Path) -> None:
    body = "say(demand=f\"once more, {asked['demands']}: {asked['answer']}\")"
    answers = [{"text": f"answer {number}"} for number in range(5)]
    async with conversation(shop, answers, settings=hook("before_end", body)) as talk:
        ended = await talk.turn("hello")
        assert [spoke.text for spoke in talk.all(HookSpoke)] == [
            f"once more, {number}: answer {number}" for number in range(3)
        ]
        assert ended.reason == "unverified"
        assert ended.detail.endswith("after 3 rounds of it: once more, 3: answer 3")
        assert len(talk.requests) == 4


@pytest.mark.promise("HOOK-4")
async def test_a_hook_that_fails_before_the_end_leaves_the_turn_unverified(shop: Path) -> None:
    settings = hook("before_end", 'sys.exit("no disk")')
    async with conversation(shop, [{"text": "hi"}], settings=settings) as talk:
        ended = await talk.turn("hello")
        assert ended.reason == "unverified"
        assert "it ended with status 1: no disk" in ended.detail
        assert [spoke.did for spoke in talk.all(HookSpoke)] == ["failed"]


async def test_a_demand_is_bounded_by_the_limits_of_the_turn_too(shop: Path) -> None:
    settings = hook("before_end", 'say(demand="more")')
    async with conversation(shop, [{"text": "hi"}] * 3, settings=settings, max_steps=2) as talk:
        assert (await talk.turn("hello")).reason == "budget"


async def test_a_check_does_not_pass_over_a_hook_that_is_not_content(shop: Path) -> None:
    settings = hook("before_end", 'say(demand="more")')
    answers = [call("write", path="a.txt", text="x\n"), *[{"text": "done"}] * 4]
    async with conversation(shop, answers, settings=settings, mode="edit") as talk:
        await talk.send(SendMessage(text="do it", check="true", attempts=2))
        ended = await talk.until(TurnFinished)
        assert ended.reason == "unverified"
        assert "still demands more work" in ended.detail
        assert not (shop / "a.txt").exists()


# When a session starts

START = (
    'open("ran", "a").write("x")\nsay(tell=f"The freeze holds in {os.path.basename(asked[\'workspace\'])}.")'
)


@pytest.mark.promise("HOOK-5")
async def test_what_a_hook_tells_at_the_start_holds_for_the_session_and_is_asked_once(shop: Path) -> None:
    answers = [{"text": "one"}, {"text": "two"}, {"text": "three"}]
    async with conversation(shop, answers, settings=hook("session_start", START)) as talk:
        await talk.turn("hello")
        await talk.turn("again")
        (hooked,) = talk.all(SessionHooked)
        assert hooked.text.endswith("hook.py]\nThe freeze holds in shop.")
        systems = {request.system for request in talk.requests}
        assert len(systems) == 1
        assert "The freeze holds in shop." in systems.pop()
        session, after = talk.id, talk.seen[-1].seq
    async with conversation(shop, answers, session=session, after=after) as talk:
        await talk.turn("after a restart")
        assert "The freeze holds in shop." in talk.requests[0].system
    assert (settings_folder() / "ran").read_text() == "x"


@pytest.mark.promise("HOOK-5")
async def test_a_hook_that_fails_at_the_start_stops_every_turn_until_it_works(shop: Path) -> None:
    settings = hook("session_start", 'sys.exit("no licence")')
    async with conversation(shop, [{"text": "hi"}], settings=settings) as talk:
        ended = await talk.turn("hello")
        assert (ended.reason, talk.requests) == ("failed", [])
        assert "config.toml:" in ended.detail
        assert "failed when the session started: it ended with status 1: no licence" in ended.detail
        program(settings_folder(), "say()")
        assert (await talk.turn("now?")).reason == "answered"
        assert [hooked.text for hooked in talk.all(SessionHooked)] == [""]


# Over a restart


@pytest.mark.promise("HOOK-3")
async def test_after_a_restart_the_call_that_waits_is_decided_again_with_its_hooks(shop: Path) -> None:
    body = 'say(arguments=asked["arguments"] | {"text": "two\\n"})'
    settings = hook("before_tool", body, match=["write"])
    answers = [call("write", path="a.txt", text="one\n"), {"text": "done"}]
    async with conversation(shop, answers, settings=settings) as talk:
        await talk.say("write it")
        asked = await talk.until(ApprovalAsked)
        session, after = talk.id, talk.seen[-1].seq
    async with conversation(shop, answers, session=session, after=after) as talk:
        await talk.send(AnswerApproval(approval_id=asked.approval_id, decision="once"))
        ended = await talk.until(TurnFinished)
        assert ended.reason == "answered"
        # The hook said the same again, so that the user's word holds.
        assert talk.all(ApprovalAsked) == []
    assert (shop / "a.txt").read_text() == "two\n"


@pytest.mark.promise("HOOK-7")
async def test_a_cancelled_turn_ends_the_hook_and_the_call_was_never_begun(shop: Path) -> None:
    word = lasting()
    settings = section("before_tool", ["sleep", word], seconds=600)
    answers = [call("write", path="a.txt", text="one\n")]
    async with conversation(shop, answers, settings=settings, mode="edit") as talk:
        await talk.say("write it")
        await talk.until(Delta, lambda delta: delta.text == f"hook sleep {word}")
        await eventually(lambda: bool(running(word)))
        await talk.send(Cancel())
        assert (await talk.until(TurnFinished)).reason == "cancelled"
        assert talk.all(ToolStarted) == []
        assert [finished.status for finished in talk.all(ToolFinished)] == ["cancelled"]
    assert await gone(word)
    assert not (shop / "a.txt").exists()


# Whose hooks

GUARD = 'open("ran", "a").write("x")\nsay(deny="frozen")'


@pytest.mark.promise("HOOK-6")
async def test_a_hook_of_a_workspace_runs_only_once_it_is_trusted(shop: Path) -> None:
    own = shop / ".handrail"
    own.mkdir()
    (own / "config.toml").write_text(section("before_tool", program(own, GUARD)))
    answers = [call("list"), {"text": "done"}]
    async with conversation(shop, answers) as talk:
        assert any("hooks was ignored: it would run programs" in notice for notice in talk.app.notices)
        await talk.turn("look")
        assert [finished.status for finished in talk.all(ToolFinished)] == ["ok"]
    assert not (own / "ran").exists()
    async with conversation(shop, answers, trust=True) as talk:
        await talk.turn("look")
        assert [finished.status for finished in talk.all(ToolFinished)] == ["refused"]
    (own / "ran").unlink()
    places = find_places(os.environ)
    trust(places, shop, load_settings(places, shop, environ={}).workspace_files)
    async with conversation(shop, answers) as talk:
        await talk.turn("look")
        (finished,) = talk.all(ToolFinished)
        assert finished.error
        assert finished.error.reason == "hook_denied"
    assert (own / "ran").read_text() == "x"
    (own / "hook.py").write_text(f"{(own / 'hook.py').read_text()}\n")
    async with conversation(shop, answers) as talk:
        assert any("hooks was ignored" in notice for notice in talk.app.notices)
        await talk.turn("look")
        assert [finished.status for finished in talk.all(ToolFinished)] == ["ok"]


async def test_a_hook_about_no_tool_is_a_mistake_that_is_told(shop: Path) -> None:
    write_settings(section("before_tool", ["true"], match=["runn"]))
    with pytest.raises(ConfigProblem, match=r"config.toml:1: hooks.match: there is no tool 'runn'"):
        async with conversation(shop, []):
            pass


async def test_without_hooks_nothing_of_them_is_in_the_log(shop: Path) -> None:
    async with conversation(shop, [call("list"), {"text": "done"}]) as talk:
        await talk.turn("look")
        assert not [kind for kind in talk.types if "hook" in kind]
