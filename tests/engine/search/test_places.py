"""Where a small model is asked first."""

from handrail.engine.search.places import Files, look
from handrail.engine.search.policy import Line, Situation
from handrail.tools.reports.issue import Issue, Suspect

DEPOT = """\
LIMIT = 3


class OutOfStock(Exception):
    pass


def reserve(stock, count):
    taken = count + 0
    if stock < count:
        raise OutOfStock(count)
    return stock - taken
"""
TEST = "tests/test_depot.py::test_reserve"


def lines(output: str, *suspects: int) -> list[int]:
    """The lines in the order in which they are tried, if tests suspect them in this order."""
    found = tuple(Suspect("depot.py", line, 1.0) for line in suspects)
    issue = Issue(kind="tests", severity="high", message=output, test=TEST, suspects=found)
    now = look(Situation(), Files({"depot.py": DEPOT}, {}, {}), [issue], {}, output)
    assert all(line.path == "depot.py" for line in now.lines)
    return [line.number for line in now.lines]


def test_where_an_error_was_not_raised_the_condition_before_it_comes_first() -> None:
    for output in (
        "Failed: DID NOT RAISE OutOfStock",
        "Failed: DID NOT RAISE <class 'depot.OutOfStock'>",
        "AssertionError: OutOfStock not raised",
        "Missing expected exception (OutOfStock).",
    ):
        assert lines(output, 12, 9, 10) == [10, 12, 9], output
    assert lines("Failed: DID NOT RAISE KeyError", 12, 9, 10) == [12, 9, 10]


def test_a_line_that_every_test_loads_comes_after_lines_of_functions() -> None:
    assert lines("assert 1 == 2", 1, 9, 10) == [9, 10, 1]


def test_every_line_has_its_edits() -> None:
    issue = Issue(
        kind="tests", severity="high", message="", test=TEST, suspects=(Suspect("depot.py", 12, 1.0),)
    )
    now = look(Situation(), Files({"depot.py": DEPOT}, {}, {}), [issue], {}, "")
    assert "    return stock + taken\n" in [each.text for each in now.mutations[Line("depot.py", 12)]]
