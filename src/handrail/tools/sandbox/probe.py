"""Find out what each sandbox protects on this machine, by running a trial program in it."""

import os
import socket
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Literal, NamedTuple

from msgspec import convert
from msgspec.structs import replace

from handrail.config.files import is_locked
from handrail.config.remove_tree import remove_tree
from handrail.storage.scratch import make_scratch, write_cached
from handrail.tools.process import ResourceLimits, run_for_output
from handrail.tools.sandbox.bubblewrap import find_bubblewrap, wrap_command
from handrail.tools.sandbox.landlock_launcher import landlock_version
from handrail.tools.sandbox.launcher_program import landlock_command
from handrail.tools.sandbox.limits import temporary_cgroup
from handrail.tools.sandbox.protected_paths import SandboxSetup, sandbox_environment
from handrail.tools.sandbox.sandbox import Protection
from handrail.tools.sandbox.syscall_filter import libc
from handrail.tools.sandbox.trial import LIMIT, MEMORY, SHARED_MEMORY
from handrail.tools.secrets import without_secrets

TRIAL_PROGRAM = Path(__file__).with_name("trial.py")
SECONDS = 10.0
FACTS = (
    *("files", "git", "secrets", "metadata", "devices", "tcp", "udp", "sockets", "others", "keys"),
    *("children", "ipc", "shm", "processes", "memory"),
)
MAX_BYTES = 10_000

WrapCommand = Callable[[list[str], SandboxSetup, str], list[str]]


async def probe() -> Protection:
    """What the best sandbox protects here: bubblewrap, else Landlock, else none."""
    if sys.platform != "linux":
        return Protection(why=f"there is no sandbox for {sys.platform} yet")
    first = await probe_bubblewrap()
    if first.active:
        return first
    second = await probe_landlock()
    return replace(second, why="; ".join(filter(None, (first.why, second.why))))


async def probe_bubblewrap() -> Protection:
    """What bubblewrap protects; nothing, with the reason, if it does not work."""
    program = find_bubblewrap()
    if program is None:
        return Protection(why="bubblewrap is not installed")

    def wrap(words: list[str], setup: SandboxSetup, temp: str) -> list[str]:
        return wrap_command(program, words, setup, network=False, processes=0)

    version = await _program_output([program, "--version"], Path("/"), without_secrets(os.environ))
    return await _probe_sandbox("bubblewrap", version.rpartition(" ")[2].strip(), wrap)


async def probe_landlock() -> Protection:
    """What Landlock protects; nothing, with the reason, if it does not work."""
    version = landlock_version()
    if not version:
        return Protection(why="the kernel has no Landlock")

    def wrap(words: list[str], setup: SandboxSetup, temp: str) -> list[str]:
        return landlock_command(words, setup, temp, network=False, processes=LIMIT)

    return await _probe_sandbox("Landlock", f"ABI {version}", wrap)


class ProbeSetup(NamedTuple):
    """What the trial program tries to write, read and reach."""

    setup: SandboxSetup
    temp: str
    outside: str
    secret: str
    tcp: socket.socket
    udp: socket.socket
    local: socket.socket
    key: int  # of the memory that the trial leaves behind

    def words(self, counting: str) -> list[str]:
        ports = (str(each.getsockname()[1]) for each in (self.tcp, self.udp))
        places = (str(self.setup.workspace), self.outside, os.path.expanduser("~"), self.secret)
        program = (sys.executable, "-I", "-S", str(TRIAL_PROGRAM))
        with open("/proc/self/stat") as file:
            started = file.read().rpartition(")")[2].split()[19]
        device = os.stat(SHARED_MEMORY).st_dev if os.path.isdir(SHARED_MEMORY) else 0
        ours = (str(os.getpid()), started, str(self.key), str(device))
        return [*program, *places, *ports, self.local.getsockname(), counting, *ours]


@contextmanager
def _probe_setup() -> Iterator[ProbeSetup]:
    scratch = make_scratch()
    inside, outside, state, temp = (scratch / name for name in ("inside", "outside", "state", "temp"))
    try:
        for folder in (inside / ".git", outside, temp):
            folder.mkdir(parents=True)
        write_cached(state / "secret", "key", "text")
        with (
            socket.create_server(("127.0.0.1", 0)) as tcp,
            socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as udp,
            socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as local,
        ):
            udp.bind(("127.0.0.1", 0))
            local.bind(str(outside / "socket"))
            local.listen()
            setup = SandboxSetup(inside, (state,), os.environ)
            key = int.from_bytes(os.urandom(3)) + 1
            yield ProbeSetup(setup, str(temp), str(outside), str(state / "secret"), tcp, udp, local, key)
    finally:
        remove_tree(scratch)


async def _probe_sandbox(
    name: Literal["bubblewrap", "Landlock"], version: str, wrap: WrapCommand
) -> Protection:
    # bubblewrap's own namespace can limit processes from inside; elsewhere the limit is the user's.
    counting = "self" if name == "bubblewrap" else "given"
    async with temporary_cgroup(ResourceLimits(MEMORY, LIMIT)) as cgroup:
        with _probe_setup() as stage:
            words = wrap(stage.words("given" if cgroup else counting), stage.setup, stage.temp)
            words = cgroup.joined(words) if cgroup else words
            environ = sandbox_environment(without_secrets(os.environ), stage.temp)
            output = await _program_output(words, stage.setup.workspace, environ)
            reached = {kind for kind in ("tcp", "udp") if _was_reached(getattr(stage, kind))}
            left = stage.setup.workspace / "left"  # the trial's leftover process keeps it locked
            ended = {"children"} if left.exists() and not is_locked(left) else set[str]()
            ended |= set() if _memory_was_left(stage.key) else {"ipc"}
    lines = (line.partition(" ") for line in output.splitlines())
    tried, _, refused = next((line for line in lines if line[0] == "tried"), ("", "", ""))
    if tried != "tried":
        return Protection(why=f"{name} does not work here: {output.strip()[-200:] or 'no answer'}")
    # A private network accepts what is sent but delivers it nowhere, so only what arrived counts.
    protected = (set(refused.split()) | {"tcp", "udp"} | ended) - reached
    facts = {fact: fact in protected for fact in FACTS} | {"walled": cgroup is not None}
    return convert({"name": name, "version": version, **facts}, Protection)


def _memory_was_left(key: int) -> bool:
    """Whether memory, semaphores or a queue with this key exist; removes them."""
    memory, semaphores, queue = libc.shmget(key, 0, 0), libc.semget(key, 0, 0), libc.msgget(key, 0)
    if memory >= 0:
        libc.shmctl(memory, 0, None)
    if semaphores >= 0:
        libc.semctl(semaphores, 0, 0)
    if queue >= 0:
        libc.msgctl(queue, 0, None)
    return bool(max(memory, semaphores, queue) >= 0)


async def _program_output(words: list[str], folder: Path, environ: Mapping[str, str]) -> str:
    try:
        found = await run_for_output(
            words, folder=folder, environment=environ, timeout=SECONDS, limit=MAX_BYTES
        )
    except OSError as error:
        return str(error)
    return found.data.decode(errors="replace")


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
