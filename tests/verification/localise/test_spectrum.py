"""The ranking of lines, and what is read of recorded coverage."""

import json

from handrail.tools.reports.issue import Issue
from handrail.verification.localise.line_kinds import LineKinds, line_kinds
from handrail.verification.localise.spectrum import TracedTest, find_suspects
from handrail.verification.localise.traces import read_node
from handrail.workspace.test_files import is_test_file

SOURCE = """\
LIMIT = 10
NAMES = {
    "a": 1,
}


def check(number, text=""):
    \"\"\"Whether it is small.\"\"\"
    if number > LIMIT:
        return False
    names = [each for each in text if each in NAMES]
    return bool(names)
"""


def ran(name: str, *lines: int, failed: bool = False, stack: tuple[int, ...] = ()) -> TracedTest:
    return TracedTest(
        name,
        failed,
        tuple(("a.py", line) for line in lines),
        tuple(("a.py", line) for line in stack),
    )


def kinds(path: str) -> LineKinds:
    return line_kinds(path, SOURCE)


def test_lines_that_only_failing_tests_run_come_first_and_values_count_where_they_are_used() -> None:
    tests = [ran("bad", 7, 9, 10, failed=True), ran("good", 7, 9, 11, -11, 12), ran("other", 7, 9, 11, 12)]
    (suspects,) = find_suspects(tests, kinds).values()
    assert [each.line for each in suspects] == [10, 9, 1, 7]
    assert (suspects[0].score, suspects[1].score) == (1.0, 0.577)


def test_a_function_within_a_line_counts_apart_from_it() -> None:
    tests = [ran("bad", 9, 11, -11, 12, failed=True), ran("good", 9, 11, 12)]
    (suspects,) = find_suspects(tests, kinds).values()
    assert (suspects[0].line, suspects[0].score) == (11, 1.0)
    assert len({each.line for each in suspects}) == len(suspects)


def test_of_equal_lines_that_of_the_error_comes_first() -> None:
    tests = [ran("bad", 9, 11, 12, failed=True, stack=(12,)), ran("good", 9, 11, 12)]
    assert find_suspects(tests, kinds)["bad"][0].line == 12


def test_tests_that_fail_for_other_reasons_are_kept_apart() -> None:
    tests = [ran(f"one{number}", 9, 10, failed=True) for number in range(5)]
    tests += [ran("two", 11, 12, failed=True), ran("good", 9, 12)]
    found = find_suspects(tests, kinds)
    assert found["one0"][0].score == found["two"][0].score == 1.0
    assert (found["one0"][0].line, found["two"][0].line) == (10, 11)


def test_files_of_tests_are_known_by_name_or_folder() -> None:
    tests = ("tests/a.py", "test_a.py", "a_test.py", "conftest.py", "a.test.ts", "x/__tests__/a.js")
    assert all(map(is_test_file, tests))
    assert not any(map(is_test_file, ("a.py", "contest.py", "latest.js", "testing_tools.py", "attest.py")))


def test_ranges_of_v8_become_lines() -> None:
    source = "// 🙂\nfunction f(a) {\n  if (a) {\n    return 1;\n  }\n  return [2].map((x) => x);\n}\n"
    units = source.encode("utf-16-le")

    def at(text: str, end: str = "") -> int:
        return units.index((end or text).encode("utf-16-le"), units.index(text.encode("utf-16-le"))) // 2

    function = [[at("function"), len(units) // 2 - 1, 1], [at("if (a) {", "{"), at("  return [2]"), 0]]
    arrow = [[at("(x)"), at("x);", ")"), 1]]
    script = {"path": "a.js", "functions": [function, arrow]}
    trace = {"file": "a.test.js", "tests": [{"name": "works", "scripts": [script]}]}
    issue = Issue("tests", "high", "failed", "a.test.js", 3, test="group.works")
    (test,) = read_node({"lines-7.json": json.dumps(trace).encode()}, [issue], {"a.js": source})
    assert test.failed
    assert test.name == "group.works"
    assert test.lines == (("a.js", -6), ("a.js", 2), ("a.js", 3), ("a.js", 6), ("a.js", 7))
