"""An export alone says who wrote what: both formats, read back, give what the log gives."""

import io
import json
import re
import tracemalloc
from pathlib import Path
from typing import Annotated, Any, Literal
from uuid import UUID

import pytest
from msgspec import Meta, Struct, convert

from handrail.changes.trace.blame import BlamedLine, blame, blame_from_export, lines_of_others, present_files
from handrail.changes.trace.export import export_lines, read_export
from handrail.changes.trace.logged_changes import applied_changes, logged_lines
from handrail.changes.trace.trace_file import PATH, ExportFormat, TraceFile
from handrail.protocol.errors import UsageProblem
from handrail.protocol.events import ChangeApplied, ChangePrepared, Event
from handrail.protocol.values import ChangedRange, FileChange
from handrail.sessions.session import Session
from handrail.storage.event_log import Log
from handrail.workspace.files import Workspace
from tests.changes.trace.test_blame import BLOCK, MORE, Replayed, edited, log, root, session
from tests.changes.trace.traces import chain, text

__all__ = ["log", "root", "session"]
FORMATS: list[ExportFormat] = ["agent-trace", "flat"]
SHA256 = re.compile(r"[0-9a-f]{64}|")


def exported(log: Log, root: Path, wanted: ExportFormat) -> list[str]:
    return list(export_lines(log, Workspace(root), TraceFile(root, log.folder), wanted))


def from_log(log: Log, root: Path, path: str) -> list[BlamedLine]:
    changes = applied_changes(log)
    spoken = {
        name for each in changes for file in each.change.files for name in (file.path, file.destination)
    }
    disk = present_files(Workspace(root), sorted(spoken - {""}))
    disk[path] = (root / path).read_bytes()
    trace = (root / PATH).read_bytes() if (root / PATH).exists() else b""
    return blame(path, disk, changes, log.blob, lines_of_others(trace, logged_lines(log)))


def from_export(lines: list[str], root: Path, path: str) -> list[BlamedLine]:
    read = read_export(io.BytesIO("".join(f"{line}\n" for line in lines).encode()).readline, "export")
    return blame_from_export(path, (root / path).read_bytes(), read)


@pytest.mark.promise("TRACE-60")
@pytest.mark.parametrize("seed", [1, 2])
def test_both_formats_give_back_what_the_log_knows_after_many_edits_renames_and_undos(
    log: Log, root: Path, seed: int
) -> None:
    replayed = Replayed(root, log, seed)
    for _ in range(120):
        replayed.step()
    replayed.close()
    for wanted in FORMATS:
        lines = exported(log, root, wanted)
        assert lines == exported(log, root, wanted)
        for path in replayed.world:
            assert from_export(lines, root, path) == from_log(log, root, path), (wanted, path)


@pytest.mark.promise("TRACE-60")
@pytest.mark.parametrize("wanted", FORMATS)
def test_what_the_user_moves_copies_and_renames_is_in_the_export(
    log: Log, root: Path, session: Session, wanted: ExportFormat
) -> None:
    edited(session, root, "a.py", BLOCK + MORE)
    edited(session, root, "short.py", "x = 1\ny = 2\n")
    edited(session, root, "short.py", "x = 1\nz = 3\n", "INT-B")
    (root / "copy.py").write_text(BLOCK + MORE)
    (root / "a.py").write_text(MORE)
    (root / "new.py").write_text("import sys\n" + BLOCK.replace("    ", "\t") + "print(sys.argv)\n")
    (root / "short.py").rename(root / "renamed.py")
    (root / "strange.py").write_text("nothing = 'of all that'\n")
    lines = exported(log, root, wanted)
    for path in ("a.py", "copy.py", "new.py", "renamed.py", "strange.py"):
        found = from_export(lines, root, path)
        assert found == from_log(log, root, path), path
        assert any(line.author for line in found) is (path != "strange.py")
    (root / "renamed.py").rename(root / "again.py")  # since the export
    assert [line.author and line.author.intent_id for line in from_export(lines, root, "again.py")] == [
        "INT-A",
        "INT-B",
    ]


@pytest.mark.promise("TRACE-60")
@pytest.mark.parametrize("wanted", FORMATS)
def test_a_file_that_was_edited_since_keeps_the_authors_of_its_blocks(
    log: Log, root: Path, session: Session, wanted: ExportFormat
) -> None:
    edited(session, root, "a.py", BLOCK + MORE)
    edited(session, root, "b.py", MORE.replace("EUR", "USD"), "INT-B")
    lines = exported(log, root, wanted)
    (root / "a.py").write_text("import sys\n" + BLOCK + MORE + "print(shown(1))\n")
    told = [line.author.intent_id if line.author else "-" for line in from_export(lines, root, "a.py")]
    assert told == ["-", *["INT-A"] * 5, "-"]


@pytest.mark.promise("TRACE-60")
@pytest.mark.parametrize("wanted", FORMATS)
def test_lines_of_other_writers_are_exported_too_and_hostile_ones_are_left_out(
    log: Log, root: Path, session: Session, wanted: ExportFormat
) -> None:
    edited(session, root, "a.py", BLOCK)
    others = chain("w_other", 3)
    good = json.loads(others[0])
    broken: list[Any] = [
        [],
        7,
        {**good, "at": "yesterday"},
        {**good, "at": "0001-01-01T00:00:00+14:00"},
        {**good, "ranges": [{"start": 0, "end": 3, "sha256": "x"}]},
        {**good, "ranges": [{"start": 5, "end": 3, "sha256": "x"}]},
        {**good, "ranges": 3},
        {**good, "related": None},
        {**good, "writer": []},
    ]
    odd = {**good, "model": 5, "by": None, "file": "\ud800", "op": [], "related": {"session": "../x y"}}
    with (root / PATH).open("ab") as file:
        file.write(text(others) + text([json.dumps(each).encode() for each in (*broken, odd)]) + b"\xff{\n")
    lines = exported(log, root, wanted)
    assert len(lines) == 1 + 3 + 1
    if wanted == "agent-trace":
        for line in lines:
            check_record(json.loads(line))
    read = read_export(io.BytesIO("\n".join(lines).encode()).readline, "export")
    assert [each.author.change_id for each in read[1:4]] == [f"c_w_other_{number}" for number in (1, 2, 3)]


