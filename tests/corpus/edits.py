"""Edit cases, from the text that a model sent to the bytes on the disk: nothing here judges an edit."""

import base64
import errno
import hashlib
import json
import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from unittest.mock import patch

from handrail.changes.apply import apply
from handrail.changes.change_set import ChangeSet, Origin
from handrail.changes.forms.document import Document, form_of, read_document
from handrail.changes.proposal import ShownVersions, propose
from handrail.models.reading.tool_calls import read_arguments
from handrail.protocol.errors import HandrailError, PathProblem
from handrail.protocol.values import FileSeen
from handrail.sessions.files_seen import FilesSeen
from handrail.workspace.files import Workspace
from tests.tools.calls import open_session

Case = dict[str, Any]


class Unreadable(Exception):
    """The case's text stands for no edit at all."""


def run_edit(case: Case) -> dict[str, Any]:
    """What became of the edit: `apply` or `refuse`, why, and the hash of what is on the disk."""
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder) / "work"
        root.mkdir()
        build(root, case["file"])
        before = picture(root)
        try:
            document = read_document(json.dumps({"changes": said(case)}).encode())
            make(root, Path(folder) / "log", case, document)
        except (HandrailError, OSError, Unreadable) as refused:
            reason = getattr(refused, "reason", type(refused).__name__)
            user = case.get("race", {}).get("written", "")
            if user and not (root / case["file"]["path"]).read_text().endswith(user):
                return {"got": "apply", "reason": "the user's line is lost", "as_expected": False}
            if not user and picture(root) != before:
                reason = f"CHANGED THOUGH REFUSED: {reason}"
                return {"got": "apply", "reason": reason, "as_expected": False}
            return {"got": "refuse", "reason": f"{reason}: {refused}"}
        return applied(root, case)


def build(root: Path, file: Case) -> None:
    target = root / file["path"]
    target.parent.mkdir(parents=True, exist_ok=True)
    if file.get("is_directory"):
        target.mkdir()
    elif "content_b64" in file:
        target.write_bytes(base64.b64decode(file["content_b64"]))
    elif "content" in file:
        target.write_bytes(file["content"].encode("utf-8", "surrogatepass"))
    if "mode" in file:
        target.chmod(int(str(file["mode"]), 8))
    for other in file.get("others", ()):
        build(root, other)


def picture(root: Path) -> dict[str, bytes | None]:
    return {str(each): each.read_bytes() if each.is_file() else None for each in sorted(root.rglob("*"))}


def applied(root: Path, case: Case) -> dict[str, Any]:
    expect = case["expect"]
    if expect.get("deleted"):
        return {"got": "apply", "reason": "", "as_expected": not (root / case["file"]["path"]).exists()}
    target = root / expect.get("moved_to", case["file"]["path"])
    data = target.read_bytes() if target.is_file() else b""
    moved = "moved_to" not in expect or not (root / case["file"]["path"]).exists()
    return {
        "got": "apply",
        "reason": "",
        "content_sha256": hashlib.sha256(data).hexdigest(),
        "as_expected": moved and data == expect.get("content", "").encode(),
    }


# The words of the cases as those of a proposal


def said(case: Case) -> list[Any]:
    try:
        return changes(case)
    except (AttributeError, KeyError, TypeError) as error:
        raise Unreadable(f"no edit: {error!r}") from error


def changes(case: Case) -> list[Any]:
    edit, path = case["edit"], case["file"]["path"]
    base = {"base_hash": edit["base_sha256"]} if "base_sha256" in edit else {}
    match case["format"]:
        case "search_replace":
            return [{"form": "replace", "path": path, "edits": edit["blocks"], **base}]
        case "line_ops":
            return [{"form": "lines", "path": path, "edits": line_items(edit["ops"]), **base}]
        case "unified_diff":
            return [{"form": "diff", "path": path, "diff": edit["diff"], **base}]
        case "raw_tool_call":
            return [operation(raw_call(edit), None)]
        case _:
            batch = edit.get("batch", [edit])
            return [operation(each, path) for each in batch]


