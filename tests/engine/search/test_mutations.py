"""The usual slips of a line, each the other way round."""

import ast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from handrail.engine.search.mutations import COMMON, mutations

TEXT = """\
class Cart:
    def total(self, items, limit):
        done = False
        count = 0
        for item in items:
            if item.price < limit:
                count += 1
        self.changed = True
        return count

    def first(self, size, page):
        return slice(page * size, (page + 1) * size, max(1, size))

    def clear(self):
        self.log.append(self.count)
        self.changed = False
"""


def edits(line: str, likely: float = 0, text: str = TEXT) -> list[str]:
    number = next(at for at, each in enumerate(text.splitlines(), 1) if each.strip() == line)
    return [each.text.strip() for each in mutations("cart.py", text, number) if each.likely >= likely]


@pytest.mark.parametrize(
    ("line", "edited"),
    [
        ("if item.price < limit:", "if item.price <= limit:"),
        ("if item.price < limit:", "if not (item.price < limit):"),
        ("count += 1", "count -= 1"),
        ("count += 1", "count += 2"),
        ("count = 0", "count = 1"),
        ("self.changed = True", "self.changed = False"),
        (
            "return slice(page * size, (page + 1) * size, max(1, size))",
            "return slice(page * size, (page) * size, max(1, size))",
        ),
        (
            "return slice(page * size, (page + 1) * size, max(1, size))",
            "return slice((page + 1) * size, page * size, max(1, size))",
        ),
        (
            "return slice(page * size, (page + 1) * size, max(1, size))",
            "return slice(page * size, (page + 1) * size, min(1, size))",
        ),
    ],
)
def test_common_slips(line: str, edited: str) -> None:
    assert edited in edits(line, COMMON)


@pytest.mark.parametrize(
    ("line", "edited"),
    [
        ("if item.price < limit:", "if item.price < count:"),
        ("self.changed = True", "self.count = True"),
        ("if item.price < limit:", "if item.price < limit and not done:"),
        ("count += 1", ""),
        ("count += 1", "count = limit"),
        ("if item.price < limit:", "while item.price < limit:"),
        ("self.changed = True", "self.changed = False\n        self.changed = True"),
    ],
)
def test_rare_slips_come_after_the_common_ones(line: str, edited: str) -> None:
    assert edited in edits(line)
    assert edited not in edits(line, COMMON)


@pytest.mark.parametrize(
    ("line", "edited"),
    [
        ("if name.isalpha():", "if name.isalpha() and name not in found:"),
        ("if name.isalpha():", "if name.isalpha() and name not in KEYWORDS:"),
        ("return [each for each in found]", "return [each for each in found if each not in KEYWORDS]"),
    ],
)
def test_what_is_looped_over_may_have_to_be_new(line: str, edited: str) -> None:
    text = """\
KEYWORDS: frozenset[str] = frozenset({"if", "for"})


def names(words):
    found = []
    for name in words:
        if name.isalpha():
            found.append(name)
    return [each for each in found]
"""
    assert edited in edits(line, 0, text)
    assert edited not in edits(line, COMMON, text)


def test_the_condition_of_an_inline_choice_can_lack_a_part() -> None:
    text = "def base(gnu, binary):\n    if binary:\n        log()\n    return 1024 if gnu else 1000\n"
    assert "return 1024 if gnu or binary else 1000" in edits("return 1024 if gnu else 1000", 0, text)


@pytest.mark.parametrize(
    ("line", "edited"),
    [
        ("return items[1:]", "return items[:-1]"),
        ("return items[:-1]", "return items[1:]"),
        ("return items[size:]", "return items[:size]"),
    ],
)
def test_the_other_end_of_a_slice_is_a_common_slip(line: str, edited: str) -> None:
    assert edited in edits(line, COMMON, f"def some(items, size):\n    {line}\n")


def test_a_field_is_replaced_by_one_that_the_object_may_have() -> None:
    text = """\
class Cart:
    def total(self, item):
        self.left = item.price
        return self.sum - item.weight
"""
    found = edits("return self.sum - item.weight", 0, text)
    assert "return self.sum - item.price" in found
    assert "return self.left - item.weight" in found
    assert not {"return self.sum - item.left", "return self.price - item.weight"} & set(found)


def test_types_and_documentation_give_no_edits_and_no_names() -> None:
    text = """\
class Depot:
    count: int = 0

    def reserve(self, name: str, count: int) -> bool:
        \"\"\"Take some of the goods.\"\"\"
        self.left: dict[str, int] = {}
        return self.left[name] > count
"""
    assert edits("self.left: dict[str, int] = {}", COMMON, text) == []
    assert set(edits("count: int = 0", COMMON, text)) == {"count: int = 1", "count: int = -1"}
    found = " ".join(edits("return self.left[name] > count", 0, text))
    assert "count" in found
    assert not {"goods", "some", "the", "str", "bool"} & set(found.split())


def test_text_and_comments_are_left_alone() -> None:
    text = 'x = "a < b and 1"  # c < d\n'
    assert all('"a < b and 1"  # c < d' in each for each in edits(text.strip(), COMMON, text))


@given(st.sampled_from(range(1, len(TEXT.splitlines()) + 1)))
def test_every_edit_is_another_line_and_most_of_them_parse(number: int) -> None:
    lines = TEXT.splitlines(keepends=True)
    if not lines[number - 1].strip():
        return
    found = mutations("cart.py", TEXT, number)
    assert len({each.text for each in found}) == len(found)
    assert all(each.text.rstrip() != lines[number - 1].rstrip() for each in found)
    parsed = 0
    for each in found:
        try:
            ast.parse("".join([*lines[: number - 1], each.text, *lines[number:]]))
            parsed += 1
        except SyntaxError:
            pass
    assert parsed >= len(found) / 2
