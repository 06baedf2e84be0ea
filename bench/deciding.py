"""What the gate costs a call: arguments read, command parsed, paths and intents looked up, decided."""

import os
import statistics
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import count
from pathlib import Path
from typing import Any, NamedTuple

import anyio

from handrail.policy.call_facts import Allow, Ask
from handrail.protocol.events import IntentSelected, SessionStarted
from handrail.protocol.ids import new_id
from handrail.protocol.values import ToolCall
from handrail.sessions.session import Session
from handrail.storage.log_repair import open_log
from handrail.tools.gate.facts import FactGatherer, decide_call
from handrail.tools.sandbox.sandbox import Protection, Sandbox
from handrail.tools.toolbox import Toolbox
from handrail.workspace.files import Workspace
from handrail.workspace.intents_file import IntentFile

ENTRIES = 500
INTENTS = 100
RUNS = 200
INTENT = """- id: INT-{number}
  name: part {number}
  status: in_progress
  owned_scope: [src/part{number}/**, "!src/part{number}/generated/**", tests/part{number}/*.py]
  constraints: [keep the interface]
"""


class Deciding(NamedTuple):
    """Milliseconds for one call."""

    new: float
    """A command whose text was not read before."""
    again: float
    """The same text as before."""
    edit: float
    """An edit inside the scope of the active intent."""


def measure() -> Deciding:
    """With as many intents and entries on the list as a user will ever have, and then some."""
    number = count()
    with tempfile.TemporaryDirectory() as folder, gathering(Path(folder)) as gate:

        def median_ms(name: str, arguments: Any) -> float:
            # One loop for all of them, as in a session: a loop of its own would start threads anew.
            times = anyio.run(all_seconds, gate, name, [arguments() for _ in range(RUNS)])
            return statistics.median(times) * 1000

        same = {"command": "git log --oneline -n 5 -- src/part7/a.py"}
        edit = {"path": "src/part7/a.py", "text": "x = 1\n"}
        median_ms("run", lambda: same)
        return Deciding(
            median_ms(
                "run", lambda: {"command": f"git log -n {next(number)} -- src/a.py | head -20 && ls -la src"}
            ),
            median_ms("run", lambda: same),
            median_ms("write", lambda: edit),
        )


@contextmanager
def gathering(folder: Path) -> Iterator[FactGatherer]:
    """A session in a workspace with intents, one of them active."""
    root = folder / "work"
    (root / ".orchestration").mkdir(parents=True)
    intents = root / ".orchestration" / "active_intents.yaml"
    intents.write_text("".join(INTENT.format(number=number) for number in range(INTENTS)))
    os.utime(intents, (0, 0))
    log = open_log(folder / "log")
    session = Session(log, new_id("s")).load()
    session.try_hold()
    session.append(
        SessionStarted(session_id=session.id, workspace=str(root), version="0", mode="auto"),
        IntentSelected(intent_id="INT-7"),
    )
    sandbox = Sandbox(found=Protection(name="bubblewrap", files=True))
    entries = [f"program{number} do this-{number}" for number in range(ENTRIES)]
    try:
        workspace = Workspace(root)
        yield FactGatherer(
            session, workspace, Toolbox(sandbox), IntentFile(workspace), allowed=tuple(entries)
        )
    finally:
        session.release()
        log.close()


async def all_seconds(gate: FactGatherer, name: str, given: list[dict[str, Any]]) -> list[float]:
    return [await seconds(gate, name, each) for each in given]


async def seconds(gate: FactGatherer, name: str, arguments: dict[str, Any]) -> float:
    """How long a decision takes, as the gate comes to it; it has to be a yes."""
    call = ToolCall(id=new_id("call"), name=name, arguments=arguments)
    began = time.perf_counter()
    pending = gate.with_resolved_paths(await gate.read(call, "t_1"))
    decision: Allow | Ask = decide_call(gate.facts(pending), pending.work)
    took = time.perf_counter() - began
    if not isinstance(decision, Allow):
        raise AssertionError(f"{arguments}: {decision}")
    return took


if __name__ == "__main__":
    found = measure()
    print(f"The gate, a call, {INTENTS} intents and {ENTRIES} entries: {found.new:.1f} ms for a new command,")
    print(
        f"{found.again:.2f} ms for one that was read before, {found.edit:.2f} ms for an edit; wanted are 5."
    )
