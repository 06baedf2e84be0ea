"""A home, a workspace in it and Handrail's folder, and programs that are run there confined."""

import json
import os
import sys
from contextlib import closing
from pathlib import Path
from typing import Any, NamedTuple

from handrail.tools.process import ProcessResult, ResourceLimits, run_process
from handrail.tools.sandbox.protected_paths import SandboxSetup
from handrail.tools.sandbox.sandbox import Protection, Sandbox
from handrail.tools.secrets import without_secrets

TRY = """
import json, os, socket, sys
def tried(action):
    try:
        return action()
    except OSError as error:
        return type(error).__name__
def write(path):
    with open(path, "w") as file:
        file.write("x")
    return "written"
def read(path):
    with open(path) as file:
        return file.read()
def say(**results):
    print(json.dumps(results))
"""


class Room(NamedTuple):
    protection: Protection
    home: Path
    workspace: Path
    state: Path

    async def run(
        self, *words: str, network: bool = False, timeout: float = 30, limits: ResourceLimits | None = None
    ) -> tuple[ProcessResult, str]:
        """How the command ended and what it wrote."""
        output = bytearray()

        def take(chunk: bytes) -> bool:
            output.extend(chunk)
            return True

        setup = SandboxSetup(self.workspace, (self.state,), without_secrets(os.environ))
        with closing(Sandbox(found=self.protection, limits=limits)) as sandbox:
            await sandbox.warm_up()  # otherwise this one command would start as the first one does
            async with sandbox.confine(words, setup, network=network) as confined:
                ended = await run_process(
                    confined.words,
                    folder=self.workspace,
                    environment=confined.environ,
                    timeout=timeout,
                    on_output=take,
                    limits=confined.limits,
                    start=confined.start,
                )
                if reached := confined.reached():
                    output.extend(f"[reached: {reached}]".encode())
        return ended, output.decode()

    async def tries(self, program: str, *words: str, network: bool = False) -> dict[str, Any]:
        """What a Python program says about what it tried."""
        ended, output = await self.run(
            sys.executable, "-I", "-S", "-c", TRY + program, *words, network=network
        )
        assert ended.code == 0, output
        return dict(json.loads(next(line for line in output.splitlines() if line.startswith("{"))))


def furnished(home: Path, protection: Protection) -> Room:
    """A home with keys, a program of the user's, a workspace with a repository, and Handrail's folder."""
    workspace, state = home / "code" / "shop", home / "handrail"
    for folder in (
        workspace / ".git" / "hooks",
        workspace / ".handrail",
        state,
        home / ".ssh",
        home / ".config/gh",
    ):
        folder.mkdir(parents=True, exist_ok=True)
    for secret in (home / ".ssh/id", home / ".netrc", home / ".config/gh/hosts.yml", state / "log"):
        secret.write_text("secret")
    (home / ".config/tool.toml").write_text("plain")
    (home / ".bashrc").write_text("mine")
    tool = home / ".cargo/bin/tool"
    tool.parent.mkdir(parents=True)
    tool.write_text("#!/bin/sh\necho works\n")
    tool.chmod(0o755)
    return Room(protection, home, workspace, state)
