"""Where a small model is asked: open files, their functions and lines, ranked by what failing tests run."""

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import PurePosixPath
from typing import NamedTuple

from handrail.engine.search.mutations import mutations
from handrail.engine.search.policy import Draft, FunctionAt, Line, Situation
from handrail.engine.search.prompts import FENCE, SHOWN_WHOLE, near_failures
from handrail.engine.search.source import (
    SOURCE,
    Function,
    find_functions,
    function_text,
    indent_of,
    text_hash,
    with_function,
)
from handrail.protocol.errors import PathProblem
from handrail.tools.reports.issue import Issue
from handrail.tools.secrets import Secrets
from handrail.verification.localise.line_kinds import HEADER, line_kinds
from handrail.verification.protection import open_files, refusal
from handrail.workspace.files import Workspace
from handrail.workspace.stat_index import snapshot
from handrail.workspace.test_files import is_test_file

MAX_FILE, MAX_FILES = 60_000, 400
MAX_STUB_FILE = 2 * SHOWN_WHOLE
MAX_LINES, MAX_FUNCTIONS, MAX_TESTS, MAX_DRAFTS, MAX_REWRITES = 20, 6, 4, 6, 2
LOADED_LATER = 5  # how many places later a line is tried that runs when its file is loaded, so for every test
SUSPECT_WEIGHT = 0.3  # how much less a line counts than the one before it
MISSING = re.compile(
    r"No module named '(?P<module>[\w.]+)'|Cannot find module '(?:\./|/)?(?P<path>[\w./-]+)'"
)
NOT_RAISED = re.compile(
    r"DID NOT RAISE (?:<class ')?(?:\w+\.)*(\w+)|: (\w+) not raised|Missing expected exception \((\w+)\)"
)
"""What pytest, unittest and node say of an error that a test waited for in vain."""
FILE_NAME = re.compile(r"(?<![\w@/.~-])[\w-][\w./-]*\.\w{1,8}(?![\w/])")


class Files(NamedTuple):
    """The texts of a workspace, as far as a search needs them."""

    sources: dict[str, str]
    """Those that may be changed; a missing one that is asked for is empty."""
    tests: dict[str, str]
    named: dict[str, str]
    """What the task names, and what may not or need not be changed."""
    start: Mapping[str, str] = {}
    """The sources before the search."""


def read_files(
    workspace: Workspace,
    task: str,
    named: Iterable[str],
    secrets: Secrets,
    targets: Sequence[str] = (),
) -> Files:
    """The files of a search; one that holds a secret is not shown to the model, and so not changed."""
    texts: dict[str, str] = {}
    wanted = dict.fromkeys(named)
    paths = [path for path in snapshot(workspace.root).files if SOURCE.search(path) or path in wanted]
    for path in sorted(paths, key=lambda each: (each not in wanted, each))[:MAX_FILES]:
        try:
            text = workspace.read(path).text
        except (PathProblem, OSError):
            continue
        if len(text) <= MAX_FILE and secrets.hide(text) == text:
            texts[path] = text
    tests = {path: text for path, text in texts.items() if is_test_file(path)}
    sources = {path: text for path, text in texts.items() if SOURCE.search(path)}
    sources = {
        path: text for path, text in open_files(sources, task).items() if not targets or path in targets
    }
    for path in [*targets, *FILE_NAME.findall(task)]:
        new = SOURCE.search(path) and ".." not in path and not refusal(path, task, is_new=True)
        if new and (not targets or path in targets) and not workspace.exists(path):
            sources.setdefault(path, "")
    others = {
        path: texts[path] for path in wanted if path in texts and path not in sources and path not in tests
    }
    return Files(sources, tests, others)


def missing_sources(files: Files, output: str, task: str, targets: Sequence[str]) -> list[str]:
    """Files that failing tests import and that are not there."""
    found = []
    for each in MISSING.finditer(output):
        path = f"{each['module'].replace('.', '/')}.py" if each["module"] else each["path"]
        allowed = not refusal(path, task, is_new=True) and (not targets or path in targets)
        if SOURCE.search(path) and allowed and path not in files.sources:
            found.append(path)
    return list(dict.fromkeys(found))


