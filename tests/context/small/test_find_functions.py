"""Functions are found by their shape, whole and only once."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from handrail.context.small.repair_prompt import find_functions

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
    ("source", "names"),
    [
        (PYTHON, ["__init__", "total", "last"]),
        (JAVASCRIPT, ["size", "double", "outer"]),
        (GO, ["Get"]),
        (RUST, ["get"]),
        ("x = 1\n", []),
        ("", []),
        ("if (a) {\n  b();\n}\nfor (;;) {\n  c();\n}\n", []),
    ],
)
def test_functions_of_several_languages(source: str, names: list[str]) -> None:
    assert [function.name for function in find_functions(source)] == names


def test_head_is_what_callers_rely_on_and_the_rest_is_the_body() -> None:
    total = find_functions(PYTHON)[1]
    assert total.head.startswith("    def total(self):\n")
    assert total.head.endswith('        """\n')
    assert total.body.startswith("        if (self.items and\n")
    assert total.body.endswith("        return 0\n")
    double = find_functions(JAVASCRIPT)[1]
    assert (double.head, double.body.splitlines()[-1]) == ("const double = (a) => {\n", "};")


def test_a_text_that_stands_twice_is_left_out() -> None:
    assert find_functions("def f():\n    return 1\n\n\nif x:\n    pass\n\n\ndef f():\n    return 1\n") == []


@given(st.text(alphabet="ab(){}:=> \t\n\"'def", max_size=300))
def test_each_function_stands_in_the_source_once(source: str) -> None:
    for function in find_functions(source):
        assert source.count(function.text) == 1
        assert function.body.strip()
