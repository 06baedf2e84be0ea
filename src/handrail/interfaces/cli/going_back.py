"""What a rewind, an undo or a redo would do, shown before it is done; and what came of it."""

from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from handrail.interfaces.cli.change_list import diff_lines
from handrail.interfaces.cli.styles import ACCENT, BAD, BOLD, DIM, Line, fit, line, wrap
from handrail.protocol.commands import Redo, Rewind
from handrail.protocol.errors import UsageProblem
from handrail.protocol.events import ChangePrepared, Redone, Rewound

if TYPE_CHECKING:
    from handrail.app import App
    from handrail.changes.rollback import FilePlan
    from handrail.engine.history import GoingBack
    from handrail.sessions.changes import Change

FILES_SHOWN = 30
PATH_COLUMNS = 40
NAMED = 3
CLASHES = 3
CLASH_LINES = 4
PARTS = {"f": "files", "c": "conversation", "b": "both"}


class Look(NamedTuple):
    """What was found before anything is done."""

    session_id: str
    command: Rewind | Redo
    """With the id of the change set in full."""
    going: "GoingBack"
    changes: "list[Change]"
    turns: int
    """How many turns the session has."""
    said: bool
    """Of a redo: whether it brings back what was set aside of the conversation."""
    waits: bool
    """Whether a turn waits for the user's word: nothing can be taken back before it has ended."""
    running: bool

    @property
    def files(self) -> "tuple[FilePlan, ...]":
        return self.going.plan.files

    def of_kind(self, *kinds: str) -> "list[FilePlan]":
        return [file for file in self.files if file.kind in kinds]

    def undecided(self, command: Rewind | Redo) -> "list[FilePlan]":
        """Files on which the user has yet to say something."""
        return [
            file
            for file in self.of_kind("merge", "conflict", "lost")
            if file.path not in command.leave and not (file.kind == "merge" and file.path in command.accept)
        ]

    @property
    def ways(self) -> str:
        """The letters of `PARTS` that would do something."""
        files, said = bool(self.of_kind("restore", "merge")), bool(self.conversation)
        return "fcb" if files and said else "f" * files + "c" * said

    @property
    def conversation(self) -> int:
        """How many turns a rewind of the conversation sets aside."""
        event = self.going.event
        return self.turns - event.turns if isinstance(event, Rewound) and event.keep is not None else 0


def look(app: "App", session_id: str, command: Rewind | Redo) -> Look:
    """What it would come to now; raises UsageProblem where it cannot be done at all."""
    changes = app.history.changes(session_id)
    try:
        going = app.history.going_back(session_id, command)
    except UsageProblem as problem:
        raise UsageProblem(in_numbers(str(problem), changes)) from problem
    state = app.state(session_id)
    return Look(
        session_id,
        command,
        going,
        changes,
        state.turns,
        said=isinstance(command, Redo) and state.rewinds[-1].keep is not None,
        waits=bool(state.turn and (state.approvals or state.questions)),
        running=state.turn is not None,
    )


def last_applied(changes: "Sequence[Change]") -> "Change":
    """The change set that an undo takes back."""
    found = [change for change in changes if change.status == "applied" and change.prepared.by != "rollback"]
    if found:
        return found[-1]
    if not changes:
        raise UsageProblem("No file was changed in this session, so there is nothing to take back.")
    last = changes[-1]
    why = f": the last, {last.number}, was never applied" if last.status == "not applied" else ""
    raise UsageProblem(f"None of the changes of this session is in place{why}. `changes` lists them.")


def check_paths(look: Look, accept: Collection[str], leave: Collection[str]) -> None:
    """UsageProblem for a path that is in no way meant by what would be done."""
    known = {file.path: file for file in look.files}
    for path in [*accept, *leave]:
        if path not in known:
            raise UsageProblem(f"{path} is not among the files that this would change. --dry-run lists them.")
    for path in accept:
        if known[path].kind in ("conflict", "lost"):
            raise UsageProblem(f"There is no merge of {path}: {known[path].why} Only --leave {path} is left.")


def question_of(found: Look, command: Rewind | Redo, part: str | None = None) -> tuple[str, str]:
    """What to ask, and the letters that answer it."""
    if isinstance(command, Redo) or command.only:
        return "Do it?", "yn"
    if part or len(found.ways) == 1:
        what = part or PARTS[found.ways]
        return f"Rewind {'files and conversation' if what == 'both' else f'the {what}'}?", "yn"
    return "Rewind files, conversation, or both?", "fcbn"


def as_shown(found: Look, command: Rewind | Redo, key: str) -> Rewind | Redo:
    """The command after a yes to what the preview said: merges are taken, conflicts stay as they are."""
    merges = [file.path for file in found.of_kind("merge") if file.path not in command.leave]
    stuck = [file.path for file in found.of_kind("conflict", "lost")]
    update: dict[str, Any] = {
        "accept": (*command.accept, *merges),
        "leave": tuple(dict.fromkeys([*command.leave, *stuck])),
    }
    if key in PARTS:
        update |= {"files": key != "c", "conversation": key != "f"}
    return command.model_copy(update=update)


# As it is shown


