"""Compaction keeps the goal and the facts, never parts a call from its result, and gets below the limit."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from handrail.context.digest import (
    RequestSize,
    collect_kept,
    compaction_event,
    compaction_is_due,
    cut_line,
    digest_size,
    digest_text,
    fit_digest,
    plan_compaction,
    request_limit,
    request_size,
    truncate_transcript,
)
from handrail.context.token_budget import entry_tokens, text_tokens
from handrail.protocol.events import Compacted
from handrail.protocol.values import AttachedImage, CompactionSummary, FileSeen, Todo, ToolCall
from handrail.sessions.session_state import CompactionCut, SessionState
from handrail.sessions.transcript import AssistantEntry, ToolResultEntry, TranscriptEntry, UserEntry

WINDOW = 8_000


def steps(sizes: list[int]) -> list[TranscriptEntry]:
    """A conversation: each number is a message of so many words, followed by a call with its result."""
    entries: list[TranscriptEntry] = []
    for number, words in enumerate(sizes):
        text = f"step {number} " + "word " * words
        call = ToolCall(id=f"c{number}", name="read", arguments={"path": "a"})
        base = number * 4
        entries += [
            UserEntry(base + 1, text),
            AssistantEntry(base + 2, "", "m", (call,)),
            ToolResultEntry(base + 3, call.id, "read", text, is_error=number % 2 == 1),
            AssistantEntry(base + 4, f"done with step {number}", "m"),
        ]
    return entries


def compact(
    state: SessionState, entries: list[TranscriptEntry], size: RequestSize, window: int
) -> Compacted | None:
    cutting = plan_compaction(entries, size.fixed, window)
    return compaction_event(state, cutting, size, request_limit(window, 2_000)) if cutting else None


def state_for(entries: list[TranscriptEntry]) -> SessionState:
    first = entries[0]
    return SessionState(
        goal=first.text if isinstance(first, UserEntry) else "", todos=[Todo(id="1", text="finish it")]
    )


@pytest.mark.promise("CTX-1")
def test_summary_keeps_goal_todos_changed_files_and_failed_attempts() -> None:
    entries = steps([100] * 40)
    state = state_for(entries)
    state.files.changed["src/a.py"] = "ab" * 32
    state.files.record_seen((FileSeen(path="seen.py", sha256="cd" * 32, how="agent"),), 1)
    size = request_size(500, state.cut, entries)
    assert compaction_is_due(size, WINDOW, 2_000)
    event = compact(state, entries, size, WINDOW)
    assert event
    assert state.goal in event.summary
    assert "finish it" in event.summary
    assert "src/a.py [hash: abababababab]" in event.summary
    assert "seen.py" not in event.summary
    older = [entry for entry in entries if entry.seq <= event.upto and isinstance(entry, ToolResultEntry)]
    last_failed = [entry for entry in older if entry.is_error][-1]
    assert f"read a: {last_failed.content[:20]}" in event.summary


@pytest.mark.promise("CTX-1")
def test_goal_survives_many_compactions() -> None:
    state = SessionState(goal="make the totals right")
    entries: list[TranscriptEntry] = []
    for number in range(200):
        entries += [
            UserEntry(2 * number + 1, f"more {number} " * 60),
            AssistantEntry(2 * number + 2, "yes " * 60, "m"),
        ]
        size = request_size(500, state.cut, entries)
        if compaction_is_due(size, WINDOW, 2_000):
            event = compact(state, entries, size, WINDOW)
            assert event
            state.cut = CompactionCut(
                upto=event.upto, summary=event.summary, compaction_id="k", kept=event.kept
            )
            entries = [entry for entry in entries if entry.seq > event.upto]
            assert not compaction_is_due(request_size(500, state.cut, entries), WINDOW, 2_000)
    assert state.cut.summary.count("make the totals right") == 1
    assert "older lines left out" in state.cut.summary
    assert state.cut.summary.count("- user:") > state.cut.summary.count("- you answered:")


@given(st.lists(st.integers(min_value=0, max_value=900), min_size=1, max_size=60))
def test_what_is_kept_never_begins_with_a_result_and_fits(sizes: list[int]) -> None:
    entries = steps(sizes)
    state = state_for(entries)
    size = request_size(500, state.cut, entries)
    event = compact(state, entries, size, WINDOW)
    if event is None:
        return
    kept = [entry for entry in entries if entry.seq > event.upto]
    assert not kept or not isinstance(kept[0], ToolResultEntry)
    if len(kept) > 4:
        assert sum(entry_tokens(entry) for entry in kept) <= WINDOW * 0.4
    assert event.tokens_after < event.tokens_before or len(sizes) < 12


def test_nothing_older_means_no_compaction() -> None:
    assert compact(SessionState(goal="x"), [], request_size(0, SessionState().cut, []), WINDOW) is None


NOTHING: list[TranscriptEntry] = []


def refused(message: str, reason: str) -> str:
    return json.dumps({"type": "tool_error", "tool": "run", "reason": reason, "message": message}).replace(
        ": ", ":"
    )


def tried(number: int, content: str) -> list[TranscriptEntry]:
    call = ToolCall(id=f"c{number}", name="run", arguments={"command": f"make {number}"})
    return [
        AssistantEntry(number * 10, "", "m", (call,)),
        ToolResultEntry(number * 10 + 1, call.id, "run", content, is_error=True),
    ]


@pytest.mark.promise("CTX-1")
def test_what_an_earlier_compaction_kept_is_kept_by_the_next() -> None:
    state = SessionState(
        goal="the goal", todos=[Todo(id="t1", text="one"), Todo(id="t2", text="two", done=True)]
    )
    state.files.changed = {"a.py": "ab" * 32, "gone.py": ""}
    first = collect_kept(
        state, [*tried(1, "boom 1"), *tried(2, refused("The user said no.", "user_rejected"))], NOTHING
    )
    state.cut = CompactionCut(upto=21, summary=digest_text(first), kept=first)
    second = collect_kept(
        state, [*tried(3, "boom 3"), *tried(4, refused("No such file.", "file_missing"))], NOTHING
    )
    assert second.failed == ("- run make 1: boom 1", "- run make 3: boom 3", "- run make 4: No such file.")
    assert second.decisions == ("- run make 2: The user said no.",)
    assert second.files == ("- a.py [hash: abababababab]", "- gone.py (deleted)")
    assert second.todos == ("- t1: one",)


def test_the_same_failure_again_is_told_once() -> None:
    kept = collect_kept(SessionState(goal="g"), [*tried(1, "boom"), *tried(1, "boom")], NOTHING)
    assert kept.failed == ("- run make 1: boom",)


def test_what_is_still_being_done_is_kept_whole_until_the_next_message() -> None:
    long = "Do this. " * 150
    state = SessionState(goal="g")
    older: list[TranscriptEntry] = [
        UserEntry(1, "g"),
        UserEntry(3, f"{long}\n\n### a.py\nx", words=long),
        UserEntry(5, "faster", steering=True),
    ]
    kept = collect_kept(state, older, [AssistantEntry(7, "", "m")])
    assert kept.asked == long
    assert kept.said == ("- user: faster",)
    state.cut = CompactionCut(upto=5, summary=digest_text(kept), kept=kept)
    assert collect_kept(state, [AssistantEntry(7, "working", "m")], NOTHING).asked == long
    later = collect_kept(state, [AssistantEntry(7, "done", "m")], [UserEntry(9, "next")])
    assert later.asked == ""
    assert [line[:16] for line in later.said] == [
        "- user: faster",
        "- user: Do this.",
        "- you answered: d"[:16],
    ]


def test_attached_files_are_not_the_users_words_and_pictures_are_named() -> None:
    shot = AttachedImage(sha256="0" * 64, media_type="image/png", size=1, width=1, height=1, name="shot.png")
    older: list[TranscriptEntry] = [
        UserEntry(1, "see\n\n### a.py\nsecret", words="see", images=(shot,)),
        AssistantEntry(2, "Nice.", "m"),
    ]
    kept = collect_kept(SessionState(goal="g"), older, [UserEntry(3, "next")])
    assert kept.said == ("- user: see [pictures: shot.png]", "- you answered: Nice.")


def test_sentences_that_bind_survive_the_cutting_of_a_long_message() -> None:
    text = "Here is the story. " * 50 + "You must never touch the schema. " + "More story. " * 50
    assert "You must never touch the schema." in cut_line(text, 400)
    assert len(cut_line(text, 400)) <= 402
    assert cut_line("short\n text", 400) == "short text"


LINES = st.lists(st.text(max_size=700), max_size=30).map(tuple)


@given(
    st.builds(
        CompactionSummary,
        goal=st.text(min_size=1, max_size=2_000),
        asked=st.text(max_size=2_000),
        notes=st.text(max_size=6_000),
        said=LINES,
        decisions=LINES,
        files=LINES,
        failed=LINES,
        todos=LINES,
    ),
    st.integers(min_value=100, max_value=8_000),
)
def test_any_digest_gets_as_small_as_it_must_and_says_what_it_left_out(
    kept: CompactionSummary, tokens: int
) -> None:
    fitting = fit_digest(kept, tokens)
    # What is never left out: a word of each todo, of the goal, and of the last few facts.
    floor = 4 * (30 * len(kept.todos) + 1_000 + 5 * 700)
    assert digest_size(fitting) <= max(tokens * 3.5, floor)
    assert len(fitting.todos) == len(kept.todos)
    assert bool(fitting.goal) or not kept.goal.strip()
    assert len(fitting.said) + fitting.left_out.get("said", 0) == len(kept.said)
    assert fit_digest(fitting, tokens) == fitting


@given(st.lists(st.text(max_size=5_000), min_size=1, max_size=20), st.integers(min_value=0, max_value=6_000))
def test_texts_are_cut_to_fit_and_say_so(texts: list[str], tokens: int) -> None:
    entries: list[TranscriptEntry] = [
        ToolResultEntry(n, f"c{n}", "read", text, is_error=False) for n, text in enumerate(texts)
    ]
    shown = truncate_transcript(entries, tokens)
    total = sum(text_tokens(entry.content) + 8 for entry in shown if isinstance(entry, ToolResultEntry))
    assert total <= max(tokens, 170 * len(texts))
    for before, after in zip(entries, shown, strict=True):
        assert isinstance(before, ToolResultEntry)
        assert isinstance(after, ToolResultEntry)
        assert after == before or "does not fit your window" in after.content


def test_the_digest_of_thousands_of_turns_is_made_from_the_oldest_down() -> None:
    entries: list[TranscriptEntry] = [UserEntry(n, f"message {n} " + "blah " * 100) for n in range(5_000)]
    kept = fit_digest(collect_kept(SessionState(goal="g"), entries, [UserEntry(6_000, "now")]), 2_000)
    assert digest_size(kept) <= 7_000
    assert kept.said[-1].startswith("- user: message 4999 ")
    assert len(kept.said) + kept.left_out["said"] == 5_000
    assert list(kept.said) == sorted(kept.said)
