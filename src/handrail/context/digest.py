"""Compaction: when older entries are replaced by a digest, and what the digest keeps.

The digest is made from the log, so it costs no request, cannot fail and cannot invent anything. A model's
notes about the same turns are added to it, and never replace it.
"""

import json
import re
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from msgspec.structs import replace

from handrail.context.images import with_visible_images
from handrail.context.token_budget import BYTES_PER_TOKEN, entry_tokens, text_tokens
from handrail.protocol.events import Compacted
from handrail.protocol.ids import new_id
from handrail.protocol.values import HASH_DIGITS, CompactionSummary, ToolCall
from handrail.sessions.session_state import GOAL_LENGTH, CompactionCut, SessionState
from handrail.sessions.transcript import AssistantEntry, ToolResultEntry, TranscriptEntry, UserEntry

USER, ANSWER = "- user:", "- you answered:"
MESSAGE_CAP, ANSWER_CAP, FAILURE_CAP, TODO_CAP = 600, 300, 240, 200
MAX_LISTED = {"files": 60, "failed": 12, "decisions": 20}
SENTENCE = re.compile(r"(?<=[.!?;])\s+|\n+")
BINDING = re.compile(
    r"\b(must|never|always|only|no|not|don't|do not|without|keep|instead|should|shall|avoid|at most|at least|"
    r"exactly|require\w*|forbid\w*|prefer\w*|use)\b",
    re.IGNORECASE,
)
"""Words that people use for requirements."""
DESCRIBING_ARGUMENTS = ("command", "path", "pattern", "query", "url", "question")


def collect_kept(
    state: SessionState, older: Sequence[TranscriptEntry], newer: Sequence[TranscriptEntry]
) -> CompactionSummary:
    """What to keep of `older` and of the previous digest; `newer` stays as it is."""
    before = state.cut.kept
    called = {call.id: call for entry in older if isinstance(entry, AssistantEntry) for call in entry.calls}
    said, decisions, failed = list(before.said), list(before.decisions), list(before.failed)
    asked = before.asked
    said += _user_line(asked, state.goal)
    for entry in older:
        match entry:
            case UserEntry(by="user"):
                words = entry.words or entry.text
                names = ", ".join(image.name for image in entry.images)
                shown = f"{words} [pictures: {names}]" if names else words
                said += _user_line(shown, state.goal)
                asked = asked if entry.steering else shown
            case AssistantEntry() if entry.text and not entry.calls:
                said.append(f"{ANSWER} {cut_line(entry.text, ANSWER_CAP)}")
            case ToolResultEntry(is_error=False, tool="ask_user"):
                question = called.get(entry.call_id, ToolCall(id="", name="")).arguments.get("question", "")
                asked_line, answer = cut_line(str(question), 200), cut_line(entry.content, 200)
                decisions.append(f"- you asked: {asked_line} The user: {answer}")
            case ToolResultEntry(is_error=True):
                refused = _error(entry.content).get("reason") == "user_rejected"
                (decisions if refused else failed).append(_failure(entry, called.get(entry.call_id)))
    if any(isinstance(entry, UserEntry) and entry.by == "user" and not entry.steering for entry in newer):
        asked = ""
    # The request in progress has a section of its own, in full.
    current = _user_line(asked, state.goal)
    kept = CompactionSummary(
        goal=state.goal,
        asked=asked[:GOAL_LENGTH] if current else "",
        notes=before.notes,
        said=tuple(line for line in said if line not in current),
        decisions=_distinct(decisions),
        files=tuple(
            f"- {path} [hash: {sha256[:HASH_DIGITS]}]" if sha256 else f"- {path} (deleted)"
            for path, sha256 in state.files.changed.items()
        ),
        failed=_distinct(failed),
        todos=tuple(f"- {todo.id}: {cut_line(todo.text, TODO_CAP)}" for todo in state.todos if not todo.done),
        left_out=before.left_out | {"files": 0},
    )
    for field, most in MAX_LISTED.items():
        kept = _drop(field, most)(kept, digest_size(kept))
    return kept


def fit_digest(kept: CompactionSummary, tokens: int) -> CompactionSummary:
    """The digest cut to this many tokens. The goal and the open todos are shortened, never dropped."""
    room = int(tokens * BYTES_PER_TOKEN)
    for shorten in SHRINK_STEPS:
        while (over := digest_size(kept) - room) > 0 and (less := shorten(kept, over)) != kept:
            kept = less
    return kept


def digest_text(kept: CompactionSummary) -> str:
    """The digest as the model sees it."""
    notes = "Notes that a model wrote when older turns were left out; not the user's words:"
    parts = (
        f"Goal, in the user's words: {kept.goal}" if kept.goal else "",
        f"What the user asked last, still being done: {kept.asked}" if kept.asked else "",
        f"{notes}\n{kept.notes}" if kept.notes else "",
        _section("Since then", kept, "said"),
        _section("Decisions of the user", kept, "decisions"),
        _section("Files you changed, with their hashes", kept, "files"),
        _section("Attempts that failed", kept, "failed"),
        _section("Open todos", kept, "todos"),
    )
    return "\n".join(part for part in parts if part)


