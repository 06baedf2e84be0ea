"""What an undo, redo or rewind would do, as lines and a question; and its outcome."""

from typing import TYPE_CHECKING

from handrail.interfaces.cli.render.change_list import diff_lines
from handrail.interfaces.cli.render.styles import Line, count_of, fit, line, wrap
from handrail.protocol.commands import Redo, Rewind
from handrail.protocol.events import ChangePrepared, Redone, Rewound

if TYPE_CHECKING:
    from handrail.app.history.changes import FilePlan, RewindPreview

FILES_SHOWN = 30
PATH_COLUMNS = 40
NAMED_FILES = 3
MAX_CLASHES = 3
CLASH_LINES = 4
PARTS = {"f": "the files", "c": "the conversation", "files": "the files", "conversation": "the conversation"}


def confirm_question(
    found: "RewindPreview", command: Rewind | Redo, part: str | None = None
) -> tuple[str, str]:
    """What to ask, and the letters that answer it."""
    if isinstance(command, Redo) or command.only:
        return "Do it?", "yn"
    if part or len(found.ways) == 1:
        return f"Rewind {PARTS.get(part or found.ways, 'files and conversation')}?", "yn"
    return "Rewind files, conversation, or both?", "fcbn"


def preview_lines(look: "RewindPreview", width: int, *, would: bool = True) -> list[Line]:
    """What would be done (or is done at once), file by file, and what cannot be."""
    rows = wrap(line(headline(look, would=would)), width, "  ")
    shown = look.files[:FILES_SHOWN]
    widest = min(PATH_COLUMNS, max((len(file.path) for file in shown), default=0))
    for file in shown:
        rows += file_lines(file, width, widest, redo=isinstance(look.command, Redo))
    if len(look.files) > FILES_SHOWN:
        rows.append(line(("dim", f"  … {len(look.files) - FILES_SHOWN:,} more files")))
    if look.not_undone:
        rows += wrap(line(("dim", f"  not undone: {look.not_undone}")), width, "    ")
    if look.conversation:
        aside, kept = count_of(look.conversation, "turn"), count_of(look.turns - look.conversation, "turn")
        rows += wrap(line(("dim", f"  conversation: {aside} would be set aside, {kept} kept")), width, "    ")
    elif look.restores_conversation:
        rows.append(line(("dim", "  conversation: what was set aside comes back")))
    return rows


def headline(look: "RewindPreview", *, would: bool) -> str:
    """`Would undo 2 change sets (7, 6):`"""
    end = ":" if look.files else "; no file has to change for it."
    if isinstance(look.command, Redo):
        return f"{'Would redo' if would else 'Redoing'} what was undone last{end}"
    numbers = look.undone
    if not numbers:
        return "No change set is in place there; no file would change."
    sets = f"{count_of(len(numbers), 'change set')} ({', '.join(map(str, numbers))})"
    return f"{'Would undo' if would else 'Undoing'} {sets}{end}"


def file_lines(file: "FilePlan", width: int, columns: int, *, redo: bool) -> list[Line]:
    """A file, what is undone in it, and whether somebody else changed it since."""
    if file.kind in ("conflict", "lost"):
        rows = [line(("bold", f"  {file.path}"), ("bad", "  stays as it is"))]
        return [*rows, *wrap(line(f"    {file.why}"), width, "    "), *clash_lines(file, width)]
    counts = "binary"
    if not is_binary(file):
        _, added, removed = file.diff
        # What is undone is shown as it was done, which is the other way round.
        counts = f"+{added} -{removed}" if redo else f"+{removed} -{added}"
    what = "   the file is deleted" if file.then is None else ""
    if file.then is not None and file.now.data is None:
        what = "   the file is restored"
    rows = [line(f"  {fit(file.path, columns):<{columns}}  {counts:<{8 if what else 0}}", ("dim", what))]
    if file.kind == "merge":
        why = "changed since by you or another program: merged, no overlap"
        rows += wrap(line(("bold", f"    {why}")), width, "    ")
    return rows


def is_binary(file: "FilePlan") -> bool:
    return b"\0" in (file.now.data or b"") or b"\0" in (file.then or b"")


def clash_lines(file: "FilePlan", width: int) -> list[Line]:
    """What stands in the way: the lines as they are, and as they were before the change."""
    rows: list[Line] = []
    for clash in file.clashes[:MAX_CLASHES]:
        for sign, side, style in (("-", clash.ours, "dim"), ("+", clash.theirs, "accent")):
            shown = side.decode(errors="replace").splitlines()
            rows += [
                line(f"    {clash.line + at:>4} ", (style, fit(f"{sign} {text}", width - 10)))
                for at, text in enumerate(shown[:CLASH_LINES])
            ]
    return rows


def preview_diffs(look: "RewindPreview", width: int) -> list[Line]:
    rows: list[Line] = []
    for file in look.of_kind("restore", "merge"):
        text = "binary" if is_binary(file) else file.diff.text
        rows += [line(("bold", f"  {file.path}")), *diff_lines(text, width)]
    return rows


def rewind_summary(event: Rewound | Redone, prepared: ChangePrepared | None) -> str:
    done = list[str]()
    if prepared and prepared.change_id == event.change_id:
        names = [file.path for file in prepared.files]
        more = f" and {len(names) - NAMED_FILES:,} more" if len(names) > NAMED_FILES else ""
        verb = "is" if len(names) == 1 else "are"
        how = "changed again" if isinstance(event, Redone) else "as before"
        done.append(f"{', '.join(names[:NAMED_FILES])}{more} {verb} {how}")
    if isinstance(event, Rewound) and event.keep is not None:
        after = f"continues after {count_of(event.turns, 'turn')}" if event.turns else "starts over"
        done.append(f"the conversation {after}")
    elif isinstance(event, Redone) and event.conversation is not None:
        done.append(f"the conversation {'is back' if event.conversation else 'did not change'}")
    if not done:
        done.append("what was set aside is back" if isinstance(event, Redone) else "no file had to change")
    return "; ".join(done) + (f"; {event.detail}" if event.detail else "")
