"""The trace in two formats that other programs read, and back: Agent Trace records, and flat entries.

Both have an entry for each file of each change set. Its ranges are the lines of the change that are still
there, numbered as in the version whose hash is `snapshot`; so an export alone says who wrote each line of
that version. Lines of other writers, and changes whose contents are no longer stored, have the ranges of the
version that the change made.
"""

import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import UTC, datetime
from itertools import groupby
from typing import Any
from uuid import NAMESPACE_URL, uuid5

from handrail import __version__
from handrail.changes.trace.blame import TraceLine, author_of, present_files, trace_line
from handrail.changes.trace.line_blocks import block_hash, blocks
from handrail.changes.trace.logged_changes import AppliedChange, StoredChanges
from handrail.changes.trace.replay import NO_OWNER, Contents, KnownLines, Replay
from handrail.changes.trace.trace_file import ExportFormat, TraceFile, line_fields
from handrail.protocol.errors import UsageProblem
from handrail.protocol.values import to_dict
from handrail.storage.event_log import Log
from handrail.workspace.files import Workspace
from handrail.workspace.walk import walk

AGENT_TRACE_VERSION = "0.1.0"
VENDOR = "handrail"
"""Our key in the metadata of a record, and the name of our hash: of lines with white space normalized."""
HASH = f"{VENDOR}:"
MAX_MODEL_ID = 250
MAX_LINE_BYTES = 64_000_000
MAX_LINE_NUMBER = 1 << 32
MAX_DEPTH, MAX_FILES = 20, 200_000
PLAIN_ID = re.compile(r"[\w-]+", re.ASCII)
FILE_FIELDS = ("file", "op", "to", "sha256", "base_sha256", "snapshot")
CHANGE_FIELDS = ("request_id", "intent_id", "mutation_class", "by", "model", "related")
RELATED = ("session", "turn", "call", "change")
UNREADABLE = (ValueError, KeyError, TypeError, AttributeError, RecursionError, OverflowError)

Fields = dict[str, Any]
"""What a line of the trace has (`line_fields`), and `turn` and `snapshot`."""


def export_lines(log: Log, workspace: Workspace, trace: TraceFile, wanted: ExportFormat) -> Iterator[str]:
    """The lines of an export: the log's changes in the order they were applied, then other writers' lines."""
    changes = StoredChanges(log)
    write = _record if wanted == "agent-trace" else _flat
    for entries in _logged_entries(changes, log.blob, workspace):
        yield from write(entries)
    others = _entries_of_others(trace.lines(), changes.writers)
    for _, group in groupby(others, key=lambda fields: (fields["writer"], fields["related"].get("change"))):
        yield from write(list(group))


def _logged_entries(
    changes: StoredChanges, contents: Contents, workspace: Workspace
) -> Iterator[list[Fields]]:
    def copies(lines: KnownLines) -> dict[str, bytes]:
        """Files that no change names, with lines that the user may have moved or copied there."""
        entries = walk(workspace.root, MAX_DEPTH, MAX_FILES)
        paths = [each.path for each in entries if each.kind == "file" and each.path not in changes.paths]
        return {
            path: data
            for path in paths
            for data in present_files(workspace, [path]).values()
            if data and lines.explain(data)
        }

    replay = Replay(changes, contents, present_files(workspace, changes.paths), copies)
    lines: dict[int, dict[str, list[Fields]]] = {}  # {change: {file: its lines there}}
    for path, owned in replay.files.items():
        at = 0
        for owner, run in groupby(owned.owners):
            end = at + len(list(run))
            if owner != NO_OWNER:
                own = lines.setdefault(owner, {}).setdefault(path, [])
                own += (_range(owned.keys, *block) for block in blocks(owned.keys, at, end))
            at = end
    snapshots = {path: owned.sha256 for path, owned in replay.files.items()}
    for number, applied in enumerate(changes):
        entries = list(_entries(applied, lines.pop(number, {}), snapshots))
        if number in replay.unkept:
            entries += _own_fields(applied)
        if entries:
            yield entries


def _range(keys: list[bytes], start: int, end: int) -> Fields:
    return {"start": start + 1, "end": end, "sha256": block_hash(keys[start:end])}


def _own_fields(applied: AppliedChange) -> list[Fields]:
    change, at = applied.change, author_of(applied).at
    return [
        {**line_fields(change, file, at, applied.session_id), "turn": applied.turn} for file in change.files
    ]


def _entries(
    applied: AppliedChange, lines: dict[str, list[Fields]], snapshots: Mapping[str, str]
) -> Iterator[Fields]:
    """The files that a change wrote, then others that its lines were moved to."""
    written = _own_fields(applied)
    for fields in written:
        path = fields["to"] or fields["file"]
        snapshot = snapshots.get(path, "")
        yield {**fields, "snapshot": snapshot, "ranges": lines.pop(path, [])}
    for path, ranges in sorted(lines.items()):
        now = {"file": path, "op": "update", "to": "", "sha256": snapshots[path], "base_sha256": ""}
        yield {**written[0], **now, "snapshot": snapshots[path], "ranges": ranges}


def _entries_of_others(trace: Iterable[bytes], known: set[str]) -> Iterator[Fields]:
    """The lines of writers that the log does not have; malformed ones are left out."""
    for line in trace:
        try:
            fields = json.loads(line)
            if fields["writer"] in known:
                continue
            read = trace_line(fields)
            at = datetime.fromisoformat(read.author.at).astimezone(UTC).isoformat(timespec="milliseconds")
        except UNREADABLE:
            continue
        if all(1 <= each.start <= each.end <= MAX_LINE_NUMBER for each in read.ranges):
            texts = ("writer", "request_id", "op", "base_sha256", "mutation_problem")
            yield {
                **{name: str(fields.get(name, "")) for name in texts},
                **{
                    name: getattr(read.author, name)
                    for name in ("intent_id", "mutation_class", "by", "model")
                },
                "at": at.replace("+00:00", "Z"),
                "file": read.file,
                "to": read.to,
                "sha256": read.sha256,
                "related": {name: str(fields["related"].get(name, "")) for name in RELATED},
                "ranges": [to_dict(each) for each in read.ranges],
            }


