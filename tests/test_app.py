"""The application as interfaces see it: sessions found, made, copied; models chosen; a doctor who tells."""

import os
from pathlib import Path

import pytest
from msgspec.structs import replace

from handrail.app.app import Options, open_app
from handrail.engine.admin.doctor import Finding, diagnose
from handrail.protocol.commands import Delete, Rename, Restore, SendMessage, SetMode, SetModel
from handrail.protocol.errors import UsageProblem
from handrail.protocol.events import (
    ModelSet,
    ModeSet,
    RequestStarted,
    SessionCopied,
    SessionDeleted,
    SessionRenamed,
    SessionRestored,
    TurnFinished,
    UserMessage,
)
from handrail.tools.sandbox.sandbox import Protection
from tests.conftest import NO_SERVER
from tests.engine.conversation import Conversation, conversation, script_file, words, write_settings
from tests.models.fake_server import FakeServer, Reply, Said
from tests.tools.sandbox.machine import offer

pytestmark = pytest.mark.anyio

YES = [{"text": "yes", "when": ""}]
SANDBOX_FACTS = ("files", "git", "secrets", "metadata", "tcp", "udp", "sockets", "others", "children", "ipc")


async def titled(talk: Conversation, title: str) -> str:
    """The id of a new session that was given a title."""
    session = talk.app.new_session()
    one = Conversation(talk.app, session, None, talk.held, after=0)
    await one.send(Rename(title=title))
    await one.until(SessionRenamed)
    await one.aclose()
    return session


# Sessions


@pytest.mark.promise("APP-1")
async def test_session_is_found_by_id_by_its_start_and_by_part_of_its_title(tmp_path: Path) -> None:
    async with conversation(tmp_path, YES) as talk:
        cart = await titled(talk, "Fix the Cart totals")
        docs = await titled(talk, "Write docs")
        find = talk.app.find_session
        assert find(cart) == cart
        assert find(docs[:-1]) == docs
        assert find(docs.removeprefix("s_")[:-1]) == docs
        assert find("cart tot") == cart
        assert find() == docs
        with pytest.raises(UsageProblem, match="matches 3 sessions"):
            find("s_")
        with pytest.raises(UsageProblem, match="matches 2 sessions"):
            find("t")
        with pytest.raises(UsageProblem, match="handrail sessions"):
            find("nothing like it")


@pytest.mark.promise("APP-1")
async def test_last_session_is_the_one_touched_last_and_not_a_deleted_one(tmp_path: Path) -> None:
    async with conversation(tmp_path, YES) as talk:
        other = await titled(talk, "other")
        await talk.turn("hello")
        assert talk.app.find_session() == talk.id
        await talk.send(Delete())
        await talk.until(SessionDeleted)
        assert talk.app.find_session() == other
        assert talk.app.find_session(talk.id) == talk.id


async def test_folder_without_sessions_says_how_to_start_one(tmp_path: Path) -> None:
    async with open_app(Options(workspace=tmp_path)) as app:
        assert app.sessions() == []
        with pytest.raises(UsageProblem, match="Start one"):
            app.find_session()


@pytest.mark.promise("APP-1")
async def test_title_of_a_deleted_session_does_not_stand_in_the_way(tmp_path: Path) -> None:
    async with conversation(tmp_path, YES) as talk:
        await talk.send(Rename(title="totals"))
        await talk.send(Delete())
        await talk.until(SessionDeleted)
        assert talk.app.find_session("totals") == talk.id
        living = await titled(talk, "totals again")
        assert talk.app.find_session("totals") == living


@pytest.mark.promise("APP-2")
async def test_rename_delete_and_restore_show_in_the_list(tmp_path: Path) -> None:
    async with conversation(tmp_path, YES) as talk:
        await talk.turn("Say hello\nand more")
        (info,) = talk.app.sessions()
        assert (info.title, info.turns, info.running) == ("Say hello", 1, False)
        await talk.send(Rename(title="Greetings"))
        await talk.until(SessionRenamed)
        await talk.send(Delete())
        await talk.until(SessionDeleted)
        assert talk.app.sessions() == []
        (info,) = talk.app.sessions(deleted=True)
        assert (info.title, info.deleted) == ("Greetings", True)
        await talk.send(Restore())
        await talk.until(SessionRestored)
        assert [info.title for info in talk.app.sessions()] == ["Greetings"]
        await talk.turn("still here?")
    assert "Say hello" in words(talk.requests[-1])


