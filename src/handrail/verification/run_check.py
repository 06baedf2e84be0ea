"""Run one check in the sandbox, and judge how it ended.

Checks run the project's own code. They get no network, no secrets of the environment, and may write only
the tree that they check and the folder of their report.
"""

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from anyio.to_thread import run_sync

from handrail.config.open_file import FileTooLarge, read_file
from handrail.config.remove_tree import remove_tree
from handrail.storage.scratch import make_scratch, put_into_scratch
from handrail.tools.commands.confined import run_confined
from handrail.tools.commands.output import CapturedOutput
from handrail.tools.process import ProcessResult, find_program
from handrail.tools.reports.issue import CheckResult, CheckStatus, Issue, sorted_issues
from handrail.tools.reports.plain_text import last_words
from handrail.tools.reports.report import NO_FILES, Reading, Report, Unreadable, clean_text
from handrail.tools.sandbox.protected_paths import SandboxSetup, find_risks, own_hard_links
from handrail.tools.sandbox.sandbox import Sandbox
from handrail.tools.secrets import NO_SECRETS, Secrets, without_secrets
from handrail.verification.behaviour.behaviour import TOOL, Behaviour, Function, read_behaviour, watched
from handrail.verification.check import CACHE_FOLDER, IN_FOLDER, REPORT_FOLDER, SHELL, Check, Tree
from handrail.verification.localise.localise import Localised, SuiteRun, localise
from handrail.verification.localise.spectrum import MOST
from handrail.verification.screening.screening import (
    Screened,
    Texts,
    read_screened,
    screening,
    write_texts,
)
from handrail.verification.witness.witness import Record, Witness, doubt, witness_for
from handrail.workspace.files import Workspace
from handrail.workspace.stat_index import StatIndex

MAX_REPORT = 64_000_000  # bytes of all files of a report
MAX_FILES = 2_000
CANNOT_START = (126, 127)
GRAVE = ("critical", "high")
NOT_WATCHED = "not watched, because its Python ignores PYTHONPATH"


class Ran(NamedTuple):
    """How a command ended, and what it wrote."""

    ended: ProcessResult
    report: Report
    problem: str = ""
    """Why its result is unknown, whatever it says."""
    is_watched: bool = False
    """Whether a witness was in the run."""
    record: Record | None = None
    """What the witness saw."""
    note: str = ""

    @property
    def code(self) -> int | None:
        return self.report.code


class Machine(NamedTuple):
    """The workspace, and what its commands run in."""

    workspace: Workspace
    sandbox: Sandbox
    log_folder: Path
    environ: Mapping[str, str] = os.environ
    secrets: Secrets = NO_SECRETS