def shown_tests(files: Files, issues: Sequence[Issue], output: str, task: str) -> dict[str, str]:
    """The tests that a question shows: those that fail, else those that the task speaks of."""
    failing = [path for path in files.tests if any(issue.path == path for issue in issues)]
    failing += [path for path in files.tests if PurePosixPath(path).name in output or _stem(path) in output]
    if not failing:
        words = {_stem(path) for path in files.sources if _stem(path) in task}
        failing = [path for path, text in files.tests.items() if any(word in text for word in words)]
    return {path: files.tests[path] for path in list(dict.fromkeys(failing))[:MAX_TESTS]}


def _stem(path: str) -> str:
    return PurePosixPath(path).name.split(".")[0]


def look(
    now: Situation,
    files: Files,
    issues: Sequence[Issue],
    tests: Mapping[str, str],
    words: str,
) -> Situation:
    """The situation with its places; `words` are what task and failure say. The first issues count most."""
    mentions = "\n".join([words, *(near_failures(path, text, words) or text for path, text in tests.items())])
    functions = {path: find_functions(path, text) for path, text in files.sources.items() if text.strip()}
    ranked = _ranked_lines(issues, files.sources)
    scores = {
        (path, each): _mentions(each.name, mentions) for path, found in functions.items() for each in found
    }
    order: dict[FunctionAt, None] = {}
    for line in ranked:
        around = [each for each in functions.get(line.path, ()) if each.holds(line.number)]
        if around:
            inner = around[-1]
            order[FunctionAt(line.path, inner.full_name, inner.first, inner.is_stub)] = None
    spoken = sorted((each for each in scores if scores[each]), key=lambda each: -scores[each])
    stubs = [each for each in spoken if each[1].is_stub]
    others = [each for each in spoken if not each[1].is_stub]
    for path, each in [*stubs, *([] if order else others)]:
        order.setdefault(FunctionAt(path, each.full_name, each.first, each.is_stub))
    if not ranked:
        ranked = [
            line
            for path, each in others[:2]
            for line in _code_lines(path, files.sources[path], each.body, each.last)
        ]
    likely = dict.fromkeys([*(line.path for line in ranked), *(place.path for place in order)])
    if not likely:
        shortest = sorted(
            files.sources, key=lambda path: (_stem(path) not in mentions, len(files.sources[path]))
        )
        likely = dict.fromkeys(shortest)
    in_stubs = {
        Line(path, number)
        for path, found in functions.items()
        for each in found
        if each.is_stub
        for number in range(each.first, each.last + 1)
    }
    heads = {
        Line(path, each.first)
        for path, found in functions.items()
        for each in found
        if "=" not in files.sources[path].splitlines()[each.first - 1]
    }
    lines = [line for line in ranked if line not in in_stubs | heads]
    inside = {
        Line(path, number)
        for path, found in functions.items()
        for each in found
        for number in range(each.first + 1, each.last + 1)
    }
    ranks = {line: rank + (0 if line in inside else LOADED_LATER) for rank, line in enumerate(lines)}
    guards = _guards_of_missing_errors(files.sources, words)
    lines.sort(key=lambda line: (line not in guards, ranks[line]))
    places = list(order)
    drafts = tuple(_drafts(files, places, mentions))
    if drafts:  # what is still to be written is wrong, not what was there
        new = {
            (path, each) for path, found in functions.items() for each in found if _is_new(files, path, each)
        }
        lines = [
            line for line in lines if any(line.path == path and each.holds(line.number) for path, each in new)
        ]
        names = {(path, each.full_name) for path, each in new}
        places = [place for place in places if (place.path, place.name) in names]
    return now._replace(
        drafts=drafts,
        rewrites=() if drafts else tuple(_rewrites(files, places)),
        short=tuple(
            path
            for path in likely
            if 0 < len(files.sources[path]) <= SHOWN_WHOLE and FENCE not in files.sources[path]
        ),
        functions=tuple(places[:MAX_FUNCTIONS]),
        lines=tuple(lines[:MAX_LINES]),
        mutations={
            line: mutations(line.path, files.sources[line.path], line.number)
            for line in (lines[:MAX_LINES] if issues else ())
        },
    )


