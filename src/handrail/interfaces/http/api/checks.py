"""The checks of the project: which there are, a verification in the background, and its verdict."""

from typing import Annotated, Literal

from msgspec import Meta

from handrail.app.builds.check_run import CheckRow, RunState, Verdict
from handrail.interfaces.http.endpoint import Call, Endpoint
from handrail.protocol.values import Value

MAX_ONLY = 200


class FoundCheck(Value):
    name: str
    kind: str
    """`types`, `lint`, `tests` or `build`."""
    tool: str
    command: str
    folder: str
    """Where it runs, relative to the workspace."""
    missing: str
    """Why it cannot run here, and what to do; empty: it can."""


class CheckList(Value):
    checks: tuple[FoundCheck, ...]


async def list_checks(call: Call) -> CheckList:
    """The checks that the project is set up for, and their commands; nothing runs."""
    found = await call.app.checks.find()
    return CheckList(
        tuple(
            FoundCheck(each.name, each.kind, each.tool, each.command, each.part, each.missing)
            for each in found
        )
    )


class CheckOptions(Value):
    only: Annotated[tuple[Annotated[str, Meta(max_length=500)], ...], Meta(max_length=MAX_ONLY)] = ()
    """Names of checks; empty: all."""
    changed: bool = False
    """Only parts with changed files; linters get only these files."""
    base: Annotated[str, Meta(max_length=500)] = ""
    """A commit to compare with; empty: the last one."""


class CheckReport(Value):
    state: Literal["none"] | RunState
    """`none`: nothing has run since the server started. `failed`: it could not be run; see `problem`."""
    options: CheckOptions = CheckOptions()
    began: float = 0.0
    seconds: float = 0.0
    rows: tuple[CheckRow, ...] = ()
    """Every check, until there is a verdict."""
    verdict: Verdict | None = None
    problem: str = ""


async def run_checks(call: Call, body: CheckOptions) -> CheckReport:
    """Start the project's checks in the sandbox; the request is your word that its code may run there."""
    from handrail.app.builds.verify import VerifyOptions

    options = VerifyOptions(changed=body.changed, base=body.base, only=body.only)
    await call.app.checks.find(options)  # says what is wrong with the options
    app = await call.workspace.app()  # settings may have been read anew meanwhile
    call.workspace.start_checks(app, options)
    return await check_result(call)


async def check_result(call: Call) -> CheckReport:
    """How far the checks are, or what the last ones have found."""
    run = call.workspace.check_run
    if run is None:
        return CheckReport("none")
    options = CheckOptions(run.options.only, run.options.changed, run.options.base)
    return CheckReport(run.state, options, run.began, run.seconds, run.rows(), run.verdict, run.problem)


async def cancel_checks(call: Call) -> CheckReport:
    """Stop the checks that run; answers when their processes have ended."""
    if run := call.workspace.check_run:
        run.stop()
        await run.ended.wait()
    return await check_result(call)


CHECK_ENDPOINTS = (
    Endpoint("GET", "/checks", list_checks),
    Endpoint("POST", "/checks/run", run_checks, status=202),
    Endpoint("GET", "/checks/result", check_result),
    Endpoint("POST", "/checks/cancel", cancel_checks),
)
