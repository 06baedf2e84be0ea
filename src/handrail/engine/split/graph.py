"""The graph of a plan: what is wrong with it, what each subtask waits for, and in which order they go."""

from collections.abc import Mapping, Sequence
from pathlib import PurePosixPath

from handrail.protocol.errors import UsageProblem
from handrail.protocol.subtask import SplitPlan, Strategy, Subtask

MAX_PROBLEMS = 6
Needs = dict[str, tuple[str, ...]]
"""{subtask: those that must be done before it starts}"""


def needs_of(plan: SplitPlan, strategy: Strategy | None = None) -> Needs:
    """What each subtask waits for by the plan's strategy, or by another one."""
    match strategy or plan.strategy:
        case "graph":
            return {each.id: each.depends_on for each in plan.subtasks}
        case "sequential":
            order = ordered(plan)
            return {name: tuple(order[at - 1 : at]) for at, name in enumerate(order)}
        case "all_at_once":
            return {each.id: () for each in plan.subtasks}


def ordered(plan: SplitPlan) -> list[str]:
    """All subtasks, each after those that it depends on; the highest priority first."""
    needs = {each.id: set(each.depends_on) for each in plan.subtasks}
    rank = {each.id: (-each.priority, number) for number, each in enumerate(plan.subtasks)}
    dependents: dict[str, list[str]] = {name: [] for name in needs}
    for name, wanted in needs.items():
        for each in wanted:
            dependents[each].append(name)
    ready = sorted((name for name, wanted in needs.items() if not wanted), key=rank.__getitem__)
    order: list[str] = []
    while ready:
        name = ready.pop(0)
        order.append(name)
        freed = False
        for each in dependents[name]:
            needs[each].discard(name)
            if not needs[each]:
                ready.append(each)
                freed = True
        if freed:
            ready.sort(key=rank.__getitem__)
    return order


def before(needs: Mapping[str, Sequence[str]], name: str) -> set[str]:
    """All subtasks that one waits for, directly or not."""
    found: set[str] = set()
    left = list(needs[name])
    while left:
        each = left.pop()
        if each not in found:
            found.add(each)
            left += needs[each]
    return found


def with_dependents(needs: Mapping[str, Sequence[str]], names: Sequence[str]) -> tuple[str, ...]:
    """The subtasks and all that wait for them, in the order of the plan."""
    wanted = set(names)
    while more := {each for each, on in needs.items() if each not in wanted and wanted.intersection(on)}:
        wanted |= more
    return tuple(name for name in needs if name in wanted)


def check_plan(plan: SplitPlan) -> None:
    """Raises UsageProblem that names what is wrong with the plan."""
    if problems := plan_problems(plan.subtasks):
        more = f"; and {len(problems) - MAX_PROBLEMS} more" if len(problems) > MAX_PROBLEMS else ""
        told = "; ".join(problems[:MAX_PROBLEMS])
        raise UsageProblem(f"The plan cannot be run: {told}{more}. Correct it, then start it again.")


def plan_problems(subtasks: Sequence[Subtask]) -> list[str]:
    problems = []
    known: set[str] = set()
    for each in subtasks:
        if each.id in known:
            problems.append(f"there are two subtasks {each.id}")
        known.add(each.id)
    for each in subtasks:
        problems += [
            f"{each.id} depends on {wanted}, which is no other subtask"
            for wanted in each.depends_on
            if wanted not in known or wanted == each.id
        ]
        problems += [
            f"{each.id} names {path!r}, which is no path inside the workspace"
            for path in (*each.files, *each.writes)
            if not is_inside(path)
        ]
        if not each.writes and not each.files:
            problems.append(f"{each.id} names no file to change: give it `files` or `writes`")
    if not problems and len(order := ordered(SplitPlan("", tuple(subtasks)))) < len(subtasks):
        around = [each.id for each in subtasks if each.id not in set(order)]
        problems.append(f"these subtasks wait for one another: {', '.join(around[:MAX_PROBLEMS])}")
    return problems


def is_inside(path: str) -> bool:
    plain = PurePosixPath(path)
    return bool(path.strip()) and not (plain.is_absolute() or ".." in plain.parts or {"\\", "\0"} & set(path))
