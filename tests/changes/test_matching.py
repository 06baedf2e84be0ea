import pytest
from hypothesis import given
from hypothesis import strategies as st

from handrail.changes.matching import Edit, replaced
from handrail.protocol.errors import PathProblem
from handrail.workspace.text import ending_of

FEW = st.text(alphabet="ab \n", max_size=12)
SEARCH = st.text(alphabet="ab \n", min_size=1, max_size=5)
ENDINGS = st.sampled_from(["\n", "\r\n"])


@pytest.mark.promise("CHG-1")
@given(before=FEW, search=SEARCH, after=FEW, replacement=FEW, ending=ENDINGS)
def test_an_edit_is_accepted_when_it_fits_once_and_is_exactly_one_replacement(
    before: str, search: str, after: str, replacement: str, ending: str
) -> None:
    text = before + search + after
    file = text.replace("\n", ending)
    places = [n for n in range(len(text)) if text.startswith(search, n)]
    edits = (Edit(search, replacement),)
    if len(places) == 1 and search != replacement:
        expected = text.replace(search, replacement, 1)
        kept = ending if "\n" in text else "\n"
        assert replaced("f", file, ending_of(file), edits) == expected.replace("\n", kept)
    else:
        with pytest.raises(PathProblem):
            replaced("f", file, ending_of(file), edits)


def reason_of(text: str, *edits: Edit) -> PathProblem:
    with pytest.raises(PathProblem) as caught:
        replaced("f.py", text, ending_of(text), edits)
    return caught.value


def test_an_absent_text_is_refused_with_the_nearest_line() -> None:
    problem = reason_of("one\ndef total(cart):\nend\n", Edit("def totals(cart):", "x"))
    assert problem.reason == "no_match"
    assert "nearest line is 2: def total(cart):" in str(problem)


def test_an_edit_that_is_done_already_is_recognised() -> None:
    problem = reason_of("a\nnew line\n", Edit("old line", "new line"))
    assert problem.reason == "no_match"
    assert "at line 2" in str(problem)


def test_an_ambiguous_text_is_refused_with_its_lines() -> None:
    problem = reason_of("x = 1\ny\nx = 1\n", Edit("x = 1", "x = 2"))
    assert problem.reason == "ambiguous_match"
    assert "lines 1, 3" in str(problem)


def test_overlapping_places_are_ambiguous() -> None:
    assert reason_of("aaa", Edit("aa", "b")).reason == "ambiguous_match"


def test_the_same_text_is_no_change() -> None:
    assert reason_of("a", Edit("a", "a")).reason == "no_change"


def test_an_empty_search_is_refused() -> None:
    assert reason_of("a", Edit("", "b")).reason == "invalid_arguments"


def test_edits_follow_one_another_and_a_refusal_names_the_one_that_failed() -> None:
    assert replaced("f", "a b", "\n", (Edit("a", "c"), Edit("c b", "d"))) == "d"
    assert "Edit 2 of 2" in str(reason_of("a b", Edit("a", "c"), Edit("z", "d")))


def test_mixed_line_endings_are_matched_exactly_or_not_at_all() -> None:
    mixed = "a\r\nb\nc\n"
    assert replaced("f", mixed, ending_of(mixed), (Edit("b\nc", "x"),)) == "a\r\nx\n"
    assert reason_of(mixed, Edit("a\nb", "x")).reason == "no_match"


def test_line_endings_of_the_model_do_not_get_into_the_file() -> None:
    assert replaced("f", "a\nb\n", "\n", (Edit("a\r\nb", "c\r\nd"),)) == "c\nd\n"
    assert replaced("f", "a\r\nb\r\n", "\r\n", (Edit("a\nb", "c\nd"),)) == "c\r\nd\r\n"
