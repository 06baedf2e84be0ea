"""The sandbox of this machine: what it protects, and how to run a command in it."""

import os
import platform
import stat
import sys
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager, nullcontext, suppress
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import anyio
import anyio.to_thread
from msgspec import DecodeError
from msgspec.json import decode

from handrail import __version__
from handrail.config.files import FileLock, is_locked
from handrail.config.remove_tree import remove_tree
from handrail.protocol.errors import StorageProblem, UsageProblem
from handrail.protocol.values import Value, to_json
from handrail.storage.protected_copies import ChangeReport
from handrail.storage.scratch import make_scratch, read_cached, remove_empty, write_cached
from handrail.tools.process import (
    NO_LIMITS,
    ResourceLimits,
    RunningProcess,
    StartProcess,
    find_program,
    open_process,
)
from handrail.tools.sandbox import protected_paths
from handrail.tools.sandbox.copy_mounts import bind_source, no_copy_reason
from handrail.tools.sandbox.launcher_program import landlock_options, launcher_command, launcher_program
from handrail.tools.sandbox.limits import (
    PROCESSES,
    Cgroup,
    make_cgroup,
    temporary_cgroup,
    wait_until_removed,
)
from handrail.tools.sandbox.protected_paths import SandboxSetup, sandbox_environment
from handrail.tools.tool import tool_refused

if TYPE_CHECKING:
    from handrail.tools.sandbox.warm_launcher import Launch, WaitingProcess, WarmLauncher

ADVICE = {
    "bubblewrap": "",
    "Landlock": "bubblewrap protects more: apt install bubblewrap, or dnf install bubblewrap",
    "none": "read commands before allowing them; on Linux: apt install bubblewrap, or dnf install bubblewrap",
}
GIT_NOTE = ", in .git only by git commands with nothing else beside them"


