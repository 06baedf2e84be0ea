"""Read what the injected programs recorded: the lines that each test ran."""

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import TypeVar

import msgspec

from handrail.tools.reports.issue import Issue
from handrail.verification.localise.spectrum import Line, TracedTest
from handrail.workspace.test_files import is_test_file

PREFIX = "lines-"
BEYOND_16_BITS = re.compile("[\U00010000-\U0010ffff]")


Trace = TypeVar("Trace")


class UnreadableTrace(ValueError):
    """What was recorded is not what the injected program writes."""


class PythonTest(msgspec.Struct):
    name: str
    failed: bool
    lines: list[tuple[str, list[int]]]
    stack: list[tuple[str, int]]


class PythonTrace(msgspec.Struct):
    tests: list[PythonTest]


def read_python(files: Mapping[str, bytes]) -> list[TracedTest]:
    """All tests of all processes; raises UnreadableTrace."""
    return [
        TracedTest(
            test.name,
            test.failed,
            tuple((path, line) for path, lines in test.lines for line in lines),
            tuple(test.stack),
        )
        for trace in _decoded(files, PythonTrace)
        for test in trace.tests
    ]


class NodeScript(msgspec.Struct):
    path: str
    functions: list[list[tuple[int, int, int]]]
    """The ranges of each function: start, end, and how often it ran. The first is the function itself."""


class NodeTest(msgspec.Struct):
    name: str
    scripts: list[NodeScript]


class NodeTrace(msgspec.Struct):
    file: str
    tests: list[NodeTest]


def read_node(
    files: Mapping[str, bytes], issues: Sequence[Issue], sources: Mapping[str, str]
) -> list[TracedTest]:
    """All tests, those of the issues failed; `sources` gives the text of a file. Raises UnreadableTrace."""
    found = []
    for trace in _decoded(files, NodeTrace):
        for number, test in enumerate(trace.tests):
            issue = next((each for each in issues if _is_of(each, trace.file, test.name)), None)
            lines = tuple(line for script in test.scripts for line in _ran(script, sources))
            own = issue and issue.line and not is_test_file(issue.path)
            stack = ((issue.path, issue.line),) if issue and own else ()
            name = issue.test if issue else f"{trace.file}:{number}"
            found.append(TracedTest(name, issue is not None, lines, stack))
    return found


def _is_of(issue: Issue, file: str, name: str) -> bool:
    same_name = issue.test == name or issue.test.endswith(f".{name}")
    return bool(name) and same_name and (issue.path == file or not is_test_file(issue.path))


def _ran(script: NodeScript, sources: Mapping[str, str]) -> Iterator[Line]:
    """The lines of which anything ran; inner ranges and functions decide over outer ones.

    A function within one line counts apart from that line.
    """
    text = BEYOND_16_BITS.sub("__", sources.get(script.path, ""))  # V8 counts such a letter as two
    ran = bytearray(len(text))
    functions = [ranges for ranges in script.functions if ranges and ranges[0][0] < len(text)]
    small = [ranges[0] for ranges in functions if ranges[0][2] and "\n" not in text[slice(*ranges[0][:2])]]
    for start, _, _ in small:
        yield script.path, -(text.count("\n", 0, max(0, start)) + 1)
    for ranges in sorted(functions, key=lambda ranges: ranges[0][0] - ranges[0][1]):
        for first, last, count in ranges:
            start, end = max(0, first), min(last, len(text))
            if start < end:
                ran[start:end] = (b"\1" if count else b"\0") * (end - start)
    at = 0
    for number, line in enumerate(text.split("\n"), start=1):
        if any(ran[at : at + len(line)]):
            yield script.path, number
        at += len(line) + 1


def _decoded(files: Mapping[str, bytes], kind: type[Trace]) -> Iterator[Trace]:
    for name, data in sorted(files.items()):
        if name.startswith(PREFIX):
            try:
                yield msgspec.json.decode(data, type=kind)
            except msgspec.DecodeError as error:
                raise UnreadableTrace(f"{name} cannot be read: {error}") from error
