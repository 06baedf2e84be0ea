"""Runs on the screen: stages, pauses and ends are told; what a stage asks a model is not an answer."""

from typing import Any

import pytest

from handrail.interfaces.cli.commands.sessions import session_lines
from handrail.interfaces.cli.render.screen import Screen
from handrail.interfaces.cli.render.styles import Line
from handrail.protocol.events import (
    Answered,
    BreakoutPending,
    Delta,
    Event,
    GateFailed,
    RequestStarted,
    RunBrokenOff,
    RunCompleted,
    RunPaused,
    RunRepaired,
    RunStarted,
    StageCompleted,
    StageStarted,
)
from handrail.protocol.events.runs import MenuChoice
from handrail.sessions.session_list import SessionInfo
from tests.interfaces.cli.shown import asked, ended, finished, shown, started

ID: dict[str, Any] = {"run_id": "run_1"}
OF_STAGE: dict[str, Any] = {"stage_id": "st_1", "stage": "draft"}
PAUSED = RunPaused(
    run_id="run_1",
    stage="plan",
    text="topics:\n- costs\n\n1. Go on\n2. Leave",
    choices=(MenuChoice(text="Go on", then="go_on"), MenuChoice(text="Leave", then="leave")),
    exit=2,
)


def text_of(rows: list[Line]) -> str:
    return "\n".join("".join(piece.text for piece in row) for row in rows)


@pytest.mark.parametrize(
    ("event", "told"),
    [
        (StageStarted(kind="code", **ID, **OF_STAGE), ["stage", "draft"]),
        (GateFailed(gate="g", issues=("no quote",), **ID, **OF_STAGE), ["gate", "draft: no quote"]),
        (RunRepaired(first="gather", last="draft", number=1, **ID), ["again", "gather to draft, repair 1"]),
        (PAUSED, ["- costs", "1. Go on", "2. Leave"]),
        (BreakoutPending(message_id="m", message="x", text="Leave?\n1. Leave", **ID), ["Leave?", "1. Leave"]),
        (RunCompleted(text="Written to report.md.", **ID), ["Written to report.md."]),
        (RunBrokenOff(**ID), ["left"]),
    ],
)
def test_a_run_tells_where_it_is_and_what_it_asks(event: Event, told: list[str]) -> None:
    shown = text_of(Screen(80).show(event))
    assert all(each in shown for each in told)


def test_a_result_that_was_shown_when_it_was_written_is_not_shown_again() -> None:
    report = "# Fares\n\nPaid back in full.\n"
    diff = "--- /dev/null\n+++ b/report.md\n@@ -0,0 +1,3 @@\n+# Fares\n+\n+Paid back in full.\n"
    completed = RunCompleted(text=report, **ID)
    text = shown(asked("write", "report.md", diff), finished("write", "+3", shown=diff), completed)
    assert text.count("Paid back in full.") == 1
    assert "result    the text of report.md, shown above" in text
    text = shown(started("write", "report.md"), finished("write", "+3", shown=diff), completed)
    assert text.count("Paid back in full.") == 1
    part = shown(asked("write", "report.md", diff), RunCompleted(text="Paid back in full.", **ID))
    assert part.count("Paid back in full.") == 2


def test_what_a_gate_found_is_told_once() -> None:
    flaw = GateFailed(
        gate="quotes_match", issues=("Quote 1 stands  in no passage.", "Nor does 2."), **ID, **OF_STAGE
    )
    detail = "draft did not pass quotes_match: Quote 1 stands in no passage.; Nor does 2."
    text = shown(flaw, ended("failed", detail))
    assert text.count("Quote 1") == 1
    assert "failed  draft did not pass quotes_match " in text
    assert "Quote 1" in shown(ended("failed", detail))


@pytest.mark.parametrize(
    "event",
    [
        RunStarted(turn_id="t", pipeline="agent", conversational=True, **ID),
        StageStarted(kind="work", **ID, **OF_STAGE),
        StageCompleted(output={}, **ID, **OF_STAGE),
        RunCompleted(**ID),
    ],
)
def test_a_run_that_is_the_conversation_shows_nothing_of_itself(event: Event) -> None:
    assert Screen(80).show(event) == []


def test_what_a_stage_asks_a_model_is_not_shown_as_an_answer() -> None:
    screen = Screen(80)
    ids: dict[str, Any] = {"turn_id": "t", "request_id": "r", "message_id": "m", "model": "scripted/x"}
    rows = screen.show(RequestStarted(apart=True, **ids))
    rows += screen.stream(Delta("session:s", "m", "text", 0, '{"topics": ["costs"]}\n'))
    rows += screen.show(Answered(text='{"topics": ["costs"]}', end="stop", apart=True, **ids))
    assert rows == []


def test_a_session_with_a_paused_run_is_listed_as_waiting() -> None:
    info = SessionInfo(id="s_1", touched=0.0, title="costs", turns=1, model="scripted/x", waiting=True)
    assert "waiting costs" in text_of(session_lines([info], 0.0, 100))


@pytest.mark.parametrize("colour", [True, False])
def test_the_report_of_an_agent_is_readable(colour: bool) -> None:
    """Catches: links and escaped characters of Markdown on the screen."""
    report = (
        "# How many?\n\nAt most 19 \\[goats\\] [S1].\n\n"
        "- [S1] [rules.md: \\[Ferry\\] rules, line 3]"
        '(<docs/rules (1).md#L3> "rules-md-1a2b3c4d:9f8e7d6c5b4a")\n'
        "- [W1] [Goats](https://example.com/)"
    )
    screen = Screen(100, colour=colour)
    screen.show(RunStarted(turn_id="t", pipeline="research", sha256="0" * 64, **ID))
    shown = text_of(screen.show(RunCompleted(text=report, **ID)))
    assert "At most 19 [goats] [S1]." in shown
    assert "- [S1] rules.md: [Ferry] rules, line 3 (docs/rules (1).md#L3)\n" in shown
    assert "- [W1] Goats (https://example.com/)" in shown
