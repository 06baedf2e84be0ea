"""The mutation class of a change: as it was declared, and what a look at the syntax trees says of that.

A declared refactor is checked by a program of ours before the change is made. One that does not hold is
applied all the same, as what it is: `INTENT_EVOLUTION`, with the reason.
"""

import json
import os
import re
import sys
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryFile
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from handrail.tools.environment import without_secrets
from handrail.tools.process import run_process
from handrail.tools.search import find_ripgrep, ripgrep
from handrail.workspace.files import Workspace

if TYPE_CHECKING:
    from handrail.changes.change_set import FileEdit

Mutation = Literal["AST_REFACTOR", "INTENT_EVOLUTION"]
REFACTOR: Mutation = "AST_REFACTOR"
EVOLUTION: Mutation = "INTENT_EVOLUTION"
SECONDS = 10.0
MOST_BYTES = 1_000_000
"""Of all files of a change together; more would not be looked through in time."""
MOST_FILES = 500
MOST_WORDS = 200
SOURCE = Path(__file__).resolve().parents[2]
CODE = (
    "*.py",
    "*.pyi",
    "*.js",
    "*.jsx",
    "*.mjs",
    "*.cjs",
    "*.ts",
    "*.tsx",
    "*.mts",
    "*.cts",
    "*.toml",
    "*.cfg",
)


class Classified(NamedTuple):
    """What a change counts as."""

    mutation_class: Mutation
    problem: str = ""
    """Why a declared refactor counts as none, or was not checked."""
    told: str = ""
    """For the model; empty where nothing was declared."""


async def classify(declared: Sequence[str], edits: Sequence["FileEdit"], workspace: Workspace) -> Classified:
    """What a change counts as whose calls declared this, each one or nothing."""
    if REFACTOR not in declared:
        return Classified(EVOLUTION)
    if any(each != REFACTOR for each in declared):
        return _flagged("not all changes of the answer were declared so")
    said = await _checked(edits)
    if said is None:
        return _flagged("the check came to no end")
    if said["verdict"] == "unchecked":
        return _unchecked(said["why"])
    why = said["why"] or await _elsewhere(said["elsewhere"], edits, workspace)
    return _flagged(why) if why else Classified(REFACTOR, told="[refactor: checked, behaviour is kept]")


def _flagged(why: str) -> Classified:
    return Classified(EVOLUTION, f"declared a refactor, but {why}", f"[recorded as {EVOLUTION}: {why}]")


def _unchecked(why: str) -> Classified:
    return Classified(REFACTOR, f"not checked: {why}", f"[refactor: not checked, {why}]")


async def _checked(edits: Sequence["FileEdit"]) -> dict[str, Any] | None:
    """What the program says of the files; None where it says nothing."""
    if sum(len(each.old or b"") + len(each.new or b"") for each in edits) > MOST_BYTES:
        return {"verdict": "flagged", "why": "the files are too large to be checked"}
    files = []
    for each in edits:
        if each.destination and each.destination != each.path:
            return {"verdict": "flagged", "why": f"{each.path} is moved"}
        texts = [
            data.decode("utf-8-sig", errors="replace") if data is not None else None
            for data in (each.old, each.new)
        ]
        files.append([each.path, *texts])
    output = bytearray()

    def take(chunk: bytes) -> bool:
        output.extend(chunk)
        return len(output) < MOST_BYTES

    with TemporaryFile() as given:
        given.write(json.dumps(files).encode())
        given.seek(0)
        ended = await run_process(
            [sys.executable, "-P", "-m", "handrail.changes.mutation"],
            folder=SOURCE,
            environment=without_secrets(os.environ) | {"PYTHONPATH": str(SOURCE)},
            timeout=SECONDS,
            take=take,
            given=given.fileno(),
        )
    if ended.code != 0:
        return None
    said: dict[str, Any] = json.loads(output)
    return said


async def _elsewhere(needs: dict[str, list[str]], edits: Sequence["FileEdit"], workspace: Workspace) -> str:
    """Why the rest of the workspace does not go with the change; empty where it does."""
    words = [word for word in (*needs["gone"], *needs["come"]) if re.fullmatch(r"[\w$#]+", word)]
    if not words and not needs["bases"]:
        return ""
    program = find_ripgrep()
    if program is None or len(words) > MOST_WORDS:
        return f"it cannot be seen whether other files use {', '.join(words[:3])}"
    changed = {each.path for each in edits}
    paths = (
        [each for each in await _files_with(program, words, workspace) if each not in changed]
        if words
        else []
    )
    for path in paths:
        text = _text(workspace.root / path)
        if not any(_has(text, mark) for mark in needs["known_by"]):
            continue  # its own name, that only happens to be the same
        for word in needs["gone"]:
            if _has(text, word):
                return f"{path} still uses {word}"
        for word in needs["come"]:
            if re.search(rf"\b(?:def|async|function)\s+{re.escape(word)}\b", text):
                return f"{path} has a {word} of its own"
    for base in needs["bases"]:
        found = await _files_with(program, [base], workspace)
        if not any(
            re.search(rf"\bclass\s+{re.escape(base)}\b", _text(workspace.root / path)) for path in found
        ):
            return f"{base}, which a changed class is built upon, is not in the workspace"
    return ""


async def _files_with(program: str, words: Sequence[str], workspace: Workspace) -> list[str]:
    """Files of code that have one of the words."""
    found: list[str] = []

    def take(line: str) -> bool:
        found.append(line.removeprefix("./"))
        return len(found) < MOST_FILES

    options = ["--files-with-matches", "--word-regexp", "--fixed-strings"]
    options += [part for glob in CODE for part in ("--glob", glob)]
    options += [part for word in words for part in ("-e", word)]
    await ripgrep(program, [*options, "--", "."], workspace.root, take)
    return found


def _text(path: Path) -> str:
    try:
        with path.open(encoding="utf-8", errors="replace") as file:
            return file.read(MOST_BYTES)
    except OSError:
        return ""


def _has(text: str, word: str) -> bool:
    return re.search(rf"(?<![\w$]){re.escape(word)}(?![\w$])", text) is not None
