"""A build by a small model: the same states and gates, a plan by rules, and a search for the code."""

import re
from pathlib import PurePosixPath

from anyio.to_thread import run_sync

from handrail.engine.pipeline import Output, StepContext
from handrail.engine.search.places import Files, missing_sources, read_files
from handrail.pipelines.build.demands import wanted_tests
from handrail.pipelines.build.execute import best_files
from handrail.pipelines.build.plan import MODIFY, PATHS, baseline_of, files_of
from handrail.pipelines.build.states import PLAN
from handrail.protocol.errors import GiveUp
from handrail.tools.reports.issue import Issue
from handrail.tools.secrets import NO_SECRETS
from handrail.verification.proposed import NoCopy

VARIANT = "small model: plan and audit by rules, code by a search"
MAX_TARGETS = 12


async def plan_by_rules(work: StepContext) -> Output:
    """A plan that names the files which the search may change; no model is asked."""
    before = baseline_of(work.outputs)
    wanted = wanted_tests(work.question, before, {})
    failing = [issue for check in before for issue in check.issues if issue.kind == "tests"]
    failing = [issue for issue in failing if issue.test in wanted] or failing
    files = await run_sync(read_files, work.workspace, work.question, (), NO_SECRETS)
    found = find_targets(files, failing, work.question)
    # It may change these, and need not: so a file that is missing is no file that has to be created, and one
    # of another intent is left out.
    targets = [path for path in found if not work.other_intents(path)] or found
    return {
        "objective": f"Do the task: {' '.join(work.question.split())}",
        "steps": [
            {
                "kind": MODIFY,
                "description": f"Change {path}" if files.sources.get(path) else f"Write {path}",
                "targets": [path],
            }
            for path in targets
        ],
        "risks": [],
        "rollback": "Undo the change set.",
        "acceptance": ["the project's checks pass"],
        "escalation": {"kind": "none", "reason": ""},
        "variant": VARIANT,
    }


def find_targets(files: Files, failing: list[Issue], task: str) -> list[str]:
    """The open files that the task names or failing tests blame or speak of; else all, the shortest first."""
    missing = missing_sources(files, "\n".join(issue.message for issue in failing), task, ())
    named = [path for path in PATHS.findall(task) if path in files.sources]
    blamed = [
        suspect.path for issue in failing for suspect in issue.suspects if suspect.path in files.sources
    ]
    tests = "\n".join(files.tests.get(issue.path, "") for issue in failing)
    spoken = [
        path
        for path in files.sources
        if re.search(rf"\b{re.escape(PurePosixPath(path).name.split('.')[0])}\b", tests)
    ]
    found = list(dict.fromkeys([*named, *missing, *blamed, *spoken]))
    return (found or sorted(files.sources, key=lambda path: len(files.sources[path])))[:MAX_TARGETS]


async def execute_by_search(work: StepContext) -> Output:
    """The files that the search found, as changes; raises GiveUp where nothing was better than before."""
    start = {file.path: file.text for file in best_files(work.outputs) if file.text is not None}
    about = wanted_tests(work.question, baseline_of(work.outputs), {})
    try:
        found = await work.search(files_of(work.outputs[PLAN]), start, about)
    except NoCopy as problem:
        raise GiveUp(f"The build cannot go on: {problem}. Nothing was applied.") from problem
    if found.files == start:
        raise GiveUp(f"No answer of the model does the task: {found.words}. Nothing was applied.")
    changes = [{"form": "rewrite", "path": path, "text": text} for path, text in found.files.items()]
    return {
        "changes": changes,
        "changelog": "",
        "searched": found.words,
        "doubt": found.doubt,
        "variant": VARIANT,
    }
