"""Compaction: older entries become a digest, written by code, that keeps the goal and the facts.

The digest is made from the log alone, so it costs no request, cannot fail and cannot invent anything.
"""

from collections.abc import Sequence
from typing import NamedTuple

from handrail.context.budget import COMPACT_AT, KEEP_AFTER_COMPACTION, entry_tokens, text_tokens
from handrail.protocol.events import Compacted
from handrail.protocol.ids import new_id
from handrail.protocol.values import SHOWN_DIGITS, Todo
from handrail.sessions.state import State
from handrail.sessions.transcript import Entry, Replied, Resulted, Said

MESSAGE_CAP, ANSWER_CAP, FAILURE_CAP, SHORTEST_TODO = 400, 300, 200, 20
USER, ANSWER = "- user:", "- you answered:"
LISTED_FILES, LISTED_FAILURES = 40, 10


class Size(NamedTuple):
    """Tokens of what comes with every request, and of the conversation."""

    fixed: int
    conversation: int

    @property
    def total(self) -> int:
        return self.fixed + self.conversation


def size_of(fixed: int, state: State, transcript: Sequence[Entry]) -> Size:
    summary = text_tokens(state.cut.summary) if state.cut.summary else 0
    return Size(fixed, summary + sum(entry_tokens(entry) for entry in transcript))


def is_due(size: Size, window: int, output: int) -> bool:
    """Whether the next request would fill the window too far."""
    return size.total > min(window * COMPACT_AT, window - output)


def compact(state: State, transcript: Sequence[Entry], size: Size, window: int) -> Compacted | None:
    """The event that shows the model a digest of older entries; None when nothing older is left to digest."""
    room = max(int(window * KEEP_AFTER_COMPACTION) - size.fixed, window // 8)
    keep = _first_kept(transcript, room)
    older = transcript[:keep]
    if not older:
        return None
    summary = digest(state, older, cap=max(2_000, window // 2))
    after = size.fixed + text_tokens(summary) + sum(entry_tokens(entry) for entry in transcript[keep:])
    return Compacted(
        compaction_id=new_id("k"),
        upto=older[-1].seq,
        summary=summary,
        tokens_before=size.total,
        tokens_after=after,
    )


def _first_kept(transcript: Sequence[Entry], room: int) -> int:
    """Index of the first entry to keep: a call is never parted from its results."""
    kept, best = 0, len(transcript)
    for index in range(len(transcript) - 1, -1, -1):
        kept += entry_tokens(transcript[index])
        if kept > room and best < len(transcript):
            break
        if not isinstance(transcript[index], Resulted):
            best = index
    return best if best < len(transcript) else 0


def digest(state: State, older: Sequence[Entry], cap: int) -> str:
    """Goal, what was asked since, decisions, files changed with their hashes, failed attempts, open todos.

    All but the goal together are about `cap` characters; what was said gets what the rest leaves over.
    """
    lines = [line for line in state.cut.summary.splitlines() if line.startswith((USER, ANSWER))]
    for entry in older:
        if isinstance(entry, Said) and entry.by == "user" and entry.text != state.goal:
            lines.append(f"{USER} {_cut(entry.text, MESSAGE_CAP)}")
        elif isinstance(entry, Replied) and entry.text and not entry.calls:
            lines.append(f"{ANSWER} {_cut(entry.text, ANSWER_CAP)}")
    changed = [
        f"- {path} [hash: {seen.sha256[:SHOWN_DIGITS]}]"
        for path, seen in state.files.files.items()
        if seen.modified_turn
    ]
    failed = [
        f"- {entry.tool}: {_cut(entry.content, FAILURE_CAP)}"
        for entry in older
        if isinstance(entry, Resulted) and entry.is_error
    ]
    share = cap // 4
    facts = [
        _section("Files you changed", _latest(changed[-LISTED_FILES:], share)),
        _section("Attempts that failed", _latest(failed[-LISTED_FAILURES:], share)),
        _section("Todos", _todos(state.todos, share)),
    ]
    since = _section("Since then", _fitting(lines, max(share, cap - sum(map(len, facts)))))
    goal = f"Goal, in the user's words: {state.goal}"
    return "\n".join(part for part in (goal, since, *facts) if part)


def _todos(todos: Sequence[Todo], cap: int) -> list[str]:
    """Every todo, in as many words as there is room for."""
    each = max(SHORTEST_TODO, cap // max(1, len(todos)))
    return [f"- [{'x' if todo.done else ' '}] {todo.id}: {_cut(todo.text, each)}" for todo in todos]


def _latest(lines: list[str], cap: int) -> list[str]:
    """The last lines that fit, at least one, and how many do not."""
    kept = list(lines)
    while len(kept) > 1 and sum(map(len, kept)) > cap:
        del kept[0]
    left_out = len(lines) - len(kept)
    return [f"({left_out} earlier ones left out)", *kept] if left_out else kept


def _section(title: str, lines: list[str]) -> str:
    return "\n".join([f"{title}:", *lines]) if lines else ""


def _fitting(lines: list[str], cap: int) -> list[str]:
    """The lines that fit: old answers go first, then the oldest words of the user."""
    kept, size = list(lines), sum(map(len, lines))
    for prefix in (ANSWER, USER):
        for line in [line for line in kept if line.startswith(prefix)]:
            if size <= cap:
                break
            kept.remove(line)
            size -= len(line)
    left_out = len(lines) - len(kept)
    return [f"({left_out} older lines left out)", *kept] if left_out else kept


def _cut(text: str, cap: int) -> str:
    line = " ".join(text.split())
    return line if len(line) <= cap else f"{line[: cap - 1]}…"
