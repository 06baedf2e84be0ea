import shlex

import pytest

from handrail.policy.commands.judge import CommandLists, all_rules, command_lists, judge, parse_entries
from handrail.policy.commands.script import Script, SimpleCommand, Word
from handrail.protocol.values import AllowedCommand
from handrail.tools.commands.parse import parse_command
from tests.policy.reading import judged


@pytest.mark.promise("POL-1")
@pytest.mark.parametrize("text", ["make build", "make build all", "make build -j4"])
def test_an_entry_covers_the_commands_that_begin_with_its_words(text: str) -> None:
    assert judged(text, "make build").problem == ""


@pytest.mark.promise("POL-1")
@pytest.mark.parametrize(
    "text", ["make buildx", "make", "makex build", "./make build", "MAKE build", "make clean"]
)
def test_an_entry_covers_nothing_else(text: str) -> None:
    assert "not on the list" in judged(text, "make build").problem


def test_an_empty_entry_covers_nothing() -> None:
    assert judged("ls", "", " ", only=True).problem


def test_every_command_of_a_list_is_judged() -> None:
    fine, wrong = SimpleCommand((Word("ls"),)), SimpleCommand((Word("rm"), Word("x")))
    for commands in ((fine, wrong), (wrong, fine), (fine, fine, wrong)):
        assert "`rm`" in judge(Script("", commands), CommandLists()).problem
    assert judge(Script("", (fine, fine)), CommandLists()).problem == ""


def test_what_the_grammar_found_is_the_problem() -> None:
    found = judge(Script("x", problem="the command has a subshell"), CommandLists())
    assert (found.problem, found.decided) == ("the command has a subshell", "shell grammar")


@pytest.mark.promise("POL-6")
def test_a_denied_command_is_denied_whatever_allows_it() -> None:
    found = judged("git push --force", "git push", deny=("git push",))
    assert found.denied == "git push"
    two = Script(
        "", (SimpleCommand((Word("ls"),)), SimpleCommand((Word("git"), Word("--no-pager"), Word("push"))))
    )
    assert judge(two, CommandLists(denied=parse_entries(["git push"]))).denied == "git push"
    assert judged("git pushx", "git pushx", deny=("git push",)).denied == ""


# Entries of the user's


@pytest.mark.parametrize("text", ["terraform plan -out=x -var a=b", "make -j4 CC=gcc", "node a.js -e x"])
def test_options_of_a_command_that_the_user_listed_are_the_users_business(text: str) -> None:
    assert judged(text, "terraform plan", "make", "node").problem == ""


@pytest.mark.parametrize(
    "text", ["env X=1 ls", "xargs rm", "sudo ls", "sed -i s/a/b/ f", "timeout 5 ls", "npx x"]
)
def test_a_program_that_runs_its_words_is_covered_by_those_very_words_only(text: str) -> None:
    assert "runs what its arguments say" in judged(text, text.split(maxsplit=1)[0]).problem
    assert judged(text, text).problem == ""
    assert judged(f"{text} more", text).problem


@pytest.mark.parametrize(
    "text",
    [
        "git -c x=y push",
        "bash -c ls",
        "sh -x a.sh",
        "npm --prefix /x audit",
        "node -e x",
        "docker --host x ps",
    ],
)
def test_an_option_before_the_subcommand_is_asked_about(text: str) -> None:
    assert "before its first argument" in judged(text, text.split(maxsplit=1)[0]).problem


def test_an_interpreter_that_the_user_listed_runs_files_and_not_its_input() -> None:
    assert judged("sh build.sh -v", "sh").problem == ""
    assert "runs its input" in judged("sh", "sh").problem


def test_a_listed_command_that_has_a_rule_keeps_it_up_to_the_words_of_the_entry() -> None:
    assert judged("find . -delete", "find").problem
    assert judged("find . -delete", "find . -delete").problem == ""
    assert judged("find . -delete -name x", "find . -delete").problem == ""
    assert judged("find . -delete -exec x", "find . -delete").problem
    assert judged("npm run build --script-shell x", "npm run build").problem


