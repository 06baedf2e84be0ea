"""Compaction keeps the goal and the facts, never parts a call from its result, and gets below the limit."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from handrail.context.budget import entry_tokens
from handrail.context.compaction import Size, compacted, is_due, limit_of, plan, size_of
from handrail.protocol.events import Compacted
from handrail.protocol.values import FileSeen, Todo, ToolCall
from handrail.sessions.state import Cut, State
from handrail.sessions.transcript import Entry, Replied, Resulted, Said

WINDOW = 8_000


def steps(sizes: list[int]) -> list[Entry]:
    """A conversation: each number is a message of so many words, followed by a call with its result."""
    entries: list[Entry] = []
    for number, words in enumerate(sizes):
        text = f"step {number} " + "word " * words
        call = ToolCall(id=f"c{number}", name="read", arguments={"path": "a"})
        base = number * 4
        entries += [
            Said(base + 1, text),
            Replied(base + 2, "", "m", (call,)),
            Resulted(base + 3, call.id, "read", text, is_error=number % 2 == 1),
            Replied(base + 4, f"done with step {number}", "m"),
        ]
    return entries


def compact(state: State, entries: list[Entry], size: Size, window: int) -> Compacted | None:
    cutting = plan(entries, size.fixed, window)
    return compacted(state, cutting, size, limit_of(window, 2_000)) if cutting else None


def state_for(entries: list[Entry]) -> State:
    first = entries[0]
    return State(goal=first.text if isinstance(first, Said) else "", todos=[Todo(id="1", text="finish it")])


@pytest.mark.promise("CTX-1")
def test_summary_keeps_goal_todos_changed_files_and_failed_attempts() -> None:
    entries = steps([100] * 40)
    state = state_for(entries)
    state.files.changed["src/a.py"] = "ab" * 32
    state.files.saw((FileSeen(path="seen.py", sha256="cd" * 32, how="agent"),), 1)
    size = size_of(500, state.cut, entries)
    assert is_due(size, WINDOW, 2_000)
    event = compact(state, entries, size, WINDOW)
    assert event
    assert state.goal in event.summary
    assert "finish it" in event.summary
    assert "src/a.py [hash: abababababab]" in event.summary
    assert "seen.py" not in event.summary
    older = [entry for entry in entries if entry.seq <= event.upto and isinstance(entry, Resulted)]
    last_failed = [entry for entry in older if entry.is_error][-1]
    assert f"read a: {last_failed.content[:20]}" in event.summary


@pytest.mark.promise("CTX-1")
def test_goal_survives_many_compactions() -> None:
    state = State(goal="make the totals right")
    entries: list[Entry] = []
    for number in range(200):
        entries += [Said(2 * number + 1, f"more {number} " * 60), Replied(2 * number + 2, "yes " * 60, "m")]
        size = size_of(500, state.cut, entries)
        if is_due(size, WINDOW, 2_000):
            event = compact(state, entries, size, WINDOW)
            assert event
            state.cut = Cut(upto=event.upto, summary=event.summary, compaction_id="k", kept=event.kept)
            entries = [entry for entry in entries if entry.seq > event.upto]
            assert not is_due(size_of(500, state.cut, entries), WINDOW, 2_000)
    assert state.cut.summary.count("make the totals right") == 1
    assert "older lines left out" in state.cut.summary
    assert state.cut.summary.count("- user:") > state.cut.summary.count("- you answered:")


@given(st.lists(st.integers(min_value=0, max_value=900), min_size=1, max_size=60))
def test_what_is_kept_never_begins_with_a_result_and_fits(sizes: list[int]) -> None:
    entries = steps(sizes)
    state = state_for(entries)
    size = size_of(500, state.cut, entries)
    event = compact(state, entries, size, WINDOW)
    if event is None:
        return
    kept = [entry for entry in entries if entry.seq > event.upto]
    assert not kept or not isinstance(kept[0], Resulted)
    if len(kept) > 4:
        assert sum(entry_tokens(entry) for entry in kept) <= WINDOW * 0.4
    assert event.tokens_after < event.tokens_before or len(sizes) < 12


def test_nothing_older_means_no_compaction() -> None:
    assert compact(State(goal="x"), [], size_of(0, State().cut, []), WINDOW) is None
