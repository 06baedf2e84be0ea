import subprocess

import pytest
from hypothesis import given
from hypothesis import strategies as st

from handrail.policy.commands import is_allowed, read_command

ALLOWED = (("pytest",), ("npm", "run"))


@pytest.mark.parametrize(
    "text", ["pytest", "pytest -q tests/test_a.py", "  pytest  -q", "npm run build", "pytest -k=a@b,c:1%+"]
)
def test_plain_commands_that_start_with_an_entry_are_allowed(text: str) -> None:
    assert is_allowed(read_command(text), ALLOWED)


@pytest.mark.promise("POL-1")
@pytest.mark.parametrize(
    "text",
    [
        "npm runx",
        "npm",
        "pytestx",
        "./pytest",
        "pytest; rm -rf .",
        "pytest && ls",
        "pytest | tee x",
        "pytest > out",
        "pytest $(ls)",
        "pytest `ls`",
        "pytest $HOME",
        "pytest *",
        "pytest ~",
        "pytest {a,b}",
        "pytest 'a b'",
        'pytest "a"',
        "pytest a\\ b",
        "pytest\nls",
        "pytest\tls",
        "pytest &",
        "pytest # x",
        "pytest !x",
        "PYTHONPATH=x pytest",
        "A+=x pytest",
        "pytest é",
        "",
        " ",
    ],
)
def test_everything_else_is_not(text: str) -> None:
    assert not is_allowed(read_command(text), ALLOWED)


def test_an_empty_entry_allows_nothing() -> None:
    assert not is_allowed(read_command("ls"), ((),))


@pytest.mark.parametrize(
    "text", ["-n x", "a=b c", "a/b.c d:e@f%g+h,i=j-k_l", "  a   b ", "1 2 3", "%1 - --", "./x ../y .", "a= b"]
)
def test_bash_reads_a_plain_command_as_the_same_words(text: str) -> None:
    assert words_of_bash(text) == list(read_command(f"x {text}").words)[1:]


@given(st.text(alphabet="aZ9 _./=:@%+,-", min_size=1, max_size=20))
def test_the_words_of_a_plain_command_are_what_stands_between_its_spaces(text: str) -> None:
    assert list(read_command(f"x {text}").words)[1:] == text.split()


def words_of_bash(text: str) -> list[str]:
    script = f"printf '%s\\0' x {text}"
    done = subprocess.run(["bash", "-c", script], capture_output=True, check=True, timeout=10)
    return done.stdout.decode().split("\0")[1:-1]