def test_what_the_user_named_beyond_a_rule_is_not_what_the_rule_knows() -> None:
    found = judged("find . -delete", "find . -delete")
    assert (found.reads_only, found.runs_code, found.runs) == (False, True, "find . -delete")
    assert judged("find . -name x", "find . -name").reads_only


def test_paths_of_a_listed_command_are_looked_up() -> None:
    found = judged("make -C /tmp/x dir=../y", "make")
    assert {path.text for path in found.paths} >= {"/tmp/x", "../y"}


# What else is known of a command


@pytest.mark.parametrize(
    ("text", "reads_only", "runs_code", "network"),
    [
        ("ls -la", True, False, False),
        ("git log -5", True, False, False),
        ("ruff check .", False, True, False),
        ("mkdir x", False, False, False),
        ("python a.py", False, True, False),
        ("npm install", False, True, False),
        ("cargo fmt --check", False, True, False),
        ("npm test", False, True, False),
        ("make", False, True, False),
    ],
)
def test_it_is_known_what_a_command_may_do(
    text: str, reads_only: bool, runs_code: bool, network: bool
) -> None:
    found = judged(text, "make", "cargo fmt")
    assert (found.reads_only, found.runs_code, found.network) == (reads_only, runs_code, network)


def test_an_entry_of_the_users_gives_the_network_to_what_it_covers_best() -> None:
    fetch, make = AllowedCommand(command="make fetch", network=True), "make"
    named = ("cargo build", "npm")
    lists = command_lists((fetch, make, *(AllowedCommand(command=each, network=True) for each in named)))
    given = {
        text: judge(parse_command(text), lists).network
        for text in ("make fetch x", "make test", "cargo build", "npm install", "make fetch && ls")
    }
    assert given == {
        "make fetch x": True,
        "make test": False,
        "cargo build": True,
        "npm install": True,
        "make fetch && ls": False,
    }


def test_a_list_only_reads_where_all_of_it_does_and_has_the_network_where_all_of_it_has() -> None:
    ls, touch = SimpleCommand((Word("ls"),)), SimpleCommand((Word("touch"), Word("a")))
    install = SimpleCommand((Word("npm"), Word("install")))
    lists = command_lists((AllowedCommand(command="npm install", network=True),))
    assert not judge(Script("", (ls, touch)), lists).reads_only
    assert judge(Script("", (install, install)), lists).network
    assert not judge(Script("", (install, ls)), lists).network


@pytest.mark.promise("POL-25")
def test_no_rule_gives_a_command_the_network() -> None:
    for rule in all_rules().values():
        for text in rule.auto:
            commands = (SimpleCommand(tuple(map(Word, text.split()))),)
            assert not judge(Script("", commands), CommandLists(frozenset(all_rules()))).network, text


@pytest.mark.promise("POL-7")
def test_git_runs_hardened_and_the_rest_as_it_was_judged() -> None:
    found = judged("git --no-pager diff HEAD").runs
    start = "handrail_git diff --no-ext-diff --no-textconv --ignore-submodules=dirty --relative"
    assert found.startswith(f"{start} 'HEAD^{{commit}}' -- ':(top,exclude,glob,icase)")
    quoted = judge(Script("", (SimpleCommand((Word("echo"), Word("it's; $x"))),)), CommandLists()).runs
    assert quoted == """echo 'it'"'"'s; $x'"""


@pytest.mark.parametrize(
    ("text", "way"),
    [
        ("make all", "--allow 'make all'"),
        ("git push origin", "--allow 'git push'"),
        ("find . -delete", "--allow 'find . -delete'"),
        ("npm audit", "--allow 'npm audit'"),
    ],
)
def test_it_is_said_what_would_allow_a_command(text: str, way: str) -> None:
    assert way in judged(text).way


def test_what_would_allow_a_command_is_read_by_a_shell_as_it_is() -> None:
    command = """python3 -c 'print("x")'"""
    shown = judged(command).way.split("`")[1]
    assert shlex.split(shown) == ["--allow", command]