class Protection(Value):
    """What the sandbox protects, as tried out by a program run in it."""

    name: Literal["bubblewrap", "Landlock", "none"] = "none"
    version: str = ""
    files: bool = False  # only the workspace and a temp folder can be written
    git: bool = False  # `.git` and Handrail's files in the workspace cannot be written either
    secrets: bool = False  # Handrail's own data and the secret places of the home cannot be read
    metadata: bool = False  # modes, owners, times and attributes outside cannot be changed
    devices: bool = False  # nor those of /dev/null and the like
    tcp: bool = False  # TCP is off
    udp: bool = False  # UDP is off
    sockets: bool = False  # local services that listen in /tmp and /run cannot be reached
    others: bool = False  # other processes get no signals, limits or priorities
    keys: bool = False  # the kernel's keyrings are closed
    children: bool = False  # no process outlives the command
    ipc: bool = False  # nor do memory, semaphores and queues of System V
    shm: bool = False  # /dev/shm is the command's own
    processes: bool = False  # the kernel limits their number
    memory: bool = False  # the kernel limits it
    walled: bool = False  # each command gets a cgroup
    why: str = ""

    @property
    def active(self) -> bool:
        return self.name != "none"

    @property
    def offline(self) -> bool:
        return self.tcp and self.udp

    @property
    def not_full(self) -> tuple[str, ...]:
        """What mode `sandbox` needs and this sandbox lacks, in words; empty: it is a full sandbox.

        Under Landlock, commands of that mode get no local sockets, and git's hooks and settings are restored.
        """
        closed = self.name == "Landlock" and self.udp
        needed = (
            (self.files, "writes are not confined"),
            (self.git or closed, ".git can be written"),
            (self.metadata, "modes and times of files outside can be changed"),
            (self.secrets, "keys in the home can be read"),
            (self.offline, "the network is open"),
            (self.sockets or closed, "local services can be reached"),
            (self.others, "other processes can be signalled"),
            (self.children and self.ipc, "processes or shared memory can be left behind"),
        )
        return tuple(lack for has, lack in needed if not has)

    @property
    def confines(self) -> bool:
        """Whether code of the workspace can run in it without the user being asked."""
        return self.files and self.offline

    def title(self, *, network: bool = False) -> str:
        """One phrase for a line: `sandbox bubblewrap, no network`."""
        if not self.active:
            return "no sandbox"
        if network:
            return f"sandbox {self.name}, with network"
        reach = "no network" if self.offline else "no TCP" if self.tcp else "network open"
        return f"sandbox {self.name}, {reach}"

    def model_note(self, *, network: bool = False, full: bool = False) -> str:
        """What a model needs to know when the sandbox may have stopped its command."""
        if full:
            reach = "" if network else "; no network, no local sockets"
            places = "writes only in the workspace and $TMPDIR, not in .git"
            return f"[mode sandbox: {places}{reach}; secrets are closed]"
        rules = []
        if self.files:
            rules.append("writes only inside the workspace" + (GIT_NOTE if self.git else ""))
        if self.tcp and not network:
            rules.append(
                "no network; if it needs one, repeat the call with `network: true`, and the user is asked"
            )
        return f"[sandbox: {'; '.join(rules)}]" if rules else ""

    @property
    def given(self) -> tuple[str, ...]:
        """The protections in use, in words."""
        return tuple(yes for has, yes, _ in self._facts() if has and yes)

    @property
    def missing(self) -> tuple[str, ...]:
        """The protections that are missing, in words."""
        return tuple(no for has, _, no in self._facts() if not has and no)

    @property
    def advice(self) -> str:
        return ADVICE[self.name]

    def _facts(self) -> tuple[tuple[bool, str, str], ...]:
        shut = self.active and self.files
        git_open = (
            "git's settings and Handrail's files are restored after a command, not closed" if shut else ""
        )
        commits = "commits, branches and the index can be changed (reported, not undone)" if shut else ""
        secrets = "secret files and hard links of the workspace are open to code that runs" if shut else ""
        return (
            (self.files, "writes only in the workspace and a temp folder", "writes are not confined"),
            (self.git, ".git and .handrail read-only", git_open),
            (self.git, "", commits),
            (self.git, "", secrets),
            (self.secrets, "keys in the home unreadable", "keys in the home can be read"),
            (
                self.metadata,
                "modes and times of files outside closed",
                "modes and times of files outside are open",
            ),
            (
                self.devices,
                "",
                ""
                if self.active and not self.metadata
                else "root can change the modes of /dev/null and the like",
            ),
            (self.offline, "no network", "UDP is open" if self.tcp else "the network is open"),
            (self.sockets, "", "local services (session bus, docker) can be reached"),
            (self.others, "other processes out of reach", "other processes of the user can be signalled"),
            (self.keys, "", "keys in the kernel's keyrings can be read and added"),
            (self.children, "no process left behind", "a process that leaves its group is left behind"),
            (self.ipc, "no System V memory left behind", "System V memory is left behind"),
            (self.shm, "", "shared memory files (in /dev/shm) of all programs are open, and stay"),
            (self.processes, "number of processes limited", "number of processes only checked now and then"),
            (self.memory, "memory limited", "memory only checked now and then"),
        )


@asynccontextmanager
async def _same_mode(folder: Path) -> AsyncIterator[None]:
    """The workspace's own permissions stay as they are: without them nothing in it could be restored."""
    mode = stat.S_IMODE(os.stat(folder).st_mode)
    try:
        yield
    finally:
        with suppress(OSError):
            if stat.S_IMODE(os.stat(folder).st_mode) != mode:
                os.chmod(folder, mode)


PROBE_VALID_SECONDS = 24 * 3600.0
LOCK_SECONDS = 1.0


class ConfinedCommand(NamedTuple):
    words: list[str]
    environ: Mapping[str, str]
    limits: ResourceLimits = NO_LIMITS  # to be checked: the kernel does not enforce them
    cgroup: Cgroup | None = None
    start: StartProcess = open_process  # takes the words and environment, and starts it sooner than they do

    def reached(self) -> str:
        """The kernel's limits that the command reached, in words."""
        return self.cgroup.reached() if self.cgroup else ""


