"""A command that the user named as a check, with a report of its tests where the runner is known."""

import re
import shlex

from handrail.tools.process import find_program
from handrail.tools.reports import python_tools
from handrail.tools.reports.issue import Issue
from handrail.tools.reports.junit import junit
from handrail.verification.check import ANY_CODE, REPORT_FOLDER, SHELL, Alone, Check
from handrail.verification.detect.javascript import SPECIAL

NAME = "check"
PYTHON = re.compile(r"(?:.*/)?python[\d.]*")
JUNIT = ("-o", "junit_family=xunit1", f"--junitxml={REPORT_FOLDER}/report")
NODE_JUNIT = ("--test-reporter=junit", f"--test-reporter-destination={REPORT_FOLDER}/report")


def shell_check(command: str, seconds: float) -> Check:
    """The command as it is written: its exit status is the result."""
    words = (find_program("bash") or "bash", "-c", command)
    return Check("tests", SHELL, words, name=NAME, found_codes=ANY_CODE, seconds=seconds)


def command_check(command: str, seconds: float) -> Check:
    """The command with a report of each test; as it is written where its runner is not known."""
    whole = shell_check(command, seconds)
    words = _words(command)
    match words:
        case [python, "-m", "unittest", *_] if PYTHON.fullmatch(python):
            return whole._replace(
                tool="unittest",
                words=tuple(words),
                reader=python_tools.unittest,
                alone=_alone(tuple(words[:3]), re.compile(r"[\w.]+")),
            )
        case [python, "-m", "pytest", *_] if PYTHON.fullmatch(python):
            program = tuple(words[:3])
        case ["pytest" | "py.test", *_]:
            program = tuple(words[:1])
        case ["node", "--test", *rest] if not any(word.startswith("--test-reporter") for word in rest):
            return whole._replace(tool="node", words=("node", "--test", *NODE_JUNIT, *rest), reader=junit)
        case _:
            return whole
    return whole._replace(
        tool="pytest",
        words=(*words, *JUNIT),
        reader=python_tools.pytest,
        alone=_alone((*program, *JUNIT), re.compile(r"[^-].*\.py::.*", re.DOTALL)),
    )


def _words(command: str) -> list[str]:
    if SPECIAL.search(command):
        return []
    try:
        return shlex.split(command)
    except ValueError:
        return []


def _alone(program: tuple[str, ...], name: "re.Pattern[str]") -> Alone:
    def alone(issue: Issue) -> tuple[str, ...]:
        return (*program, issue.test) if name.fullmatch(issue.test) else ()

    return alone
