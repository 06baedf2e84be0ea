"""What starts a program of a source: nothing of the definition counts before the sandbox is closed."""

import json
import os
import sys
from functools import partial
from pathlib import Path

import anyio
import pytest
from mcp_types import ElicitResult

from handrail.app.app import Options, open_app
from handrail.tools.sandbox.sandbox import Protection, Sandbox
from handrail.tools.sources.connection import Connection
from handrail.tools.sources.launch import SourceFailed
from tests.tools.sandbox.machine import probed
from tests.tools.sources.places import PYTHON, own, words

pytestmark = pytest.mark.anyio

WRITES = """
import contextlib, pathlib, sys
secret, copy, *others = map(pathlib.Path, sys.argv[1:])
with contextlib.suppress(OSError):
    copy.write_text(secret.read_text())
for path in others:
    with contextlib.suppress(OSError):
        path.write_text("changed")
"""


@pytest.fixture(scope="module")
def sandboxes() -> list[Protection]:
    """Looked for before there is an event loop."""
    return probed()


async def _say(progress: float, total: float | None, message: str | None) -> None: ...


async def _decline(params: object) -> ElicitResult:
    return ElicitResult(action="decline")


@pytest.mark.promise("SOURCE-25")
@pytest.mark.parametrize("kind", [0, 1], ids=["bubblewrap", "Landlock"])
async def test_the_loader_obeys_a_definition_only_in_the_sandbox(
    tmp_path: Path, sandboxes: list[Protection], kind: int
) -> None:
    """LD_DEBUG_OUTPUT lets the loader of each process write a file, as LD_PRELOAD lets it run code."""
    found = sandboxes[kind]
    if not found.active or sys.platform != "linux":
        return
    outside = tmp_path / "outside"
    outside.mkdir()
    work = tmp_path / "work"
    work.mkdir()
    variables = {"LD_DEBUG": "statistics", "LD_DEBUG_OUTPUT": str(outside / "loader"), "PLAIN": "a 'b' $c"}
    own(os.environ, command=words(), env=variables)
    async with open_app(Options(workspace=work)) as app, anyio.create_task_group() as tasks:
        opener = app.sources.opener._replace(sandbox=Sandbox(found=found))
        source = app.sources.folders.named("plain")
        launch = opener.launch(source)
        connection = Connection(source, partial(opener.open_server, launch), tasks, launch.secrets)
        result = await connection.call("environment", {}, _say, _decline)
        await connection.closed()
        opener.sandbox.close()
    seen = json.loads(result.content[0].text)
    assert not list(outside.iterdir())
    assert variables.items() <= seen.items()
    assert not [name for name in seen if name.startswith("HANDRAIL_SET_")]


@pytest.mark.promise("SOURCE-26")
async def test_a_source_that_may_write_the_workspace_gets_no_other_repository_and_no_secret(
    tmp_path: Path, sandboxes: list[Protection]
) -> None:
    """Else its hook would run at the user's next commit there."""
    if not sandboxes[0].active:
        return
    work = tmp_path / "work"
    hook, secret, plain = work / "sub/.git/hooks/pre-commit", work / ".env", work / "plain"
    hook.parent.mkdir(parents=True)
    (work / "sub/.git/HEAD").write_text("ref: refs/heads/main\n")
    linked = work / "linked"
    for path in (hook, secret, plain, tmp_path / "elsewhere"):
        path.write_text("mine")
    os.link(tmp_path / "elsewhere", linked)
    command = [PYTHON, "-I", "-S", "-c", WRITES, *map(str, (secret, work / "copy", hook, linked, plain))]
    own(os.environ, command=command, writes=["workspace"])
    async with open_app(Options(workspace=work)) as app, anyio.create_task_group() as tasks:
        opener = app.sources.opener._replace(sandbox=Sandbox(found=sandboxes[0]))
        source = app.sources.folders.named("plain")
        launch = opener.launch(source)
        connection = Connection(source, partial(opener.open_server, launch), tasks, launch.secrets)
        with pytest.raises(SourceFailed, match="ended with status 0"):
            await connection.list_tools()
        opener.sandbox.close()
    assert (plain.read_text(), linked.read_text(), hook.read_text()) == ("changed", "mine", "mine")
    assert not (work / "copy").exists()
