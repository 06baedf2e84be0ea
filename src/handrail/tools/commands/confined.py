"""Run a program in the sandbox to its end."""

from collections.abc import Sequence
from typing import NamedTuple

from handrail.storage.protected_copies import ChangeReport
from handrail.tools.commands.output import exit_code_of
from handrail.tools.process import OnOutput, ProcessResult, run_process
from handrail.tools.sandbox.protected_paths import SandboxSetup
from handrail.tools.sandbox.sandbox import Sandbox


class ConfinedResult(NamedTuple):
    ended: ProcessResult
    reached: str
    """The kernel's limits that it reached, in words."""


async def run_confined(
    sandbox: Sandbox,
    words: Sequence[str],
    setup: SandboxSetup,
    *,
    timeout: float,
    on_output: OnOutput,
    network: bool = False,
    reports: list[ChangeReport] | None = None,
) -> ConfinedResult:
    """Run it in the workspace; `reports` gets what changed of the protected files, also if cancelled."""
    async with sandbox.confine(words, setup, network=network, reports=reports) as confined:
        ended = await run_process(
            confined.words,
            folder=setup.workspace,
            environment=confined.environ,
            timeout=timeout,
            on_output=on_output,
            limits=confined.limits,
            start=confined.start,
        )
        reached = confined.reached()
    if (await sandbox.protection()).name == "bubblewrap":
        # What is in the group after the end is bubblewrap itself, which has reported what was left.
        ended = ended._replace(code=exit_code_of(ended.code), left_running=False)
    return ConfinedResult(ended, reached)
