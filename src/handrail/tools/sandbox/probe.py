"""Finding out what this machine gives, by running a program in each sandbox and seeing what it can do."""

import fcntl
import os
import socket
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Literal, NamedTuple

from handrail.storage.scratch import make_scratch, remember, remove_scratch
from handrail.tools.environment import without_secrets
from handrail.tools.process import run_process
from handrail.tools.sandbox import bubblewrap, landlock
from handrail.tools.sandbox.cgroup import Wall, group
from handrail.tools.sandbox.launcher import abi
from handrail.tools.sandbox.places import Ground, environment
from handrail.tools.sandbox.protection import Protection
from handrail.tools.sandbox.trial import LIMIT, MEMORY

TRIAL = Path(__file__).with_name("trial.py")
SECONDS = 10.0
FACTS = ("files", "git", "secrets", "tcp", "udp", "sockets", "children", "processes", "memory")
MOST_BYTES = 10_000

Wrap = Callable[[list[str], Ground, str], list[str]]


async def probe() -> Protection:
    """The best that works here: bubblewrap, else Landlock, else none."""
    if sys.platform != "linux":
        return Protection(why=f"there is none for {sys.platform} yet")
    first = await probe_bubblewrap()
    if first.active:
        return first
    second = await probe_landlock()
    return second.model_copy(update={"why": "; ".join(filter(None, (first.why, second.why)))})


async def probe_bubblewrap() -> Protection:
    """What bubblewrap gives; none, with the reason, where it does not work."""
    program = bubblewrap.find_bubblewrap()
    if program is None:
        return Protection(why="bubblewrap is not installed")

    def wrap(words: list[str], ground: Ground, temp: str) -> list[str]:
        return bubblewrap.confined(program, words, ground, network=False, processes=0)

    version = await _said([program, "--version"], Path("/"), without_secrets(os.environ))
    return await _try("bubblewrap", version.rpartition(" ")[2].strip(), wrap)


async def probe_landlock() -> Protection:
    """What Landlock gives; none, with the reason, where it does not work."""
    version = abi()
    if not version:
        return Protection(why="the kernel has no Landlock")

    def wrap(words: list[str], ground: Ground, temp: str) -> list[str]:
        return landlock.confined(words, ground, temp, network=False, processes=LIMIT)

    return await _try("Landlock", f"ABI {version}", wrap)


class Stage(NamedTuple):
    """What a program tries to write, read and reach."""

    ground: Ground
    temp: str
    outside: str
    secret: str
    tcp: socket.socket
    udp: socket.socket
    local: socket.socket

    @property
    def left(self) -> Path:
        """Locked by what was left running."""
        return self.ground.workspace / "left"

    def words(self, counting: str) -> list[str]:
        ports = (str(each.getsockname()[1]) for each in (self.tcp, self.udp))
        places = (str(self.ground.workspace), self.outside, os.path.expanduser("~"), self.secret)
        program = (sys.executable, "-I", "-S", str(TRIAL))
        return [*program, *places, *ports, self.local.getsockname(), counting]


@contextmanager
def _stage() -> Iterator[Stage]:
    scratch = make_scratch()
    inside, outside, state, temp = (scratch / name for name in ("inside", "outside", "state", "temp"))
    try:
        for folder in (inside / ".git", outside, temp):
            folder.mkdir(parents=True)
        remember(state / "secret", "key", "text")
        with (
            socket.create_server(("127.0.0.1", 0)) as tcp,
            socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as udp,
            socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as local,
        ):
            udp.bind(("127.0.0.1", 0))
            local.bind(str(outside / "socket"))
            local.listen()
            ground = Ground(inside, (state,), os.environ)
            yield Stage(ground, str(temp), str(outside), str(state / "secret"), tcp, udp, local)
    finally:
        remove_scratch(scratch)


async def _try(name: Literal["bubblewrap", "Landlock"], version: str, wrap: Wrap) -> Protection:
    # The limit on processes is inside bubblewrap's own namespace, and for the user as a whole elsewhere.
    counting = "self" if name == "bubblewrap" else "given"
    async with group(Wall(MEMORY, LIMIT)) as made:
        with _stage() as stage:
            words = wrap(stage.words("given" if made else counting), stage.ground, stage.temp)
            words = made.joined(words) if made else words
            environ = environment(without_secrets(os.environ), stage.temp)
            said = await _said(words, stage.ground.workspace, environ)
            reached = {kind for kind in ("tcp", "udp") if _was_reached(getattr(stage, kind))}
            children = {"children"} if _is_free(stage.left) else set[str]()
    lines = (line.partition(" ") for line in said.splitlines())
    tried, _, refused = next((line for line in lines if line[0] == "tried"), ("", "", ""))
    if tried != "tried":
        return Protection(why=f"{name} does not work here: {said.strip()[-200:] or 'no answer'}")
    # A network of its own takes what is sent and brings it nowhere.
    given = (set(refused.split()) | {"tcp", "udp"} | children) - reached
    facts = {fact: fact in given for fact in FACTS} | {"walled": made is not None}
    return Protection.model_validate({"name": name, "version": version, **facts})


async def _said(words: list[str], folder: Path, environ: Mapping[str, str]) -> str:
    output = bytearray()

    def take(chunk: bytes) -> bool:
        output.extend(chunk)
        return len(output) < MOST_BYTES

    try:
        await run_process(words, folder=folder, environment=environ, timeout=SECONDS, take=take)
    except OSError as error:
        return str(error)
    return output.decode(errors="replace")


def _is_free(file: Path) -> bool:
    """Whether what held the lock on the file is gone."""
    try:
        with file.open("rb") as held:
            fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return False
    return True


def _was_reached(server: socket.socket) -> bool:
    server.settimeout(0)
    try:
        if server.type == socket.SOCK_DGRAM:
            server.recv(1)
        else:
            server.accept()[0].close()
    except BlockingIOError:
        return False
    return True
