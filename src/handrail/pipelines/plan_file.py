"""Plans in a Markdown file, for agents: open one, archive a finished one, and lose nothing that is done.

# GOAL
## PHASE                 every `##` is a phase
- [x] an item that is done
- [ ] an item that is open; a phase without items is not worked out yet
"""

import re
from collections import Counter
from collections.abc import Iterator
from typing import Annotated, NamedTuple

from msgspec import Meta

from handrail.engine.pipeline import Failed, Output, Outputs, Passed, StepContext, Verdict
from handrail.pipelines.agent_file import OwnTexts, Texts, check_below_workspace, look_up, values_at
from handrail.pipelines.call_results import call_refusal, collapse_whitespace
from handrail.protocol.errors import GiveUp, PathProblem
from handrail.protocol.values import HASH_DIGITS, Value

ITEM = re.compile(r"\s*[-*+] \[([ xX])\]\s+(.*\S)\s*")
PHASE = re.compile(r"##\s+(.*\S)\s*")
GOAL = re.compile(r"#\s+(.*\S)\s*")
FENCE = re.compile(r"\s*(?:```|~~~)")
MAX_NAMES, MAX_SLUG, MAX_SHOWN, MAX_ISSUES = 50, 40, 160, 8
NO_PLAN = {"text": "", "hash": "", "archived": ""}


class Item(NamedTuple):
    text: str
    done: bool


class Phase(NamedTuple):
    title: str
    items: list[Item]

    @property
    def open(self) -> bool:
        return any(not item.done for item in self.items)


class Plan(NamedTuple):
    goal: str
    phases: list[Phase]

    @property
    def done(self) -> Counter[str]:
        return Counter(item.text for phase in self.phases for item in phase.items if item.done)

    @property
    def finished(self) -> bool:
        """Whether every phase has items, and all of them are ticked."""
        phases = [phase for phase in self.phases if phase.title or phase.items]
        return bool(phases) and all(phase.items and not phase.open for phase in phases)


def parse_plan(text: str) -> Plan:
    plan = Plan("", [Phase("", [])])  # items before the first heading
    for line in _lines(text):
        if found := ITEM.fullmatch(line):
            plan.phases[-1].items.append(Item(collapse_whitespace(found[2]), found[1] != " "))
        elif found := PHASE.fullmatch(line):
            plan.phases.append(Phase(found[1], []))
        elif (found := GOAL.fullmatch(line)) and not plan.goal:
            plan = plan._replace(goal=found[1])
    return plan


def _lines(text: str) -> Iterator[str]:
    """The lines that are not in a block of code."""
    fenced = False
    for line in text.splitlines():
        if FENCE.match(line):
            fenced = not fenced
        elif not fenced:
            yield line


class OpenPlanOptions(Value):
    path: Annotated[str, Meta(min_length=1, max_length=400)]
    archive: Annotated[str, Meta(min_length=1, max_length=400)]
    """The folder for finished plans."""

    def __post_init__(self) -> None:
        check_below_workspace("path", self.path)
        check_below_workspace("archive", self.archive)


class KeepsPlanOptions(Value):
    field: OwnTexts
    before: Texts  # the plan as it was, such as `open.text`


async def open_plan(options: OpenPlanOptions, work: StepContext) -> Output:
    """The text of the plan; a finished one is moved to the archive first, and the text is empty."""
    if not work.workspace.exists(options.path):
        return dict(NO_PLAN)  # there is none, or it was archived before a restart
    seen = await work.call("read", {"path": options.path})  # through the gate, before its bytes are taken
    if not seen.ok:
        raise GiveUp(f"{options.path} cannot be read: {call_refusal(seen).message}")
    try:
        file = work.workspace.read(options.path)
    except PathProblem as problem:
        raise GiveUp(f"{options.path} cannot be read: {problem}") from problem
    plan = parse_plan(file.text)
    if not plan.finished:
        return {"text": file.text, "hash": file.sha256[:HASH_DIGITS], "archived": ""}
    slug = re.sub(r"[^a-z0-9]+", "-", plan.goal.lower()).strip("-")[:MAX_SLUG] or "plan"
    for number in range(1, MAX_NAMES):
        name = f"{options.archive}/{slug}{f'-{number}' if number > 1 else ''}.md"
        end = await work.call("move", {"path": options.path, "to": name})
        if end.ok:
            return NO_PLAN | {"archived": name}
        if call_refusal(end).reason != "file_exists":
            raise GiveUp(f"{options.path} cannot be archived: {call_refusal(end).message}")
    raise GiveUp(f"{options.archive} has {MAX_NAMES} plans of this name. Move some of them away.")


def keeps_plan(options: KeepsPlanOptions, output: Output, outputs: Outputs) -> Verdict:
    """Whether the plan keeps all items that were done, and has one phase at most with open ones."""
    after = parse_plan("\n".join(map(str, values_at(output, options.field.split(".")))))
    before = parse_plan("\n".join(map(str, look_up(outputs, options.before))))
    issues = [
        f"An item that is done was left out or reworded; put it back as it was: - [x] {text[:MAX_SHOWN]}"
        for text in before.done - after.done
    ]
    opened = [phase.title or "the beginning" for phase in after.phases if phase.open]
    if len(opened) > 1:
        issues.append(
            f"{len(opened)} phases have open items ({', '.join(opened)[:MAX_SHOWN]}). Give only the first of "
            "them items, and the later ones a heading and a line."
        )
    if not any(phase.items for phase in after.phases):
        issues.append("There is no item. Write the items of the next phase as `- [ ] text`.")
    return Failed(tuple(issues[:MAX_ISSUES])) if issues else Passed()