class Sandbox:
    """Confines commands; probes the machine once a process, or once a day if the result can be stored."""

    def __init__(
        self,
        cache_folder: Path | None = None,
        found: Protection | None = None,
        limits: ResourceLimits | None = None,
    ) -> None:
        """`limits` holds for each command; by default a share of this machine."""
        self._file = cache_folder / "sandbox.json" if cache_folder else None
        self._lock = cache_folder / "sandbox.lock" if cache_folder else None
        self._found = found
        memory = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
        self._limits = limits or ResourceLimits(memory // 2, PROCESSES)
        self._probing: anyio.Lock | None = None
        self._launcher: WarmLauncher | None = None

    @property
    def _warm(self) -> "WarmLauncher":
        if self._launcher is None:
            from handrail.tools.sandbox.warm_launcher import WarmLauncher

            self._launcher = WarmLauncher(lambda: (*launcher_program(), "--serve"))
        return self._launcher

    def close(self) -> None:
        """End the process that starts commands, and what it still runs."""
        if self._launcher:
            self._launcher.close()
        wait_until_removed()

    def remove_leftovers(self, workspace: Path) -> None:
        """Remove what bubblewrap made for the commands of a killed process."""
        left = [path for path in protected_paths.state_paths(workspace) if os.path.lexists(path)]
        if left and self._lock and not is_locked(self._lock):
            remove_empty(left)

    async def protection(self) -> Protection:
        self._probing = self._probing or anyio.Lock()
        async with self._probing:
            if self._found is None:
                self._found = self._stored_result() or await self._probe()
            return self._found

    async def probe_again(self) -> Protection:
        """The same, probed anew."""
        self._found = await self._probe()
        return self._found

    @asynccontextmanager
    async def confine(
        self,
        words: Sequence[str],
        setup: SandboxSetup,
        *,
        network: bool = False,
        reports: list[ChangeReport] | None = None,
    ) -> AsyncIterator[ConfinedCommand]:
        """The words and environment that run the command confined; its temp folder lasts as long.

        After the block, `reports` says which protected files changed meanwhile.
        """
        found = await self.protection()
        if setup.copy and (problem := no_copy_reason(found.name)):
            raise UsageProblem(f"The command did not run in a scratch copy: {problem}")
        walled = _is_walled(found)
        waiting = self._warm.take_waiting()
        given = waiting.cgroup if waiting else None
        async with (
            self._next_prepared(waiting, walled=walled),
            temporary_cgroup(self._limits, given) if walled else nullcontext() as cgroup,
        ):
            checked = ResourceLimits(
                0 if found.memory and cgroup else self._limits.memory,
                0 if found.processes and (cgroup or not found.walled) else self._limits.processes,
            )
            protected_paths.make_state_folders(setup)
            async with (
                _guarded(setup, [] if reports is None else reports, restores=found.name == "Landlock"),
                self._confined(found, words, setup, network=network) as confined,
                _same_mode(
                    setup.copy.root if setup.copy else setup.workspace
                ),  # last: what is above writes in it when the command has ended
            ):
                launch, environ = confined
                words = launcher_command(*launch) if launch.options else list(launch.words)
                yield ConfinedCommand(
                    cgroup.joined(words) if cgroup else words,
                    environ,
                    checked,
                    cgroup,
                    partial(self._start, launch, waiting, cgroup, walled=walled),
                )

    @asynccontextmanager
    async def _next_prepared(self, waiting: "WaitingProcess | None", *, walled: bool) -> AsyncIterator[None]:
        """When the command has ended, let a process wait for the next one, unless one does already."""
        try:
            yield
        finally:
            if waiting:
                waiting.process.close()  # also if it was not used, so that it ends
        self._warm.command_ended(partial(self._make_cgroup, walled=walled))

    async def _start(
        self,
        launch: "Launch",
        waiting: "WaitingProcess | None",
        cgroup: Cgroup | None,
        words: Sequence[str],
        *,
        walled: bool,
        **given: Any,
    ) -> RunningProcess:
        """Start the command; while it runs, let a process wait for the next one if there is a server."""
        started = await self._warm.start(launch, waiting, cgroup, words, **given)
        self._warm.prepare_next(partial(self._make_cgroup, walled=walled))
        return started

    def _make_cgroup(self, *, walled: bool) -> Cgroup | None:
        return make_cgroup(self._limits) if walled else None

    async def warm_up(self) -> None:
        """Let a process wait for the first command too."""
        walled = _is_walled(await self.protection())
        await anyio.to_thread.run_sync(self._warm.start_server, partial(self._make_cgroup, walled=walled))

    @asynccontextmanager
    async def _confined(
        self, found: Protection, words: Sequence[str], setup: SandboxSetup, *, network: bool
    ) -> AsyncIterator[tuple["Launch", Mapping[str, str]]]:
        from handrail.tools.sandbox import bubblewrap
        from handrail.tools.sandbox.warm_launcher import Launch

        match found.name:
            case "bubblewrap":
                program = bubblewrap.find_bubblewrap() or "bwrap"
                processes = self._limits.processes if found.processes and not found.walled else 0
                wrapped = bubblewrap.wrap_command(program, words, setup, network=network, processes=processes)
                made = [bind_source(path, setup) for path in protected_paths.missing_state_paths(setup)]
                with FileLock(self._lock) if made and self._lock else nullcontext() as used:
                    if used:
                        used.wait(LOCK_SECONDS, shared=True)  # others hold it only while they check it
                    try:
                        environ = sandbox_environment(setup.environ, bubblewrap.TEMP)
                        yield Launch((), wrapped), environ
                    finally:
                        # bubblewrap made these, to mount something on them.
                        remove_empty(made)
            case "Landlock":
                temp = make_scratch()
                try:
                    options = landlock_options(
                        setup, str(temp), network=network, processes=self._limits.processes
                    )
                    yield Launch(options, words), sandbox_environment(setup.environ, str(temp))
                finally:
                    with anyio.CancelScope(shield=True):
                        await anyio.to_thread.run_sync(remove_tree, temp)
            case "none":
                guarded = ("--processes", str(self._limits.processes)) if sys.platform == "linux" else ()
                yield Launch(guarded, words), setup.environ

    async def _probe(self) -> Protection:
        from handrail.tools.sandbox.probe import probe

        found = await probe()
        if self._file:
            write_cached(self._file, machine_fingerprint(), to_json(found))
        return found

    def _stored_result(self) -> Protection | None:
        text = read_cached(self._file, machine_fingerprint(), PROBE_VALID_SECONDS) if self._file else ""
        try:
            return decode(text, type=Protection) if text else None
        except DecodeError:
            return None


def _is_walled(found: Protection) -> bool:
    # Without a sandbox a command can leave its cgroup, but the cgroup still helps against accidents.
    return found.walled or not found.active


@asynccontextmanager
async def _guarded(
    setup: SandboxSetup, reports: list[ChangeReport], *, restores: bool
) -> AsyncIterator[None]:
    """Save the protected files before the block; compare and restore them after it."""
    if setup.log is None:
        yield
        return
    from handrail.changes.protected.restore import GuardedCommand

    save = partial(
        GuardedCommand,
        setup.log,
        setup.workspace,
        repositories=setup.repositories,
        links=protected_paths.own_links(setup),
        restores=restores,
        writes_git=setup.git or setup.uses_git,
    )
    try:
        guarded = await anyio.to_thread.run_sync(save)
    except StorageProblem as problem:
        message = f"The files that no command may change could not be saved, so it did not run: {problem}"
        raise tool_refused("run", "storage_failed", message) from problem
    try:
        yield
    finally:
        with anyio.CancelScope(shield=True):
            reports.append(await anyio.to_thread.run_sync(guarded.finish))


def machine_fingerprint() -> str:
    """What a probe's result depends on: kernel, container, user and bubblewrap."""
    program = find_program("bwrap")
    installed = f"{program} {os.stat(program).st_mtime_ns}" if program else "none"
    links = ("/proc/self/ns/user", "/proc/self/ns/mnt")
    spaces = [os.readlink(link) if os.path.islink(link) else "-" for link in links]
    return " ".join([__version__, platform.release(), str(os.geteuid()), *spaces, installed])
