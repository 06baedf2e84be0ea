"""What the model is shown: mentions, notes, and the request as a whole."""

from pathlib import Path

import pytest

from handrail.context.agents_md import project_notes
from handrail.context.mentions import ATTACHED_CAP, attach_mentions, mentioned_names
from handrail.context.prompt import Prompt, assemble_request
from handrail.models.model import AssistantTurn, Capabilities, Deadlines, Request, ToolResult, UserTurn
from handrail.protocol.values import FileSeen, ToolCall
from handrail.sessions.session_state import CompactionCut
from handrail.sessions.transcript import AssistantEntry, ToolResultEntry, TranscriptEntry, UserEntry
from handrail.workspace.files import Workspace


@pytest.mark.promise("CTX-2")
def test_mentioned_file_is_attached_with_its_hash_and_counts_as_seen(tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text("x = 1\n")
    attached = attach_mentions("look at @a.py, please", Workspace(tmp_path))
    sha256 = Workspace(tmp_path).sha256("a.py")
    assert sha256
    assert attached.text == f"### a.py [hash: {sha256[:12]}]\nx = 1\n"
    assert attached.files == (FileSeen(path="a.py", sha256=sha256, how="user", size=6),)


@pytest.mark.promise("CTX-2")
def test_missing_file_is_reported_in_words_that_forbid_guessing(tmp_path: Path) -> None:
    (tmp_path / "totals.py").write_text("")
    attached = attach_mentions("see @total.py", Workspace(tmp_path))
    assert "does not exist" in attached.text
    assert "totals.py" in attached.text
    assert "Do not guess" in attached.text
    assert attached.files == ()


def test_words_with_an_at_that_name_nothing_are_prose(tmp_path: Path) -> None:
    text = "use @dataclass, mail ada@example.org and @types/node"
    assert "dataclass" in mentioned_names(text)
    assert "example.org" not in mentioned_names(text)
    assert attach_mentions("use @dataclass here", Workspace(tmp_path)).text == ""


def test_binary_large_outside_and_secret_files_are_not_attached(tmp_path: Path) -> None:
    root = tmp_path / "ws"
    root.mkdir()
    (root / "pic.bin").write_bytes(b"\x00\x01")
    (root / "big.txt").write_text("x" * (ATTACHED_CAP + 1))
    (root / ".env").write_text("KEY=hunter2")
    (tmp_path / "outside.txt").write_text("hunter2")
    attached = attach_mentions("@pic.bin @big.txt @.env @../outside.txt", Workspace(root))
    assert "not text" in attached.text
    assert "did not fit" in attached.text
    assert "hunter2" not in attached.text
    assert attached.files == ()


def test_what_is_not_attached_is_told_to_the_user_mention_by_mention(tmp_path: Path) -> None:
    root = tmp_path / "ws"
    (root / "docs").mkdir(parents=True)
    (root / "pic.bin").write_bytes(b"\x00\x01")
    (root / "big.txt").write_text("x" * (ATTACHED_CAP + 1))
    (root / ".env").write_text("KEY=hunter2")
    (root / "a.py").write_text("fine")
    text = "@a.py @docs @pic.bin @big.txt @.env @../outside.txt @missing.py @dataclass"
    told = attach_mentions(text, Workspace(root)).unattached
    names = ["docs", "pic.bin", "big.txt", ".env", "../outside.txt", "missing.py"]
    assert len(told) == len(names)
    assert all(each.startswith(name) for each, name in zip(told, names, strict=True))
    assert told[-1].count("missing.py") == 1
    assert all("hunter2" not in each for each in told)


def test_notes_come_nearest_first_and_say_what_was_cut(tmp_path: Path) -> None:
    (tmp_path / ".git").mkdir()
    (tmp_path / "AGENTS.md").write_text("upper notes " * 50)
    inner = tmp_path / "inner"
    inner.mkdir()
    (inner / "CLAUDE.md").write_text("inner notes")
    notes = project_notes(inner, cap=100)
    assert notes.index("inner notes") < notes.index("upper notes")
    assert "The rest was cut" in notes
    assert len(notes) < 400
    assert project_notes(tmp_path / "inner", cap=10).count("left out") == 1


@pytest.mark.promise("CTX-4")
def test_notes_that_are_links_to_files_outside_or_to_secrets_are_left_out(tmp_path: Path) -> None:
    root = tmp_path / "repo"
    (root / ".git").mkdir(parents=True)
    (tmp_path / "id_rsa").write_text("hunter2")
    (root / ".env").write_text("KEY=hunter2")
    (root / "inner").mkdir()
    (root / "inner" / "AGENTS.md").symlink_to(root / ".env")
    for target in (tmp_path / "id_rsa", Path("/proc/self/environ"), root / ".env", root / ".git"):
        (root / "AGENTS.md").unlink(missing_ok=True)
        (root / "AGENTS.md").symlink_to(target)
        for folder in (root, root / "inner"):
            notes = project_notes(folder, cap=10_000)
            assert "hunter2" not in notes
            assert "HOME" not in notes
    assert "left out" in project_notes(root / "inner", cap=10_000)


def test_notes_above_the_repository_are_not_read(tmp_path: Path) -> None:
    (tmp_path / "AGENTS.md").write_text("not ours")
    root = tmp_path / "repo"
    (root / ".git").mkdir(parents=True)
    assert project_notes(root, cap=1000) == ""


def request_for(entries: list[TranscriptEntry], cut: CompactionCut, model: str = "m") -> Request:
    return assemble_request(
        prompt=Prompt("s", ()),
        cut=cut,
        transcript=entries,
        capabilities=Capabilities(),
        model=model,
        max_output=16_384,
        deadlines=Deadlines(),
    )


def test_summary_comes_first_and_neighbouring_words_of_the_user_are_one_message() -> None:
    call = ToolCall(id="c", name="read")
    entries: list[TranscriptEntry] = [
        UserEntry(5, "go on"),
        UserEntry(6, "quickly"),
        AssistantEntry(7, "ok", "m", (call,), ({"signature": "x"},)),
        ToolResultEntry(8, "c", "read", "text", is_error=False),
    ]
    request = request_for(entries, CompactionCut(upto=4, summary="earlier things"))
    first, reply, result = request.messages
    assert isinstance(first, UserTurn)
    assert first.text.index("earlier things") < first.text.index("go on") < first.text.index("quickly")
    assert reply == AssistantTurn("ok", (call,), ({"signature": "x"},))
    assert result == ToolResult("c", "read", "text", is_error=False)
    other = request_for(entries, CompactionCut(), model="other").messages[1]
    assert isinstance(other, AssistantTurn)
    assert other.opaque == ()


@pytest.mark.promise("CTX-3")
def test_earlier_messages_stay_the_same_bytes_as_the_conversation_grows() -> None:
    entries: list[TranscriptEntry] = [UserEntry(1, "one"), AssistantEntry(2, "first", "m")]
    before = request_for(entries, CompactionCut())
    after = request_for([*entries, UserEntry(3, "two"), AssistantEntry(4, "second", "m")], CompactionCut())
    assert after.messages[: len(before.messages)] == before.messages
    assert after.system == before.system
