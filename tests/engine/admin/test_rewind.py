"""Rewind and redo in a running session: files, conversation, or both; by the holder, told by an event."""

from pathlib import Path
from typing import Any

import pytest

from handrail.changes.change_set import sha256
from handrail.protocol.commands import Redo, Rewind, SendMessage
from handrail.protocol.events import ChangePrepared, Redone, RewindRefused, Rewound, TurnFinished, UserMessage
from handrail.sessions.session import Session
from tests.engine.conversation import Conversation, conversation

pytestmark = pytest.mark.anyio


def write(when: str, text: str, base: str = "") -> dict[str, Any]:
    """An answer that writes the file anew, on the version that said `base`."""
    given = {"base_hash": sha256(f"{base}\n".encode())[:12]} if base else {}
    call = {"name": "write", "arguments": {"path": "answer.txt", "text": f"{text}\n", **given}}
    return {"when": when, "calls": [call]}


SCRIPT = [
    {"when": "). ### ", "text": "done"},
    write("say one", "one"),
    write("say two", "two", base="one"),
    write("say three", "three", base="two"),
    {"text": "done"},
]


async def said(talk: Conversation, *texts: str) -> None:
    for text in texts:
        await talk.send(SendMessage(text=text))
        await talk.until(TurnFinished)


async def changes(talk: Conversation) -> list[str]:
    return [change.id for change in talk.app.history.changes(talk.id)]


@pytest.mark.promise("CHG-26")
async def test_a_rewind_takes_files_back_and_a_redo_brings_them_again(tmp_path: Path) -> None:
    file = tmp_path / "answer.txt"
    async with conversation(tmp_path, SCRIPT, mode="edit") as talk:
        await said(talk, "say one", "say two", "say three")
        second = (await changes(talk))[1]
        plan = talk.app.history.plan(talk.id, Rewind(to=second))
        assert [(each.path, each.then) for each in plan.files] == [("answer.txt", b"one\n")]
        assert file.read_text() == "three\n", "a plan has done something"
        await talk.send(Rewind(to=second))
        rewound = await talk.until(Rewound)
        assert file.read_text() == "one\n"
        assert rewound.keep is None
        await talk.send(Redo())
        await talk.until(Redone)
        assert file.read_text() == "three\n"
        statuses = [change.status for change in talk.app.history.changes(talk.id)]
        assert statuses == ["applied", "applied", "applied", "taken back", "applied"]


@pytest.mark.promise("CHG-26")
async def test_a_rewind_survives_a_restart(tmp_path: Path) -> None:
    async with conversation(tmp_path, SCRIPT, mode="edit") as talk:
        await said(talk, "say one", "say two")
        first = (await changes(talk))[0]
        session_id = talk.id
    async with conversation(tmp_path, SCRIPT, mode="edit", session=session_id) as talk:
        await talk.send(Rewind(to=first))
        await talk.until(Rewound)
        assert not (tmp_path / "answer.txt").exists()
    async with conversation(tmp_path, SCRIPT, mode="edit", session=session_id) as talk:
        await talk.send(Redo())
        await talk.until(Redone)
        assert (tmp_path / "answer.txt").read_text() == "two\n"


@pytest.mark.promise("CHG-27")
async def test_the_conversation_is_set_aside_and_comes_back(tmp_path: Path) -> None:
    async with conversation(tmp_path, SCRIPT, mode="edit") as talk:
        await said(talk, "say one", "say two")
        second = (await changes(talk))[1]
        before = str(Session(talk.app.log, talk.id).load().transcript)
        await talk.send(Rewind(to=second, files=False, conversation=True))
        await talk.until(Rewound)
        assert (tmp_path / "answer.txt").read_text() == "two\n", "files were not asked for"
        loaded = Session(talk.app.log, talk.id).load()
        assert "say one" in str(loaded.transcript)
        assert "say two" not in str(loaded.transcript)
        await talk.send(Redo())
        await talk.until(Redone)
        assert str(Session(talk.app.log, talk.id).load().transcript) == before


@pytest.mark.promise("CHG-27")
async def test_after_a_rewind_the_model_is_shown_neither_messages_nor_files_of_what_was_set_aside(
    tmp_path: Path,
) -> None:
    async with conversation(tmp_path, SCRIPT, mode="edit") as talk:
        await said(talk, "say one", "say two")
        message = talk.all(UserMessage)[-1].message_id
        await talk.send(Rewind(to=message, conversation=True))
        await talk.until(Rewound)
        assert (tmp_path / "answer.txt").read_text() == "one\n"
        await said(talk, "what now?")
        shown = str(talk.requests[-1].messages)
        assert "say one" in shown
        assert "say two" not in shown
        await talk.send(Redo())
        refused = await talk.until(RewindRefused)
        assert "went on after" in refused.why


@pytest.mark.promise("CHG-28")
async def test_what_the_user_wrote_in_between_is_given_back_not_what_was_before_it(tmp_path: Path) -> None:
    file = tmp_path / "answer.txt"
    script = [
        write("by hand", "three", base="by hand"),
        {"when": "). ### ", "text": "done"},
        write("say one", "one"),
        {"when": "say three", "calls": [{"name": "read", "arguments": {"path": "answer.txt"}}]},
    ]
    async with conversation(tmp_path, script, mode="edit") as talk:
        await said(talk, "say one")
        file.write_text("by hand\n")
        await said(talk, "say three")
        assert file.read_text() == "three\n"
        first, last = await changes(talk)
        await talk.send(Rewind(to=last))
        await talk.until(Rewound)
        assert file.read_text() == "by hand\n"
        await talk.send(Rewind(to=first))
        refused = await talk.until(RewindRefused)
        assert [conflict.path for conflict in refused.conflicts] == ["answer.txt"]
        assert file.read_text() == "by hand\n"
        await talk.send(Rewind(to=first, leave=("answer.txt",)))
        assert "left as they are: answer.txt" in (await talk.until(Rewound)).detail
        assert file.read_text() == "by hand\n"


async def test_a_change_that_was_never_applied_is_said_to_be_so(tmp_path: Path) -> None:
    async with conversation(tmp_path, SCRIPT, mode="edit") as talk:
        await said(talk, "say one")
        (only,) = await changes(talk)
        await talk.send(Rewind(to=only, only=True))
        await talk.until(Rewound)
        await talk.send(Rewind(to=only, only=True))
        refused = await talk.until(RewindRefused)
        assert "already undone" in refused.why
        await talk.send(Rewind(to="nothing_like_it"))
        assert "No change set" in (await talk.until(RewindRefused)).why


async def test_a_change_set_is_shown_with_its_diff_model_and_origin(tmp_path: Path) -> None:
    async with conversation(tmp_path, SCRIPT, mode="edit") as talk:
        await said(talk, "say one", "say two")
        shown = talk.app.history.show(talk.id)
        assert shown.change.prepared.by == "agent"
        assert shown.change.prepared.model
        assert shown.change.turn == 2
        (file,) = shown.files
        assert file.diff
        assert "-one" in file.diff.text
        assert "+two" in file.diff.text
        prepared = talk.all(ChangePrepared)[0]
        assert talk.app.history.show(talk.id, prepared.change_id[-6:]).change.id == prepared.change_id
