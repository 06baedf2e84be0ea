"""A process that is killed with sub-agents three deep: `python -m tests.engine.killed_subagent FOLDER WHEN`.

`WHEN` is `answer`, after a file was written, or `command`, in the middle of one.
"""

import os
import sys
from pathlib import Path

import anyio

from handrail.config.places import find_places, workspace_folder
from handrail.sessions.session_list import list_sessions
from handrail.storage.log_repair import open_log
from tests.engine.conversation import call, conversation, eventually, run

TREE = [
    call("subagent", task="level 1"),
    call("subagent", task="level 2") | {"when": "level 1"},
    call("subagent", task="level 3") | {"when": "level 2"},
]
DEEPEST = {
    "answer": [
        call("write", path="log.txt", text="once\n") | {"when": "level 3"},
        {"when": "Created", "text": "It is never said", "chunk_delay_ms": 600_000},
    ],
    "command": [run("sh act.sh") | {"when": "level 3"}],
}


def last_session(workspace: Path) -> str:
    log = open_log(workspace_folder(find_places(os.environ), workspace))
    try:
        return list_sessions(log)[0].id
    finally:
        log.close()


SETTINGS = '[commands]\nallow = ["sh act.sh"]\nwithout_sandbox = true\n'


async def main(workspace: Path, when: str) -> None:
    answers = [*TREE, *DEEPEST[when]]
    (workspace / "act.sh").write_text("echo once >> log.txt\nsleep 600\n")
    async with conversation(workspace, answers, mode="auto", settings=SETTINGS) as talk:
        await talk.say("Delegate it")
        await eventually(lambda: len(talk.requests) == len(answers) and (workspace / "log.txt").exists())
        (workspace / "asked").touch()
        await anyio.sleep_forever()


if __name__ == "__main__":
    anyio.run(main, Path(sys.argv[1]), sys.argv[2])
