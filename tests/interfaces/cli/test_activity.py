"""What is said to be going on."""

from typing import get_args

import pytest

from handrail.interfaces.cli.activity import Activity
from handrail.interfaces.cli.render.styles import plain
from handrail.protocol.events import Delta, Event, Recorded, RequestStarted, SideAsked, TurnStarted
from handrail.protocol.events.requests import Purpose
from tests.interfaces.cli.shown import asked, ended, finished, started


def at(seconds: float, event: Event) -> Recorded:
    return Recorded("session:s", 1, 1000 + seconds, event)


BEGIN = TurnStarted(turn_id="t_1", number=1, model="scripted/x", mode="ask")
REQUEST = RequestStarted(turn_id="t_1", request_id="r_1", message_id="m_1", model="scripted/x")


def lines(activity: Activity, seconds: float) -> list[str]:
    return [plain(row) for row in activity.lines(1000 + seconds, 79)]


def test_a_turn_has_a_word_and_a_clock_from_its_first_second_on() -> None:
    activity = Activity()
    activity.saw(at(0, BEGIN))
    activity.saw(at(0, REQUEST))
    assert lines(activity, 0.5) == []
    assert lines(activity, 3.2) == ["  asking    scripted/x                 3 s"]
    activity.heard(Delta("session:s", "m_1", "thinking", 0, "hm"), 1004)
    assert lines(activity, 75) == ["  thinking  1:11 min"]
    activity.saw(at(80, ended()))
    assert lines(activity, 90) == []


@pytest.mark.parametrize("purpose", get_args(Purpose))
def test_every_side_request_but_a_title_is_told(purpose: Purpose) -> None:
    activity = Activity()
    activity.saw(at(0, SideAsked(request_id="r_1", purpose=purpose, model="scripted/x")))
    assert bool(lines(activity, 3.2)) == (purpose != "title")


def test_what_ends_outside_a_turn_is_told_no_longer() -> None:
    activity = Activity()
    activity.saw(at(0, started("proposal", "6 files")))
    assert lines(activity, 3.2) == ["  proposal  6 files                    3 s"]
    activity.saw(at(4, finished("proposal")))
    assert lines(activity, 9) == []


def test_a_running_command_shows_the_end_of_its_output() -> None:
    activity = Activity()
    activity.saw(at(0, BEGIN))
    activity.saw(at(0, started("run", "make")))
    for number in range(9):
        activity.heard(Delta("session:s", "c_1", "output", 0, f"line {number}\n"), 1001)
    assert [row.strip() for row in lines(activity, 5)[1:]] == ["line 6", "line 7", "line 8"]


def test_the_bell_rings_where_a_long_turn_ends_or_waits_and_nowhere_else() -> None:
    activity = Activity()
    activity.saw(at(0, BEGIN))
    assert not activity.rings(at(9, ended()), opened=1000)
    assert activity.rings(at(11, ended()), opened=1000)
    assert activity.rings(at(11, asked()), opened=1000)
    assert not activity.rings(at(11, started("run", "make")), opened=1000)
    assert not activity.rings(at(11, ended()), opened=1012), "it ended before this terminal was there"


def test_a_slow_model_is_told_in_a_word_with_how_far_it_is_and_a_clock_of_its_own() -> None:
    activity = Activity()
    activity.saw(at(0, BEGIN))
    activity.saw(at(0, REQUEST))

    def told(words: str, seconds: float) -> None:
        activity.heard(Delta("session:s", "m_1", "progress", 0, words), 1000 + seconds)

    told("loading small-model", 1)
    told("loading small-model", 2)
    assert lines(activity, 3) == ["  loading   small-model                2 s"]
    told("reading the prompt  320/870 tokens", 3)
    assert lines(activity, 7) == ["  reading   the prompt  320/870 tokens   4 s"]
    told("answering", 8)
    assert lines(activity, 9) == ["  answering 1 s"]
    activity.set("stopping", "", 1010)
    told("reading the prompt  320/870 tokens", 11)
    assert lines(activity, 12) == ["  stopping  2 s"]
