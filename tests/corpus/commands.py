"""Cases of commands: which run unasked in mode auto, in a sandbox, with the list the cases are made for."""

import tempfile
from functools import lru_cache
from pathlib import Path
from typing import Any

from handrail.policy.call_facts import Allow, Ask, Deny, Facts
from handrail.policy.commands.judge import CommandLists, parse_entries
from handrail.policy.decide import decide
from handrail.tools.gate.command_facts import command_facts
from handrail.workspace.files import Workspace

LIST = (
    *("npm install", "npm run", "npm test", "yarn install", "yarn test", "yarn build"),
    *("pnpm install", "pnpm test", "pnpm build", "git status", "git diff", "git log", "git branch"),
    *(
        "ls",
        "pwd",
        "cat",
        "head",
        "tail",
        "grep",
        "find",
        "mkdir",
        "touch",
        "echo",
        "tsc",
        "python",
        "python3",
    ),
    *(
        "pip install",
        "cargo build",
        "cargo run",
        "cargo test",
        "cargo check",
        "go build",
        "go run",
        "go test",
    ),
    *("pytest", "ruff", "mypy"),
)
LISTS = CommandLists(parse_entries(LIST))


def run_command(case: dict[str, Any]) -> dict[str, Any]:
    """The verdict about a case's command."""
    known = command_facts(case["cmd"], LISTS, empty_workspace())
    match decide(Facts("run", "run", "auto", command=known, confined=True)):
        case Allow():
            return {"got": "auto", "reason": known.judged.decided}
        case Ask(reason):
            return {"got": "ask", "reason": reason}
        case Deny(error):
            return {"got": "deny", "reason": error.message}


@lru_cache(maxsize=1)
def empty_workspace() -> Workspace:
    folder = Path(tempfile.gettempdir()) / "handrail-corpus"
    folder.mkdir(exist_ok=True)
    return Workspace(folder)
