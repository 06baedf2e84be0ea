"""Search and replacement: where a text is found, by which step, and what stays untouched."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from handrail.changes.forms.edit_forms import Edit
from handrail.changes.forms.replace import apply_edits
from handrail.protocol.errors import PathProblem

FEW = st.text(alphabet="ab \n", max_size=12)
SEARCH = st.text(alphabet="ab \n", min_size=1, max_size=5)
ENDINGS = st.sampled_from(["\n", "\r\n"])


@pytest.mark.promise("CHG-1")
@given(before=FEW, search=SEARCH, after=FEW, replacement=FEW, ending=ENDINGS)
def test_a_text_that_stands_once_is_replaced_and_nothing_else(
    before: str, search: str, after: str, replacement: str, ending: str
) -> None:
    text = before + search + after
    file = text.replace("\n", ending)
    places = [n for n in range(len(text)) if text.startswith(search, n)]
    if len(places) > 1 or search == replacement:
        with pytest.raises(PathProblem):
            apply_edits("f", file, (Edit(search, replacement),))
        return
    kept = ending if "\n" in text else "\n"
    if search in replacement and replacement in text:
        assert refused(file, Edit(search, replacement)).reason == "already_applied"
        return
    new = apply_edits("f", file, (Edit(search, replacement),)).text
    assert new == text.replace(search, replacement, 1).replace("\n", kept)


@pytest.mark.promise("CHG-30")
def test_a_line_that_differs_only_in_its_ending_comes_before_a_last_line_without_one() -> None:
    assert apply_edits("f", "a\r\na", (Edit("a\n", "a"),)).text == "aa"
    assert refused("a\r\na\r\na", Edit("a\n", "")).reason == "ambiguous_match"
    assert apply_edits("f", "a\r\n a\n", (Edit("a \n", "b\n"),)).text == "b\r\n a\n"


LINES = st.lists(st.sampled_from(["a", "b", " a", "  b", "a ", "\ta", ""]), min_size=1, max_size=8)


@pytest.mark.promise("CHG-30")
@given(lines=LINES, wanted=LINES, ends=st.lists(ENDINGS, min_size=8, max_size=8), new=LINES)
def test_a_tolerant_match_is_the_only_one_and_leaves_the_rest_as_it_was(
    lines: list[str], wanted: list[str], ends: list[str], new: list[str]
) -> None:
    text = "".join(body + end for body, end in zip(lines, ends, strict=False))
    search, replacement = "".join(f"{line}\n" for line in wanted), "".join(f"{line}\n" for line in new)
    try:
        result, steps, _ = apply_edits("f", text, (Edit(search, replacement),))
    except PathProblem:
        return
    if steps in ((), ("line endings",)):
        assert text.replace("\r\n", "\n").count(search) == 1  # it may begin within a line
        return
    keys = [body.strip() for body in lines]
    sought = [body.strip() for body in wanted]
    alike = [n for n in range(len(keys)) if keys[n : n + len(sought)] == sought]
    places = [n for n in alike if fits(lines, wanted, n, steps[0])]
    assert len(places) == 1
    first, last = places[0], places[0] + len(wanted)
    head = "".join(body + end for body, end in zip(lines[:first], ends, strict=False))
    tail = "".join(body + end for body, end in zip(lines[last:], ends[last:], strict=False))
    assert result.startswith(head)
    assert result.endswith(tail)
    middle = result[len(head) : len(result) - len(tail)]
    assert [line.strip() for line in middle.split("\n")] == [line.strip() for line in [*new, ""]]


def fits(lines: list[str], wanted: list[str], at: int, step: str) -> bool:
    """Whether a step would take the lines at a place for the wanted ones, said in another way."""
    pairs = list(zip(lines[at : at + len(wanted)], wanted, strict=True))
    if "indentation" not in step:
        trailing = "trailing" in step
        return all((one.rstrip() == two.rstrip()) if trailing else one == two for one, two in pairs)
    indents = [
        (one[: len(one) - len(one.lstrip())], two[: len(two) - len(two.lstrip())])
        for one, two in pairs
        if two.strip()
    ]
    shifts = {(one.removesuffix(two), two.removesuffix(one)) for one, two in indents}
    return len(shifts) == 1 and all(one.endswith(two) or two.endswith(one) for one, two in indents)


def refused(text: str, *edits: Edit) -> PathProblem:
    with pytest.raises(PathProblem) as caught:
        apply_edits("f.py", text, edits)
    return caught.value


@pytest.mark.promise("CHG-30")
@pytest.mark.parametrize(
    ("text", "search", "replacement", "result", "step"),
    [
        ("a\nb\n", "a\n", "c\n", "c\nb\n", ()),
        ("a  \nb\n", "a\n", "c\n", "c\nb\n", ("trailing white space",)),
        ("  a\n  b\n", "a\nb\n", "c\n", "  c\n", ("indentation",)),
        ("a\r\nb\r\n", "a\n", "c\n", "c\r\nb\r\n", ("line endings",)),
        ("a \r\nb\r\n", "a\nb", "c\nd", "c\r\nd\r\n", ("line endings and trailing white space",)),
        ("  a\r\n  b\r\n", "a\nb\n", "c\n", "  c\r\n", ("line endings and indentation",)),
        ("a\nb", "b\n", "c\n", "a\nc", ("trailing white space",)),
        ("a\nb", "b\n", "", "a", ("trailing white space",)),
    ],
)
def test_the_step_that_found_the_place_is_told(
    text: str, search: str, replacement: str, result: str, step: tuple[str, ...]
) -> None:
    assert apply_edits("f", text, (Edit(search, replacement),)) == (result, step, 0)


def test_an_absent_text_is_refused_with_the_nearest_line() -> None:
    problem = refused("one\ndef total(cart):\nend\n", Edit("def totals(cart):", "x"))
    assert problem.reason == "no_match"
    assert "nearest line is 2: def total(cart):" in str(problem)


def test_an_edit_that_is_done_already_is_recognised() -> None:
    problem = refused("a\nnew line\n", Edit("old line", "new line"))
    assert problem.reason == "already_applied"
    assert "at line 2" in str(problem)


def test_an_ambiguous_text_is_refused_with_its_lines_unless_one_is_named() -> None:
    text = "x = 1\ny\nx = 1\n"
    problem = refused(text, Edit("x = 1", "x = 2"))
    assert problem.reason == "ambiguous_match"
    assert "lines 1, 3" in str(problem)
    assert apply_edits("f", text, (Edit("x = 1", "x = 2", line=3),)).text == "x = 1\ny\nx = 2\n"
    assert refused(text, Edit("x = 1", "x = 2", line=2)).reason == "no_match"


def test_edits_are_found_in_the_file_as_it_was() -> None:
    assert apply_edits("f", "a b", (Edit("a", "b"), Edit("b", "a"))).text == "b a"
    assert "Edit 2 of 2" in str(refused("a b", Edit("a", "c"), Edit("c b", "d")))
    assert refused("abc", Edit("ab", "x"), Edit("bc", "y")).reason == "overlap"


def test_line_endings_of_the_model_do_not_get_into_the_file() -> None:
    assert apply_edits("f", "a\nb\n", (Edit("a\r\nb", "c\r\nd"),)).text == "c\nd\n"
    assert apply_edits("f", "a\r\nb\r\n", (Edit("a\nb", "c\nd"),)).text == "c\r\nd\r\n"
    assert apply_edits("f", "a\rb\rc", (Edit("b", "x\ny"),)).text == "a\rx\ry\rc"


@given(
    bodies=st.lists(st.sampled_from("abc"), min_size=2, max_size=8),
    ends=st.lists(ENDINGS, min_size=8, max_size=8),
    number=st.integers(0, 7),
)
def test_lines_of_a_mixed_file_that_stay_keep_their_endings(
    bodies: list[str], ends: list[str], number: int
) -> None:
    number %= len(bodies)
    lines = [f"{body}{n}" for n, body in enumerate(bodies)]
    text = "".join(body + end for body, end in zip(lines, ends, strict=False))
    search = "".join(f"{line}\n" for line in lines)
    new = [*lines[:number], "new", *lines[number + 1 :]]
    result = apply_edits("f", text, (Edit(search, "".join(f"{line}\n" for line in new)),)).text
    assert result == "".join(body + end for body, end in zip(new, ends, strict=False))


# replace_all


def everywhere(text: str, search: str, replacement: str) -> tuple[str, int]:
    new = apply_edits("f", text, (Edit(search, replacement, replace_all=True),))
    return new.text, new.replaced


@pytest.mark.promise("CHG-60")
@pytest.mark.parametrize(
    ("text", "search", "replacement", "result", "places"),
    [
        ("a b a\na\n", "a", "c", "c b c\nc\n", 3),
        ("aaaa", "aa", "b", "bb", 2),
        ("aaa", "aa", "b", "ba", 1),
        ("a\nb\na\n", "a\n", "", "b\n", 2),
        ("a\r\nb\r\na\r\n", "a\nb", "c\nd", "c\r\nd\r\na\r\n", 1),
        ("a\nb\r\na\r\nb\n", "a\nb", "x\ny", "x\ny\r\nx\r\ny\n", 2),
        ("a  \nb\na\t\n", "a\n", "c\n", "c\nb\nc\n", 2),
        ("if x:\n  a\n  b\n    a\n    b\n", "a\nb\n", "c\n", "if x:\n  c\n    c\n", 2),
        ("x\na \na", "a\n", "", "x\n", 2),
    ],
)
def test_every_place_is_replaced_once_and_counted(
    text: str, search: str, replacement: str, result: str, places: int
) -> None:
    assert everywhere(text, search, replacement) == (result, places)


@pytest.mark.promise("CHG-60")
@given(st.text("ab\n", max_size=40), st.text("ab\n", min_size=1, max_size=3), st.text("cd", max_size=3))
def test_exact_places_are_replaced_as_python_does_it(text: str, search: str, replacement: str) -> None:
    if search in text:
        assert everywhere(text, search, replacement) == (
            text.replace(search, replacement),
            text.count(search),
        )


@pytest.mark.promise("CHG-60")
def test_without_it_several_places_are_an_error_with_their_number_and_lines() -> None:
    with pytest.raises(PathProblem, match=r"3 times in f, at lines 1, 1, 2\. .*replace_all") as met:
        apply_edits("f", "a b a\na\n", (Edit("a", "c"),))
    assert met.value.reason == "ambiguous_match"
    with pytest.raises(PathProblem, match="1,000 or more times"):
        apply_edits("f", "a\n" * 5_000, (Edit("a", "c"),))


@pytest.mark.parametrize(
    ("edits", "reason"),
    [
        ((Edit("foo", "food", replace_all=True),), "already_applied"),  # `foodfood` must not come out
        ((Edit("absent", "x", replace_all=True),), "no_match"),
        ((Edit("", "x", replace_all=True),), "file_exists"),
        ((Edit("foo", "foo", replace_all=True),), "no_change"),
        ((Edit("foo", "x", line=1, replace_all=True),), "invalid_arguments"),
        ((Edit("o", "x", replace_all=True), Edit("foo", "y", line=1)), "overlap"),
    ],
)
def test_replacing_everywhere_is_refused_where_it_is_not_clear_what_comes_of_it(
    edits: tuple[Edit, ...], reason: str
) -> None:
    with pytest.raises(PathProblem) as met:
        apply_edits("f", "foo\nfood\n", edits)
    assert met.value.reason == reason


def test_no_place_is_left_out_however_many_there_are() -> None:
    assert everywhere("ab" * 10_000, "a", "c") == ("cb" * 10_000, 10_000)
    for text, search in (("a" * 10_001, "a"), ("a" * 10_002, "aa"), ("a \n" * 10_001, "a\n")):
        with pytest.raises(PathProblem, match="more than 10,000 times"):
            everywhere(text, search, "c")


@pytest.mark.promise("CHG-61")
def test_an_empty_search_fills_an_empty_file_and_no_other() -> None:
    assert apply_edits("f", "", (Edit("", "x\n"),)).text == "x\n"
    for text, edits in (
        ("\n", (Edit("", "x"),)),
        ("a", (Edit("", "x"),)),
        ("", (Edit("", "x"), Edit("", "y"))),
    ):
        with pytest.raises(PathProblem) as met:
            apply_edits("f", text, edits)
        assert met.value.reason == "file_exists"