# The public format, as its schema has it (agent-trace.dev, version 0.1.0)


class Contributor(Struct, forbid_unknown_fields=True):
    type: Literal["human", "ai", "mixed", "unknown"]
    model_id: Annotated[str, Meta(max_length=250)] = ""


LineNumber = Annotated[int, Meta(ge=1)]


class Range(Struct, forbid_unknown_fields=True):
    start_line: LineNumber
    end_line: LineNumber
    content_hash: str = ""


class Conversation(Struct, forbid_unknown_fields=True):
    ranges: list[Range]
    contributor: Contributor | None = None
    url: Annotated[str, Meta(pattern=r"^urn:handrail:session:[\w-]+$")] = "urn:handrail:session:none"


class File(Struct, forbid_unknown_fields=True):
    path: str
    conversations: list[Conversation]


class Program(Struct, forbid_unknown_fields=True):
    name: str
    version: str


class Record(Struct, forbid_unknown_fields=True):
    version: Annotated[str, Meta(pattern=r"^[0-9]+\.[0-9]+\.[0-9]+$")]
    id: UUID
    timestamp: Annotated[str, Meta(pattern=r"^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$")]
    tool: Program
    files: list[File]
    metadata: dict[str, Any]


def check_record(record: dict[str, Any]) -> Record:
    return convert(record, Record)


@pytest.mark.promise("TRACE-61")
def test_records_are_agent_trace_and_say_who_contributed(log: Log, root: Path, session: Session) -> None:
    replayed = Replayed(root, log, 3)
    for _ in range(40):
        replayed.step()
    replayed.close()
    records = [check_record(json.loads(line)) for line in exported(log, root, "agent-trace")]
    assert len({record.id for record in records}) == len(records) == len(applied_changes(log))
    kinds = {
        (record.metadata["handrail"]["by"], each.contributor.type, each.contributor.model_id)
        for record in records
        for file in record.files
        for each in file.conversations
        if each.contributor
    }
    assert kinds == {("agent", "ai", "m/1"), ("rollback", "unknown", "")}
    lines = [
        range(each.start_line, each.end_line + 1)
        for record in records
        for file in record.files
        if file.path == (first := next(iter(replayed.world)))
        for conversation in file.conversations
        for each in conversation.ranges
    ]
    numbers = [number for each in lines for number in each]
    assert len(numbers) == len(set(numbers)) <= len(replayed.world[first])


@pytest.mark.promise("TRACE-61")
def test_flat_entries_have_the_names_of_the_intent_design(log: Log, root: Path, session: Session) -> None:
    edited(session, root, "a.py", BLOCK)
    (line,) = exported(log, root, "flat")
    entry = json.loads(line)
    assert list(entry)[:9] == [
        "req_id",
        "intent_id",
        "file",
        "timestamp",
        "mutation_class",
        "content_hash",
        "model_identifier",
        "related",
        "ranges",
    ]
    assert SHA256.fullmatch(entry["content_hash"])
    assert (entry["intent_id"], entry["file"], entry["model_identifier"]) == ("INT-A", "a.py", "m/1")
    assert all(isinstance(each, str) for each in entry["related"])
    assert isinstance(entry["ranges"]["content_hash"], str)


def test_what_is_no_export_is_refused_with_its_line_and_foreign_records_are_left_out() -> None:
    foreign = {"version": "0.1", "id": "x", "timestamp": "x", "files": [], "metadata": {"confidence": 1}}
    data = json.dumps(foreign).encode() + b"\n"
    assert read_export(io.BytesIO(data).readline, "x") == []
    for bad in (
        b"no\n",
        b"[]\n",
        b"{}\n",
        b'{"files":[],"metadata":{"handrail":{}}}\n',
        b"\xff\n",
        b"[" * 90_000,
    ):
        with pytest.raises(UsageProblem, match="Line 2 of x"):
            read_export(io.BytesIO(data + bad).readline, "x")


@pytest.mark.promise("TRACE-62")
def test_a_long_log_is_exported_line_by_line_with_little_memory(
    log: Log, root: Path, session: Session
) -> None:
    count = 5_000
    content = "a" * 64
    for start in range(0, count, 500):
        events: list[Event] = []
        for number in range(start, start + 500):
            ranges = tuple(ChangedRange(start=at, end=at, sha256=f"{number:032x}") for at in range(1, 30))
            file = FileChange(path=f"f{number % 7}.py", op="update", new_sha256=content, ranges=ranges)
            events += [
                ChangePrepared(turn_id="t", change_id=f"c_{number}", call_id="c", files=(file,)),
                ChangeApplied(change_id=f"c_{number}"),
            ]
        session.append(*events)
    lines = export_lines(log, Workspace(root), TraceFile(root, log.folder), "flat")
    first = next(lines)
    tracemalloc.start()
    length = len(first) + sum(map(len, lines))
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert length > 10_000_000
    assert peak < length / 4
