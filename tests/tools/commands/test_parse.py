import json
import random
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from handrail.policy.commands.judge import CommandLists, judge
from handrail.policy.commands.script import commands_text
from handrail.tools.commands import parse as shell_parsing
from handrail.tools.commands.parse import SHFMT_OPTIONS, find_shfmt, parse_command, plain_tree
from handrail.tools.commands.shell_tree import POSITION_FIELDS
from tests.tools.commands.bash_words import words_of_bash

ALLOWED = (
    "git log -5 --oneline",
    "ls -la src",
    "grep -rn foo src",
    "cat a b",
    "npm run build",
    "python a.py -v",
)
PIECES = (
    *(
        "'",
        '"',
        "\\",
        "$",
        "`",
        "(",
        ")",
        "{",
        "}",
        "<",
        ">",
        "|",
        "&",
        ";",
        "\n",
        "\t",
        " ",
        "#",
        "!",
        "*",
        "?",
    ),
    *(
        "[",
        "]",
        "~",
        "=",
        ",",
        "..",
        "^",
        "$(",
        "${",
        "$((",
        "<(",
        "<<",
        ">>",
        "&&",
        "||",
        "2>&1",
        "\\\n",
        "$'",
    ),
    *(
        '$"',
        "''",
        '""',
        "x",
        "-",
        "--",
        "rm",
        "%",
        "@",
        "é",
        ":",
        "@(",
        "!(",
        "|&",
        "&>",
        "\u00a0",
        "\u2028",
        "\r",
    ),
)
"""What has a meaning in some shell, and what looks like it."""


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("ls -la", [["ls", "-la"]]),
        ("  ls\t-la  ", [["ls", "-la"]]),
        ("echo 'a;b' \"c | d\"", [["echo", "a;b", "c | d"]]),
        ("echo 'it'\\''s fine'", [["echo", "it's fine"]]),
        ('echo "a\\"b" "\\n" "\\$x" "\\`"', [["echo", 'a"b', "\\n", "$x", "`"]]),
        ("echo a\\ b \\# 'c'\"d\"e", [["echo", "a b", "#", "cde"]]),
        ("echo '' \"\"", [["echo", "", ""]]),
        ("ls \\\n  -la", [["ls", "-la"]]),
        ('echo "a\\\nb"', [["echo", "ab"]]),
        ("ls # comment\npwd", [["ls"], ["pwd"]]),
        ("a && b || c; d | e", [["a"], ["b"], ["c"], ["d"], ["e"]]),
        ("grep 'x$' \"y$\" z$", [["grep", "x$", "y$", "z$"]]),
        ("git diff HEAD@{1} HEAD^ HEAD~2", [["git", "diff", "HEAD@{1}", "HEAD^", "HEAD~2"]]),
        ("git log @{u}.. a,{b} {c", [["git", "log", "@{u}..", "a,{b}", "{c"]]),
        ('echo "costs $ 5" \\{a,b}', [["echo", "costs $ 5", "{a,b}"]]),
        ("find . ! -name x \\( -type f \\)", [["find", ".", "!", "-name", "x", "(", "-type", "f", ")"]]),
        ("echo 'two\nlines'", [["echo", "two\nlines"]]),
    ],
)
def test_words_are_read_as_bash_reads_them(text: str, words: list[list[str]]) -> None:
    script = parse_command(text)
    assert (script.problem, [list(command.texts) for command in script.commands]) == ("", words)


@pytest.mark.promise("POL-8")
@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("", "empty"),
        ("# only", "empty"),
        ("(ls)", "a subshell"),
        ("{ ls; }", "a group"),
        ("! ls", "`!`"),
        ("ls &", "background"),
        ("if true; then ls; fi", "an `if`"),
        ("for a in b; do ls; done", "a loop"),
        ("while true; do ls; done", "a loop"),
        ("case x in x) ls;; esac", "a `case`"),
        ("f() { ls; }", "a function"),
        ("coproc ls", "a coprocess"),
        ("time ls", "`time`"),
        ("[[ -f a ]]", "a `[[` test"),
        ("((1))", "arithmetic"),
        ("declare -x A=b", "a declaration"),
        ("export A=b", "a declaration"),
        ("let a=1", "arithmetic"),
        ("A=b", "a variable set"),
        ("A=b ls", "a variable set"),
        ("ls |& cat", "`|&`"),
        ("echo $x", "a variable"),
        ('echo "$x"', "a variable"),
        ("echo ${x:-y}", "a variable"),
        ("echo $(ls)", "a command substitution"),
        ("echo `ls`", "a command substitution"),
        ('echo "`ls`"', "a command substitution"),
        ("echo $((1))", "arithmetic"),
        ("echo $[1]", "arithmetic"),
        ("cat <(ls)", "a process substitution"),
        ("echo $'a'", "`$` before quotes"),
        ('echo $"a"', "`$` before quotes"),
        ("echo ~", "home folder"),
        ("echo a=~/b", "home folder"),
        ("echo a:~root", "home folder"),
        ("echo {a,b}", "brace"),
        ("echo {1..3}", "brace"),
        ("echo {a,'b'}", "brace"),
        ("ls *(x)", "an extended pattern"),
        ("l* x", "pattern where its program stands"),
        ("ls 'a b'*", "pattern with quotes"),
        ("ls > x", "a redirection"),
        ("ls >> /dev/null", "a redirection"),
        ("ls < x", "a redirection"),
        ("ls &> /dev/null", "a redirection"),
        ("ls > /dev/nullx", "a redirection"),
        ("ls 3> /dev/null", "a redirection"),
        ("ls {fd}> /dev/null", "a redirection"),
        ("> x", "redirection without a command"),
        ("cat << x\ny\nx", "a here-document"),
        ("cat <<< x", "a redirection"),
        ("ls \\", "backslash at its end"),
        ("ls &&", "not complete"),
        ("echo 'a", "not complete"),
        ("echo $(ls", "not complete"),
        ("ls ;; ls", "not complete"),
        ("ls\0; rm x", "U+0000"),
        ("echo \x1b[2J", "U+001B"),
        ("ls\r", "U+000D"),
        ("git status\u2028rm", "U+2028"),
        ("ls\u00a0-la", "U+00A0"),
        ("ls \u202ex", "U+202E"),
        ("ls \u3164", "U+3164"),
        ("ls \ud800", "U+D800"),
        ("echo " + "x" * 16_000, "more than 16,000 characters"),
        ("echo " + "$(" * 300 + "x" + ")" * 300, ""),
    ],
)
def test_what_is_more_than_plain_commands_is_said(text: str, problem: str) -> None:
    found = parse_command(text)
    assert found.problem
    assert problem in found.problem
    assert found.commands == ()


