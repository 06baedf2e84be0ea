"""Plans: a map over files by code, a checklist's items, or a graph that a model proposes."""

import re
from collections.abc import Mapping, Sequence
from typing import Any

from msgspec import ValidationError, convert
from msgspec.structs import replace

from handrail.engine.requests.model_requests import SideCall
from handrail.engine.split.graph import plan_problems
from handrail.models.model import Request, UserTurn
from handrail.models.reading.json_reader import parse_answer
from handrail.protocol.errors import UsageProblem
from handrail.protocol.problems import problems_in
from handrail.protocol.subtask import Granularity, Subtask
from handrail.protocol.values import ChecklistItem, Value
from handrail.sessions.split_state import request_key
from handrail.verification.documents.checklist import Item

GROUP_TOKENS: dict[Granularity, int] = {"fine": 0, "medium": 4_000, "coarse": 16_000}
"""How large the files of one subtask are together; fine: each file alone."""
SMALL_TOTAL, LARGE_FILE, MANY_FILES = 3_000, 6_000, 40
MAX_LISTED = 600
PLAN_TRIES = 2
STRING = {"type": "string"}
STRINGS = {"type": "array", "items": STRING}
PLAN_SYSTEM = """\
You split a request for a codebase into subtasks that can be done apart from one another. Each is done by \
somebody who sees only its `instruction`, the contents of its `files`, and what the subtasks that it depends \
on export. So an instruction says all that is needed. `files` are paths from the list; `writes` are the \
files that it may change or create, if they are not the same. `depends_on` names subtasks whose results it \
needs; the fewer the better. Two subtasks should not write the same file unless one depends on the other. \
`model_class` is `fast` for mechanical work, else `main`. Answer with one JSON object."""
WORDS: dict[Granularity, str] = {
    "fine": "Make the subtasks as small as possible: one file or one function each.",
    "medium": "Make subtasks of a few closely related files.",
    "coarse": "Make few, large subtasks.",
}
PLAN_SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {
        "subtasks": {
            "type": "array",
            "items": {
                "type": "object",
                "properties": {
                    "id": STRING,
                    "instruction": STRING,
                    "files": STRINGS,
                    "writes": STRINGS,
                    "constraints": STRINGS,
                    "depends_on": STRINGS,
                    "model_class": {"type": "string", "enum": ["main", "fast"]},
                    "priority": {"type": "integer"},
                },
                "required": ["id", "instruction", "files"],
            },
        }
    },
    "required": ["subtasks"],
}


class _Planned(Value):
    subtasks: tuple[Subtask, ...]


def granularity_for(sizes: Mapping[str, int] | None, *, truncated: bool, small: bool) -> Granularity:
    """By rules: how much there is, in how many files, whether answers were cut before, the model.

    `sizes` is None where nobody knows yet which files a request is about.
    """
    if small or truncated:
        return "fine"
    if sizes is None:
        return "medium"
    if max(sizes.values(), default=0) > LARGE_FILE or len(sizes) > MANY_FILES:
        return "fine"
    return "coarse" if sum(sizes.values()) <= SMALL_TOTAL else "medium"


def map_over(instruction: str, sizes: Mapping[str, int], granularity: Granularity) -> tuple[Subtask, ...]:
    """The same instruction for every file, in groups as large as the granularity allows."""
    groups: list[list[str]] = []
    room = 0
    for path, size in sizes.items():
        if not groups or size > room:
            groups.append([])
            room = GROUP_TOKENS[granularity]
        groups[-1].append(path)
        room -= size
    digits = len(str(len(groups)))
    return tuple(
        Subtask(f"{number:0{digits}}-{_slug(paths[0])}", instruction, tuple(paths))
        for number, paths in enumerate(groups, 1)
    )


def for_items(
    items: Sequence[tuple[Item, ChecklistItem]],
    task_of: Mapping[int, str],
    files: Mapping[int, tuple[str, ...]],
) -> tuple[Subtask, ...]:
    """One subtask for each item; those of a phase run at once, after the phase before it."""
    found: list[Subtask] = []
    phase, here, previous = None, list[str](), tuple[str, ...]()
    for item, _ in items:
        if item.phase != phase:
            phase, previous, here = item.phase, tuple(here), []
        name = f"item-{item.number}"
        here.append(name)
        found.append(Subtask(name, task_of[item.number], files[item.number], depends_on=previous))
    return tuple(found)


def _slug(path: str) -> str:
    return re.sub(r"[^A-Za-z0-9.]+", "-", path.rpartition("/")[2]).strip("-.")[:40] or "file"


async def ask_for_plan(
    side: SideCall, task: str, sizes: Mapping[str, int], granularity: Granularity
) -> tuple[Subtask, ...]:
    """A graph that the model proposes; raises UsageProblem where it has none that can be run."""
    listed = "\n".join(f"{path} ({size} tokens)" for path, size in list(sizes.items())[:MAX_LISTED])
    question = f"The files:\n{listed}\n\nThe request: {task}\n\n{WORDS[granularity]}"
    refused = ""
    for number in range(1, PLAN_TRIES + 1):
        text = f"{question}\n\nYour last plan cannot be used: {refused}" if refused else question
        request = Request(PLAN_SYSTEM, (UserTurn(text),), output_schema=PLAN_SCHEMA, max_output_tokens=8_000)
        attempt = await side.attempt(request, "subtask", "planning", request_key("plan", number))
        if attempt.problem:
            raise attempt.problem
        found = parse_answer(attempt.answered.text, PLAN_SCHEMA)
        try:
            planned = convert(found.value, _Planned).subtasks if found.value is not None else ()
            planned = _without_repeats(planned)
            problems = [*found.problems, *plan_problems(planned), *_unknown_files(planned, sizes)]
        except ValidationError:
            planned = ()
            problems = [f"{each.where} {each.should}" for each in problems_in(found.value, _Planned)]
        if planned and not problems:
            return planned
        refused = "; ".join(problems[:6]) or attempt.answered.problem or "it has no subtask"
    raise UsageProblem(
        f"{side.model.name} proposed no plan that can be run: {refused}. Split it yourself: name files with"
        " --files, or write the plan to a file and start it with --plan."
    )


def _without_repeats(subtasks: Sequence[Subtask]) -> tuple[Subtask, ...]:
    """Without those that are the same as an earlier one but for their names."""
    first: dict[tuple[str, tuple[str, ...], tuple[str, ...]], str] = {}
    kept_as = {one.id: first.setdefault((one.instruction, one.files, one.writes), one.id) for one in subtasks}
    return tuple(
        replace(
            each,
            depends_on=tuple(dict.fromkeys(kept_as.get(name, name) for name in each.depends_on)),
        )
        for each in subtasks
        if kept_as[each.id] == each.id
    )


def _unknown_files(subtasks: Sequence[Subtask], sizes: Mapping[str, int]) -> list[str]:
    made = {path for each in subtasks for path in each.writes}
    return [
        f"{each.id} names {path}, which does not exist"
        for each in subtasks
        for path in each.files
        if path not in sizes and path not in made
    ]
