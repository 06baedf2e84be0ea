"""Where a message goes, once rules and model have spoken: a row of the specification each."""

import pytest
from msgspec import convert

from handrail.engine.router.confidence import (
    CLARIFY_QUESTION,
    Thresholds,
    apply_gates,
    decide_by_rules,
    decide_by_selection,
    decide_without_model,
)
from handrail.engine.router.word_rules import RuleMatch
from handrail.protocol.values import RouterDecision, TaskFilter

FILES = {"files": ["cart.py"]}
OPEN = TaskFilter(completed=False)

ROWS = [
    # said, confidence, entities, where, put as a question -> goes to
    ("agent", 0.44, {}, None, False, "clarify"),
    ("agent", 0.44, FILES, None, False, "clarify"),
    ("chat", 0.20, {}, None, False, "clarify"),
    ("agent", 0.45, {}, None, False, "chat"),
    ("agent", 0.70, {}, None, False, "chat"),
    ("tasks", 0.60, {}, None, False, "chat"),
    ("chat", 0.60, {}, None, False, "chat"),
    ("agent", 0.60, FILES, None, False, "agent"),
    ("tasks", 0.60, {}, OPEN, False, "tasks"),
    ("tasks", 0.60, {}, TaskFilter(), False, "chat"),
    ("agent", 0.60, {"files": []}, None, False, "chat"),
    ("agent", 0.71, {}, None, False, "agent"),
    ("tasks", 0.90, {}, None, False, "tasks"),
    ("clarify", 0.95, {}, None, False, "clarify"),
    ("clarify", 0.60, FILES, None, False, "clarify"),
    ("agent", 0.86, {}, None, True, "chat"),
    ("agent", 0.99, {}, None, True, "chat"),
    ("agent", 0.99, FILES, None, True, "agent"),
    ("tasks", 0.99, {}, OPEN, True, "tasks"),
]


@pytest.mark.parametrize(("said", "confidence", "entities", "where", "question", "goes"), ROWS)
def test_confidence_decides_how_far_a_decision_carries(
    *,
    said: str,
    confidence: float,
    entities: dict[str, list[str]],
    where: TaskFilter | None,
    question: bool,
    goes: str,
) -> None:
    decision = convert(
        {"decision": said, "confidence": confidence, "entities": entities, "where": where}, RouterDecision
    )

    assert apply_gates(decision, question=question, thresholds=Thresholds()).decision == goes


def test_thresholds_are_the_users() -> None:
    decision = RouterDecision(decision="agent", confidence=0.6)

    careful = apply_gates(decision, question=False, thresholds=Thresholds(clarify_below=0.65))
    bold = apply_gates(decision, question=False, thresholds=Thresholds(act_above=0.55))

    assert (careful.decision, bold.decision) == ("clarify", "agent")


def test_a_clarify_always_has_a_question_to_answer() -> None:
    silent = apply_gates(
        RouterDecision(decision="chat", confidence=0.1), question=False, thresholds=Thresholds()
    )
    asked = RouterDecision(decision="clarify", confidence=0.9, question="Which of the two?")

    assert silent.question == CLARIFY_QUESTION
    assert [option.id for option in silent.options] == ["chat", "agent"]
    assert apply_gates(asked, question=False, thresholds=Thresholds()).question == "Which of the two?"


def test_an_option_that_is_a_way_is_called_what_the_way_does() -> None:
    options = ({"id": "agent", "title": "only an answer"}, {"id": "a", "title": "the first"})
    asked = convert(
        {"decision": "clarify", "confidence": 0.9, "question": "Which?", "options": options}, RouterDecision
    )

    shown = apply_gates(asked, question=False, thresholds=Thresholds()).options
    assert [option.title for option in shown] == ["do it in the files", "the first"]


def test_a_selection_goes_straight_to_the_task_list_with_its_filter() -> None:
    assert decide_by_selection(OPEN) == RouterDecision(decision="tasks", confidence=1.0, where=OPEN)


@pytest.mark.parametrize(
    ("wish", "goes"), [("tasks", "tasks"), ("work", "chat"), ("ask", "chat"), ("", "chat")]
)
def test_without_a_readable_decision_nothing_is_done_unasked(wish: str, goes: str) -> None:
    decision = decide_without_model(RuleMatch(wish, sure=False, why=""))  # type: ignore[arg-type]

    assert (decision.decision, decision.confidence) == (goes, 0.0)


def test_rules_that_are_not_sure_decide_nothing() -> None:
    assert decide_by_rules(RuleMatch("work", sure=False, why="")) is None
