"""The second half of a build, part two: verification with gate G5, and applying what was verified."""

import re
from collections.abc import Collection, Sequence
from difflib import SequenceMatcher
from hashlib import sha256
from pathlib import Path

from anyio.to_thread import run_sync
from msgspec import convert
from msgspec.structs import replace

from handrail.engine.pipeline import Failed, Output, Outputs, Passed, StepContext, Verdict
from handrail.pipelines.build.commands import packages_of, repeat_packages
from handrail.pipelines.build.demands import (
    RESULTS,
    find_demands,
    required_issues,
    wanted_tests,
    written_demands,
)
from handrail.pipelines.build.documents import proposed_files
from handrail.pipelines.build.evasions import find_evasions
from handrail.pipelines.build.file_changes import applied, change_to, is_applied_here, tick_again
from handrail.pipelines.build.plan import baseline_of, issue_words, written_before
from handrail.pipelines.build.states import APPLY, ASSEMBLE, BASELINE, BRIEF, DOCUMENT, EXECUTE, PLAN, VERIFY
from handrail.pipelines.call_results import call_refusal
from handrail.protocol.errors import GiveUp, StorageProblem
from handrail.protocol.values import to_dict
from handrail.tools.reports.issue import SEVERITIES, CheckResult, Issue
from handrail.verification.proposed import NoCopy, ProposalChecks, ProposedFile, Quiet
from handrail.verification.verdict import Verdict as VerifyVerdict
from handrail.verification.verdict import verdict_of
from handrail.workspace.stat_index import snapshot

HASH = re.compile(r"\[hash: (\w+)\]")


async def verify(work: StepContext) -> Output:
    """What the checks say about the proposed files, what still fails, and the best round so far."""
    files, before = proposed_files(work.outputs), baseline_of(work.outputs)
    if work.outputs[BASELINE]["in_workspace"]:
        async with applied(work, files) as trial:
            verdict = await ProposalChecks(work.checks).verify_workspace(trial.touched, before, Quiet())
            if not await run_sync(trial.is_intact, written_before(work.outputs)):
                raise GiveUp(f"The build cannot be applied: {MEANWHILE}.")
            output = await _judged(work, files, replace(verdict, written=()), tree="")
            trial.keeps = output["status"] == "passed"
        return output
    tree = await run_sync(other_files, work.workspace.root, [file.path for file in files])
    packages = packages_of(work.outputs)
    try:
        checks = ProposalChecks(work.checks)
        layers = checks.layers(packages["key"]).mounted(writable=False) if packages else ()
        verdict = await checks.verify(files, before, Quiet(), layers)
        fixed = await checks.fixed(files, verdict) if verdict.status == "failed" else files
        if fixed != files:  # what needs no model is corrected without one
            verdict = await checks.verify(fixed, before, Quiet(), layers)
    except NoCopy as problem:
        return _unknown(str(problem))
    except StorageProblem as problem:
        raise GiveUp(f"The build cannot go on: {problem} Nothing was applied.") from problem
    return await _judged(work, fixed, verdict, tree)


async def _judged(
    work: StepContext, fixed: Sequence[ProposedFile], verdict: VerifyVerdict, tree: str
) -> Output:
    """The output of the stage: whether the verdict is enough for the task, and the best round."""
    before, old = baseline_of(work.outputs), work.outputs[DOCUMENT]["old"]
    touched = {file.path: touched_lines(old.get(file.path, ""), file.text or "") for file in fixed}
    wanted = wanted_tests(work.question, before, touched)
    required = required_issues(wanted, verdict.checks)
    files = proposed_files(work.outputs)
    demands = find_demands(wanted, before, verdict.checks, files)
    demands += await run_sync(lambda: list(find_evasions(work.workspace, work.question, files, old)))
    demands += written_demands(verdict.written, written_before(work.outputs))
    issues = [issue for check in verdict.checks for issue in check.issues if _counts(check, issue)]
    issues += required
    status = "failed" if demands else verdict.status
    last = work.outputs.get(VERIFY, {})
    own = {file["path"] for file in work.outputs[ASSEMBLE]["files"]}
    mine = {
        "files": [to_dict(file) for file in fixed if file.path in own],
        "score": _score(verdict.checks, issues, len(demands)),
        "issues": [to_dict(issue) for issue in issues],
    }
    best = last.get("best")
    worse = best is not None and mine["score"] > best["score"]
    rounds = [
        *last.get("rounds", []),
        {
            "status": status,
            "issues": len(issues),
            "signature": sorted(
                {f"{issue.kind} {issue.path} {issue.test or issue.message}" for issue in issues} | {*demands}
            ),
            "rolled_back": worse,
            "candidate": work.outputs[BRIEF].get("candidate", 0),
        },
    ]
    return {
        "status": status,
        "checks": [to_dict(check) for check in verdict.checks],
        "notes": list(verdict.notes),
        "demands": demands,
        "doubt": work.outputs[EXECUTE].get("doubt", ""),
        "verified": [to_dict(file) for file in fixed],
        "tree": tree,
        "best": best if worse else mine,
        "rounds": rounds,
        "issues": [issue_words(issue) for issue in issues],
    }


def _unknown(reason: str) -> Output:
    return {
        "status": "unverified",
        "checks": [],
        "notes": [reason],
        "demands": [],
        "verified": [],
        "tree": "",
        "best": None,
        "rounds": [],
        "issues": [],
    }


def _counts(check: CheckResult, issue: Issue) -> bool:
    return check.status == "failed" and issue.origin in ("change", "unknown")