def raw_call(edit: Case) -> Case:
    """The call in a text that came with a finish reason; an answer that ran out of tokens has none."""
    if edit.get("finish_reason") in ("length", "max_tokens", "content_filter", None):
        raise Unreadable("truncated")
    values, problem, read = read_arguments(edit["raw"])
    if problem:
        raise Unreadable(f"{read}: {problem}")
    return values


def operation(given: Case, path: str | None) -> Case:
    """One operation as a change; without a path of its own it is about the case's file, if it may be."""
    given = dict(given)
    op = given.pop("op", "search_replace")
    change: Case = {"path": given.pop("path", path), "base_hash": given.pop("base_sha256", "")}
    match op:
        case "create":
            change.pop("base_hash")
            change |= {"form": "create", "text": given.pop("content", None)}
        case "write":
            rewrites = given.pop("overwrite", False)
            change |= {"form": "rewrite" if rewrites else "create", "text": given.pop("content", None)}
            if not rewrites:
                change.pop("base_hash")
        case "rename" | "move":
            change |= {"form": "move", "to": given.pop("to", None)}
        case "search_replace":
            blocks = given.pop("blocks", None)
            keys = [key for key in ("search", "replace") if key in given]
            change |= {"form": "replace", "edits": blocks or [{key: given.pop(key) for key in keys}]}
        case "line_ops":
            change |= {"form": "lines", "edits": line_items(given.pop("ops", None))}
        case "unified_diff" | "diff":
            change |= {"form": "diff"}
        case _:
            change |= {"form": op}
    return change | given


def line_items(ops: Any) -> Any:
    """The operations with what they expect as lines."""
    if not isinstance(ops, list):
        return ops
    return [
        op | {"expected": op["expected"].removesuffix("\n").split("\n")}
        if isinstance(op.get("expected"), str)
        else op
        for op in ops
    ]


# Doing it


def make(root: Path, log: Path, case: Case, document: Document) -> None:
    workspace = Workspace(root)
    forms = [form_of(change) for change in document.changes]
    proposed = propose(workspace, shown(workspace), forms)
    if proposed.confirm:
        raise PathProblem(proposed.confirm, "large_loss")
    session = open_session(log, root, "auto", "hello")
    try:
        with disturbed(root / case["file"]["path"], case):
            apply(session, workspace, ChangeSet(proposed.edits, Origin(turn_id="t_1", call_id="c_1")))
    finally:
        session.release()
        session.log.close()


def shown(workspace: Workspace) -> ShownVersions:
    """Every file that is there counts as just shown to the model."""
    seen = FilesSeen()
    for file in workspace.root.rglob("*"):
        if file.is_file():
            path = file.relative_to(workspace.root).as_posix()
            seen.record_seen((FileSeen(path=path, sha256=workspace.sha256(path) or "", how="agent"),), 1)
    return ShownVersions(seen, turn=1)


@contextmanager
def disturbed(file: Path, case: Case) -> Iterator[None]:
    """What a case says of the world while the edit is applied: a fault of the disk, or somebody else."""
    real_open, real_sync = os.open, os.fsync

    def failing(path: Any, flags: int, *rest: Any, **named: Any) -> int:
        if flags & os.O_CREAT:
            number = getattr(errno, case["fault"], errno.EIO)
            raise OSError(number, os.strerror(number), str(path))
        return real_open(path, flags, *rest, **named)

    def late(descriptor: int) -> None:
        real_sync(descriptor)
        if text := case["race"].pop("append_between_check_and_write", ""):
            with file.open("a") as handle:
                handle.write(text)
            case["race"]["written"] = text

    if "fault" in case:
        with patch("os.open", failing):
            yield
    elif "race" in case:
        with patch("os.fsync", late):
            yield
    else:
        yield
