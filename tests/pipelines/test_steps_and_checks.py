"""Steps and checks that agents can name."""

from collections.abc import Mapping
from typing import Any

import pytest
from msgspec import convert

from handrail.engine.pipeline import CallResult, Failed, Output, Outputs, Passed
from handrail.pipelines.call_results import SearchHit, call_refusal
from handrail.pipelines.checks import CHECKS
from handrail.pipelines.steps import rank_hit_groups, word_stems

PASSAGES = [{"id": "P1", "path": "a.md", "lines": "1-2", "text": "Costs rose by 3 %.\nNobody knows why."}]
OUTPUTS: Outputs = {"gather": {"passages": PASSAGES, "missing": []}}


def verdict(check: str, output: Output, **options: Any) -> tuple[str, ...]:
    """What is wrong; nothing where it passes."""
    known = CHECKS[check]
    found = known.function(convert(options, known.options), output, OUTPUTS)
    assert isinstance(found, Passed | Failed)
    return found.issues if isinstance(found, Failed) else ()


def quotes(*said: str) -> Output:
    return {"findings": [{"claim": "x", "quote": each} for each in said]}


@pytest.mark.promise("AGENT-8")
@pytest.mark.parametrize(
    ("said", "wrong"),
    [
        (["Costs rose by 3 %."], ""),
        (["rose by 3 %. Nobody knows"], ""),  # where the line was wrapped does not matter
        (["Costs rose by 4 %."], "is in no passage"),
        (["costs rose by 3 %."], "is in no passage"),
        (["Costs rose by 3 %"], ""),
        (["Costs ... knows why."], "is in no passage"),
        (["a"], "at least 12 are needed"),
        ([""], "at least 12 are needed"),
        ([], "every claim needs one"),
        (["Nobody knows why.", "Everybody knows."], "Quote 2 is in no passage"),
        (["------------------------"], "has 0 letters and digits"),
        (["| --- | --- | --- | --- |"], "has 0 letters and digits"),
    ],
)
def test_a_quote_passes_only_where_it_stands_in_a_passage(said: list[str], wrong: str) -> None:
    issues = verdict("quotes_match", quotes(*said), field="findings.quote", passages="gather.passages")
    assert (wrong in issues[0]) if wrong else not issues


@pytest.mark.promise("AGENT-8")
def test_an_item_without_a_quote_does_not_pass() -> None:
    output = {"findings": [{"claim": "made up"}, {"claim": "x", "quote": "Costs rose by 3 %."}]}
    (issue,) = verdict("quotes_match", output, field="findings.quote", passages="gather.passages")
    assert issue.startswith("Quote 1 has 0 letters and digits")


@pytest.mark.promise("AGENT-8")
@pytest.mark.parametrize("output", [{"findings": []}, {"findings": ["made up"]}, {}])
def test_where_there_is_no_claim_nothing_rests(output: Output) -> None:
    assert verdict("claims_rest", output, field="findings")


@pytest.mark.promise("AGENT-8")
def test_only_as_much_is_looked_at_as_can_be_told() -> None:
    """With the nearest sentence of each among all, letter by letter, this took hours."""
    words = [f"word{number}" for number in range(2_000)]
    said = [" ".join(words[at : at + 20]) for at in range(0, 2_000, 20)]
    outputs = {"gather": {"passages": [{"text": ". ".join(said)}] * 50}}
    findings = [{"claim": said[9], "quote": f"{said[9][:60]} or {number}"} for number in range(20_000)]
    checks: list[tuple[str, str, dict[str, int]]] = [
        ("quotes_match", "findings.quote", {}),
        ("claims_rest", "findings", {"percent": 90}),
    ]
    for check, field, more in checks:
        known = CHECKS[check]
        options = convert({"field": field, "passages": "gather.passages"} | more, known.options)
        found = known.function(options, {"findings": findings}, outputs)
        assert isinstance(found, Failed)
        assert len(found.issues) == 8
        assert all(said[9] in issue for issue in found.issues)


@pytest.mark.parametrize(
    ("claim", "quote", "passes"),
    [
        ("Costs went up by 3 %.", "Costs rose by 3 %.", True),
        ("The cost rose.", "Costs rose by 3 %.", True),
        ("The ferry waits for passengers.", "Costs rose by 3 %.", False),
        ("Yes.", "Costs rose by 3 %.", False),
        ("", "Costs rose by 3 %.", False),
    ],
)
def test_a_claim_about_something_else_than_its_quote_does_not_pass(
    claim: str, quote: str, *, passes: bool
) -> None:
    issues = verdict("claims_rest", {"findings": [{"claim": claim, "quote": quote}]}, field="findings")
    assert (not issues) == passes


def test_the_sentence_that_a_claim_would_rest_on_is_named() -> None:
    output = {"findings": [{"claim": "Costs rose.", "quote": "Nobody knows why."}]}
    (issue,) = verdict("claims_rest", output, field="findings", passages="gather.passages")
    assert issue.endswith("A better quote may be: 'Costs rose by 3 %.'")


@pytest.mark.parametrize(
    ("check", "output", "options", "passes"),
    [
        ("not_empty", {"a": ["x"]}, {}, True),
        ("not_empty", {"a": []}, {}, False),
        ("not_empty", {"a": "  "}, {}, False),
        ("not_empty", {}, {}, False),
        ("at_most", {"a": [1, 2]}, {"count": 2}, True),
        ("at_most", {"a": [1, 2, 3]}, {"count": 2}, False),
        ("at_most", {"a": 0.7}, {"count": 1}, True),
        ("at_least", {"a": []}, {"count": 1}, False),
        ("at_least", {"a": 5}, {"count": 4}, True),
        ("is_true", {"a": True}, {}, True),
        ("is_true", {"a": 1.5}, {}, False),
        ("is_true", {"a": False, "problem": "no room"}, {}, False),
        ("found", {"a": []}, {}, False),
        ("found", {"a": PASSAGES}, {}, True),
        ("found", {"a": [], "missing": 3}, {}, False),
    ],
)
def test_a_check_says_what_is_wanting(
    check: str, output: Output, options: Mapping[str, Any], *, passes: bool
) -> None:
    assert (not verdict(check, output, field="a", **options)) == passes


def test_questions_are_looked_for_by_the_words_that_say_something() -> None:
    assert word_stems("What do the documents say about cancelled crossings?") == ["cancell", "cross"]
    assert word_stems("Go on") == []


def test_the_place_that_holds_most_of_the_rare_words_comes_first() -> None:
    hits = [
        SearchHit("a.md", 1, "a crossing"),
        SearchHit("a.md", 9, "another crossing"),
        SearchHit("b.md", 4, "the crossing was cancelled"),
        SearchHit("b.md", 5, "by fog"),
    ]
    best, *rest = rank_hit_groups(hits, ["cross", "cancell", "fog"])
    assert best[:3] == ("b.md", 4, 5)
    assert [spot[:3] for spot in rest] == [("a.md", 1, 1), ("a.md", 9, 9)]


@pytest.mark.parametrize(
    ("end", "told"),
    [
        (CallResult(ok=True, content="fine"), ("", "")),
        (
            CallResult(ok=False, content='{"reason": "user_rejected", "message": "No."}'),
            ("user_rejected", "No."),
        ),
        (CallResult(ok=False, content="it  broke"), ("", "it broke")),
        (CallResult(ok=False, content="[1]"), ("", "[1]")),
    ],
)
def test_why_a_call_was_not_done_is_read_from_its_end(end: CallResult, told: tuple[str, str]) -> None:
    assert call_refusal(end) == told