class CheckRunner:
    """Runs the checks of a workspace, on it or on copies of it."""

    def __init__(self, machine: Machine, index: StatIndex) -> None:
        """`index` is of the workspace."""
        self._machine = machine
        self._index = index
        self._environ = without_secrets(machine.environ, machine.secrets.variables)

    async def localised(
        self, check: Check, issues: Sequence[Issue], tree: Tree, most: int = MOST
    ) -> Localised:
        """The issues with the lines that are most likely the reason why their tests fail."""
        suite = SuiteRun(check.tool, check.words, tree.root, tree.shown_at, self._environ)

        async def run(words: tuple[str, ...], variables: Mapping[str, str]) -> Mapping[str, bytes]:
            traced = check._replace(environ={**check.environ, **variables})
            return (await self._run(traced, words, tree)).report.files

        return await localise(issues, suite, run, most)

    async def behaviour(self, check: Check, functions: Sequence[Function], tree: Tree) -> Behaviour:
        """What these functions do for inputs near those of the tests; nothing where that cannot be seen."""
        if check.tool != TOOL:
            return {}
        seen = watched(check, functions, tree.shown_at, self._environ.get("PYTHONPATH", ""))
        return read_behaviour((await self._run(seen, seen.words, tree)).report.files)

    async def screened(
        self, check: Check, failing: Sequence[Issue], texts: Texts, tree: Tree
    ) -> dict[int, Screened]:
        """How the failing tests do with each text, or all tests where none are given; empty: not known."""
        quick = screening(check, failing, self._environ.get("PYTHONPATH", ""))
        if quick is None:
            return {}
        ran = await self._run(quick, quick.words, tree, given=write_texts(texts, tree.shown_at))
        return read_screened(ran.report.files, len(texts.texts))

    async def check(self, check: Check, tree: Tree) -> "Checked":
        """The result of a check; never raises for what the project's code does."""
        if check.missing:
            return Checked(CheckResult(check.name, check.kind, "unavailable", reason=check.missing))
        ran = await self.run(check, check.words, tree)
        checked = await run_sync(judge, check, ran)  # a report can be large
        done = checked.result
        result = CheckResult(
            check.name,
            check.kind,
            done.status,
            done.issues,
            check.command,
            round(ran.ended.seconds, 3),
            done.reason,
            "; ".join(filter(None, (done.detail, ran.note))),
            tuple(map(clean_text, ran.record.replaced)) if ran.record else (),
            done.passed,
        )
        return checked._replace(result=result)

    async def run(self, check: Check, words: tuple[str, ...], tree: Tree) -> Ran:
        """Run some words as this check runs, with a witness where its tool can have one."""
        witness = witness_for(check.tool, words, self._environ, REPORT_FOLDER)
        if witness is None:
            return await self._run(check, words, tree)
        watched = check._replace(environ={**check.environ, **witness.variables})
        ran = await self._run(watched, witness.words, tree, witness)
        if witness.was_never_loaded(ran.code, ran.report.files):
            return (await self._run(check, words, tree))._replace(note=NOT_WATCHED)
        return ran._replace(is_watched=True, record=witness.record(ran.report.files))

    async def _run(
        self,
        check: Check,
        words: tuple[str, ...],
        tree: Tree,
        witness: Witness | None = None,
        given: Mapping[str, bytes] = NO_FILES,
    ) -> Ran:
        """`given` are files in the folder of the report."""
        output, folder = CapturedOutput(), make_scratch()
        ended, reached = ProcessResult(None, timed_out=False, left_running=False, seconds=0.0), ""
        try:
            if witness:
                witness.place_key(folder)
            for name, data in given.items():
                put_into_scratch(folder, name, data, 0o600)
            setup = self._setup(check, tree, folder)
            placed = [word.replace(REPORT_FOLDER, str(folder)) for word in words]
            if check.part:
                # The sandbox starts commands at the root.
                placed = [find_program("bash") or "bash", "-c", IN_FOLDER, check.part, *placed]
            ended, reached = await run_confined(
                self._machine.sandbox, placed, setup, timeout=check.seconds, on_output=output.add
            )
            files, problem = await run_sync(_report_files, folder)
        except OSError as error:
            files, problem = NO_FILES, f"it could not be started: {error.strerror or error}"
        finally:
            await run_sync(remove_tree, folder)
        output.transform(self._machine.secrets.hide_bytes)
        root, disk = str(tree.shown_at), str(tree.root)
        report = Report(output.whole(), root, check.part, files, ended.code, disk)
        if output.is_full:
            problem = "stopped because it printed too much; make it print less"
        elif ended.over or reached:
            problem = f"stopped at the limit of {ended.over or reached}; make it use less"
        elif ended.timed_out:
            problem = f"stopped after {check.seconds:g} s; checks.seconds gives it more time"
        return Ran(ended, report, problem)

    def _setup(self, check: Check, tree: Tree, report: Path) -> SandboxSetup:
        workspace = self._machine.workspace
        risks = find_risks(self._index)
        ours = workspace.program_paths
        path = os.pathsep.join([*check.paths, self._environ.get("PATH", os.defpath)])
        folders = {REPORT_FOLDER: str(report)} | ({CACHE_FOLDER: str(tree.copy.cache)} if tree.copy else {})
        environ = {**self._environ, **_placed(check.environ, folders), "PATH": path}
        if environment := next((each for each in check.paths if Path(each, "../pyvenv.cfg").is_file()), ""):
            environ["VIRTUAL_ENV"] = os.path.dirname(environment)
        return SandboxSetup(
            workspace.root,
            workspace.state_folders,
            environ,
            repositories=risks.repositories,
            linked=risks.linked,
            writable=(str(report),),
            own=(*ours, *own_hard_links(self._index, workspace.root, ours)),
            # In a copy, nothing that is protected can be written.
            log=None if tree.copy else self._machine.log_folder,
            copy=tree.copy,
        )


