"""What a message means to a paused run: the table, row by row, and what only looks like a row."""

import pytest

from handrail.engine.breakout.table import BreakoutDecision, Confirm, Leave, Resume, Unclear, decide_breakout
from handrail.protocol.events import BreakoutPending, RunPaused
from handrail.protocol.events.runs import MenuChoice
from handrail.sessions.run_state import RunState

ASKED = "what does cart.py do instead? never mind this"


def paused(exit_number: int = 3) -> RunState:
    options = [MenuChoice(text=f"Option {number}", then="go_on") for number in range(1, exit_number)]
    if exit_number > 2:
        options[1] = MenuChoice(text="Do this step again", then="again")
    choices = (*options, MenuChoice(text="Leave", then="leave"))
    pause = RunPaused(
        run_id="run_1", stage="analyse", text="?", choices=choices, exit=exit_number, picks=("a", "b", "c")
    )
    return RunState(run_id="run_1", pipeline="report", question="costs", step="paused", pause=pause)


def pending(message: str = ASKED) -> RunState:
    run = paused()
    run.leaving = BreakoutPending(run_id="run_1", message_id="m_1", message=message, text="Leave?")
    return run


TABLE = [
    # paused, only labels that the question shows: they are the answer
    ("paused", "a", Resume("a")),
    ("paused", "only A and c.", Resume("only A and c.")),
    ("paused", "a, d", Unclear()),
    ("paused", "a bicycle", Unclear()),
    ("paused", "and", Unclear()),
    # breakout pending, denies: the run resumes
    ("pending", "2", Resume()),
    ("pending", "2.", Resume()),
    ("pending", "no", Resume()),
    ("pending", "No, continue", Resume()),
    ("pending", "keep going", Resume()),
    ("pending", "no, don't exit", Resume()),
    ("pending", "don\N{RIGHT SINGLE QUOTATION MARK}t leave", Resume()),
    ("pending", "no, and make it shorter", Resume("and make it shorter")),
    ("pending", "n", Resume()),
    ("pending", "don't", Resume()),
    ("pending", "no wait", Resume()),
    ("pending", "wait", Resume()),
    ("pending", "not yet", Resume()),
    ("pending", "oops, no", Resume()),
    ("pending", "I'm staying", Resume()),
    ("pending", "cancel leaving", Resume()),
    ("pending", "(2)", Resume()),
    ("pending", "#2", Resume()),
    ("pending", "option 2", Resume()),
    ("pending", "go back", Resume()),
    ("pending", "return to the run", Resume()),
    ("pending", "I'd rather not", Resume()),
    ("pending", "I don't want to leave", Resume()),
    ("pending", "I don't think I want to leave", Resume()),
    ("pending", "please stay in the run", Resume()),
    ("pending", "yes, keep going", Resume()),
    ("pending", "Can we continue?", Resume()),
    ("pending", "continue with the draft", Resume("continue with the draft")),
    ("pending", "keep going with the analysis", Resume("keep going with the analysis")),
    ("pending", "No! Don't leave, but drop section 2.", Resume("but drop section 2.")),
    ("pending", "make it shorter and don't leave", Resume("make it shorter and don't leave")),
    ("pending", "no, what do the notes say?", Resume("what do the notes say?")),
    # breakout pending, confirms: what first asked to leave is answered
    ("pending", "1", Leave(ASKED, first=True)),
    ("pending", "yes", Leave(ASKED, first=True)),
    ("pending", "Yes, please!", Leave(ASKED, first=True)),
    ("pending", "cancel", Leave(ASKED, first=True)),
    ("pending", "exit", Leave(ASKED, first=True)),
    ("pending", "ok", Leave(ASKED, first=True)),
    ("pending", "option 1", Leave(ASKED, first=True)),
    ("pending", "no, I want to leave", Leave(ASKED, first=True)),
    ("pending", "no, leave the run", Leave(ASKED, first=True)),
    ("pending", "don't continue", Leave(ASKED, first=True)),
    ("pending", "I don't want to stay", Leave(ASKED, first=True)),
    ("pending", "yes, and cite lines", Leave(f"{ASKED}\n\nyes, and cite lines", first=True)),
    # breakout pending, anything else: counts as leaving, this message is answered
    ("pending", "3", Leave("3", first=False)),
    ("pending", "12", Leave("12", first=False)),
    ("pending", "list the open bugs", Leave("list the open bugs", first=False)),
    ("pending", "is there no test for it?", Leave("is there no test for it?", first=False)),
    ("pending", "what does yes(1) do?", Leave("what does yes(1) do?", first=False)),
    ("pending", "what is the capital of France?", Leave("what is the capital of France?", first=False)),
    ("pending", "how do I continue a line?", Leave("how do I continue a line?", first=False)),
    ("pending", "why does it not stop?", Leave("why does it not stop?", first=False)),
    ("pending", "list tests that continue", Leave("list tests that continue", first=False)),
    ("pending", "fix what does not exit", Leave("fix what does not exit", first=False)),
    ("pending", "continue with something else", Leave("continue with something else", first=False)),
    # paused, the exit number or an explicit phrase: asks to confirm
    ("paused", "3", Confirm()),
    ("paused", " 3. ", Confirm()),
    ("paused", "exit pipeline", Confirm()),
    ("paused", "Exit the pipeline, please", Confirm()),
    ("paused", "I'd rather do something else", Confirm()),
    ("paused", "Never mind.", Confirm()),
    ("paused", "nevermind", Confirm()),
    ("paused", "New question: what is in cart.py?", Confirm()),
    ("paused", "stop", Confirm()),
    ("paused", "Cancel!", Confirm()),
    ("paused", "I want to quit", Confirm()),
    ("paused", "ok, stop, please", Confirm()),
    ("paused", "I don't care. Never mind.", Confirm()),
    ("paused", "Save, cancel and retry", Unclear()),
    # paused, another number of the menu
    ("paused", "1", Resume(choice="Option 1")),
    ("paused", "2.", Resume(again=True, choice="Do this step again")),
    # paused, no phrase matches: a small model is asked
    ("paused", "also look at the dates", Unclear()),
    ("paused", "4", Unclear()),
    ("paused", "33", Unclear()),
    ("paused", "3 items are enough", Unclear()),
    ("paused", "only section 3", Unclear()),
    ("paused", "", Unclear()),
]
NEAR_MISSES = [
    "don't stop",
    "please do not exit the pipeline",
    "don\N{RIGHT SINGLE QUOTATION MARK}t cancel this run",
    "you should not leave it",
    "never quit this",
    "no need to stop here",
    "it is not something else",
    "where do the workers stop?",
    "explain the exit code",
    "stopwatch",
    "cancellation of orders",
    "exit pipelines are what I ask about",
    "something elsewhere",
    "renew questions",
    "the new questions are fine",
]