def _line(fields: Fields) -> str:
    return json.dumps(fields, separators=(",", ":"))


# Agent Trace: one record for each change set (https://agent-trace.dev)


def _record(entries: list[Fields]) -> Iterator[str]:
    first = entries[0]
    problem = first.get("mutation_problem", "")
    own: Fields = {name: first[name] for name in CHANGE_FIELDS} | {"turn": first.get("turn", 0)}
    own |= {"mutation_problem": problem} if problem else {}
    own["files"] = [{name: each.get(name, "") for name in FILE_FIELDS} for each in entries]
    name = json.dumps([first["related"], [each["file"] for each in entries]], sort_keys=True)
    yield _line(
        {
            "version": AGENT_TRACE_VERSION,
            "id": str(uuid5(NAMESPACE_URL, f"{VENDOR}:{name}")),
            "timestamp": first["at"],
            "tool": {"name": VENDOR, "version": __version__},
            "files": [
                {"path": each["to"] or each["file"], "conversations": [_conversation(each)]}
                for each in entries
            ],
            "metadata": {VENDOR: own},
        }
    )


def _conversation(fields: Fields) -> Fields:
    session = fields["related"]["session"]
    model = {"model_id": fields["model"][:MAX_MODEL_ID]} if fields["model"] else {}
    return {
        **({"url": f"urn:{VENDOR}:session:{session}"} if PLAIN_ID.fullmatch(session) else {}),
        "contributor": {"type": _contributor(fields), **model},
        "ranges": [
            {"start_line": each["start"], "end_line": each["end"], "content_hash": HASH + each["sha256"]}
            for each in fields["ranges"]
        ],
    }


def _contributor(fields: Fields) -> str:
    if fields["by"] == "user":
        return "human"
    written = fields["by"] == "agent" or (fields["by"] == "command" and fields["model"])
    return "ai" if written else "unknown"


def _from_record(record: Fields) -> Iterator[Fields]:
    own = record["metadata"][VENDOR]
    change = {name: own[name] for name in (*CHANGE_FIELDS, "turn")} | {"at": record["timestamp"]}
    for file, shown in zip(own["files"], record["files"], strict=True):
        (conversation,) = shown["conversations"]
        ranges = [_read_range(each) for each in conversation["ranges"]]
        yield {**change, **{name: file[name] for name in FILE_FIELDS}, "ranges": ranges}


def _read_range(shown: Fields) -> Fields:
    digest = shown["content_hash"].removeprefix(HASH)
    return {"start": shown["start_line"], "end": shown["end_line"], "sha256": digest}


# The flat form: one entry for each file, with the names of the intent design


def _flat(entries: list[Fields]) -> Iterator[str]:
    for each in entries:
        shown = _conversation(each)["ranges"]
        hashes = " ".join(place["content_hash"] for place in shown)
        model = {"model_identifier": each["model"]} if each["model"] else {}
        problem = {"mutation_problem": each["mutation_problem"]} if each.get("mutation_problem") else {}
        related = [f"{name}:{each['related'][name]}" for name in RELATED]
        yield _line(
            {
                "req_id": each["request_id"],
                "intent_id": each["intent_id"],
                "file": each["to"] or each["file"],
                "timestamp": each["at"],
                "mutation_class": each["mutation_class"],
                "content_hash": each["sha256"],
                **model,
                "related": related,
                "ranges": {"content_hash": HASH + block_hash([hashes.encode()]), "blocks": shown},
                **problem,
                "by": each["by"],
                "op": each["op"],
                "from": each["file"] if each["to"] else "",
                "base_hash": each["base_sha256"],
                "turn": each.get("turn", 0),
                "snapshot": each.get("snapshot", ""),
            }
        )


def _from_flat(entry: Fields) -> Iterator[Fields]:
    names = ("mutation_class", "intent_id", "by", "op", "turn", "snapshot")
    yield {
        **{name: entry[name] for name in names},
        "file": entry["from"] or entry["file"],
        "to": entry["file"] if entry["from"] else "",
        "at": entry["timestamp"],
        "request_id": entry["req_id"],
        "sha256": entry["content_hash"],
        "base_sha256": entry["base_hash"],
        "model": entry.get("model_identifier", ""),
        "related": dict(each.partition(":")[::2] for each in entry["related"]),
        "ranges": [_read_range(each) for each in entry["ranges"]["blocks"]],
    }


# Reading


def read_export(read_line: Callable[[int], bytes], name: str) -> list[TraceLine]:
    """The lines of an export in either format; raises UsageProblem where it is none.

    Records of other programs are left out: their ranges cannot be checked against the text.
    """
    found: list[TraceLine] = []
    number = 0
    while line := read_line(MAX_LINE_BYTES):
        number += 1
        try:
            fields = json.loads(line)
            if "files" not in fields:
                found += map(trace_line, _from_flat(fields))
            elif VENDOR in fields.get("metadata", {}):
                found += map(trace_line, _from_record(fields))
        except UNREADABLE as error:
            message = f"Line {number:,} of {name} is not a line of an export."
            raise UsageProblem(f"{message} `handrail trace export` writes one.") from error
    return found
