"""Check a change that was declared a refactor, and classify it.

A declared refactor is checked before the change is applied. One that is not confirmed is applied all the same
and recorded as `INTENT_EVOLUTION`, with the first difference as the reason.
"""

import json
import os
import re
import sys
from codecs import BOM_UTF8
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from handrail.config.open_file import FileTooLarge, read_file
from handrail.protocol.errors import ToolRefused
from handrail.tools.files.search import find_ripgrep, ripgrep
from handrail.tools.process import run_for_output
from handrail.tools.secrets import without_secrets
from handrail.workspace.files import Workspace

if TYPE_CHECKING:
    from handrail.changes.change_set import FileEdit

Mutation = Literal["AST_REFACTOR", "INTENT_EVOLUTION"]
REFACTOR: Mutation = "AST_REFACTOR"
EVOLUTION: Mutation = "INTENT_EVOLUTION"
SECONDS = 10.0
MAX_BYTES = 1_000_000  # of all files of a change together; more would not be checked in time
MAX_FILES = 500
SOURCE = Path(__file__).resolve().parents[3]
CHECK = "from handrail.changes.mutation import main; main()"
READS_NAMES = (
    r"__dict__|\bvars\(|asdict\(|__[gs]etattr|__getstate__|\b(pickle|shelve|dill|joblib|jsonpickle)\b"
    r"|\b([gs]et|has|del)attr\([^,()]+,\s*[^\"'\s]|\b(attrgetter|methodcaller|getmembers)\("
)
"""Python that reads names as text which is only known when it runs."""


class MutationResult(NamedTuple):
    """What a change counts as."""

    mutation_class: Mutation
    problem: str = ""  # why a declared refactor was not confirmed
    note: str = ""  # for the model; empty if nothing was declared


async def classify(
    declared: Sequence[str], edits: Sequence["FileEdit"], workspace: Workspace
) -> MutationResult:
    """The class of a change, given what each of its calls declared, if anything."""
    if REFACTOR not in declared:
        return MutationResult(EVOLUTION)
    why = "not all changes of the answer were declared so"
    if all(each == REFACTOR for each in declared):
        why = await _objection(edits, workspace)
    if why:
        return MutationResult(
            EVOLUTION, f"declared a refactor, but {why}", f"[recorded as {EVOLUTION}: {why}]"
        )
    return MutationResult(REFACTOR, note="[refactor: checked, behaviour is kept]")


async def _objection(edits: Sequence["FileEdit"], workspace: Workspace) -> str:
    """Why the edits are not a refactor; empty if they are."""
    if sum(len(each.old or b"") + len(each.new or b"") for each in edits) > MAX_BYTES:
        return "the files are too large to be checked"
    files = []
    for each in edits:
        if each.destination and each.destination != each.path:
            return f"{each.path} is moved"
        try:
            texts = [data.decode("utf-8-sig") if data is not None else None for data in (each.old, each.new)]
        except UnicodeDecodeError:
            return f"{each.path} is not UTF-8"
        if len({data.startswith(BOM_UTF8) for data in (each.old, each.new) if data}) > 1:
            return f"{each.path} begins with a byte order mark only before or after the change"
        files.append([each.path, *texts])
    code, output = await run_for_output(
        [sys.executable, "-P", "-c", CHECK],
        folder=SOURCE,
        environment=without_secrets(os.environ) | {"PYTHONPATH": str(SOURCE)},
        timeout=SECONDS,
        limit=MAX_BYTES,
        stdin=json.dumps(files).encode(),
    )
    if code != 0:
        return "the check did not finish"
    checked: dict[str, Any] = json.loads(output)
    return checked["why"] or await _elsewhere(checked, [each.path for each in edits], workspace)


async def _elsewhere(checked: dict[str, Any], changed: list[str], workspace: Workspace) -> str:
    """Why the rest of the workspace does not go with the change; empty if it does."""
    folders = {workspace.root, workspace.root / "src", *((workspace.root / path).parent for path in changed)}
    for module in (name.partition(".")[0] for name in checked["modules"]):
        if any((folder / name).exists() for folder in folders for name in (module, f"{module}.py")):
            return f"the order of imports changed, and {module} is a module of the workspace"
    words, known_by = checked["words"], checked["known_by"]
    if not words:
        return ""
    using = await _files_with("|".join(rf"(?:^|[^\w$]){word}(?:$|[^\w$])" for word in words), workspace)
    reading = await _files_with(READS_NAMES, workspace)
    if using is None or reading is None:
        return f"other files could not be searched for {words[0]}"
    for path in using:
        if path not in changed:
            return f"{path} also uses {' or '.join(words[:4])}"
    for path in reading:
        try:
            text = read_file(workspace.root / path, MAX_BYTES).decode(errors="replace")
        except FileTooLarge:
            return f"{path} is too large to be checked"
        except OSError:
            continue  # gone since
        if path not in changed and any(re.search(rf"\b{re.escape(word)}\b", text) for word in known_by):
            return f"{path} may read {words[0]} as text"
    return ""


async def _files_with(pattern: str, workspace: Workspace) -> list[str] | None:
    """The files that have a match; None if they could not be searched, or are too many."""
    program = find_ripgrep()
    found: list[str] = []

    def add(line: str) -> bool:
        found.append(line.removeprefix("./"))
        return len(found) < MAX_FILES

    if program is None:
        return None
    options = ["--files-with-matches", "--glob", "!.orchestration"]
    try:
        ended = await ripgrep(program, [*options, "-e", pattern], workspace.root, add)
    except ToolRefused:
        return None
    return found if ended.code in (0, 1) else None