@pytest.mark.promise("APP-2")
async def test_fork_goes_its_own_way(tmp_path: Path) -> None:
    async with conversation(tmp_path, YES) as talk:
        for text in ("one", "two", "three"):
            await talk.turn(text)
        forked = talk.app.fork(talk.id, turn=2)
        with pytest.raises(UsageProblem, match="cannot be forked at turn 9"):
            talk.app.fork(talk.id, turn=9)
        before = talk.app.last_seq(talk.id)
        other = Conversation(talk.app, forked, None, talk.held, after=talk.app.last_seq(forked))
        await other.turn("another three")
        await other.aclose()
        assert talk.app.last_seq(talk.id) == before
    shown = words(talk.requests[-1])
    assert "two" in shown
    assert "another three" in shown
    assert "\nthree" not in shown


@pytest.mark.promise("APP-2")
async def test_exported_session_goes_on_in_another_folder(tmp_path: Path) -> None:
    here, there = tmp_path / "here", tmp_path / "there"
    here.mkdir()
    there.mkdir()
    file = tmp_path / "session.jsonl"
    async with conversation(here, YES, mode="auto") as talk:
        await talk.turn("remember the cart")
        talk.app.export(talk.id, file)
        with pytest.raises(UsageProblem, match="already exists"):
            talk.app.export(talk.id, file)
    async with conversation(there, YES) as other:
        session = other.app.import_session(file)
        assert session == talk.id
        assert other.app.state(session).mode == "ask"
        copy = Conversation(other.app, session, None, other.held, after=0)
        await copy.until(SessionCopied)
        assert (await copy.turn("go on")).reason == "answered"
        await copy.aclose()
        assert other.app.import_session(file) != session
    assert "remember the cart" in words(other.requests[-1])


@pytest.mark.promise("APP-3")
async def test_session_that_does_not_exist_is_told_at_every_door(tmp_path: Path) -> None:
    async with conversation(tmp_path, YES) as talk:
        app, unknown = talk.app, "s_unknown"
        with pytest.raises(UsageProblem, match="s_unknown"):
            await app.send(unknown, SendMessage(text="hi"))
        for door in (app.attach, app.state, app.fork):
            with pytest.raises(UsageProblem, match="s_unknown"):
                door(unknown)
        with pytest.raises(UsageProblem, match="s_unknown"):
            app.export(unknown, tmp_path / "out")
        assert not (tmp_path / "out").exists()
        assert not app.log.waiting("session:s_unknown")


async def test_folder_that_does_not_exist_is_told(tmp_path: Path) -> None:
    with pytest.raises(UsageProblem, match="no folder"):
        async with open_app(Options(workspace=tmp_path / "missing")):
            pass


@pytest.mark.promise("POL-41")
async def test_mode_sandbox_is_refused_without_a_full_sandbox(tmp_path: Path) -> None:
    offer(Protection())
    async with conversation(tmp_path, YES, mode="edit") as talk:
        with pytest.raises(UsageProblem, match="apt install bubblewrap"):
            await talk.send(SetMode(mode="sandbox"))
        assert talk.app.state(talk.id).mode == "edit"


@pytest.mark.promise("POL-41")
async def test_a_session_that_was_begun_elsewhere_in_mode_sandbox_takes_no_message(tmp_path: Path) -> None:
    (tmp_path / "work").mkdir()
    full = replace(Protection("bubblewrap"), **dict.fromkeys(SANDBOX_FACTS, True))
    offer(full)
    async with conversation(tmp_path / "work", YES, mode="sandbox") as talk:
        await talk.turn("hello")
        session = talk.id
    offer(Protection())
    async with conversation(tmp_path / "work", YES, session=session) as talk:
        with pytest.raises(UsageProblem, match="needs a full sandbox"):
            await talk.say("go on")
        await talk.send(SetMode(mode="ask"))
        await talk.until(ModeSet)
        await talk.say("go on")
    with pytest.raises(UsageProblem, match="needs a full sandbox"):
        async with open_app(Options(tmp_path / "work", mode="sandbox")) as app:
            await app.check_mode()


