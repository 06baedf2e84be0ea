"""Change sets as a list, and one of them with its diffs."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from handrail.interfaces.cli.render import diffs, styles
from handrail.interfaces.cli.render.approvals import break_line
from handrail.interfaces.cli.render.styles import BODY_INDENT, Line, Piece, fit, length, line, wrap
from handrail.protocol.values import to_dict

if TYPE_CHECKING:
    from handrail.app.history.changes import NetChange, PastChange, ShownChange, ShownFile
    from handrail.protocol.values import FileChange, Todo

OPS = {"create": "new", "delete": "deleted", "move": "moved"}
LOST = "not kept, cannot be restored"
STATES = {"taken back": "undone", "not applied": "never applied", "elsewhere": "made elsewhere"}
"""States that are shown in other words than the log has."""
STATE_COLUMNS = 18
MIN_FILE_COLUMNS = 16


def change_state(change: "PastChange", numbers: Mapping[str, int]) -> str:
    """`applied`, `undone by 8`, `never applied`."""
    state, by = STATES.get(change.status, change.status), numbers.get(change.taken_back_by)
    return f"{state} by {by}" if by else state


def change_lines(
    changes: "Sequence[PastChange]", todos: "Sequence[Todo]", now: float, width: int, limit: int | None = None
) -> list[Line]:
    """One line a change set, the newest first and at most so many, below a heading."""
    if not changes:
        return []
    numbers = {change.id: change.number for change in changes}
    head = f"{'change':>6}  {'when':>11}  {'by':<8}  {'state':<{STATE_COLUMNS}}  files"
    rows = [line(("dim", fit(head, width)))]
    for change in list(reversed(changes))[:limit]:
        rows += change_row(change, change_state(change, numbers), now, width)
        for text in remarks(change, numbers, todos):
            rows += wrap(line(("dim", f"{'':8}{text}")), width, " " * 10)
    return rows


def change_row(change: "PastChange", state: str, now: float, width: int) -> list[Line]:
    """One line; two where the terminal is narrow."""
    style = "" if change.status == "applied" else "dim"
    facts = f"  {styles.format_age(now - change.at):>11}  {change.prepared.by:<8}  "
    head = line(("accent", f"{change.number:>6}"), ("dim", facts), (style, f"{state:<{STATE_COLUMNS}}  "))
    files = files_summary(change.prepared.files, change.prepared.unlisted)
    room = width - length(head)
    if room >= MIN_FILE_COLUMNS:
        return [(*head, Piece("", fit(files, room)))]
    return [(*head[:2], Piece(style, state)), line(f"{'':8}{fit(files, width - 8)}")]


def files_summary(files: "Sequence[FileChange]", unlisted: int = 0) -> str:
    """`src/cart.py +2 -2, 3 more files`."""
    if not files:
        return "no file"
    files = sorted(files, key=lambda file: file.ignored)
    more = len(files) - 1 + unlisted
    others = f", {styles.count_of(more, 'more file')}" if more else ""
    return f"{file_with_counts(files[0])}{others}"


def file_with_counts(file: "FileChange") -> str:
    """`src/cart.py +2 -2`; a move with its destination."""
    name = f"{file.path} -> {file.destination}" if file.destination else file.path
    return f"{name} +{file.added} -{file.removed}" if file.added or file.removed else name


def remarks(change: "PastChange", numbers: Mapping[str, int], todos: "Sequence[Todo]") -> list[str]:
    prepared, found = change.prepared, list[str]()
    if prepared.takes_back:
        undone = [str(numbers[each]) for each in reversed(prepared.takes_back) if each in numbers]
        found.append(f"undoes {', '.join(undone)}")
    if change.why:
        found.append(f"why not: {change.why}")
    if prepared.intent:
        found.append(prepared.intent if prepared.by == "command" else f"intent: {prepared.intent}")
    texts = {todo.id: todo.text for todo in todos}
    found += [f"todo: {texts.get(todo, todo)}" for todo in prepared.todos]
    if lost := sum(not file.restorable for file in prepared.files) + prepared.unlisted:
        found.append(f"{styles.count_of(lost, 'file')} {LOST}")
    return found


def change_json(change: "PastChange") -> dict[str, Any]:
    prepared, row = (
        to_dict(change.prepared),
        {"number": change.number, "id": change.id, "at": round(change.at, 3)},
    )
    row |= {name: getattr(change, name) for name in ("turn", "status", "why", "taken_back_by", "verified")}
    names = ("files", "by", "takes_back", "model", "cost_usd", "intent", "todos", "unlisted")
    return row | {name: prepared[name] for name in names}


def change_header(
    shown: "ShownChange", changes: "Sequence[PastChange]", todos: "Sequence[Todo]", now: float, width: int
) -> list[Line]:
    change, prepared = shown.change, shown.change.prepared
    numbers = {each.id: each.number for each in changes}
    facts = [f"by {prepared.by}", styles.format_age(now - change.at)]
    facts += [f"turn {change.turn}"] if change.turn else []
    facts += [prepared.model] if prepared.model else []
    facts += [] if prepared.cost_usd is None else [styles.format_usd(prepared.cost_usd)]
    facts += [] if change.verified is None else ["check passed" if change.verified else "check failed"]
    head = line(
        ("bold", f"change {change.number}"),
        ("dim", f"  {change.id}  "),
        change_state(change, numbers),
        ("dim", f"  {', '.join(facts)}"),
    )
    rows = wrap(head, width, "  ")
    for text in remarks(change, numbers, todos):
        rows += wrap(line(("dim", f"  {text}")), width, "    ")
    return rows


def file_diff_lines(files: "Sequence[ShownFile]", width: int) -> list[Line]:
    rows: list[Line] = []
    for file, diff in files:
        op = f"  {OPS[file.op]}" if file.op in OPS else ""
        rows += [(), line(("bold", file_with_counts(file)), ("dim", op))]
        rows += [] if file.restorable else [line(("bad", f"{BODY_INDENT}its previous version is {LOST}"))]
        if diff is None:
            rows.append(line(("dim", f"{BODY_INDENT}its contents are no longer kept")))
        else:
            rows += diff_lines(diff.text, width)
            old, new = file.old_mode, file.new_mode
            if old is not None and new is not None and old != new:
                modes = f"{old & 0o7777:o} -> {new & 0o7777:o}"
                rows.append(line(("dim", f"{BODY_INDENT}permissions {modes}")))
    return rows


def diff_lines(text: str, width: int) -> list[Line]:
    """A diff in full: long lines continue below themselves."""
    if not diffs.is_diff(text):
        return [] if text.startswith("---") else [line(("dim", BODY_INDENT + text))]
    return [part for row in diffs.render_diff(text) for part in break_line(row, width)]


def net_diff_lines(files: "Sequence[NetChange]", width: int) -> list[Line]:
    rows: list[Line] = []
    for path, diff, why in files:
        counts = f" +{diff.added} -{diff.removed}" if diff else ""
        rows += [()] if rows else []
        rows.append(line(("bold", f"{path}{counts}")))
        rows += wrap(line(("bad", f"{BODY_INDENT}{why}")), width, BODY_INDENT) if why else []
        rows += diff_lines(diff.text, width) if diff else []
    return rows
