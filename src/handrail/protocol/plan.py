"""A plan: an objective and steps; as a value, and as text that a person reads and edits."""

import re
from collections.abc import Iterable, Mapping
from typing import Annotated, Any

from msgspec import Meta

from handrail.protocol.errors import UsageProblem
from handrail.protocol.values import Value

MAX_PLAN_STEPS, MAX_PLAN_FILES = 20, 20
MAX_LINE, MAX_PATH, MAX_CHECK = 500, 300, 1_000
OBJECTIVE, FILES, FILE, CHECK = "Objective:", "files:", "file:", "check:"
STEP_LINE = re.compile(r"(?:\d{1,3}[.)]|[-*])\s+(.*)")
PLAN_FORM = (
    "Write `Objective: ...`, then numbered steps, one on each line. Below a step, you can add the lines "
    "`files: a.py, b.py` and `check: COMMAND`."
)


class PlanStep(Value):
    description: Annotated[str, Meta(min_length=1, max_length=MAX_LINE)]
    files: Annotated[tuple[str, ...], Meta(max_length=MAX_PLAN_FILES)] = ()
    """The files it is about, as far as known."""
    check: Annotated[str, Meta(max_length=MAX_CHECK)] = ""
    """The command whose success completes it; empty: the change or command that names it does."""


class Plan(Value):
    objective: Annotated[str, Meta(max_length=MAX_LINE)]
    steps: Annotated[tuple[PlanStep, ...], Meta(min_length=1, max_length=MAX_PLAN_STEPS)]


def clean_plan(data: Mapping[str, Any]) -> Plan:
    """The plan in a model's answer, in single lines and cut where it is too long; perhaps without steps."""
    steps = (_clean_step(step) for step in data["steps"])
    found = [step for step in steps if step.description][:MAX_PLAN_STEPS]
    return Plan(_one_line(data["objective"])[:MAX_LINE], tuple(found))


def _clean_step(step: Mapping[str, Any]) -> PlanStep:
    files = (_one_line(path) for path in step.get("files", ()))
    # A command that is cut or joined to one line is another command.
    check = step.get("check", "").strip()
    check = "" if len(check) > MAX_CHECK or len(check.splitlines()) > 1 else check
    return PlanStep(
        description=_one_line(step["description"])[:MAX_LINE],
        files=tuple(dict.fromkeys(path for path in files if 0 < len(path) <= MAX_PATH))[:MAX_PLAN_FILES],
        check=check,
    )


def _one_line(text: str) -> str:
    return " ".join(text.split())


def plan_as_text(plan: Plan) -> str:
    """The plan as a person reads it; `plan_from_text` reads it back."""
    lines = [f"{OBJECTIVE} {plan.objective}", ""]
    for number, step in enumerate(plan.steps, start=1):
        lines.append(f"{number}. {step.description}")
        if any("," in path for path in step.files):
            lines += [f"   {FILE} {path}" for path in step.files]
        elif step.files:
            lines.append(f"   {FILES} {', '.join(step.files)}")
        lines += [f"   {CHECK} {step.check}"] if step.check else []
    return "\n".join(lines)


def plan_from_text(text: str) -> Plan:
    """The plan that a person wrote; raises UsageProblem where it is none."""
    objective: list[str] = []
    steps: list[dict[str, Any]] = []
    for number, line in enumerate(text.splitlines(), start=1):
        words = line.strip()
        new = STEP_LINE.fullmatch(words)
        if not words:
            continue
        if new:
            steps.append({"description": [new[1]], "files": [], "check": ""})
        elif not steps:
            objective.append(words.removeprefix(OBJECTIVE))
        else:
            _add_line(steps[-1], words, number)
    found = Plan(
        _one_line(" ".join(objective)),
        tuple(
            PlanStep(_one_line(" ".join(each["description"])), _paths(each["files"]), each["check"])
            for each in steps
        ),
    )
    _refuse_wrong(found)
    return found


def _add_line(step: dict[str, Any], words: str, number: int) -> None:
    """Add a line below a step to it."""
    if words.startswith(FILES):
        step["files"] += words.removeprefix(FILES).split(",")
    elif words.startswith(FILE):
        step["files"].append(words.removeprefix(FILE))
    elif words.startswith(CHECK):
        if step["check"]:
            raise UsageProblem(f"Line {number}: a step has one check. Join the commands with `&&`.")
        step["check"] = words.removeprefix(CHECK).strip()
    else:
        step["description"].append(words)


def _paths(names: Iterable[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(name.strip() for name in names if name.strip()))


def _refuse_wrong(plan: Plan) -> None:
    """Raises UsageProblem for a plan that has no steps, or too much of something."""
    if not plan.steps:
        raise UsageProblem(f"This text has no steps. {PLAN_FORM}")
    if len(plan.steps) > MAX_PLAN_STEPS:
        raise UsageProblem(f"These are {len(plan.steps)} steps; a plan has at most {MAX_PLAN_STEPS}.")
    if len(plan.objective) > MAX_LINE:
        raise UsageProblem(f"The objective has more than {MAX_LINE} characters. Shorten it.")
    for number, step in enumerate(plan.steps, start=1):
        if not step.description:
            raise UsageProblem(f"Step {number} says nothing. Describe it, or delete it.")
        for name, length, most in (
            ("description", len(step.description), MAX_LINE),
            ("list of files", len(step.files), MAX_PLAN_FILES),
            ("check", len(step.check), MAX_CHECK),
        ):
            if length > most:
                raise UsageProblem(f"The {name} of step {number} is too long: {length}, at most {most}.")