def preview(look: Look, width: int, *, would: bool = True) -> list[Line]:
    """What would be done (or is, at once), what cannot, and what else there is to know."""
    rows = [*wrap(line(headline(look, would=would)), width, "  ")]
    shown = look.files[:FILES_SHOWN]
    widest = min(PATH_COLUMNS, max((len(file.path) for file in shown), default=0))
    for file in shown:
        rows += file_lines(file, width, widest, redo=isinstance(look.command, Redo))
    if len(look.files) > FILES_SHOWN:
        rows.append(line((DIM, f"  … {len(look.files) - FILES_SHOWN:,} more files")))
    if detail := in_numbers(look.going.event.detail, look.changes):
        rows += wrap(line((DIM, f"  not taken back: {detail}")), width, "    ")
    if look.conversation:
        left = look.turns - look.conversation
        said = f"  conversation: {turns(look.conversation)} would be set aside, {turns(left)} kept"
        rows += wrap(line((DIM, said)), width, "    ")
    elif look.said:
        rows.append(line((DIM, "  conversation: what was set aside comes back")))
    return rows


def headline(look: Look, *, would: bool) -> str:
    """`Would undo 2 change sets (7, 6):`"""
    end = ":" if look.files else "; no file has to change for it."
    if isinstance(look.command, Redo):
        return f"{'Would redo' if would else 'Redoing'} what was taken back last{end}"
    names = undone(look)
    if not names:
        return "No change set is in place there; no file would change."
    sets = f"{len(names)} change set{'s' * (len(names) > 1)} ({', '.join(names)})"
    return f"{'Would undo' if would else 'Undoing'} {sets}{end}"


def undone(look: Look) -> list[str]:
    """Numbers of the change sets that would be undone, the newest first."""
    taken = set(look.going.plan.takes_back)
    return [
        str(change.number)
        for change in reversed(look.changes)
        if change.id in taken and change.status == "applied" and change.prepared.by != "rollback"
    ]


def file_lines(file: "FilePlan", width: int, columns: int, *, redo: bool) -> list[Line]:
    """A file with what is undone in it, and whether somebody else has a hand in it."""
    if file.kind in ("conflict", "lost"):
        rows = [line((BOLD, f"  {file.path}"), (BAD, "  stays as it is"))]
        return [*rows, *wrap(line(f"    {file.why}"), width, "    "), *clash_lines(file, width)]
    counts = "binary"
    if not is_binary(file):
        _, added, removed = file.diff
        # What is undone is shown as it was done, which is the other way round.
        counts = f"+{added} -{removed}" if redo else f"+{removed} -{added}"
    what = ""
    if file.then is None:
        what = "   the file goes away"
    elif file.now.data is None:
        what = "   the file comes back"
    rows = [line(f"  {fit(file.path, columns):<{columns}}  {counts:<{8 if what else 0}}", (DIM, what))]
    if file.kind == "merge":
        told = "changed since by you, or another program: merged, no overlap"
        rows += wrap(line((BOLD, f"    {told}")), width, "    ")
    return rows


def is_binary(file: "FilePlan") -> bool:
    return b"\0" in (file.now.data or b"") or b"\0" in (file.then or b"")


def clash_lines(file: "FilePlan", width: int) -> list[Line]:
    """What stands in the way: the lines as they are, and as they were before the change."""
    rows: list[Line] = []
    for clash in file.clashes[:CLASHES]:
        for sign, side, style in (("-", clash.ours, DIM), ("+", clash.theirs, ACCENT)):
            shown = side.decode(errors="replace").splitlines()
            rows += [
                line(f"    {clash.line + at:>4} ", (style, fit(f"{sign} {text}", width - 10)))
                for at, text in enumerate(shown[:CLASH_LINES])
            ]
    return rows


def diffs_of(look: Look, width: int) -> list[Line]:
    """What would change in each file, in full."""
    rows: list[Line] = []
    for file in look.of_kind("restore", "merge"):
        text = "binary" if is_binary(file) else file.diff.text
        rows += [line((BOLD, f"  {file.path}")), *diff_lines(text, width)]
    return rows


def turns(count: int) -> str:
    return f"{count} turn{'s' * (count != 1)}"


def in_numbers(text: str, changes: "Sequence[Change]") -> str:
    """The text with the numbers of change sets instead of their ids."""
    for change in changes:
        text = text.replace(change.id, f"change {change.number}")
    return text


def outcome(event: Rewound | Redone, prepared: ChangePrepared | None) -> str:
    """What came of it, in words."""
    done = list[str]()
    if prepared and prepared.change_id == event.change_id:
        names = [file.path for file in prepared.files]
        more = f" and {len(names) - NAMED:,} more" if len(names) > NAMED else ""
        verb = "is" if len(names) == 1 else "are"
        how = "changed again" if isinstance(event, Redone) else "as before"
        done.append(f"{', '.join(names[:NAMED])}{more} {verb} {how}")
    if isinstance(event, Rewound) and event.keep is not None:
        after = f"goes on after {turns(event.turns)}" if event.turns else "begins anew"
        done.append(f"the conversation {after}")
    elif isinstance(event, Redone) and event.conversation is not None:
        done.append(f"the conversation {'is back' if event.conversation else 'was not set aside'}")
    if not done:
        done.append("what was set aside is back" if isinstance(event, Redone) else "no file had to change")
    return "; ".join(done) + (f"; {event.detail}" if event.detail else "")
