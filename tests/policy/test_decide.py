from itertools import product
from typing import Any, get_args

import pytest
from msgspec.structs import replace

from handrail.policy.call_facts import Action, Allow, Ask, Decision, Deny, Facts, PathFacts, tool_kind
from handrail.policy.decide import decide
from handrail.protocol.values import Mode
from tests.policy.reading import known

MODES: tuple[Mode, ...] = get_args(Mode)
CONVERSATION = "can be allowed only in a conversation"


def word(decision: Decision) -> str:
    return decision.error.reason if isinstance(decision, Deny) else type(decision).__name__.lower()


def look(mode: Mode = "ask", **path: Any) -> Facts:
    return Facts("read", "look", mode, path=PathFacts("p", **path))


def write(mode: Mode = "auto", **path: Any) -> Facts:
    return Facts("edit", "write", mode, path=PathFacts("p", **path))


def run(
    mode: Mode = "auto",
    text: str = "pytest -q",
    *,
    always: bool = False,
    answerable: bool = True,
    confined: bool = True,
) -> Facts:
    command = known(text)
    return Facts("run", "run", mode, command=command, always=always, answerable=answerable, confined=confined)


def fetch(mode: Mode, *, from_user: bool) -> Facts:
    return Facts("fetch", "fetch", mode, url_from_user=from_user)


@pytest.mark.promise("POL-2")
@pytest.mark.parametrize(
    ("mode", "edit", "allowed_command", "other_command", "foreign_url"),
    [
        ("explore", "mode_forbids", "mode_forbids", "mode_forbids", "mode_forbids"),
        ("plan", "mode_forbids", "mode_forbids", "mode_forbids", "mode_forbids"),
        ("ask", "ask", "ask", "ask", "ask"),
        ("edit", "allow", "ask", "ask", "ask"),
        ("auto", "allow", "allow", "ask", "ask"),
    ],
)
def test_each_mode_leaves_to_the_model_what_it_says(
    mode: Mode, edit: str, allowed_command: str, other_command: str, foreign_url: str
) -> None:
    found = [write(mode), run(mode), run(mode, "make"), fetch(mode, from_user=False)]
    expected = [edit, allowed_command, other_command, foreign_url]
    assert [word(decide(facts)) for facts in found] == expected


@pytest.mark.parametrize("mode", MODES)
def test_reading_in_the_workspace_notes_and_the_users_urls_are_never_asked(mode: Mode) -> None:
    notes, question = Facts("todos", "note", mode), Facts("ask_user", "ask", mode)
    facts = [look(mode), notes, fetch(mode, from_user=True), question]
    assert [decide(each) for each in facts] == [Allow()] * 4


@pytest.mark.promise("POL-3")
@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize(
    ("place", "reason"),
    [
        ({"inside": False}, "outside_workspace"),
        ({"in_git": True}, "protected_path"),
        ({"in_state": True}, "protected_path"),
        ({"secret": True}, "protected_path"),
    ],
)
def test_protected_places_are_never_written(mode: Mode, place: dict[str, Any], reason: str) -> None:
    assert word(decide(write(mode, **place))) == reason
    always = Facts("edit", "write", mode, path=PathFacts("p", **place), always=True)
    assert word(decide(always)) == reason


@pytest.mark.parametrize("mode", MODES)
def test_reading_a_secret_or_outside_is_asked(mode: Mode) -> None:
    assert word(decide(look(mode, secret=True))) == "ask"
    assert word(decide(look(mode, inside=False))) == "ask"
    assert word(decide(look(mode, in_git=True))) == "allow"


@pytest.mark.promise("POL-4")
def test_where_nobody_can_be_asked_nothing_is_asked() -> None:
    actions: tuple[Action, ...] = get_args(Action)
    for action, mode, secret, text in product(actions, MODES, (False, True), ("pytest", "a | b")):
        facts = Facts(
            "tool",
            action,
            mode,
            path=PathFacts("p", secret=secret),
            command=known(text) if action == "run" else None,
            answerable=False,
        )
        assert not isinstance(decide(facts), Ask)


@pytest.mark.promise("POL-4")
@pytest.mark.parametrize(
    ("facts", "way"),
    [
        (Facts("edit", "write", "ask", path=PathFacts("p"), answerable=False), "--mode edit"),
        (run("auto", "make all", answerable=False), "--allow 'make all'"),
        (run("auto", "a | b", answerable=False), "command of plain words"),
        (Facts("fetch", "fetch", "auto", answerable=False), "user's own message"),
        (Facts("ask_user", "ask", "auto", answerable=False), "say what you assumed"),
        (Facts("read", "look", "auto", path=PathFacts("p", inside=False), answerable=False), CONVERSATION),
        (Facts("read", "look", "auto", path=PathFacts("p", secret=True), answerable=False), CONVERSATION),
    ],
)
def test_a_refusal_for_want_of_somebody_names_the_way(facts: Facts, way: str) -> None:
    decision = decide(facts)
    assert isinstance(decision, Deny)
    assert decision.error.reason == "nobody_to_ask"
    assert way in decision.error.message


def test_always_ends_the_asking_and_not_the_denying() -> None:
    assert word(decide(run("ask", "make", always=True))) == "allow"
    assert word(decide(run("explore", "make", always=True))) == "mode_forbids"


@pytest.mark.parametrize(
    ("facts", "kind"),
    [
        (look(), "safe"),
        (write(), "destructive"),
        (run(), "destructive"),
        (fetch("auto", from_user=True), "safe"),
        (fetch("auto", from_user=False), "destructive"),
    ],
)
def test_a_call_is_classified_by_what_it_does(facts: Facts, kind: str) -> None:
    assert tool_kind(facts) == kind


@pytest.mark.promise("POL-2")
@pytest.mark.parametrize("mode", MODES)
def test_a_message_that_only_asks_writes_and_runs_nothing_in_any_mode(mode: Mode) -> None:
    found = [write(mode), run(mode), run(mode, "cat notes.txt"), run(mode, always=True)]
    assert [word(decide(replace(facts, reads_only=True))) for facts in found] == ["mode_forbids"] * 4
    assert word(decide(replace(look(mode), reads_only=True))) == "allow"
