"""What the words of a message alone decide."""

from pathlib import Path

import pytest

from handrail.engine.router.confidence import decide_by_rules
from handrail.engine.router.word_rules import is_question, match_rules, match_task_rules

ONLY_ASKED = [
    "how do I delete a file with git?",
    "What happens when you run make test?",
    "why not remove the cache?",
    "Could you explain how to add a route?",
    "explain the code above, then tell me what to change",
    "I was wondering: is the lock needed?",
    'what does "fix all bugs" in the readme mean?',
    "how would one rename this? do not change anything.",
    "tell me how to install it",
    "what does this do?\n```sh\nrm -rf build\nadd everything\n```",
    "> please delete the file\nwhat did she mean by that?",
    "is it safe to remove it?",
    "would you mind explaining it?",
    "show me a short summary of the parser",
    "review cart.py, this is read-only",
    "plan how to fix it, but do not change anything yet",
    "look at the parser. no changes, please",
    "whats the fastest way to sort a list",
    "put simply, what does cart.py do",
    "run me through cart.py",
    "make sense of this traceback for me",
    "improve my understanding of the parser",
    "enable me to understand cart.py",
]
NOT_SURELY_WORK = [
    "type of total() in cart.py",
    "format of the config file",
    "set vs list, which is faster here",
    "commit history of cart.py",
    "update frequency of the cache",
    "sort order of the items",
    "merge conflicts, how do they arise",
    "patch version or minor version for this",
    "handle on what main.py does",
    "comment style in this repo",
    "switch statement in cart.js",
    "type hints in cart.py",
    "write access: who has it",
    "could we drop python 3.8?",
    "can we use sqlite here",
    "stop me if I'm wrong, but is this a race",
    "set up in CI: how is it done",
    "rename total to grand_total, is that a good idea",
    "explain how to build and run the tests",
    "describe what I have to do to set up and run it",
]
WORK = [
    "update dependencies",
    "write tests for cart.py",
    "run tests",
    "sort the imports in cart.py",
    "turn on strict mode",
    "format cart.py",
    "set the timeout to 5, which is enough",
    "the test is flaky. fix it",
    "Rename x to y in a.py, and don't change anything else.",
    "Add a read-only property to Cart",
    "Fix the failing test without editing it.",
    "Update the README only, no code changes.",
    "Create a CLI flag --read-only",
    "would you mind adding a docstring to total?",
    "do you mind removing the cache?",
    "would you mind running the tests",
    "Fix the bug in cart.py",
    "please could you add a test?",
    "I want you to remove the cache",
    "now run the tests again, and fix what fails",
    "so, let's rename it to basket",
    "we need to upgrade pydantic",
    "- add a flag\n- write a test for it",
    "refactor parse() but don't edit the tests",
]
UNDECIDED = [
    "explain cart.py and add a docstring",
    "summarise the module, then write a test for it",
    "",
    "42",
    "yes",
    "…",
    "the blue one",
    "do it",
    "je voudrais un test",
    "cart.py",
    "?!",
    "@cart.py",
]


@pytest.mark.promise("ROUTE-1")
@pytest.mark.parametrize("message", ONLY_ASKED)
def test_a_message_that_only_asks_is_never_taken_for_work(message: str) -> None:
    assert match_rules(message).wish in ("ask", "greet")
    decision = decide_by_rules(match_rules(message))
    assert decision is None or decision.decision == "chat"


@pytest.mark.promise("ROUTE-1")
@pytest.mark.parametrize("message", NOT_SURELY_WORK)
def test_words_that_may_be_verbs_or_not_do_not_decide_for_work(message: str) -> None:
    assert not (match_rules(message).wish == "work" and match_rules(message).sure)


@pytest.mark.parametrize("message", WORK)
def test_a_request_is_work_however_politely_it_is_put(message: str) -> None:
    decision = decide_by_rules(match_rules(message))

    assert decision is not None
    assert decision.decision == "agent"


@pytest.mark.parametrize("message", UNDECIDED)
def test_words_that_say_nothing_decide_nothing(message: str) -> None:
    assert decide_by_rules(match_rules(message)) is None


@pytest.mark.parametrize(
    ("message", "routes"),
    [
        ("add a task queue to worker.py", "agent"),
        ("add water the plants to my list", "tasks"),
        ("remind me on Friday to update the docs", "tasks"),
        ("move the gym to Thursday", "tasks"),
        ("push it to next week", "tasks"),
        ("move the parser to monday.py", "agent"),
        ("move the constants to the top", "agent"),
        ("this is due to a race in the server", None),
    ],
)
def test_the_task_list_and_code_about_tasks_are_told_apart(message: str, routes: str | None) -> None:
    decision = decide_by_rules(match_rules(message))

    assert (decision.decision if decision else None) == routes


@pytest.mark.parametrize(
    ("message", "wish", "sure"),
    [
        ("add dinner with Zoe at 7", "tasks", True),
        ("delete the milk", "tasks", True),
        ("what should I do first?", "tasks", True),
        ("dinner with Zoe", "tasks", False),
        ("fix the bug in main.py", "work", False),
        ("what does total() do?", "ask", False),
        ("hello", "greet", True),
    ],
)
def test_what_names_no_code_is_about_the_list_when_said_to_the_task_assistant(
    message: str, wish: str, *, sure: bool
) -> None:
    found = match_task_rules(message)
    assert (found.wish, found.sure) == (wish, sure)


def test_a_request_at_the_end_is_no_question() -> None:
    assert is_question("fix it? or is it too late?")
    assert not is_question("is it too late? fix it.")


def test_a_message_of_a_megabyte_is_read_at_its_ends() -> None:
    assert match_rules("fix the parser. " + "x" * 1_000_000).wish == "work"


def test_rules_alone_send_nothing_of_the_bench_astray() -> None:
    lines = Path("bench/router/messages.txt").read_text().splitlines()
    cases = [line.split("|", 1) for line in lines if not line.startswith("#")]
    wrong = [
        (text.strip(), decision.decision)
        for routes, text in cases
        if (decision := decide_by_rules(match_rules(text))) and decision.decision not in routes.split()
    ]

    assert wrong == []
    assert len(cases) == 60