async def test_mode_of_the_command_line_holds_for_an_older_session_too(tmp_path: Path) -> None:
    async with conversation(tmp_path, YES) as first:
        await first.turn("hi")
    async with conversation(tmp_path, YES, session=first.id, mode="edit") as talk:
        assert (await talk.until(ModeSet)).mode == "edit"
        await talk.turn("now?")
    assert "Mode is now: edit" in words(talk.requests[-1])


# Models


async def test_a_resumed_session_keeps_its_model_and_nobody_is_said_to_have_chosen_it(tmp_path: Path) -> None:
    async with conversation(tmp_path, YES) as first:
        await first.turn("hi")
    async with conversation(tmp_path, None, session=first.id) as talk:
        chosen = await talk.app.chosen_model(first.id)
        assert (chosen.reference, chosen.why) == ("scripted/test", "it answered here before")


@pytest.mark.promise("APP-4")
async def test_unknown_model_is_a_usage_problem(tmp_path: Path) -> None:
    async with conversation(tmp_path, None, model="nobody/knows") as talk:
        with pytest.raises(UsageProblem, match="nobody/knows"):
            await talk.app.chosen_model()
        finished = await talk.turn("hi")
    assert finished.reason == "failed"
    assert "CONNECTION/MODEL" in finished.detail


@pytest.mark.promise("APP-4")
async def test_without_a_model_the_turn_names_the_three_doors_and_keeps_the_message(tmp_path: Path) -> None:
    with FakeServer([Said(text=("hello",))]) as server:
        async with conversation(tmp_path, None, settings=NO_SERVER) as talk:
            finished = await talk.turn("my first words")
            assert finished.reason == "failed"
            for door in ("ANTHROPIC_API_KEY", "Ollama", "connection"):
                assert door in finished.detail
            assert not talk.all(RequestStarted)
        settings = f'[connections.mine]\nbase_url = "{server.url}/v1"\n'
        async with conversation(
            tmp_path, None, session=talk.id, settings=settings, model="mine/test-model"
        ) as again:
            await again.until(TurnFinished)
            assert (await again.turn("once more")).reason == "answered"
    assert b"my first words" in server.requests[-1].body


@pytest.mark.promise("APP-4")
async def test_model_that_makes_no_sense_is_refused_when_it_is_sent(tmp_path: Path) -> None:
    other = script_file(tmp_path, [{"text": "from the other", "when": ""}])
    async with conversation(tmp_path, YES) as talk:
        with pytest.raises(UsageProblem, match="no such thing"):
            await talk.send(SetModel(model="no such thing"))
        await talk.send(SetModel(model=other))
        assert (await talk.until(ModelSet)).model == other
        await talk.turn("hi")
    assert [started.model for started in talk.all(RequestStarted)] == [other]
    assert len(talk.all(ModelSet)) == 1


# Commands


@pytest.mark.promise("APP-5")
async def test_command_that_cannot_be_read_is_left_alone_and_stops_nothing(tmp_path: Path) -> None:
    async with conversation(tmp_path, YES) as talk:
        stream = f"session:{talk.id}"
        strange = ['{"type": "dance", "steps": 3}', '{"type": "cancel", "how": "gently"}', "\x00{", "", "[]"]
        for data in strange:
            talk.app.log.put(stream, data)
        assert (await talk.turn("hi")).reason == "answered"
        assert [waiting.data for waiting in talk.app.log.waiting(stream)] == strange
    async with conversation(tmp_path, YES, session=talk.id) as again:
        await again.until(TurnFinished)
        assert (await again.turn("and again")).reason == "answered"


@pytest.mark.promise("APP-5")
@pytest.mark.parametrize(
    "text",
    [
        "",
        " ",
        '@"a\x00b"',
        "@" + "x" * 5000,
        '@"' + "y/" * 4000 + '"',
        "\ud800 half",
        "@../../etc/shadow",
        "@.",
    ],
    ids=["empty", "blank", "nul", "long", "deep", "surrogate", "outside", "here"],
)
async def test_strange_message_is_answered_or_refused_and_stops_nothing(tmp_path: Path, text: str) -> None:
    async with conversation(tmp_path, YES) as talk:
        if text.isprintable() or "\x00" in text:
            assert (await talk.turn(text)).reason == "answered"
        else:
            with pytest.raises(UsageProblem, match="not text"):
                await talk.say(text)
        assert (await talk.turn("fine?")).reason == "answered"
    assert talk.all(UserMessage)[-1].text == "fine?"


