"""The digest of older turns: what code alone can keep of them, made to fit.

It is made from the log, so it costs no request, cannot fail and cannot invent anything. What a model has
written about the same turns stands beside it, never in its place.
"""

import json
import re
from collections.abc import Callable, Sequence
from typing import Any

from handrail.context.budget import BYTES_PER_TOKEN
from handrail.protocol.values import SHOWN_DIGITS, Kept, ToolCall
from handrail.sessions.state import GOAL_LENGTH, State
from handrail.sessions.transcript import Entry, Replied, Resulted, Said

USER, ANSWER = "- user:", "- you answered:"
MESSAGE_CAP, ANSWER_CAP, FAILURE_CAP, DECISION_CAP, TODO_CAP = 600, 300, 240, 300, 200
SHORTEST = 100
LISTED = {"files": 60, "failed": 12, "decisions": 20}
SENTENCE = re.compile(r"(?<=[.!?;])\s+|\n+")
BINDING = re.compile(
    r"\b(must|never|always|only|no|not|don't|do not|without|keep|instead|should|shall|avoid|at most|at least|"
    r"exactly|require\w*|forbid\w*|prefer\w*|use)\b",
    re.IGNORECASE,
)
"""Words in which people say what has to hold."""
TELLING = ("command", "path", "pattern", "query", "url", "question")


def collect(state: State, older: Sequence[Entry], newer: Sequence[Entry]) -> Kept:
    """All that is worth keeping of `older` and of what was kept before; `newer` stays as it is."""
    before, called = state.cut.kept, _calls(older)
    said, decisions, failed = list(before.said), list(before.decisions), list(before.failed)
    asked = before.asked
    said += _said(asked, state.goal)
    for entry in older:
        match entry:
            case Said(by="user"):
                words = entry.words or entry.text
                names = ", ".join(image.name for image in entry.images)
                shown = f"{words} [pictures: {names}]" if names else words
                said += _said(shown, state.goal)
                asked = asked if entry.steering else shown
            case Replied() if entry.text and not entry.calls:
                said.append(f"{ANSWER} {cut(entry.text, ANSWER_CAP)}")
            case Resulted(is_error=False, tool="ask_user"):
                question = called.get(entry.call_id, ToolCall(id="", name="")).arguments.get("question", "")
                decisions.append(
                    f"- you asked: {cut(str(question), 200)} The user: {cut(entry.content, 200)}"
                )
            case Resulted(is_error=True):
                (decisions if _refused(entry) else failed).append(_failure(entry, called.get(entry.call_id)))
    if any(isinstance(entry, Said) and entry.by == "user" and not entry.steering for entry in newer):
        asked = ""
    # What is still being done stands in a place of its own, in more words.
    current = _said(asked, state.goal)
    kept = Kept(
        goal=state.goal,
        asked=asked[:GOAL_LENGTH] if current else "",
        notes=before.notes,
        said=tuple(line for line in said if line not in current),
        decisions=_distinct(decisions),
        files=tuple(_file(path, sha256) for path, sha256 in state.files.changed.items()),
        failed=_distinct(failed),
        todos=tuple(f"- {todo.id}: {cut(todo.text, TODO_CAP)}" for todo in state.todos if not todo.done),
        left_out=before.left_out | {"files": 0},
    )
    for field, most in LISTED.items():
        kept = _drop(field, most)(kept, size(kept))
    return kept


def fit(kept: Kept, tokens: int) -> Kept:
    """The same in so many tokens: answers go first, then words of the user that bind to nothing, then more.

    The goal and the open todos are shortened and never left out.
    """
    room = int(tokens * BYTES_PER_TOKEN)
    for shorten in STEPS:
        while (over := size(kept) - room) > 0 and (less := shorten(kept, over)) != kept:
            kept = less
    return kept


def words(kept: Kept) -> str:
    """The digest as the model is shown it."""
    parts = (
        f"Goal, in the user's words: {kept.goal}" if kept.goal else "",
        f"What the user asked last, still being done: {kept.asked}" if kept.asked else "",
        f"Notes that a model wrote when older turns were left out; not the user's words:\n{kept.notes}"
        if kept.notes
        else "",
        _section("Since then", kept, "said"),
        _section("Decisions of the user", kept, "decisions"),
        _section("Files you changed, with their hashes", kept, "files"),
        _section("Attempts that failed", kept, "failed"),
        _section("Open todos", kept, "todos"),
    )
    return "\n".join(part for part in parts if part)


def size(kept: Kept) -> int:
    return len(words(kept).encode(errors="replace"))


