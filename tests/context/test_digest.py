"""The digest keeps what code can know, fits any room, and never loses goal or open todos."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from handrail.context.budget import text_tokens
from handrail.context.digest import collect, cut, fit, size, words
from handrail.context.fitting import fitted
from handrail.protocol.values import AttachedImage, Kept, Todo, ToolCall
from handrail.sessions.state import Cut, State
from handrail.sessions.transcript import Entry, Replied, Resulted, Said

NOTHING: list[Entry] = []


def refused(message: str, reason: str) -> str:
    return json.dumps({"type": "tool_error", "tool": "run", "reason": reason, "message": message}).replace(
        ": ", ":"
    )


def tried(number: int, content: str) -> list[Entry]:
    call = ToolCall(id=f"c{number}", name="run", arguments={"command": f"make {number}"})
    return [
        Replied(number * 10, "", "m", (call,)),
        Resulted(number * 10 + 1, call.id, "run", content, is_error=True),
    ]


@pytest.mark.promise("CTX-1")
def test_what_an_earlier_compaction_kept_is_kept_by_the_next() -> None:
    state = State(goal="the goal", todos=[Todo(id="t1", text="one"), Todo(id="t2", text="two", done=True)])
    state.files.changed = {"a.py": "ab" * 32, "gone.py": ""}
    first = collect(
        state, [*tried(1, "boom 1"), *tried(2, refused("The user said no.", "user_rejected"))], NOTHING
    )
    state.cut = Cut(upto=21, summary=words(first), kept=first)
    second = collect(
        state, [*tried(3, "boom 3"), *tried(4, refused("No such file.", "file_missing"))], NOTHING
    )
    assert second.failed == ("- run make 1: boom 1", "- run make 3: boom 3", "- run make 4: No such file.")
    assert second.decisions == ("- run make 2: The user said no.",)
    assert second.files == ("- a.py [hash: abababababab]", "- gone.py (deleted)")
    assert second.todos == ("- t1: one",)


def test_the_same_failure_again_is_told_once() -> None:
    kept = collect(State(goal="g"), [*tried(1, "boom"), *tried(1, "boom")], NOTHING)
    assert kept.failed == ("- run make 1: boom",)


def test_what_is_still_being_done_is_kept_whole_until_the_next_message() -> None:
    long = "Do this. " * 150
    state = State(goal="g")
    older: list[Entry] = [
        Said(1, "g"),
        Said(3, f"{long}\n\n### a.py\nx", words=long),
        Said(5, "faster", steering=True),
    ]
    kept = collect(state, older, [Replied(7, "", "m")])
    assert kept.asked == long
    assert kept.said == ("- user: faster",)
    state.cut = Cut(upto=5, summary=words(kept), kept=kept)
    assert collect(state, [Replied(7, "working", "m")], NOTHING).asked == long
    later = collect(state, [Replied(7, "done", "m")], [Said(9, "next")])
    assert later.asked == ""
    assert [line[:16] for line in later.said] == [
        "- user: faster",
        "- user: Do this.",
        "- you answered: d"[:16],
    ]


def test_attached_files_are_not_the_users_words_and_pictures_are_named() -> None:
    shot = AttachedImage(sha256="0" * 64, media_type="image/png", size=1, width=1, height=1, name="shot.png")
    older: list[Entry] = [
        Said(1, "see\n\n### a.py\nsecret", words="see", images=(shot,)),
        Replied(2, "Nice.", "m"),
    ]
    kept = collect(State(goal="g"), older, [Said(3, "next")])
    assert kept.said == ("- user: see [pictures: shot.png]", "- you answered: Nice.")


def test_sentences_that_bind_survive_the_cutting_of_a_long_message() -> None:
    text = "Here is the story. " * 50 + "You must never touch the schema. " + "More story. " * 50
    assert "You must never touch the schema." in cut(text, 400)
    assert len(cut(text, 400)) <= 402
    assert cut("short\n text", 400) == "short text"


LINES = st.lists(st.text(max_size=700), max_size=30).map(tuple)


@given(
    st.builds(
        Kept,
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
def test_any_digest_gets_as_small_as_it_must_and_says_what_it_left_out(kept: Kept, tokens: int) -> None:
    fitting = fit(kept, tokens)
    # What is never left out: a word of each todo, of the goal, and of the last few facts.
    floor = 4 * (30 * len(kept.todos) + 1_000 + 5 * 700)
    assert size(fitting) <= max(tokens * 3.5, floor)
    assert len(fitting.todos) == len(kept.todos)
    assert bool(fitting.goal) or not kept.goal.strip()
    assert len(fitting.said) + fitting.left_out.get("said", 0) == len(kept.said)
    assert fit(fitting, tokens) == fitting


@given(st.lists(st.text(max_size=5_000), min_size=1, max_size=20), st.integers(min_value=0, max_value=6_000))
def test_texts_are_cut_to_fit_and_say_so(texts: list[str], tokens: int) -> None:
    entries: list[Entry] = [
        Resulted(n, f"c{n}", "read", text, is_error=False) for n, text in enumerate(texts)
    ]
    shown = fitted(entries, tokens)
    total = sum(text_tokens(entry.content) + 8 for entry in shown if isinstance(entry, Resulted))
    assert total <= max(tokens, 170 * len(texts))
    for before, after in zip(entries, shown, strict=True):
        assert isinstance(before, Resulted)
        assert isinstance(after, Resulted)
        assert after == before or "does not fit your window" in after.content


def test_the_digest_of_thousands_of_turns_is_made_from_the_oldest_down() -> None:
    entries: list[Entry] = [Said(n, f"message {n} " + "blah " * 100) for n in range(5_000)]
    kept = fit(collect(State(goal="g"), entries, [Said(6_000, "now")]), 2_000)
    assert size(kept) <= 7_000
    assert kept.said[-1].startswith("- user: message 4999 ")
    assert len(kept.said) + kept.left_out["said"] == 5_000
    assert list(kept.said) == sorted(kept.said)
