"""The commands of a plan: run in a scratch copy that has the new files; what they change there becomes files.

Every command passes the gate as in a conversation. Folders of installed packages that the plan names are
copied for it; what it changes there is repeated in the workspace once the result is verified.
"""

import os
import stat
from collections.abc import Sequence
from typing import NamedTuple

from anyio.to_thread import run_sync

from handrail.engine.pipeline import Failed, Output, Outputs, Passed, StepContext, Verdict
from handrail.pipelines.build.plan import commands_of
from handrail.pipelines.build.states import ASSEMBLE, PLAN
from handrail.pipelines.call_results import call_refusal
from handrail.protocol.errors import GiveUp, PathProblem, StorageProblem
from handrail.verification.package_rules import package_problems
from handrail.verification.proposed import ProposalChecks, ProposedFile
from handrail.workspace.files import Workspace
from handrail.workspace.scratch_copy.copy import ScratchCopy
from handrail.workspace.scratch_copy.layers import package_folder

MAX_FILES = 200
TOLD = 1_500  # characters of a failed command's output
FAILURES = ("", "timeout", "too_large")
"""Reasons of commands that ran; every other reason is a refusal."""


class CommandsRun(NamedTuple):
    files: list[ProposedFile]
    """All files that differ from the workspace now, those of the model among them."""
    problems: list[str]
    denied: list[str]
    """Commands that may not run: for the user to decide."""
    output: Output
    """For the log: what ran, and what of it has to be repeated in the workspace."""


async def run_commands(work: StepContext, files: Sequence[ProposedFile]) -> CommandsRun:
    """Run the commands of the plan, in their order, on a copy with these files; raises NoCopy, GiveUp."""
    steps, checks = commands_of(work.outputs[PLAN]), ProposalChecks(work.checks)
    if old := packages_of(work.outputs):
        await run_sync(checks.layers(old["key"]).remove)
    if not steps:
        return CommandsRun(list(files), [], [], {"commands": [], "packages": None})
    root, layers = work.workspace.root, checks.layers(work.key)
    targets = dict.fromkeys(path for step in steps for path in step["targets"])
    folders = list(dict.fromkeys([found for path in targets if (found := package_folder(root, path))]))
    ran: list[Output] = []
    problems: list[str] = []
    denied: list[str] = []
    try:
        await run_sync(layers.make, folders)
        async with checks.copy(files) as copy:
            shown = await run_sync(lambda: copy.shown(layers.mounted(writable=True)))
            for step in steps:
                command, network = step["command"].strip(), bool(step.get("network"))
                end = await work.run_in_copy(shown, command, network=network)
                ran.append({"command": command, "network": network, "ok": end.ok})
                refused = call_refusal(end)
                if not end.ok and refused.reason in FAILURES:
                    problems.append(f"The command `{command}` failed: {end.content[-TOLD:]}")
                elif not end.ok:
                    denied.append(f"The plan runs `{command}`: {refused.message}")
                if not end.ok:
                    return CommandsRun(list(files), problems, denied, {"commands": ran, "packages": None})
            changed = await run_sync(layers.finish)
            differs = await run_sync(_changed_files, work.workspace, copy)
    except StorageProblem as problem:
        raise GiveUp(f"The commands of the plan cannot run: {problem} Nothing was applied.") from problem
    problems = list(differs.problems)
    changed = tuple(each for each in changed if each)
    for each in changed:
        problems += await run_sync(package_problems, each, layers.tree(each.path), work.question)
    repeat = {
        "key": work.key,
        "command": "\n".join(step["command"] for step in ran),
        "network": any(step["network"] for step in ran),
        "changes": [each.words for each in changed],
    }
    return CommandsRun(
        differs.files, problems, denied, {"commands": ran, "packages": repeat if changed else None}
    )


def packages_of(outputs: Outputs) -> Output:
    """What the commands changed in folders of packages; empty where that is nothing."""
    return outputs.get(ASSEMBLE, {}).get("packages") or {}


class ChangedFiles(NamedTuple):
    files: list[ProposedFile]
    problems: list[str]


def _changed_files(workspace: Workspace, copy: ScratchCopy) -> ChangedFiles:
    """How the copy differs from the workspace, and what of that cannot be applied."""
    found, inside = copy.differences(), Workspace(copy.root)
    paths = (*found.added, *found.changed)
    if len(paths) + len(found.removed) > MAX_FILES:
        many = f"the commands change more than {MAX_FILES} files: {', '.join(paths[:5])}, ..."
        return ChangedFiles([], [many])
    files: list[ProposedFile] = []
    problems: list[str] = []
    for path in paths:
        if wrong := _not_applicable(workspace, copy, path):
            problems.append(f"{path}, which a command changed, {wrong}")
            continue
        try:
            files.append(ProposedFile(path, inside.read(path).text, _hash(workspace, path)))
        except PathProblem as problem:
            problems.append(f"A command made a file that cannot be applied: {problem}")
    files += [ProposedFile(path, None, _hash(workspace, path)) for path in found.removed]
    return ChangedFiles(files, problems)


def _not_applicable(workspace: Workspace, copy: ScratchCopy, path: str) -> str:
    now = os.lstat(copy.root / path).st_mode
    if not stat.S_ISREG(now):
        return "is not a file"
    old = workspace.root / path
    before = old.lstat().st_mode if os.path.lexists(old) else 0
    if before and not stat.S_ISREG(before):
        return "was a link"
    return "has other permissions, which a build cannot apply" if (now ^ before) & 0o111 else ""


def _hash(workspace: Workspace, path: str) -> str:
    return workspace.read(path).sha256 if workspace.exists(path) else ""


def commands_may_run(output: Output, _outputs: Outputs) -> Verdict:
    """A command that policy does not allow, or that the user refused, is for the user to decide."""
    return Failed(tuple(output["denied"])) if output["denied"] else Passed()


async def repeat_packages(work: StepContext) -> str:
    """Repeat in the workspace what the commands installed, through the gate; why not, if it was refused."""
    packages = packages_of(work.outputs)
    if not packages:
        return ""
    end = await work.call("repeat_packages", packages)
    return "" if end.ok else f"{call_refusal(end).message} {', '.join(packages['changes'])}"