def cut(text: str, cap: int) -> str:
    """The text on one line; where it is too long, its beginning and the sentences that bind."""
    line = " ".join(text.split())
    if len(line) <= cap:
        return line
    binding = [each for each in SENTENCE.split(text[cap // 2 :]) if BINDING.search(each)]
    rest = " … ".join(" ".join(each.split()) for each in binding)[: cap // 2]
    return f"{line[: cap - len(rest) - 3]} … {rest}".rstrip() if rest else f"{line[: cap - 1]}…"


def _said(text: str, goal: str) -> list[str]:
    return [f"{USER} {cut(text, MESSAGE_CAP)}"] if text and text[:GOAL_LENGTH] != goal else []


def _calls(older: Sequence[Entry]) -> dict[str, ToolCall]:
    return {call.id: call for entry in older if isinstance(entry, Replied) for call in entry.calls}


def _refused(entry: Resulted) -> bool:
    return _error(entry.content).get("reason") == "user_rejected"


def _failure(entry: Resulted, call: ToolCall | None) -> str:
    """What was tried, and what came of it."""
    told = [call.arguments[name] for name in TELLING if name in call.arguments] if call else []
    tried = f"{entry.tool} {cut(str(told[0]), 100)}" if told else entry.tool
    error = _error(entry.content)
    if error:
        return f"- {tried}: {cut(str(error.get('message', '')), FAILURE_CAP)}"
    if entry.tool != "run":
        return f"- {tried}: {cut(entry.content, FAILURE_CAP)}"
    # What a command says last is what it ended with.
    end = " ".join(entry.content[-2 * FAILURE_CAP :].split())
    return f"- {tried}: {end if len(end) <= FAILURE_CAP else '…' + end[-FAILURE_CAP:]}"


def _error(content: str) -> dict[str, Any]:
    if not content.startswith('{"type":"tool_error"'):
        return {}
    try:
        value, _ = json.JSONDecoder().raw_decode(content)
    except (ValueError, RecursionError):
        return {}
    return value if isinstance(value, dict) else {}


def _file(path: str, sha256: str) -> str:
    return f"- {path} [hash: {sha256[:SHOWN_DIGITS]}]" if sha256 else f"- {path} (deleted)"


def _distinct(lines: Sequence[str]) -> tuple[str, ...]:
    """Each line once, where it stands last."""
    return tuple(reversed(dict.fromkeys(reversed(lines))))


def _section(title: str, kept: Kept, field: str) -> str:
    lines: tuple[str, ...] = getattr(kept, field)
    left_out = kept.left_out.get(field, 0)
    more = (f"({left_out} older lines left out)",) if left_out else ()
    return "\n".join([f"{title}:", *more, *lines]) if lines or more else ""


# Making it smaller, step by step

Step = Callable[[Kept, int], Kept]
"""Takes so many bytes away, as far as it can."""


def _drop(field: str, least: int = 0, which: Callable[[str], bool] = bool) -> Step:
    """Leaves out the oldest lines of a kind from a list, while it has more than so many."""

    def drop(kept: Kept, over: int) -> Kept:
        lines: tuple[str, ...] = getattr(kept, field)
        left, dropped = over, set[int]()
        for index, line in enumerate(lines):
            if left <= 0 or len(lines) - len(dropped) <= least:
                break
            if which(line):
                dropped.add(index)
                left -= len(line.encode(errors="replace")) + 1
        if not dropped:
            return kept
        remaining = tuple(line for index, line in enumerate(lines) if index not in dropped)
        left_out = kept.left_out | {field: kept.left_out.get(field, 0) + len(dropped)}
        return kept.model_copy(update={field: remaining, "left_out": left_out})

    return drop


def _shorten(field: str, cap: int) -> Step:
    """Cuts every line of a list, or a text, to so many characters."""

    def shorten(kept: Kept, _over: int) -> Kept:
        value: str | tuple[str, ...] = getattr(kept, field)
        shorter = cut(value, cap) if isinstance(value, str) else tuple(cut(each, cap) for each in value)
        return kept.model_copy(update={field: shorter})

    return shorten


def _is_answer(line: str) -> bool:
    return line.startswith(ANSWER)


def _binds_nothing(line: str) -> bool:
    return not BINDING.search(line)


STEPS: tuple[Step, ...] = (
    _drop("said", which=_is_answer),
    _drop("said", which=_binds_nothing),
    _drop("files", 12),
    _drop("failed", 4),
    _drop("decisions", 6),
    _shorten("said", 200),
    _shorten("todos", SHORTEST),
    _shorten("notes", 2_000),
    _drop("said"),
    _drop("failed", 1),
    _drop("decisions", 1),
    _drop("files", 3),
    _shorten("asked", 600),
    _shorten("goal", 800),
    _shorten("notes", 600),
    _shorten("todos", 24),
    _shorten("asked", 200),
    _shorten("goal", 300),
    _shorten("notes", 0),
)
"""In this order, each as often as it helps."""