def _score(checks: Sequence[CheckResult], issues: Sequence[Issue], demands: int) -> list[int]:
    """Lower is better: checks without a result, what is demanded, then the issues by severity."""
    silent = sum(check.status not in RESULTS for check in checks)
    counts = [sum(issue.severity == severity for issue in issues) for severity in SEVERITIES]
    return [silent, demands, *counts]


def touched_lines(old: str, new: str) -> set[int]:
    """The lines of the old text that the new one replaces, and those beside an insertion."""
    matcher = SequenceMatcher(None, old.splitlines(), new.splitlines(), autojunk=False)
    lines: set[int] = set()
    for what, first, last, _, _ in matcher.get_opcodes():
        if what != "equal":
            lines.update(range(first + 1, last + 1) if last > first else (first, first + 1))
    return lines


def is_verified(output: Output, _outputs: Outputs) -> Verdict:
    """Whether a result is known: without a check that ran, or if the tests accept changes that differ, it is
    not."""
    if output["status"] == "passed" and not output["demands"] and output.get("doubt"):
        return Failed((f"the tests do not decide: {output['doubt']}",))
    if output["status"] != "unverified":
        return Passed()
    checks = convert(output["checks"], tuple[CheckResult, ...])
    reasons = [f"{check.name}: {check.reason.splitlines()[0]}" for check in checks if check.reason.strip()]
    if not checks:
        reasons = reasons or output["notes"] or ["no check was found that could run here"]
    return Failed(tuple(reasons) or ("no check of the project could run here",))


def checks_pass(output: Output, _outputs: Outputs) -> Verdict:
    """G5: the checks ran, the task broke nothing, and what it is about no longer fails."""
    checks = convert(output["checks"], tuple[CheckResult, ...])
    if output["status"] == "passed" and verdict_of(checks) == "passed" and not output["demands"]:
        return Passed()
    return Failed((*output["demands"], *output["issues"]) or ("the checks did not pass",))


# Applying what was verified

MEANWHILE = "files of the workspace have changed since it was verified. Nothing was applied: start again"
INSTALLED = "If it was cut off while it applied, what its commands installed is there already ({})"
STAYS = "What its commands installed stays ({})"


def other_files(root: Path, proposed: Collection[str]) -> str:
    """A hash of what is known about all files but the proposed ones: another one means another tree."""
    found = snapshot(root).files
    told = [
        f"{path}\0{each.size}\0{each.mtime_ns}\0{each.ctime_ns}\0{each.mode}"
        for path, each in sorted(found.items())
        if path not in proposed
    ]
    return sha256("\n".join(told).encode(errors="surrogateescape")).hexdigest()


async def apply_files(work: StepContext) -> Output:
    """Apply the verified files as one change set, through the gate, if the workspace is as it was."""
    files = convert(work.outputs[VERIFY]["verified"], tuple[ProposedFile, ...])
    if not work.outputs[VERIFY]["tree"]:  # they were verified in the workspace
        checklist = work.item.path if work.item else ""  # the user may edit it at any time
        other = [
            file.path
            for file in files
            if file.path != checklist and not is_applied_here(work.workspace, file)
        ]
        return {"paths": [file.path for file in files], "refused": _differs(other)}
    tree = await run_sync(other_files, work.workspace.root, [file.path for file in files])
    packages = packages_of(work.outputs).get("changes", [])
    # After a restart, the files may be applied already.
    done = files and all(is_applied_here(work.workspace, file) for file in files)
    if tree != work.outputs[VERIFY]["tree"] and not done:
        already = f"{MEANWHILE}. {INSTALLED.format('; '.join(packages))}" if packages else MEANWHILE
        return {"paths": [], "refused": already}
    if refused_command := await repeat_packages(work):
        return {
            "paths": [],
            "refused": f"What the plan's commands installed was not repeated: {refused_command}",
        }
    shown = {file.path: await work.call("read", {"path": file.path, "end": 1}) for file in files if file.base}
    if refused := next((end for end in shown.values() if not end.ok), None):
        return {"paths": [], "refused": call_refusal(refused).message}
    old = work.outputs[DOCUMENT]["old"]
    changes = [change_to(file, old.get(file.path, "")) for file in files]
    ticked = next((file for file in files if work.item and file.path == work.item.path), None)
    moved = HASH.search(shown[ticked.path].content) if ticked else None
    if ticked and moved and not ticked.base.startswith(moved[1]):
        # The user may add items while an item is built: only the tick is repeated in the file as it is now.
        changes[files.index(ticked)] = tick_again(ticked, old[ticked.path], moved[1])
        files = tuple(file for file in files if file != ticked)
    ends = await work.change_together(changes) if changes else []
    wrong = next((end for end in ends if not end.ok), None)
    if wrong:
        stays = f" {STAYS.format('; '.join(packages))}" if packages else ""
        return {"paths": [], "refused": f"{call_refusal(wrong).message}{stays}"}
    other = [file.path for file in files if not is_applied_here(work.workspace, file)]
    return {
        "paths": [str(each.arguments["path"]) for each in changes],
        "refused": _differs(other),
        "packages": packages,
    }


def _differs(paths: Sequence[str]) -> str:
    return f"{', '.join(paths)} is not what was verified" if paths else ""


def is_applied(output: Output, _outputs: Outputs) -> Verdict:
    """Whether the workspace now has what was verified."""
    return Failed((output["refused"],)) if output["refused"] else Passed()


def ended_words(outputs: Outputs) -> str:
    """The result of a complete build, for the user."""
    checks = convert(outputs[VERIFY]["checks"], tuple[CheckResult, ...])
    ran = ", ".join(f"{check.name} {check.status}" for check in checks)
    paths = ", ".join(outputs[APPLY]["paths"])
    return f"Complete: {outputs[PLAN]['objective']}\n\nChanged: {paths}\nChecks: {ran}"