async def test_commands_that_change_nothing_leave_no_event(tmp_path: Path) -> None:
    async with conversation(tmp_path, YES) as talk:
        for command in (SetMode(mode="ask"), Restore()):
            await talk.send(command)
        await talk.turn("hi")
        assert not talk.all(ModeSet)
        assert not talk.all(SessionRestored)
        assert not talk.app.log.waiting(f"session:{talk.id}")


# Doctor


async def findings(workspace: Path, model: str = "") -> dict[str, Finding]:
    found = diagnose(workspace, model=model, flags={}, environ=os.environ)
    return {finding.name: finding async for finding in found}


@pytest.mark.promise("APP-6")
async def test_doctor_finds_all_well(tmp_path: Path) -> None:
    model = script_file(tmp_path, YES)
    async with conversation(tmp_path, None, model=model) as talk:
        await talk.turn("hi")
        found = await findings(tmp_path, model)
    assert {"version", "model", "log", "storage", "edits", "search"} <= set(found)
    assert all(finding.level in ("ok", "-") for finding in found.values()), found
    assert f"{model} answers" in found["model"].text


@pytest.mark.promise("APP-6")
async def test_doctor_without_a_model_says_how_to_get_one(tmp_path: Path) -> None:
    write_settings(NO_SERVER)
    found = await findings(tmp_path)
    assert found["model"].level == "fail"
    assert "ANTHROPIC_API_KEY" in found["model"].advice
    assert found["log"].level == "ok"


@pytest.mark.promise("APP-6")
@pytest.mark.parametrize(
    "model", ["anthropic/claude-test", "mine/test-model", "nobody/knows", "scripted/none"]
)
async def test_doctor_with_a_broken_model_says_what_to_do(tmp_path: Path, model: str) -> None:
    refusal = Reply(
        b'{"error": {"message": "Incorrect API key"}}', status=401, content_type="application/json"
    )
    with FakeServer([refusal]) as server:
        write_settings(f'[connections.mine]\nbase_url = "{server.url}/v1"\n')
        found = await findings(tmp_path, model)
    assert found["model"].level == "fail"
    assert found["model"].advice
    assert found["storage"].level == "ok"


@pytest.mark.promise("MOD-23")
async def test_doctor_says_whether_the_models_take_the_effort_that_is_set(tmp_path: Path) -> None:
    efforts = "[models]\neffort = { main = 'high', fast = 'low' }\n"
    with FakeServer([Said(text=("ok",))]) as server:
        mine = f'[connections.mine]\nbase_url = "{server.url}/v1"\n'
        write_settings(f"{efforts}{mine}")
        found = await findings(tmp_path, "mine/m")
        assert found["effort"].level == "warn"
        assert "fast: low is not sent to mine/m" in found["effort"].text
        assert found["effort"].advice == "[connections.mine] effort = true says that it does"
        write_settings(f"{efforts}{mine}effort = true\n")
        assert (await findings(tmp_path, "mine/m"))["effort"] == Finding(
            "effort", "ok", "fast: low, sent to mine/m"
        )
        openai = f'[connections.openai]\nbase_url = "{server.url}/v1"\n'
        write_settings(f"{efforts.replace('low', '')}{openai}")
        told = (await findings(tmp_path, "openai/gpt-5.4"))["effort"]
        assert told.text == "main: high, sent to openai/gpt-5.4 only in requests without tools"


@pytest.mark.promise("APP-6")
async def test_doctor_tells_of_settings_that_a_workspace_may_not_make(tmp_path: Path) -> None:
    (tmp_path / ".handrail").mkdir()
    (tmp_path / ".handrail" / "config.toml").write_text('mode = "auto"\n')
    async with conversation(tmp_path, YES) as talk:
        assert any("mode" in notice for notice in talk.app.notices)
    found = await findings(tmp_path)
    assert found["settings"].level == "warn"
    assert found["settings"].advice
