"""Answers of a small model, read as the new text of a file; and how it would write a line otherwise."""

import json
import re
from typing import NamedTuple

from handrail.engine.search.policy import Branch, Line, Question
from handrail.engine.search.prompts import FENCE, Part, kept_before, part_of
from handrail.engine.search.source import (
    beginnings,
    function_alone,
    indent_of,
    language,
    same_code,
    without_new_comment,
)
from handrail.tools.files.syntax_check import python_problem

LEAST_PROBABILITY = 0.003
MAX_TOKEN = 200
LEAVES = re.compile(r"(?:return|raise|throw|break|continue)\b")


class NewText(NamedTuple):
    text: str
    problem: str = ""
    """Why it cannot be used."""
    change: str = ""
    """In a line, for people and for later questions."""


def is_written(question: Question) -> bool:
    """Whether the whole line is known already, so that nothing is left to ask."""
    return question.kind == "mutation" or (question.kind == "line" and question.prefix.endswith("\n"))


def read_answer(question: Question, text: str, answer: str, *, cut: bool) -> NewText:
    """The file after the answer; `cut`: it was not finished."""
    part = part_of(question, text)
    if question.kind in ("line", "insertion", "mutation"):
        new, change = _with_line(question, text, answer)
    elif cut:
        return NewText(text, "it was not finished")
    else:
        new, change = _with_part(question, part, text, answer)
    if not new.strip():
        return NewText(text, "it is empty")
    if question.kind == "insertion" and LEAVES.match(change.rpartition(" / ")[2]):
        old, last = (
            text.splitlines()[question.line - 1],
            f"{question.prefix}{answer}".rstrip().splitlines()[-1:],
        )
        if last and indent_of(last[0]) <= indent_of(old):
            return NewText(new, "the line after it would never run", change)
    if question.path.endswith(".py"):
        problem, newer = python_problem(new)
        if problem and not (newer and python_problem(text)[0]):  # else the file has newer syntax already
            return NewText(new, f"{problem.text} in line {problem.line}", change)
    return NewText(new, "", change)


def _with_line(question: Question, text: str, answer: str) -> tuple[str, str]:
    lines = text.splitlines(keepends=True)
    old = lines[question.line - 1]
    written = f"{question.prefix}{answer.partition(FENCE)[0]}"
    if question.kind == "mutation":
        lines[question.line - 1] = question.prefix if question.prefix.strip() else ""
        added = [each.strip() for each in question.prefix.splitlines() if each.strip() != old.strip()]
        return "".join(lines), " / ".join(added) or "without this line"
    if question.kind == "line":
        new = without_new_comment(written.partition("\n")[0], old)
        lines[question.line - 1] = f"{new}\n" if new.strip() else ""
        return "".join(lines), new.strip() or "without this line"
    kept = []
    for line in written.rstrip().splitlines():
        if line.strip() == old.strip():
            break
        kept.append(without_new_comment(line, old))
    while kept and not kept[-1].strip():
        kept.pop()
    lines.insert(question.line - 1, "".join(f"{line}\n" for line in kept))
    return "".join(lines), " / ".join(line.strip() for line in kept)


def _with_part(question: Question, part: Part, text: str, answer: str) -> tuple[str, str]:
    written = answer.partition(FENCE)[0]
    code = f"{kept_before(question, part, text)}{question.prefix}{written}".rstrip()
    if not part.last:
        return f"{code}\n", f"the whole {question.path}"
    lines = text.splitlines(keepends=True)
    old = lines[part.first - 1 : part.last]
    if part.name:
        code = function_alone(code, indent_of(old[0]))
    end = "\n" if old[-1].endswith("\n") else ""
    new = [*lines[: part.first - 1], f"{code}{end}", *lines[part.last :]]
    added = [line.strip() for line in code.splitlines() if line.strip() not in {each.strip() for each in old}]
    return "".join(new), " / ".join(added[:3]) or f"`{part.name}` without some lines"


def code_key(path: str, text: str) -> str:
    return f"{path}\0{same_code(path, text)}"


def weighed_beginnings(text: str, line: int) -> tuple[str, ...]:
    """Where the line could go on in another way, and the place after it where a block ends with it."""
    lines = text.splitlines()
    old = lines[line - 1]
    following = next((each for each in lines[line:] if each.strip()), "")
    places = beginnings(old)
    if following and indent_of(following) < indent_of(old):
        places.append(f"{old}\n{places[0]}")
    return tuple(places)


def read_weights(line: Line, text: str, answer: str) -> list[Branch]:
    """The branches in the answer to a weighing, the likeliest first."""
    try:
        weighed: list[tuple[str, list[tuple[str, float]]]] = json.loads(answer)
    except json.JSONDecodeError:
        return []
    lines = text.splitlines(keepends=True)
    old, after = lines[line.number - 1], "".join(lines[line.number :])
    found: dict[str, Branch] = {}
    for beginning, options in weighed:
        above, is_after, indent = beginning.partition("\n")
        rest = old[len(beginning) :] + after
        for token, probability in options:
            if probability < LEAST_PROBABILITY or _says_nothing(token, line.path):
                continue
            if is_after:
                if f"{indent}{token}"[: indent_of(above)].isspace() and "\n" not in token:
                    prefix = f"{indent}{token}"
                    found[f"{prefix}\n"] = Branch(line, prefix, probability, after=True)
                continue
            if _goes_on(rest, token):
                continue
            first, newline, _ = token.partition("\n")
            prefix = f"{beginning}{first}{newline}"
            if without_new_comment(prefix.rstrip("\n"), old) != old.rstrip() or not newline:
                branch = Branch(line, prefix, probability, at_start=not beginning.strip())
                if prefix not in found or found[prefix].probability < probability:
                    found[prefix] = branch
    return sorted(found.values(), key=lambda branch: -branch.probability)


def _goes_on(rest: str, token: str) -> bool:
    """Whether the token is how the old text goes on, but for blanks and the kind of quotes."""
    ends = rest.strip(" ").startswith("\n") and token.lstrip(" ").startswith("\n")
    return ends or not token or (bool(token.strip()) and _plain(rest).startswith(_plain(token)))


def _plain(text: str) -> str:
    return text[:MAX_TOKEN].replace(" ", "").replace("'", '"')


def _says_nothing(token: str, path: str) -> bool:
    """Whether it is only layout, a comment, or the end of the code."""
    mark = "#" if language(path) in ("python", "rb", "sh") else "//"
    return (not token.strip() and "\n" not in token) or token.strip().startswith((mark, FENCE, "<|"))
