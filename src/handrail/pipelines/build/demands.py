"""What a build must show beside checks that found nothing new: the tests that it is about pass, and no check
and no test has fallen silent.

That a test is in no list of failures proves nothing: it may be skipped, renamed, or gone. It must be among
those that passed, by its name.
"""

import re
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence

from handrail.tools.reports.issue import CheckResult, Issue
from handrail.verification.proposed import ProposedFile
from handrail.workspace.test_files import is_test_file

FIX = re.compile(
    r"\b(?:fix\w*|bugs?|fail\w*|broken|breaks?|repair\w*|correct\w*|pass(?:es|ing)?|wrong|crash\w*|errors?"
    r"|implement\w*|complete|stubs?|make\s+\S+\s+work)\b",
    re.IGNORECASE,
)
Lines = Mapping[str, Collection[int]]
"""{path: numbers of lines, as they were before the task}"""
TESTS_RAN = re.compile(r"([\d,]+) tests?\b")
RESULTS = ("passed", "failed")
NO_TEST = re.compile(r"_FailedTest\b|\.(?:setUp|tearDown)(?:Class|Module)$")
"""What unittest reports in place of tests that it could not run."""
MAX_NAMED = 5


def wanted_tests(task: str, before: Sequence[CheckResult], touched: Lines) -> set[str]:
    """The tests that failed before, and that the task is about.

    A task that asks for a correction is about the failing tests that it names, else about all of them. Any
    other task is about those that blame a line which it changes.
    """
    failing = [issue for check in before if check.kind == "tests" for issue in check.issues]
    named = {issue.test for issue in failing if _is_named(task, issue)}
    failing = [issue for issue in failing if issue.origin != "flaky"]
    if FIX.search(task):
        return named or {issue.test for issue in failing}
    return {
        issue.test
        for issue in failing
        if any(each.line in touched.get(each.path, ()) for each in issue.suspects)
    }


def _is_named(task: str, issue: Issue) -> bool:
    name = re.split(r"::|\.|\s", issue.test.partition("[")[0])[-1]  # parameters can hold anything
    return bool(name and re.search(rf"\b{re.escape(name)}\b", task)) or bool(
        issue.path and issue.path in task
    )


def required_issues(wanted: Collection[str], after: Sequence[CheckResult]) -> list[Issue]:
    """The failures of wanted tests that no check counts, because they were there before or are flaky."""
    return [
        issue
        for check in after
        for issue in check.issues
        if check.kind == "tests" and issue.origin in ("before", "flaky") and issue.test in wanted
    ]


def find_demands(
    wanted: Collection[str],
    before: Sequence[CheckResult],
    after: Sequence[CheckResult],
    files: Sequence[ProposedFile],
) -> list[str]:
    """What is still missing, in words, although no check calls it a regression."""
    known = {check.name: check for check in after}
    left: list[str] = []
    for check in before:
        now = known.get(check.name)
        if check.status in RESULTS and (now is None or now.status not in RESULTS):
            why = f": {now.reason.partition(chr(10))[0]}" if now and now.reason else ""
            left.append(f"{check.name} gave a result before the task, and gives none now{why}")
        elif check.kind == "tests" and now is not None:
            left += _wanted_missing(wanted, check, now)
            left += _lost(check, now, files)
            if replaced := [name for name in now.replaced if name not in check.replaced]:
                named = ", ".join(replaced[:MAX_NAMED])
                left.append(f"{named}: replaced while the tests ran, which is not the code's business")
    return left


def _wanted_missing(wanted: Collection[str], before: CheckResult, now: CheckResult) -> Iterator[str]:
    failing, passed = {issue.test for issue in now.issues}, set(now.passed)
    some_more = passed - set(before.passed)
    for issue in before.issues:
        if issue.test not in wanted:
            continue
        if issue.test in failing:
            yield f"{issue.test or issue.path} failed before, and still fails"
        elif not (before.passed or now.passed) or issue.test in passed:
            continue  # where tests have no names, that it does not fail is all there is
        elif not (_is_no_test(issue, passed) and some_more):
            yield f"{issue.test} failed before, and did not pass now: it was skipped, or did not run"


def _is_no_test(issue: Issue, passed: Collection[str]) -> bool:
    """Whether it failed in place of tests, such as a file that cannot be loaded: it never passes itself."""
    if issue.severity == "critical" or issue.test == issue.path or NO_TEST.search(issue.test):
        return True
    return any(name.startswith((f"{issue.test}.", f"{issue.test}::", f"{issue.test}/")) for name in passed)


def _lost(before: CheckResult, now: CheckResult, files: Sequence[ProposedFile]) -> Iterator[str]:
    """Tests that ran before and do not run now; those in files that the task opened may go."""
    opened = [file.path for file in files if file.base and is_test_file(file.path)]
    if not before.passed or not all(path.endswith(".py") for path in opened):
        then, count = _tests_ran(before), _tests_ran(now)
        if then > count:
            yield f"{before.name}: {then} tests ran before, and only {count} run now"
        return
    failing = [issue.test for issue in before.issues if issue.test and not _is_no_test(issue, now.passed)]
    ran = Counter([*before.passed, *failing])
    runs = Counter([*now.passed, *{issue.test for issue in now.issues}])
    # A test with parameters may get others, but not fewer.
    functions, still = Counter(map(_function, ran.elements())), Counter(map(_function, runs.elements()))
    lost = [
        name
        for name in ran
        if runs[name] < ran[name]
        and still[_function(name)] < functions[_function(name)]
        and not any(_is_in(name, path) for path in opened)
    ]
    if lost:
        more = f" and {len(lost) - MAX_NAMED} more" if len(lost) > MAX_NAMED else ""
        named = ", ".join(lost[:MAX_NAMED])
        yield f"{before.name}: tests ran before, and do not run now: {named}{more}"


def _function(name: str) -> str:
    return name.partition("[")[0]


def _is_in(test: str, path: str) -> bool:
    """Whether a test is of this Python file, by pytest's name or by unittest's."""
    return test.startswith((f"{path}::", path.removesuffix(".py").replace("/", ".") + "."))


def _tests_ran(check: CheckResult) -> int:
    found = TESTS_RAN.search(check.detail)
    return int(found[1].replace(",", "")) if found else 0


def written_demands(written: Sequence[str], before: Collection[str]) -> list[str]:
    """What is wrong with files that were changed while the checks ran, and were not before the task."""
    wrong = [path for path in written if path not in before]
    if not wrong:
        return []
    named = ", ".join(wrong[:MAX_NAMED])
    return [f"{named}: changed while the checks ran, so they did not judge the files that would be kept"]
