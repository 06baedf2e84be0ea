"""Every format of a tool, read from what the tool really wrote."""

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from handrail.tools.reports import compiled_tools, javascript_tools, python_tools
from handrail.tools.reports.issue import Issue, sorted_issues
from handrail.tools.reports.junit import junit
from handrail.tools.reports.plain_text import last_words, plain_text
from handrail.tools.reports.report import MAX_ISSUES, REPORT_FILE, Reader, Report, Unreadable
from handrail.tools.reports.sarif import sarif

ROOT = "/home/me/shop"
READERS: tuple[Reader, ...] = (
    python_tools.ruff,
    python_tools.mypy,
    python_tools.pyright,
    python_tools.pytest,
    python_tools.unittest,
    javascript_tools.eslint,
    javascript_tools.tsc,
    javascript_tools.jest,
    compiled_tools.go_text,
    compiled_tools.go_test,
    compiled_tools.cargo,
    junit,
    sarif,
    plain_text,
)
KEYS = (
    *("runs", "results", "messages", "testResults", "message", "location", "generalDiagnostics", "range"),
    *("start", "assertionResults", "file", "line", "level", "spans", "severity", "locations", "status"),
)
JSON = st.recursive(
    st.none() | st.integers() | st.text(max_size=5) | st.sampled_from(["error", "failed"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(KEYS), inner, max_size=4),
    max_leaves=12,
)


def printed(text: str, folder: str = "", code: int = 1) -> Report:
    return Report(text.encode(), ROOT, folder, code=code)


def written(text: str, output: str = "", **more: bytes) -> Report:
    return Report(output.encode(), ROOT, files={REPORT_FILE: text.encode(), **more}, code=1)


def test_ruff_findings_have_place_rule_and_fix() -> None:
    item = {
        "code": "F401",
        "filename": f"{ROOT}/src/a.py",
        "fix": {"applicability": "safe", "message": "Remove unused import: `os`"},
        "location": {"column": 8, "row": 1},
        "message": "`os` imported but unused",
    }
    syntax = {"code": None, "filename": f"{ROOT}/b.py", "location": {"column": 1, "row": 2}, "message": "bad"}
    found = python_tools.ruff(printed("warning: no such rule [x]\n" + json.dumps([item, syntax])), "lint")
    unused = "`os` imported but unused"
    assert found.issues == (
        Issue("lint", "medium", unused, "src/a.py", 1, 8, "F401", "Remove unused import: `os`"),
        Issue("lint", "critical", "bad", "b.py", 2, 1),
    )


def test_mypy_reads_json_and_the_text_of_syntax_errors() -> None:
    line = {"file": "src/a.py", "line": 3, "column": 11, "message": "wrong", "hint": None, "code": "call-arg"}
    lines = [json.dumps({**line, "severity": each}) for each in ("error", "note")]
    text = "\n".join([*lines, "syn.py:1: error: Invalid syntax  [syntax]", ""])
    found = python_tools.mypy(printed(text, "api"), "types")
    assert found.issues == (
        Issue("types", "high", "wrong", "api/src/a.py", 3, 12, "call-arg"),
        Issue("types", "critical", "Invalid syntax", "api/syn.py", 1, 0, "syntax"),
    )


def test_pyright_errors_and_warnings() -> None:
    at = {"start": {"line": 3, "character": 4}, "end": {"line": 3, "character": 9}}
    error = {"file": f"{ROOT}/a.py", "severity": "error", "message": "no", "range": at, "rule": "reportCall"}
    items = [error, {"file": f"{ROOT}/a.py", "severity": "information", "message": "fyi", "range": at}]
    found = python_tools.pyright(printed(json.dumps({"generalDiagnostics": items})), "types")
    assert found.issues == (Issue("types", "high", "no", "a.py", 4, 5, "reportCall"),)


PYTEST = """<?xml version="1.0" encoding="utf-8"?><testsuites><testsuite name="pytest" tests="4">
<testcase classname="tests.test_cart.TestCart" name="test_total[1-2]" file="tests/test_cart.py" line="4">
<failure message="assert 3 == 4&#10; +  where 3 = total()">self = x

&gt;   assert total([1, 2]) == 4
E   assert 3 == 4

tests/test_cart.py:6: AssertionError</failure></testcase>
<testcase classname="tests.test_cart" name="test_ok" file="tests/test_cart.py" line="8" />
<testcase classname="tests.test_cart" name="test_later"><skipped message="no"/></testcase>
<testcase classname="" name="tests.test_bad"><error message="collection failure">ImportError while importing
E   ModuleNotFoundError: No module named 'nope'</error></testcase></testsuite></testsuites>"""


def test_pytest_tests_have_ids_that_run_them_again() -> None:
    coverage = json.dumps({"totals": {"percent_covered": 81.5}}).encode()
    found = python_tools.pytest(written(PYTEST, coverage=coverage), "tests")
    failed, broken = found.issues
    assert failed.test == "tests/test_cart.py::TestCart::test_total[1-2]"
    assert (failed.path, failed.line, failed.message) == ("tests/test_cart.py", 6, "assert 3 == 4")
    assert (broken.severity, broken.test) == ("critical", "tests.test_bad")
    assert broken.message == "cannot be loaded: ModuleNotFoundError: No module named 'nope'"
    assert (found.tests, found.coverage) == (3, 81.5)


def test_coverage_below_the_projects_own_limit_is_an_issue() -> None:
    xml = '<testsuite><testcase classname="a" name="b"/></testsuite>'
    output = "FAIL Required test coverage of 90% not reached. Total coverage: 81.50%\n"
    (issue,) = python_tools.pytest(written(xml, output), "tests").issues
    assert (issue.kind, "81.50%" in issue.message) == ("coverage", True)


UNITTEST = f"""F.
{"=" * 70}
FAIL: test_add (tests.test_sums.TestSums.test_add)
It adds.
{"-" * 70}
Traceback (most recent call last):
  File "{ROOT}/tests/test_sums.py", line 7, in test_add
    self.assertEqual(3, 4)
  File "/usr/lib/python3.11/unittest/case.py", line 873, in assertEqual
AssertionError: 3 != 4

{"-" * 70}
Ran 2 tests in 0.001s

FAILED (failures=1)
"""


def test_unittest_failures_have_the_name_that_runs_them_again() -> None:
    found = python_tools.unittest(printed(UNITTEST), "tests")
    test, message = "tests.test_sums.TestSums.test_add", "AssertionError: 3 != 4"
    assert found.issues == (Issue("tests", "high", message, "tests/test_sums.py", 7, test=test),)
    assert found.tests == 2
    with pytest.raises(Unreadable):
        python_tools.unittest(printed("Segmentation fault"), "tests")


def test_eslint_messages() -> None:
    error = {"ruleId": "no-var", "severity": 2, "message": "no var", "line": 2, "column": 3, "fix": {}}
    warning = {"ruleId": "x", "severity": 1, "message": "hm", "line": 4, "column": 1}
    fatal = {"ruleId": None, "fatal": True, "severity": 2, "message": "Parsing error", "line": 1, "column": 1}
    error["fix"] = {"text": "let"}
    files = [{"filePath": f"{ROOT}/web/a.ts", "messages": [error, warning, fatal]}]
    found = javascript_tools.eslint(written(json.dumps(files)), "lint").issues
    assert [(each.severity, each.rule) for each in found] == [
        ("medium", "no-var"),
        ("low", "x"),
        ("critical", ""),
    ]
    assert (found[0].path, found[0].fix) == ("web/a.ts", "eslint --fix corrects it")


def test_tsc_lines_with_and_without_a_place() -> None:
    text = "src/a.ts(5,14): error TS2322: Type 'number' is wrong.\nerror TS18003: No inputs were found.\n"
    found = javascript_tools.tsc(printed(text, "web"), "types").issues
    assert found == (
        Issue("types", "high", "Type 'number' is wrong.", "web/src/a.ts", 5, 14, "TS2322"),
        Issue("types", "high", "No inputs were found.", rule="TS18003"),
    )


def test_jest_and_vitest_results() -> None:
    wrong = "AssertionError: expected -1 to be 3"
    trace = f"{wrong}\n    at {ROOT}/src/sum.test.ts:4:40\n    at file://{ROOT}/node_modules/x.js:3:1"
    tests = [
        {"fullName": "sum adds", "status": "failed", "title": "adds", "failureMessages": [trace]},
        {"fullName": "sum zero", "status": "passed", "title": "zero", "failureMessages": []},
        {"fullName": "sum later", "status": "skipped", "title": "later", "failureMessages": []},
    ]
    files = [
        {"name": f"{ROOT}/src/sum.test.ts", "status": "failed", "assertionResults": tests},
        {"name": f"{ROOT}/bad.test.ts", "status": "failed", "assertionResults": [], "message": "no suite"},
    ]
    found = javascript_tools.jest(written(json.dumps({"testResults": files})), "tests")
    adds, bad = found.issues
    assert adds == Issue("tests", "high", wrong, "src/sum.test.ts", 4, 40, test="sum adds")
    assert (bad.severity, bad.path, bad.message) == ("critical", "bad.test.ts", "no suite")
    assert found.tests == 2


JEST = {
    "testResults": [
        {
            "name": f"{ROOT}/sum.test.js",
            "status": "failed",
            "message": "",
            "assertionResults": [
                {
                    "ancestorTitles": ["sum (of two)"],
                    "failureMessages": [
                        "Error: expect(received).toBe(expected) // Object.is equality\n\nExpected: 3\n"
                        f"Received: -1\n    at Object.toBe ({ROOT}/sum.test.js:4:23)\n"
                        f"    at run ({ROOT}/node_modules/jest-circus/build/jestAdapterInit.js:789:3)"
                    ],
                    "fullName": "sum (of two) adds 1 + 2",
                    "location": None,
                    "status": "failed",
                    "title": "adds 1 + 2",
                }
            ],
        },
        {
            "name": f"{ROOT}/load.test.js",
            "status": "failed",
            "message": "  ● Test suite failed to run\n\n   Cannot find module './nope' from 'load.test.js'\n",
            "assertionResults": [],
        },
    ]
}
"""What jest 30 wrote, shortened."""


def test_jest_tells_the_values_and_why_a_file_cannot_be_loaded() -> None:
    adds, load = javascript_tools.jest(written(json.dumps(JEST)), "tests").issues
    told = "Error: expect(received).toBe(expected) // Object.is equality; Expected: 3; Received: -1"
    assert adds == Issue("tests", "high", told, "sum.test.js", 4, 23, test="sum (of two) adds 1 + 2")
    assert (load.path, load.message) == ("load.test.js", "Cannot find module './nope' from 'load.test.js'")


TY = {
    "runs": [
        {
            "results": [
                {
                    "ruleId": "unresolved-reference",
                    "level": "error",
                    "message": {"text": "Name `Cart` used when not defined"},
                    "locations": [
                        {
                            "physicalLocation": {
                                "artifactLocation": {"uri": f"file://{ROOT}/my%20src/cart.py"},
                                "region": {
                                    "startLine": 11,
                                    "startColumn": 16,
                                    "endLine": 11,
                                    "endColumn": 20,
                                },
                            }
                        }
                    ],
                }
            ]
        }
    ]
}


def test_sarif_of_ty_in_a_folder_with_a_space() -> None:
    (issue,) = sarif(written(json.dumps(TY)), "types").issues
    assert (issue.path, issue.line, issue.column) == ("my src/cart.py", 11, 16)


NODE = f"""<testsuites><testcase name="adds &lt;x>" time="0.001" classname="test" failure="2 == 3">
<failure type="testCodeFailure" message="2 == 3">
Error [ERR_TEST_FAILURE]: 2 == 3
    at TestContext.&lt;anonymous> (file://{ROOT}/a.test.js:2:33)
    at Test.run (node:internal/test_runner/test:796:25)</failure></testcase>
<testcase name="ok" time="0.0001" classname="test"/></testsuites>"""


def test_junit_of_node_finds_the_line_in_the_stack() -> None:
    found = junit(written(NODE), "tests")
    assert found.issues == (Issue("tests", "high", "2 == 3", "a.test.js", 2, test="adds <x>"),)
    assert found.tests == 2


@pytest.mark.parametrize(
    "text",
    [
        "",
        "not XML",
        "<testsuite><testcase></testsuite>",
        '<!DOCTYPE x [<!ENTITY a "aaaa"><!ENTITY b "&a;&a;">]><testsuite>&b;</testsuite>',
    ],
)
def test_junit_that_is_none_is_unreadable(text: str) -> None:
    with pytest.raises(Unreadable):
        junit(written(text), "tests")


def test_go_tests_name_package_and_innermost_test() -> None:
    test = {"Package": "shop/cart", "Test": "TestSum/two"}
    events = [
        {**test, "Action": "output", "Output": "    cart_test.go:9: got 3\n"},
        {**test, "Action": "fail"},
        {**test, "Action": "fail", "Test": "TestSum"},
        {**test, "Action": "pass", "Test": "TestZero"},
        {"Action": "fail", "Package": "shop/cart"},
    ]
    found = compiled_tools.go_test(printed("\n".join(map(json.dumps, events))), "tests")
    assert found.issues == (Issue("tests", "high", "got 3", "cart_test.go", 9, test="shop/cart.TestSum/two"),)
    assert found.tests == 3


def test_go_code_that_does_not_compile_is_a_build_issue() -> None:
    events = [
        {"Action": "build-output", "ImportPath": "shop", "Output": "# shop\n"},
        {"Action": "build-output", "ImportPath": "shop", "Output": "./a.go:3:2: undefined: x\n"},
        {"Action": "fail", "Package": "shop"},
    ]
    found = compiled_tools.go_test(printed("\n".join(map(json.dumps, events))), "tests")
    assert found.issues == (Issue("build", "high", "undefined: x", "a.go", 3, 2),)


def test_cargo_messages_and_failing_tests() -> None:
    span = {"is_primary": True, "file_name": "src/lib.rs", "line_start": 1, "column_start": 5}
    helping = [{"level": "help", "message": "prefix it"}, {"level": "note", "message": "by default"}]
    message = {"level": "warning", "message": "unused", "spans": [span], "code": {"code": "unused_variables"}}
    line = json.dumps({"reason": "compiler-message", "message": {**message, "children": helping}})
    found = compiled_tools.cargo(printed(line), "lint").issues
    assert found == (Issue("lint", "medium", "unused", "src/lib.rs", 1, 5, "unused_variables", "prefix it"),)
    text = (
        f"{line}\nrunning 2 tests\ntest tests::zero ... ok\ntest tests::adds ... FAILED\n"
        "thread 'tests::adds' (123) panicked at src/lib.rs:4:25:\nassertion `left == right` failed\n"
    )
    tests = compiled_tools.cargo(printed(text), "tests")
    wrong = "assertion `left == right` failed"
    assert tests.issues == (Issue("tests", "high", wrong, "src/lib.rs", 4, 25, test="tests::adds"),)
    assert tests.tests == 2


def test_sarif_results_without_those_that_are_suppressed() -> None:
    place = {"physicalLocation": {"artifactLocation": {"uri": "src/a%20b.py"}, "region": {"startLine": 3}}}
    result = {"ruleId": "R1", "level": "error", "message": {"text": "no"}, "locations": [place]}
    log = {"runs": [{"results": [result, {**result, "suppressions": [{"kind": "inSource"}]}]}]}
    found = sarif(printed(json.dumps(log)), "lint").issues
    assert found == (Issue("lint", "high", "no", "src/a b.py", 3, rule="R1"),)


def test_other_output_is_read_line_by_line_only_where_it_failed(tmp_path: Path) -> None:
    text = "main.c:4:2: error: no\nmain.c:5: warning: hm\nhttp://x:80: y\ngone.c:1: error: z\n"
    (tmp_path / "main.c").touch()
    report = Report(text.encode(), str(tmp_path), code=2)
    found = plain_text(report, "build").issues
    assert [(each.severity, each.line) for each in found] == [("high", 4), ("low", 5)]
    assert plain_text(report._replace(code=0), "build").issues == ()
    assert last_words(report).endswith("gone.c:1: error: z")


def test_paths_outside_of_the_tree_are_no_paths() -> None:
    report = printed("", "web")
    named = ("../a.py", "../../etc/passwd", f"{ROOT}2/a.py", "")
    assert [report.path(each) for each in named] == ["a.py", "", "", ""]


@pytest.mark.promise("VERIFY-7")
def test_a_flood_of_findings_is_cut_and_said_so() -> None:
    line = json.dumps({"file": "a.py", "line": 1, "message": "no", "severity": "error"}) + "\n"
    found = python_tools.mypy(printed(line * (MAX_ISSUES + 100)), "types")
    assert (len(found.issues), found.detail) == (MAX_ISSUES, "only the first 5,000 issues are listed")
    assert len(sorted_issues(found.issues)) == 1


@pytest.mark.promise("VERIFY-7")
@given(st.sampled_from(READERS), st.binary(max_size=200), JSON)
def test_no_output_of_a_tool_breaks_a_reader(reader: Reader, raw: bytes, value: object) -> None:
    for data in (raw, json.dumps(value).encode(), json.dumps([value]).encode(), b"[" * 50_000):
        for report in (Report(data, ROOT), Report(raw, ROOT, files={REPORT_FILE: data}, code=1)):
            try:
                found = reader(report, "tests")
            except Unreadable:
                continue
            assert all(not issue.path.startswith(("/", "..")) for issue in found.issues)
