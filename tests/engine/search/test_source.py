"""Functions, stubs and lines of a file, and code that is the same."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from handrail.engine.search.source import (
    beginnings,
    find_functions,
    function_alone,
    same_code,
    without_new_comment,
)

PYTHON = '''\
import os


class Cart:
    def __init__(self, items):
        self.items = items

    @property
    def total(self):
        """What is paid,

        tax included.
        """
        if (self.items and
                len(self.items) > 1):
            return sum(self.items)

        return 0


async def fetch(url): pass


def last():
    return os.sep
'''
JAVASCRIPT = """\
class Stack {
  get size() {
    return this.items.length;
  }
}

const double = (a) => {
  if (a) {
    return a * 2;
  }
};

function outer(a) {
  return a;
}
"""
GO = "func (s *Store) Get(key string) (string, error) {\n\treturn s.m[key], nil\n}\n"
RUST = "impl A {\n    pub fn get(&self) -> u32 {\n        self.x\n    }\n}\n"


@pytest.mark.parametrize(
    ("path", "source", "names"),
    [
        ("a.py", PYTHON, ["__init__", "total", "last"]),
        ("a.py", f"{PYTHON}\nif x\n", ["__init__", "total", "last"]),
        ("a.js", JAVASCRIPT, ["size", "double", "outer"]),
        ("a.go", GO, ["Get"]),
        ("a.rs", RUST, ["get"]),
        ("a.py", "x = 1\n", []),
        ("a.py", "", []),
        ("a.js", "if (a) {\n  b();\n}\nfor (;;) {\n  c();\n}\n", []),
    ],
)
def test_functions_of_several_languages(path: str, source: str, names: list[str]) -> None:
    assert [function.name for function in find_functions(path, source)] == names


def test_header_and_docstring_stay_and_the_rest_is_the_body() -> None:
    lines = PYTHON.splitlines()
    total = find_functions("a.py", PYTHON)[1]
    assert lines[total.first - 1] == "    def total(self):"
    assert lines[total.body - 1].startswith("        if (self.items and")
    assert lines[total.last - 1] == "        return 0"


@pytest.mark.parametrize(
    ("path", "body"),
    [
        ("a.py", "    pass"),
        ("a.py", "    ..."),
        ("a.py", '    """What it does."""'),
        ("a.py", '    """What it does."""\n    raise NotImplemented' + 'Error("later")'),
        ("a.py", "    # later\n    return None"),
        ("a.js", "  throw new Error('not implemented');\n}"),
    ],
)
def test_a_function_without_code_is_a_stub(path: str, body: str) -> None:
    head = "def f(a):" if path == "a.py" else "function f(a) {"
    (function,) = find_functions(path, f"{head}\n{body}\n")
    assert function.is_stub


@pytest.mark.parametrize(
    "body", ["    return a", "    return None or a", "    pass\n    a()", "    raise ValueError"]
)
def test_a_function_with_code_is_none(body: str) -> None:
    (function,) = find_functions("a.py", f"def f(a):\n{body}\n")
    assert not function.is_stub


@given(st.text(alphabet="ab(){}:=> \t\n\"'def", max_size=300), st.sampled_from(["a.py", "a.js"]))
def test_each_function_is_within_the_file(source: str, path: str) -> None:
    for function in find_functions(path, source):
        assert 1 <= function.first < function.body <= function.last + 1
        assert function.last <= len(source.splitlines())


def test_what_a_model_writes_after_the_function_is_cut_off() -> None:
    code = "def f():\n    if a:\n        return 1\n\n    return 2\n\n\nprint(f())\n"
    assert function_alone(code, 0).splitlines()[-1] == "    return 2"
    assert function_alone("  get() {\n    return 1;\n  }\n}\nx();", 2) == "  get() {\n    return 1;\n  }"


def test_layout_and_comments_do_not_make_code_another() -> None:
    assert same_code("a.py", "x = f(1)\n") == same_code("a.py", "x = f( 1 )  # now\n")
    assert same_code("a.js", "a(1); // b\n") == same_code("a.js", "a(1);\n\n")
    assert same_code("a.py", "x = f(1)\n") != same_code("a.py", "x = f(2)\n")


def test_a_line_can_go_on_otherwise_after_each_of_its_words_and_signs() -> None:
    assert beginnings("    return a-1\n") == [
        "   ",
        "    return",
        "    return a",
        "    return a-",
        "    return a-1",
    ]


def test_a_comment_stays_only_where_there_was_one() -> None:
    assert without_new_comment("    return 2  # not 1", "    return 1") == "    return 2"
    assert without_new_comment("    return 2  # two", "    return 1  # one") == "    return 2  # two"
    assert without_new_comment("    return '  # '", "    return ''") == "    return '  # '"
