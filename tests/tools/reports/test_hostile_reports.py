"""Reports written to break their reader: none crashes it, makes it hang, or takes unbounded memory."""

import json

import pytest

from handrail.tools.reports import compiled_tools, javascript_tools, python_tools
from handrail.tools.reports.junit import junit
from handrail.tools.reports.report import MAX_ISSUES, REPORT_FILE, Reader, Report, Unreadable
from handrail.tools.reports.sarif import sarif

pytestmark = pytest.mark.promise("VERIFY-7")
DIGITS = b"9" * 5_000
"""More than int() takes."""
DOUBLE, SINGLE = b"=" * 70, b"-" * 70


def written(data: bytes) -> Report:
    return Report(b"", "/shop", files={REPORT_FILE: data}, code=1)


def printed(data: bytes) -> Report:
    return Report(data, "/shop", code=1)


def in_utf_16(inside: str, body: str) -> bytes:
    head = '<?xml version="1.0" encoding="utf-16"?>'
    return f"{head}<!DOCTYPE t [{inside}]><t>{body}</t>".encode("utf-16")


@pytest.mark.parametrize(
    ("reader", "data"),
    [
        (junit, in_utf_16('<!ENTITY a "ha"><!ENTITY b "&a;&a;">', '<testcase name="&b;"/>')),
        (junit, in_utf_16('<!ENTITY a SYSTEM "file:///etc/passwd">', "<testcase>&a;</testcase>")),
        (junit, b"<t>" + b"<testcase/>" * 1_000_001 + b"</t>"),
        (junit, b"<t>" * 1_000),
        (sarif, b'{"runs":[' + b"{}," * 1_000_001 + b"{}]}"),
    ],
    ids=["entities", "external-entity", "many-elements", "deep", "many-values"],
)
def test_report_that_would_take_unbounded_memory_is_refused(reader: Reader, data: bytes) -> None:
    with pytest.raises(Unreadable, match=r"declares entities|more than"):
        reader(written(data), "tests")


@pytest.mark.parametrize(
    ("reader", "report"),
    [
        (junit, written(b"<t><testcase file='a.py'><failure>a.py:%b: x</failure></testcase></t>" % DIGITS)),
        (
            python_tools.unittest,
            printed(b'Ran %b tests in 0s\n%b\nFAIL: x\n%b\n  File "a.py", line %b\n' % (
                DIGITS, DOUBLE, SINGLE, DIGITS
            )),
        ),
        (
            sarif,
            written(json.dumps({"runs": [{"results": [{"locations": [
                {"physicalLocation": {"region": {"startLine": 10**400}}}
            ]}]}]}).encode()),
        ),
    ],
    ids=["junit", "unittest", "sarif"],
)  # fmt: skip
def test_number_of_any_length_is_no_error(reader: Reader, report: Report) -> None:
    (issue,) = reader(report, "tests").issues
    assert 0 <= issue.line < 2**31


@pytest.mark.parametrize(
    ("reader", "report", "count"),
    [
        (junit, written(b"<t><testcase><failure>%b</failure></testcase></t>" % (b"a" * 2_000_000)), 1),
        (python_tools.unittest, printed(b"Ran 1 test in 0s\n" + (DOUBLE + b"\nFAIL: x\n") * 100_000), 0),
        (
            compiled_tools.go_test,
            printed(b"".join(b'{"Action":"fail","Package":"p","Test":"T%d"}\n' % i for i in range(50_000))),
            MAX_ISSUES,
        ),
    ],
    ids=["one-long-word", "blocks-without-end", "many-failures"],
)
def test_time_to_read_grows_only_with_the_size(reader: Reader, report: Report, count: int) -> None:
    assert len(reader(report, "tests").issues) == count


def test_place_in_a_stack_trace_is_found_after_a_bracket_or_an_address() -> None:
    report = Report(b"", "/shop")
    for text in ("at f (/shop/a.js:4:2)", "at file:///shop/a.js:4:2", " > a.js:4:2"):
        assert javascript_tools.stack_place(report, text, "") == ("a.js", 4, 2)


def test_only_the_innermost_failing_go_test_is_an_issue() -> None:
    names = ("", "TestA", "TestA/x", "TestA/x/y", "TestAB")
    lines = (json.dumps({"Action": "fail", "Package": "p", "Test": name}) for name in names)
    found = compiled_tools.go_test(printed("\n".join(lines).encode()), "tests")
    assert [issue.test for issue in found.issues] == ["p.TestA/x/y", "p.TestAB"]
