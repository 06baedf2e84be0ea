"""A file that model and user change in turns: nobody overwrites what the other did."""

import hashlib
import subprocess
from pathlib import Path

import pytest

from handrail.context.small.one_action_model import OneActionModel
from handrail.models.model import UserTurn
from handrail.protocol.commands import Rewind
from handrail.protocol.events import ChangeApplied, Rewound, ToolFinished, UserMessage
from handrail.sessions.session import Session
from tests.engine.conversation import call, conversation, words

pytestmark = pytest.mark.anyio
FIRST = "def total(items):\n    return 0\n"
MADE = "def total(items):\n    return sum(items)\n"
BY_HAND = f"# mine\n{MADE}"


def digits(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:12]


def edit(search: str, replace: str, **given: str) -> dict[str, object]:
    return call("edit", path="cart.py", edits=[{"search": search, "replace": replace}], **given)


def git_files(root: Path) -> dict[str, bytes]:
    """All that git keeps, byte by byte."""
    return {str(path): path.read_bytes() for path in sorted(root.glob(".git/**/*")) if path.is_file()}


def repository(root: Path) -> None:
    """A repository with a commit, something staged and something stashed."""
    steps = ("init -q -b main", "add .", "commit -qm first", "stash push -q", "add other.txt")
    (root / "other.txt").write_text("one\n")
    identity = ("-c", "user.name=Ada", "-c", "user.email=ada@example.org")
    for step in steps:
        if step.startswith("stash"):
            (root / "other.txt").write_text("two\n")
        if step == steps[-1]:
            (root / "other.txt").write_text("three\n")
        subprocess.run(["git", *identity, *step.split()], cwd=root, check=True)


@pytest.mark.promise("ENG-27")
async def test_an_edit_of_the_version_before_the_users_is_refused_and_the_next_one_lands(
    tmp_path: Path,
) -> None:
    file = tmp_path / "cart.py"
    file.write_text(FIRST)
    repository(tmp_path)
    before = git_files(tmp_path)
    answers = [
        call("read", path="cart.py"),
        edit("return 0", "return sum(items)"),
        {"text": "done"},
        edit("sum(items)", "sum(items) * 2", base_hash=digits(MADE)),
        edit("sum(items)", "sum(items) * 2", base_hash=digits(BY_HAND)),
        {"text": "done again"},
    ]
    async with conversation(tmp_path, answers, mode="edit") as talk:
        await talk.turn("fix the total")
        assert file.read_text() == MADE
        file.write_text(BY_HAND)
        await talk.turn("go on: twice as much")
        (again,) = talk.all(UserMessage)[1:]
        assert [(seen.path, seen.how) for seen in again.files] == [("cart.py", "auto")]
        asked = talk.requests[3].messages[-1]
        assert isinstance(asked, UserTurn)
        assert f"### cart.py [hash: {digits(BY_HAND)}]\n{BY_HAND}" in asked.text
        refused, landed = talk.all(ToolFinished)[-2:]
        assert refused.error
        assert refused.error.reason == "stale_file"
        assert landed.status == "ok", landed.content
        assert file.read_text() == BY_HAND.replace("sum(items)", "sum(items) * 2")
        await talk.send(Rewind(to=talk.all(ChangeApplied)[-1].change_id))
        await talk.until(Rewound)
        assert file.read_text() == BY_HAND, "a rewind gives back what the user made, not the first version"
        assert file.stat().st_mode & 0o777 == 0o644
        assert git_files(tmp_path) == before, "git was touched"


@pytest.mark.promise("ENG-27")
async def test_what_a_rewind_took_back_is_shown_again_and_in_the_tables(tmp_path: Path) -> None:
    file = tmp_path / "cart.py"
    file.write_text(FIRST)
    answers = [
        call("read", path="cart.py"),
        edit("return 0", "return sum(items)"),
        {"text": "done"},
        edit("return 0", "return 1", base_hash=digits(FIRST)),
        {"text": "done again"},
    ]
    async with conversation(tmp_path, answers, mode="edit") as talk:
        await talk.turn("fix the total")
        await talk.send(Rewind(to=talk.all(ChangeApplied)[-1].change_id))
        await talk.until(Rewound)
        await talk.turn("rather one")
        told = words(talk.requests[3])
        assert f"update cart.py {digits(MADE)} -> {digits(FIRST)} by rollback" in told
        assert f"cart.py {digits(FIRST)} 2\n" in told
        assert file.read_text() == FIRST.replace("return 0", "return 1")
        folded = Session(talk.app.log, talk.id).load().state.files
        assert folded == talk.app.state(talk.id).files, "the registry does not follow from the log"


async def test_a_first_message_and_a_session_without_files_are_told_no_tables(tmp_path: Path) -> None:
    async with conversation(tmp_path, [{"text": "hello"}, {"text": "again"}]) as talk:
        await talk.turn("hi")
        await talk.turn("hi again")
    assert "KNOWN FILES" not in words(talk.requests[-1])


async def test_a_small_model_is_shown_what_changed_without_the_tables(tmp_path: Path) -> None:
    (tmp_path / "cart.py").write_text(FIRST)
    answer = {"text": '{"action": "answer", "text": "done"}'}
    async with conversation(tmp_path, [answer, answer], mode="edit") as talk:
        models = talk.app.model_pool._models
        models["scripted/test"] = OneActionModel(models["scripted/test"])
        await talk.turn("what is wrong in cart.py?")
        (tmp_path / "cart.py").write_text(BY_HAND)
        await talk.turn("and now?")
        told = words(talk.requests[-1])
        assert BY_HAND in told
        assert "KNOWN FILES" not in told