@pytest.mark.promise("RUN-3")
@pytest.mark.parametrize(("state", "message", "decision"), TABLE)
def test_a_message_to_a_paused_run_means_what_the_table_says(
    state: str, message: str, decision: BreakoutDecision
) -> None:
    assert decide_breakout(pending() if state == "pending" else paused(), message) == decision


@pytest.mark.promise("RUN-3")
@pytest.mark.parametrize("message", NEAR_MISSES)
def test_a_negated_phrase_or_a_part_of_a_word_does_not_leave(message: str) -> None:
    assert decide_breakout(paused(), message) == Unclear()


@pytest.mark.promise("RUN-3")
def test_numbers_mean_what_the_last_menu_printed() -> None:
    assert decide_breakout(paused(exit_number=2), "2") == Confirm()
    assert decide_breakout(paused(exit_number=2), "3") == Unclear()
    assert decide_breakout(paused(exit_number=5), "3") == Resume(choice="Option 3")
    assert decide_breakout(paused(exit_number=5), "5") == Confirm()
    run = paused(exit_number=2)
    run.leaving = pending().leaving
    assert decide_breakout(run, "2") == Resume()


@pytest.mark.parametrize("message", ["Never mind, what is up?", "Something else: what is up?", "what is up?"])
def test_what_is_answered_is_what_was_asked_and_not_that_it_asked_to_leave(message: str) -> None:
    assert decide_breakout(pending(message), "yes") == Leave("what is up?", first=True)


@pytest.mark.parametrize("message", ["3", "exit pipeline", "never mind, please"])
def test_a_bare_wish_to_leave_is_not_answered_by_a_model(message: str) -> None:
    assert decide_breakout(pending(message), "yes") == Leave("", first=True)


@pytest.mark.promise("RUN-3")
@pytest.mark.parametrize(
    "piece", ["don't stop it ", "don't leave, ", "not a ", "I would ", "please ", "' ", "x"]
)
def test_a_very_long_message_is_decided_by_its_beginning_and_its_end(piece: str) -> None:
    long = piece * (1_000_000 // len(piece))
    assert decide_breakout(paused(), long) == Unclear()
    assert decide_breakout(paused(), f"{long}. Never mind.") == Confirm()
    assert decide_breakout(pending(), f"no, but shorter: {long}") == Resume(f"but shorter: {long}".strip())


def test_a_yes_by_another_route_answers_what_asked_first() -> None:
    assert decide_breakout(pending(), "yes", "chat") == Leave(ASKED, first=True)
    assert decide_breakout(pending(), "list the bugs", "chat") == Leave("list the bugs", first=False)
