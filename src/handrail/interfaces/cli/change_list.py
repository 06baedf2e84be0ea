"""Change sets as a list, and one of them in full."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from handrail.interfaces.cli import diffs
from handrail.interfaces.cli.approvals import broken
from handrail.interfaces.cli.figures import ago, usd
from handrail.interfaces.cli.styles import (
    ACCENT,
    BAD,
    BODY_INDENT,
    BOLD,
    DIM,
    PLAIN,
    Line,
    Piece,
    fit,
    length,
    line,
    wrap,
)

if TYPE_CHECKING:
    from handrail.engine.history import NetFile, ShownChange, ShownFile
    from handrail.protocol.values import FileChange, Todo
    from handrail.sessions.changes import Change

OPS = {"create": "new", "delete": "deleted", "move": "moved"}
LOST = "not kept, cannot be brought back"
STATES = {
    "applied": "applied",
    "taken back": "taken back",
    "not applied": "never applied",
    "unfinished": "unfinished",
    "elsewhere": "made elsewhere",
}
STATE_COLUMNS = 18
NARROWEST = 16


def state_of(change: "Change", numbers: Mapping[str, int]) -> str:
    """`applied`, `taken back by 8`, `never applied`."""
    by = numbers.get(change.taken_back_by)
    return f"{STATES[change.status]} by {by}" if by else STATES[change.status]


def numbers_of(changes: "Sequence[Change]") -> dict[str, int]:
    """{id: number}"""
    return {change.id: change.number for change in changes}


def change_lines(
    changes: "Sequence[Change]", todos: "Sequence[Todo]", now: float, width: int, most: int = 1_000_000
) -> list[Line]:
    """One line a change set, the newest first and at most so many, below a line that says what is what."""
    if not changes:
        return []
    numbers = numbers_of(changes)
    head = f"{'change':>6}  {'when':>11}  {'by':<8}  {'state':<{STATE_COLUMNS}}  files"
    rows = [line((DIM, fit(head, width)))]
    for change in list(reversed(changes))[:most]:
        rows += one_change(change, state_of(change, numbers), now, width)
        for text in remarks(change, numbers, todos):
            rows += wrap(line((DIM, f"{'':8}{text}")), width, " " * 10)
    return rows


def one_change(change: "Change", state: str, now: float, width: int) -> list[Line]:
    """Its line; where that is narrow, its files are on another one."""
    style = PLAIN if change.status == "applied" else DIM
    facts = f"  {ago(now - change.at):>11}  {change.prepared.by:<8}  "
    head = line((ACCENT, f"{change.number:>6}"), (DIM, facts), (style, f"{state:<{STATE_COLUMNS}}  "))
    files = files_in_short(change.prepared.files, change.prepared.unlisted)
    room = width - length(head)
    if room >= NARROWEST:
        return [(*head, Piece(PLAIN, fit(files, room)))]
    return [(*head[:2], Piece(style, state)), line(f"{'':8}{fit(files, width - 8)}")]


def files_in_short(files: "Sequence[FileChange]", unlisted: int = 0) -> str:
    """`src/cart.py +2 -2`, or with how many more."""
    if not files:
        return "no file"
    more = len(files) - 1 + unlisted
    others = f", {more:,} more file{'s' * (more > 1)}" if more else ""
    return f"{counted(files[0])}{others}"


def counted(file: "FileChange") -> str:
    """`src/cart.py +2 -2`; a move with where it leads."""
    name = f"{file.path} -> {file.destination}" if file.destination else file.path
    return f"{name} +{file.added} -{file.removed}" if file.added or file.removed else name


def remarks(change: "Change", numbers: Mapping[str, int], todos: "Sequence[Todo]") -> list[str]:
    """What else there is to know of a change set."""
    prepared, told = change.prepared, list[str]()
    if prepared.takes_back:
        taken = [str(numbers[each]) for each in reversed(prepared.takes_back) if each in numbers]
        told.append(f"takes back {', '.join(taken)}")
    if change.why:
        told.append(f"why not: {change.why}")
    if prepared.intent:
        told.append(prepared.intent if prepared.by == "command" else f"intent: {prepared.intent}")
    texts = {todo.id: todo.text for todo in todos}
    told += [f"todo: {texts.get(todo, todo)}" for todo in prepared.todos]
    lost = sum(not file.restorable for file in prepared.files) + prepared.unlisted
    if lost:
        told.append(f"{lost} file{'s' * (lost > 1)} {LOST}")
    return told


def as_json(change: "Change") -> dict[str, Any]:
    """A change set as an object for programs."""
    return {
        "number": change.number,
        "id": change.id,
        "at": round(change.at, 3),
        "turn": change.turn,
        "status": change.status,
        "why": change.why,
        "taken_back_by": change.taken_back_by,
        "verified": change.verified,
    } | change.prepared.model_dump(
        mode="json", include={"by", "takes_back", "model", "cost_usd", "intent", "todos", "files", "unlisted"}
    )


# One of them


def shown_head(
    shown: "ShownChange", numbers: Mapping[str, int], todos: "Sequence[Todo]", now: float, width: int
) -> list[Line]:
    """Who made it, when, what has become of it."""
    change, prepared = shown.change, shown.change.prepared
    facts = [f"by {prepared.by}", ago(now - change.at)]
    facts += [f"turn {change.turn}"] if change.turn else []
    facts += [prepared.model] if prepared.model else []
    facts += [] if prepared.cost_usd is None else [usd(prepared.cost_usd)]
    facts += [] if change.verified is None else ["check passed" if change.verified else "check failed"]
    head = line(
        (BOLD, f"change {change.number}"),
        (DIM, f"  {change.id}  "),
        state_of(change, numbers),
        (DIM, f"  {', '.join(facts)}"),
    )
    rows = wrap(head, width, "  ")
    for text in remarks(change, numbers, todos):
        rows += wrap(line((DIM, f"  {text}")), width, "    ")
    return rows


def shown_files(files: "Sequence[ShownFile]", width: int) -> list[Line]:
    """Each file with its diff."""
    rows: list[Line] = []
    for file, diff in files:
        op = f"  {OPS[file.op]}" if file.op in OPS else ""
        rows += [(), line((BOLD, counted(file)), (DIM, op))]
        rows += [] if file.restorable else [line((BAD, f"{BODY_INDENT}what it was before is {LOST}"))]
        if diff is None:
            rows.append(line((DIM, f"{BODY_INDENT}its contents are not kept any more")))
        else:
            rows += diff_lines(diff.text, width)
            rows += mode_lines(file)
    return rows


def mode_lines(file: "FileChange") -> list[Line]:
    """Permissions, where they were changed."""
    old, new = file.old_mode, file.new_mode
    if old is None or new is None or old == new:
        return []
    return [line((DIM, f"{BODY_INDENT}permissions {old & 0o7777:o} -> {new & 0o7777:o}"))]


def diff_lines(text: str, width: int) -> list[Line]:
    """A diff, nothing of it cut: long lines go on below themselves."""
    if not diffs.is_diff(text):
        return [] if text.startswith("---") else [line((DIM, BODY_INDENT + text))]
    return [part for row in diffs.render(text) for part in broken(row, width)]


def net_lines(files: "Sequence[NetFile]", width: int) -> list[Line]:
    """What is left of all changes, file by file."""
    rows: list[Line] = []
    for path, diff, why in files:
        counts = f" +{diff.added} -{diff.removed}" if diff else ""
        rows += [()] if rows else []
        rows.append(line((BOLD, f"{path}{counts}")))
        rows += wrap(line((BAD, f"{BODY_INDENT}{why}")), width, BODY_INDENT) if why else []
        rows += diff_lines(diff.text, width) if diff else []
    return rows