def test_redirections_that_write_nowhere_are_kept() -> None:
    script = parse_command("ls >/dev/null 2>&1; ls 1>&2 2> /dev/null; ls >&2")
    assert [command.redirects for command in script.commands] == [
        (">/dev/null", "2>&1"),
        (">&2", "2>/dev/null"),
        (">&2",),
    ]


@pytest.mark.promise("POL-8")
def test_without_a_grammar_nothing_is_read(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(sys, "executable", str(tmp_path / "python"))
    monkeypatch.setenv("PATH", str(tmp_path))
    assert "shfmt is missing" in parse_command("ls").problem
    program = tmp_path / "shfmt"
    for body, problem in (
        ("exit 3", "not valid"),
        ("echo {", "cannot be parsed"),
        ('echo \'{"Type": "New"}\'', "empty"),
    ):
        program.write_text(f"#!/bin/sh\n{body}\n")
        program.chmod(0o755)
        shell_parsing._parse_cached.cache_clear()
        assert problem in parse_command("ls; ls").problem
    monkeypatch.setattr(shell_parsing, "SECONDS", 0.05)
    program.write_text("#!/bin/sh\nwhile :; do :; done\n")
    assert "too long" in parse_command("ls; slow").problem
    shell_parsing._parse_cached.cache_clear()


@st.composite
def spoiled(draw: st.DrawFn) -> str:
    """An allowed command with some of what has a meaning in a shell put in."""
    text = draw(st.sampled_from(ALLOWED))
    for _ in range(draw(st.integers(1, 4))):
        at = draw(st.integers(0, len(text)))
        text = text[:at] + draw(st.sampled_from(PIECES)) + text[at:]
    return text


@pytest.mark.promise("POL-8")
@settings(max_examples=150, deadline=None)
@given(spoiled())
@example("ls -la src\nrm")
@example("cat a # b")
def test_a_command_that_would_run_unasked_has_the_words_that_bash_sees(text: str) -> None:
    script = parse_command(text)
    judged = judge(script, CommandLists())
    if judged.problem:
        return
    plain = [command for command in script.commands if not any(word.pattern for word in command.words)]
    if len(plain) < len(script.commands) or any(command.join != ";" for command in script.commands):
        return
    ours = [[word for word in command.texts if word] for command in script.commands]
    with_folder = Path(__file__).parent
    assert words_of_bash(text, with_folder) == ours
    assert words_of_bash(commands_text(script.commands), with_folder) == ours


@settings(max_examples=100, deadline=None)
@given(
    st.lists(
        st.text(st.characters(exclude_categories=["C", "Z"]) | st.just(" "), min_size=1),
        min_size=1,
        max_size=4,
    )
)
def test_words_that_are_written_are_read_again_as_they_were(words: list[str]) -> None:
    from handrail.policy.commands.script import SimpleCommand, Word, why_unreadable

    text = commands_text((SimpleCommand((Word("ls"), *map(Word, words))),))
    if why_unreadable(text):
        return
    script = parse_command(text)
    assert (script.problem, [list(command.texts) for command in script.commands]) == ("", [["ls", *words]])


def without_positions(node: Any) -> Any:
    if isinstance(node, list):
        return [without_positions(each) for each in node]
    if isinstance(node, dict):
        return {key: without_positions(value) for key, value in node.items() if key not in POSITION_FIELDS}
    return node


@pytest.mark.promise("POL-8")
def test_plain_commands_have_the_tree_that_shfmt_gives_them() -> None:
    bash = ["bash", "--norc", "-c", "compgen -k; compgen -b"]
    words = subprocess.run(bash, capture_output=True, text=True, check=True).stdout.split()
    characters = random.Random(1)
    words += ["".join(characters.choices("aZ0_./-:=,@%+", k=characters.randint(1, 5))) for _ in range(3000)]
    texts = [f"{first} {' '.join(characters.choices(words, k=2))}" for first in words]
    plain = [text for text in (*words, *texts) if plain_tree(text)]
    assert len(plain) > 1000
    ran = subprocess.run(
        [find_shfmt(), *SHFMT_OPTIONS], input="\n".join(plain), capture_output=True, text=True, check=True
    )
    found = without_positions(json.loads(ran.stdout))["Stmts"]
    assert [{"Type": "File", "Stmts": [each]} for each in found] == [plain_tree(text) for text in plain]