def _placed(variables: Mapping[str, str], folders: Mapping[str, str]) -> dict[str, str]:
    """The variables with the paths of these folders; those that need another folder are left out."""
    placed = dict(variables)
    for mark, path in folders.items():
        placed = {name: value.replace(mark, path) for name, value in placed.items()}
    return {name: value for name, value in placed.items() if CACHE_FOLDER not in value}


def _report_files(folder: Path) -> tuple[Mapping[str, bytes], str]:
    """What a check wrote into the folder for its report, and what is wrong with it."""
    found: dict[str, bytes] = {}
    left = MAX_REPORT
    try:
        with os.scandir(folder) as entries:
            names = sorted(entry.name for entry in entries if entry.is_file(follow_symlinks=False))
        for name in names[:MAX_FILES]:
            found[name] = read_file(folder / name, left, follow=False)
            left -= len(found[name])
    except FileTooLarge:
        return NO_FILES, f"its report is larger than {MAX_REPORT // 1_000_000} MB"
    except OSError as error:
        return NO_FILES, f"its report cannot be read: {error.strerror}"
    return found, ""


class Checked(NamedTuple):
    result: CheckResult
    reading: Reading = Reading()


def judge(check: Check, ran: Ran) -> Checked:
    """What the end of a check means: a pass needs exit status 0 and a report that can be read and agrees."""
    if ran.problem:
        return _verdict(check, "unverified", reason=ran.problem)
    code = ran.code
    if code is None or code < 0:
        how = f"it was ended by signal {-code}" if code else "it was stopped"
        return _verdict(check, "unverified", reason=f"{how}\n{last_words(ran.report)}".strip())
    if code in CANNOT_START:
        words = last_words(ran.report)
        return _verdict(check, "unavailable", reason=f"{check.tool} cannot be started: {words}")
    try:
        found = check.reader(ran.report, check.kind)
    except Unreadable as problem:
        reason = f"exit status {code}, and its report cannot be read: {problem}\n{last_words(ran.report)}"
        return _verdict(check, "unverified", reason=reason.strip())
    if ran.record and check.tool == "unittest":  # its text does not name tests that passed
        found = found._replace(passed=tuple(map(clean_text, ran.record.passed)))
    grave = any(issue.severity in GRAVE for issue in found.issues)
    if code == 0:
        if ran.is_watched and not grave and (why := doubt(ran.record, len(found.passed))):
            return _verdict(check, "unverified", found, reason=why)
        if found.tests == 0:
            return _verdict(check, "unverified", found, reason="no test ran")
        # A plugin or `|| true` can hide the exit status. What a tool only printed may be a test's own text.
        believed = ran.report.files or check.tool == SHELL
        return _verdict(check, "failed" if grave and believed else "passed", found)
    if code in check.found_codes or grave:
        if not found.issues:
            text = last_words(ran.report) or f"exit status {code}"
            found = found._replace(issues=(Issue(check.kind, "high", text),))
        return _verdict(check, "failed", found)
    if found.tests == 0:
        return _verdict(check, "unverified", found, reason="no test was found")
    return _verdict(check, "unverified", reason=f"exit status {code}\n{last_words(ran.report)}".strip())


def _verdict(check: Check, status: CheckStatus, found: Reading | None = None, *, reason: str = "") -> Checked:
    found = found or Reading()
    issues = sorted_issues(found.issues)
    result = CheckResult(
        check.name, check.kind, status, issues, reason=reason, detail=found.detail, passed=found.passed
    )
    return Checked(result, found._replace(issues=issues))
