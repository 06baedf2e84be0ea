import pytest

from handrail.policy.commands.command_rule import Rule
from handrail.policy.commands.judge import (
    DEFAULT_ALLOWED,
    MAX_RULE_WORDS,
    RUNNERS,
    all_rules,
    check_examples,
    rule_for,
)
from handrail.policy.commands.script import Word

RULES = list({each.name: each for each in all_rules().values()}.values())


@pytest.mark.promise("POL-5")
@pytest.mark.parametrize("known", RULES, ids=lambda each: each.name)
def test_every_rule_holds_its_own_examples_of_both_verdicts(known: Rule) -> None:
    check_examples(known)
    assert known.auto
    assert known.ask or known.name == "echo"


def test_a_rule_that_does_not_hold_its_examples_does_not_load() -> None:
    with pytest.raises(ValueError, match="should be asked about"):
        check_examples(Rule("x", options="-a", ask="x -a"))
    with pytest.raises(ValueError, match="should run"):
        check_examples(Rule("x", auto="x -a"))
    with pytest.raises(ValueError, match="not an example of"):
        check_examples(Rule("x", auto="y"))
    with pytest.raises(ValueError, match="not a valid way to list an option"):
        Rule("x", options="a=b")


@pytest.mark.promise("POL-5")
@pytest.mark.parametrize("entry", DEFAULT_ALLOWED, ids=" ".join)
def test_every_command_of_the_default_list_has_a_rule(entry: tuple[str, ...]) -> None:
    found = rule_for(entry)
    assert found is not None
    assert found[0] == len(entry)


def test_nothing_that_deletes_fetches_or_runs_its_words_is_on_the_default_list() -> None:
    names = {entry[0] for entry in DEFAULT_ALLOWED}
    assert not names & {
        *RUNNERS,
        "rm",
        "mv",
        "cp",
        "dd",
        "curl",
        "wget",
        "chmod",
        "tee",
        "kill",
        "make",
        "docker",
    }
    assert max(len(words) for words in all_rules()) == MAX_RULE_WORDS


@pytest.mark.parametrize("known", [each for each in RULES if each.name != "echo"], ids=lambda each: each.name)
@pytest.mark.parametrize("option", ["--unheard-of", "--unheard-of=x", "-\u00e9", "--output=x", "--exec=x"])
def test_an_option_that_no_rule_lists_is_never_passed(known: Rule, option: str) -> None:
    if option.partition("=")[0] not in known.options:
        assert known.read([Word(option)]).problem


@pytest.mark.parametrize(
    ("words", "problem"),
    [
        ("-n 5", ""),
        ("-n5", ""),
        ("--lines=5", ""),
        ("--lines 5", ""),
        ("-qn5", ""),
        ("-qn 5 a", ""),
        ("-5", ""),
        ("-n", "no value"),
        ("-n x", "not a number"),
        ("-q5", "not known"),
        ("--lines", "no value"),
        ("--quiet=x", "--quiet=x"),
        ("-- -n", ""),
        ("--", ""),
    ],
)
def test_options_are_read_as_programs_read_them(words: str, problem: str) -> None:
    found = all_rules()["head",].read([Word(word) for word in words.split()])
    assert problem in found.problem
    assert bool(found.problem) == bool(problem)


def test_a_value_that_looks_like_an_option_is_not_passed() -> None:
    assert all_rules()["grep",].read([Word("--exclude"), Word("--output"), Word("a")]).problem
    assert all_rules()["find",].read([Word("."), Word("-name"), Word("-delete")]).problem
    assert not all_rules()["find",].read([Word("."), Word("-mtime"), Word("-7")]).problem
