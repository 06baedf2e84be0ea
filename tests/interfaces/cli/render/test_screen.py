"""Streaming text and facts on one screen."""

from handrail.interfaces.cli.render.screen import Screen
from handrail.interfaces.cli.render.styles import plain
from handrail.protocol.events import Delta
from tests.interfaces.cli.shown import answered, shown


def delta(text: str, offset: int, message_id: str = "m_2") -> Delta:
    return Delta("session:s", message_id, "text", offset, text)


def test_an_answer_that_streamed_is_shown_once() -> None:
    assert shown(delta("one\ntw", 0), delta("o", 6), answered("one\ntwo")) == "one\ntwo"


def test_text_that_is_given_again_is_shown_once() -> None:
    assert shown(delta("one two", 0), delta("two three", 4), answered("one two three")) == "one two three"


def test_an_answer_that_streamed_in_another_process_is_shown_whole() -> None:
    assert shown(answered("one\ntwo")) == "one\ntwo"


def test_empty_lines_before_an_answer_are_left_out() -> None:
    assert shown(delta("\n", 0), delta("\nhi", 1), answered("\n\nhi")) == "hi"


def test_what_was_cut_off_stays_and_the_next_try_begins_a_line_of_its_own() -> None:
    assert shown(delta("cut o", 0), delta("whole", 0, "m_3"), answered("whole", message_id="m_3")) == (
        "cut o\nwhole"
    )


def test_the_line_being_written_can_be_seen() -> None:
    screen = Screen(79)
    screen.stream(delta("half a li", 0))
    assert [plain(row) for row in screen.unfinished()] == ["half a li"]