def _guards_of_missing_errors(sources: Mapping[str, str], output: str) -> set[Line]:
    """The lines before those that raise an error which a test waited for in vain."""
    names = {name for found in NOT_RAISED.findall(output) for name in found if name}
    raised = re.compile(rf"\s*(?:raise|throw new) (?:{'|'.join(map(re.escape, names))})\b")
    return {
        Line(path, number)
        for path, text in (sources.items() if names else ())
        for number, line in enumerate(text.splitlines())
        if raised.match(line)
    }


def _is_new(files: Files, path: str, function: Function) -> bool:
    return function_text(path, files.sources[path], function.full_name) not in files.start.get(path, "")


def _drafts(files: Files, order: Sequence[FunctionAt], mentions: str) -> Iterator[Draft]:
    """What was missing or a stub at the start and is spoken of: whole files, then functions in this order."""
    stubs: dict[str, list[str]] = {}
    for path, text in files.start.items():
        found = [each for each in find_functions(path, text) if each.is_stub]
        stubs[path] = [each.full_name for each in found if _mentions(each.name, mentions)]
        # An answer ends at the first fence, so a file with fences is written function by function.
        if not text.strip() or (len(stubs[path]) > 1 and len(text) <= MAX_STUB_FILE and FENCE not in text):
            yield Draft(text_hash(text), path)
    likely = [(place.path, place.name) for place in order if place.name in stubs.get(place.path, ())]
    left = [(path, name) for path, names in stubs.items() for name in names]
    for path, name in list(dict.fromkeys([*likely, *left]))[:MAX_DRAFTS]:
        yield from _draft(files, path, name)


def _rewrites(files: Files, places: Sequence[FunctionAt]) -> Iterator[Draft]:
    for place in [each for each in places if each.path.endswith(".py") and not each.is_stub][:MAX_REWRITES]:
        yield from _draft(files, place.path, place.name)


def _draft(files: Files, path: str, name: str) -> Iterator[Draft]:
    text = without_body(path, files.sources[path], files.start.get(path, ""), name)
    lines = [each.body for each in find_functions(path, text) if each.full_name == name]
    if lines:
        yield Draft(text_hash(text), path, name, lines[0])


def without_body(path: str, text: str, start: str, name: str) -> str:
    """The text with this function as it was at the start, without its body; empty where there is none."""
    found = [each for each in find_functions(path, start) if each.full_name == name]
    if len(found) != 1:
        return ""
    lines, (first, body, last) = start.splitlines(keepends=True), found[0][1:4]
    code = "".join(lines[first - 1 : last])
    if path.endswith(".py") and not found[0].is_stub:
        indent = lines[body - 1][: indent_of(lines[body - 1])]
        code = f"{''.join(lines[first - 1 : body - 1])}{indent}...\n"
    return with_function(path, text, name, code)


def _ranked_lines(issues: Sequence[Issue], sources: Mapping[str, str]) -> list[Line]:
    scores: Counter[Line] = Counter()
    for at, issue in enumerate(issues):
        for rank, suspect in enumerate(each for each in issue.suspects if each.path in sources):
            weight = suspect.score / (1 + SUSPECT_WEIGHT * rank) / (1 + at)
            scores[Line(suspect.path, suspect.line)] += weight  # type: ignore[assignment]
    texts = {line.path: sources[line.path].splitlines() for line in scores}
    return [line for line, _ in scores.most_common() if 0 < line.number <= len(texts[line.path])]


def _code_lines(path: str, text: str, first: int, last: int) -> list[Line]:
    """The lines of a function, those that compute something first."""
    weights = line_kinds(path, text).weights
    lines = [number for number in range(first, last + 1) if weights.get(number, HEADER) > HEADER]
    return [Line(path, number) for number in sorted(lines, key=lambda each: -weights[each])]


def _mentions(name: str, text: str) -> int:
    return len(re.findall(rf"(?<![\w$]){re.escape(name)}(?![\w$])", text))