def digest_size(kept: CompactionSummary) -> int:
    return len(digest_text(kept).encode(errors="replace"))


def cut_line(text: str, cap: int) -> str:
    """The text on one line; if too long, its beginning and the sentences with requirements."""
    line = " ".join(text.split())
    if len(line) <= cap:
        return line
    binding = [each for each in SENTENCE.split(text[cap // 2 :]) if BINDING.search(each)]
    rest = " … ".join(" ".join(each.split()) for each in binding)[: cap // 2]
    return f"{line[: cap - len(rest) - 3]} … {rest}".rstrip() if rest else f"{line[: cap - 1]}…"


def _user_line(text: str, goal: str) -> list[str]:
    return [f"{USER} {cut_line(text, MESSAGE_CAP)}"] if text and text[:GOAL_LENGTH] != goal else []


def _failure(entry: ToolResultEntry, call: ToolCall | None) -> str:
    told = [call.arguments[name] for name in DESCRIBING_ARGUMENTS if name in call.arguments] if call else []
    tried = f"{entry.tool} {cut_line(str(told[0]), 100)}" if told else entry.tool
    error = _error(entry.content)
    if error:
        return f"- {tried}: {cut_line(str(error.get('message', '')), FAILURE_CAP)}"
    if entry.tool != "run":
        return f"- {tried}: {cut_line(entry.content, FAILURE_CAP)}"
    # The end of a command's output says how it failed.
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


def _distinct(lines: Sequence[str]) -> tuple[str, ...]:
    """Each line once, at its last position."""
    return tuple(reversed(dict.fromkeys(reversed(lines))))


def _section(title: str, kept: CompactionSummary, field: str) -> str:
    lines: tuple[str, ...] = getattr(kept, field)
    left_out = kept.left_out.get(field, 0)
    more = (f"({left_out} older lines left out)",) if left_out else ()
    return "\n".join([f"{title}:", *more, *lines]) if lines or more else ""


# Making the digest smaller, step by step

ShrinkStep = Callable[[CompactionSummary, int], CompactionSummary]


def _drop(field: str, least: int = 0, which: Callable[[str], bool] = bool) -> ShrinkStep:
    """Drops the oldest matching lines of a list, but keeps at least `least` lines."""

    def drop(kept: CompactionSummary, over: int) -> CompactionSummary:
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
        return replace(kept, **{field: remaining}, left_out=left_out)

    return drop


def _shorten(field: str, cap: int) -> ShrinkStep:
    """Cuts a text, or every line of a list, to `cap` characters."""

    def shorten(kept: CompactionSummary, _over: int) -> CompactionSummary:
        value: str | tuple[str, ...] = getattr(kept, field)
        if isinstance(value, str):
            return replace(kept, **{field: cut_line(value, cap)})
        return replace(kept, **{field: tuple(cut_line(each, cap) for each in value)})

    return shorten


SHRINK_STEPS: tuple[ShrinkStep, ...] = (
    _drop("said", which=lambda line: line.startswith(ANSWER)),
    _drop("said", which=lambda line: not BINDING.search(line)),
    _drop("files", 12),
    _drop("failed", 4),
    _drop("decisions", 6),
    _shorten("said", 200),
    _shorten("todos", 100),
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


MIN_TEXT = 120
"""Tokens that are always left of a text."""
CUT_NOTE = "\n[… {left_out:,} characters left out: all of it does not fit your window …]\n"


def truncate_transcript(transcript: Sequence[TranscriptEntry], tokens: int) -> Sequence[TranscriptEntry]:
    """The transcript cut to this many tokens, as far as shortening users' and tools' texts allows."""
    sizes = [entry_tokens(entry) for entry in transcript]
    if sum(sizes) <= tokens:
        return transcript
    most = _text_limit(transcript, sizes, tokens)
    return [_truncated(entry, most) for entry in transcript]


def _text_limit(transcript: Sequence[TranscriptEntry], sizes: Sequence[int], tokens: int) -> int:
    """Tokens that each text may have, so that all fit."""
    sized = zip(transcript, sizes, strict=True)
    texts = [size for entry, size in sized if not isinstance(entry, AssistantEntry)]
    left = tokens - (sum(sizes) - sum(texts))
    for number, size in enumerate(sorted(texts)):
        share = left // (len(texts) - number)
        if size > share:
            return max(MIN_TEXT, share)
        left -= size
    return max(texts, default=MIN_TEXT)


def _truncated(entry: TranscriptEntry, most: int) -> TranscriptEntry:
    if isinstance(entry, AssistantEntry):
        return entry
    text = entry.text if isinstance(entry, UserEntry) else entry.content
    over = entry_tokens(entry) - most
    if over <= 0 or text_tokens(text) <= MIN_TEXT:
        return entry
    room = max(MIN_TEXT, text_tokens(text) - over)
    # The room is measured in bytes, and a character has at least one.
    size = max(1, len(text.encode(errors="replace")))
    half = int(len(text) * (room * BYTES_PER_TOKEN - len(CUT_NOTE)) / size) // 2
    shorter = f"{text[:half]}{CUT_NOTE.format(left_out=len(text) - 2 * half)}{text[len(text) - half :]}"
    return replace(entry, text=shorter) if isinstance(entry, UserEntry) else replace(entry, content=shorter)


COMPACT_AT, KEEP_AFTER_COMPACTION = 0.85, 0.4
MIN_DIGEST_TOKENS, MAX_DIGEST_TOKENS = 250, 8_000


class RequestSize(NamedTuple):
    """Tokens of the system prompt and tools, and of the conversation."""

    fixed: int
    conversation: int

    @property
    def total(self) -> int:
        return self.fixed + self.conversation


class ModelNotes(NamedTuple):
    """What a model wrote about older turns; `by` is empty if none was asked."""

    text: str = ""
    by: str = ""
    problem: str = ""


class CutPlan(NamedTuple):
    older: Sequence[TranscriptEntry]
    newer: Sequence[TranscriptEntry]


NO_NOTES = ModelNotes()


class View(NamedTuple):
    """The conversation as a model can be shown it, and its tokens."""

    entries: Sequence[TranscriptEntry]
    tokens: int


def view_of(transcript: Sequence[TranscriptEntry], *, sees: bool, turns: int, window: int) -> View:
    """The conversation with words in the place of images that are not shown; without images, in one walk."""
    tokens, images = 0, False
    for entry in transcript:
        tokens += entry_tokens(entry)
        images = images or (not isinstance(entry, AssistantEntry) and bool(entry.images))
    if not images:
        return View(transcript, tokens)
    shown = with_visible_images(transcript, sees=sees, turns=turns, window=window)
    return View(shown, sum(map(entry_tokens, shown)))


def request_size(fixed: int, cut: CompactionCut, transcript: Sequence[TranscriptEntry]) -> RequestSize:
    summary = text_tokens(cut.summary) if cut.summary else 0
    return RequestSize(fixed, summary + sum(entry_tokens(entry) for entry in transcript))


def request_limit(window: int, output: int) -> int:
    return int(min(window * COMPACT_AT, window - output))


def compaction_is_due(size: RequestSize, window: int, output: int) -> bool:
    return size.total > request_limit(window, output)


def plan_compaction(transcript: Sequence[TranscriptEntry], fixed: int, window: int) -> CutPlan | None:
    """Which entries to replace; None when there is nothing older to replace."""
    room = max(int(window * KEEP_AFTER_COMPACTION) - fixed, window // 8)
    kept, first = 0, len(transcript)
    for index in range(len(transcript) - 1, -1, -1):
        kept += entry_tokens(transcript[index])
        if kept > room and first < len(transcript):
            break
        if not isinstance(transcript[index], ToolResultEntry):  # a call stays with its results
            first = index
    return CutPlan(transcript[:first], transcript[first:]) if 0 < first < len(transcript) else None


def compaction_event(
    state: SessionState, cutting: CutPlan, size: RequestSize, limit: int, notes: ModelNotes = NO_NOTES
) -> Compacted:
    """The event that replaces the older entries with a digest."""
    newer = sum(entry_tokens(entry) for entry in cutting.newer)
    room = max(MIN_DIGEST_TOKENS, min(MAX_DIGEST_TOKENS, limit // 5, (limit - size.fixed - newer) * 4 // 5))
    kept = collect_kept(state, cutting.older, cutting.newer)
    if notes.text:
        kept = replace(kept, notes=notes.text)
    kept = fit_digest(kept, room)
    summary = digest_text(kept)
    return Compacted(
        compaction_id=new_id("k"),
        upto=cutting.older[-1].seq,
        summary=summary,
        kept=kept,
        by=notes.by if notes.text else "",
        problem=notes.problem,
        tokens_before=size.total,
        tokens_after=size.fixed + text_tokens(summary) + newer,
    )


def compaction_without_model(state: SessionState, transcript: Sequence[TranscriptEntry]) -> Compacted | None:
    """The same when no model is known; None when there is nothing older to replace."""
    size = request_size(0, state.cut, transcript)
    cutting = plan_compaction(transcript, fixed=0, window=size.conversation)
    return compaction_event(state, cutting, size, MAX_DIGEST_TOKENS) if cutting else None
