"""What a decision about a command costs: read by the shell grammar, judged, its paths looked up, decided."""

import tempfile
from itertools import count
from pathlib import Path
from typing import NamedTuple

from bench.timing import median_ms
from handrail.policy.commands.judge import Lists, lists_of
from handrail.policy.decide import decide
from handrail.policy.facts import Facts
from handrail.tools.command_facts import command_facts
from handrail.workspace.files import Workspace

ENTRIES = 500
RUNS = 200


class Deciding(NamedTuple):
    """Milliseconds for one command."""

    new: float
    """A text that was not read before."""
    again: float
    """The same text as before."""


def measure() -> Deciding:
    """With as many entries on the list as a user will ever have, and then some."""
    lists = lists_of([f"program{number} do this-{number}" for number in range(ENTRIES)])
    number = count()
    with tempfile.TemporaryDirectory() as folder:
        workspace = Workspace(Path(folder))
        decided("git log --oneline -n 5 -- src/a.py", lists, workspace)
        new = median_ms(
            lambda: decided(
                f"git log -n {next(number)} -- src/a.py | head -20 && ls -la src", lists, workspace
            ),
            RUNS,
        )
        again = median_ms(lambda: decided("git log --oneline -n 5 -- src/a.py", lists, workspace), RUNS)
    return Deciding(new, again)


def decided(text: str, lists: Lists, workspace: Workspace) -> None:
    known = command_facts(text, lists, workspace)
    decide(Facts("run", "run", "auto", command=known, confined=True))


if __name__ == "__main__":
    found = measure()
    print(f"a decision about a command, {ENTRIES} entries: {found.new:.1f} ms; again {found.again:.2f} ms")
