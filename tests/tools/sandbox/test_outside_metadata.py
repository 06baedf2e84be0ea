"""Modes, owners, times and attributes: kept outside, and changed as usual inside."""

import os
import sys
from pathlib import Path
from typing import Any

import pytest

from handrail.tools.sandbox.sandbox import Protection
from tests.tools.sandbox.machine import working
from tests.tools.sandbox.room import Room, furnished

pytestmark = pytest.mark.anyio

CALLS = """
import ctypes, mmap, threading
libc = ctypes.CDLL(None, use_errno=True)
arm = os.uname().machine == "aarch64"
def call(number, *arguments):
    words = [ctypes.c_long(word) if isinstance(word, int) else word for word in arguments]
    if libc.syscall(number, *words) < 0:
        raise OSError(ctypes.get_errno(), "refused")
    return "done"
def done(action):
    action()
    return "done"
HERE, NO_FOLLOW, EMPTY = -100, 0x100, 0x1000
FCHMOD, FCHMODAT, FCHOWN, FCHOWNAT, UTIMENSAT = (52, 53, 55, 54, 88) if arm else (91, 268, 93, 260, 280)
SETXATTR, LSETXATTR, FSETXATTR, REMOVEXATTR = (5, 6, 7, 14) if arm else (188, 189, 190, 197)
LREMOVEXATTR, FREMOVEXATTR, IOCTL = (15, 16, 29) if arm else (198, 199, 16)
FCHMODAT2, SETXATTRAT, REMOVEXATTRAT, FILE_SETATTR = 452, 463, 466, 469
uid, gid = os.getuid(), os.getgid()
times = (ctypes.c_long * 4)(1, 1, 1, 1)
"""

OUTSIDE = (
    CALLS
    + """
home = sys.argv[1]
out, name = home + "/.bashrc", b".bashrc"
path = out.encode()
fd, opath = os.open(out, os.O_RDONLY), os.open(out, os.O_PATH)
folder, listed = os.open(home, os.O_PATH), os.open(home + "/.cargo", os.O_RDONLY)
os.symlink(out, "link")
os.symlink(home, "folder-link")
relative = os.path.relpath(out).encode()
flags = (ctypes.c_long * 4)(0x80)
fsx = (ctypes.c_int * 8)(0x80)
value = (ctypes.c_long * 2)(0, 0)
attributes = (ctypes.c_long * 4)(0x80)
def in_thread(action):
    found = []
    thread = threading.Thread(target=lambda: found.append(tried(action)))
    thread.start()
    thread.join()
    return found[0]
def in_folder(action):
    here = os.getcwd()
    os.chdir(home)
    try:
        return action()
    finally:
        os.chdir(here)
def in_namespace(flags):
    libc.unshare(flags)
    return done(lambda: os.chmod(out, 0o777))
def in_32_bits():
    page = mmap.mmap(-1, 4096, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | 0x40, prot=7)
    start = ctypes.addressof(ctypes.c_char.from_buffer(page))
    # push rbx; mov ebx, path; mov ecx, 0o777; mov eax, 15 (chmod); int 0x80; pop rbx; ret
    page[100:100 + len(path)] = path
    code = b"\\x53\\xbb" + (start + 100).to_bytes(4, "little") + b"\\xb9\\xff\\x01\\x00\\x00"
    code += b"\\xb8\\x0f\\x00\\x00\\x00\\xcd\\x80\\x5b\\xc3"
    page[: len(code)] = code
    if ctypes.CFUNCTYPE(ctypes.c_int)(start)() < 0:
        raise PermissionError
    return "done"
ways = {
    "chmod": lambda: done(lambda: os.chmod(out, 0o777)),
    "relative": lambda: call(FCHMODAT, HERE, relative, 0o777),
    "link": lambda: done(lambda: os.chmod("link", 0o777)),
    "link to folder": lambda: done(lambda: os.chmod("folder-link/.bashrc", 0o777)),
    "folder": lambda: done(lambda: os.chmod(home, 0o777)),
    "folder through link": lambda: done(lambda: os.chmod("folder-link", 0o777)),
    "parent": lambda: done(lambda: os.chmod("..", 0o777)),
    "working folder": lambda: in_folder(lambda: done(lambda: os.chmod(".bashrc", 0o777))),
    "own working folder": lambda: in_folder(lambda: done(lambda: os.chmod("/proc/self/cwd/.bashrc", 0o777))),
    "own root": lambda: done(lambda: os.chmod("/proc/self/root" + out, 0o777)),
    "fchmod": lambda: call(FCHMOD, fd, 0o777),
    "fchmod of folder": lambda: call(FCHMOD, listed, 0o777),
    "own descriptor": lambda: done(lambda: os.chmod(f"/proc/self/fd/{fd}", 0o777)),
    "own bare descriptor": lambda: done(lambda: os.chmod(f"/proc/self/fd/{opath}", 0o777)),
    "descriptor of thread": lambda: done(lambda: os.chmod(f"/proc/thread-self/fd/{fd}", 0o777)),
    "descriptor by number": lambda: done(lambda: os.chmod(f"/proc/{os.getpid()}/fd/{fd}", 0o777)),
    "descriptor of device folder": lambda: done(lambda: os.chmod(f"/dev/fd/{fd}", 0o777)),
    "descriptor of parent": lambda: done(lambda: os.chmod(f"/proc/{os.getppid()}/cwd/.bashrc", 0o777)),
    "fchmodat": lambda: call(FCHMODAT, folder, name, 0o777),
    "fchmodat2": lambda: call(FCHMODAT2, folder, name, 0o777, 0),
    "fchmodat2 of descriptor": lambda: call(FCHMODAT2, opath, b"", 0o777, EMPTY),
    "fchmodat2 of link": lambda: call(FCHMODAT2, HERE, b"folder-link/.bashrc", 0o777, NO_FOLLOW),
    "thread": lambda: in_thread(lambda: done(lambda: os.chmod(out, 0o777))),
    "chown": lambda: done(lambda: os.chown(out, uid, gid)),
    "lchown": lambda: done(lambda: os.lchown(out, uid, gid)),
    "fchown": lambda: call(FCHOWN, fd, uid, gid),
    "fchownat": lambda: call(FCHOWNAT, folder, name, uid, gid, 0),
    "fchownat of descriptor": lambda: call(FCHOWNAT, opath, b"", uid, gid, EMPTY),
    "utime": lambda: done(lambda: os.utime(out, (1, 1))),
    "utime now": lambda: done(lambda: os.utime(out)),
    "utime through link": lambda: done(lambda: os.utime("link", (1, 1))),
    "utime of descriptor": lambda: done(lambda: os.utime(fd, (1, 1))),
    "utimensat": lambda: call(UTIMENSAT, folder, name, times, 0),
    "utimensat of descriptor": lambda: call(UTIMENSAT, fd, None, times, 0),
    "utimensat of bare descriptor": lambda: call(UTIMENSAT, opath, b"", times, EMPTY),
    "setxattr": lambda: call(SETXATTR, path, b"user.new", b"x", 1, 0),
    "lsetxattr": lambda: call(LSETXATTR, path, b"user.new", b"x", 1, 0),
    "fsetxattr": lambda: call(FSETXATTR, fd, b"user.new", b"x", 1, 0),
    "setxattr through descriptor": lambda: done(lambda: os.setxattr(f"/proc/self/fd/{fd}", "user.new", b"x")),
    "removexattr": lambda: call(REMOVEXATTR, path, b"user.mark"),
    "lremovexattr": lambda: call(LREMOVEXATTR, path, b"user.mark"),
    "fremovexattr": lambda: call(FREMOVEXATTR, fd, b"user.mark"),
    "setxattrat": lambda: call(SETXATTRAT, folder, name, 0, b"user.new", value, 16),
    "removexattrat": lambda: call(REMOVEXATTRAT, folder, name, 0, b"user.mark"),
    "file_setattr": lambda: call(FILE_SETATTR, folder, name, attributes, 24, 0),
    "flags": lambda: call(IOCTL, fd, 0x40086602, flags),
    "flags of 32 bits": lambda: call(IOCTL, fd, 0x40046602, flags),
    "flags with high bits": lambda: call(IOCTL, fd, 0x5401_0000_0000 | 0x40086602, flags),
    "attributes": lambda: call(IOCTL, fd, 0x401C5820, fsx),
    "generation": lambda: call(IOCTL, fd, 0x40087602, flags),
    "user namespace": lambda: in_namespace(0x10000000),
    "mount namespace": lambda: in_namespace(0x10020000),
}
if not arm:
    ways |= {
        "old utime": lambda: call(132, path, times),
        "old utimes": lambda: call(235, path, times),
        "old futimesat": lambda: call(261, folder, name, times),
        "old futimesat of descriptor": lambda: call(261, fd, None, times),
        "old chmod": lambda: call(90, path, 0o777),
        "old chown": lambda: call(92, path, uid, gid),
        "old lchown": lambda: call(94, path, uid, gid),
        "x32": lambda: call(0x4000_0000 | 90, path, 0o777),
        "32 bits": in_32_bits,
    }
say(**{way: tried(action) for way, action in ways.items()})
"""
)


@pytest.fixture
def room(home: Path, protection: Protection) -> Room:
    return furnished(home, protection)


def facts(*paths: Path) -> dict[Path, tuple[object, ...]]:
    """All that can be changed about files; the time of change too, so that a change back is noticed."""
    found: dict[Path, tuple[object, ...]] = {}
    for path in paths:
        seen = path.lstat()
        attributes = os.listxattr(path, follow_symlinks=False)
        found[path] = (seen.st_mode, seen.st_uid, seen.st_gid, seen.st_mtime_ns, seen.st_ctime_ns, attributes)
    return found


def marked(path: Path) -> Path:
    """A file with an attribute that could be removed, where the file system has them."""
    try:
        os.setxattr(path, "user.mark", b"x")
    except OSError:
        return path
    return path


@pytest.mark.promise("SAND-15")
@pytest.mark.parametrize("network", [False, True])
async def test_no_call_changes_the_metadata_of_a_file_outside(room: Room, network: bool) -> None:
    before = facts(marked(room.home / ".bashrc"), room.home, room.home / ".cargo", room.workspace.parent)
    said = await room.tries(OUTSIDE, str(room.home), network=network)
    assert facts(*before) == before, said
    assert len(said) >= 50
    assert "done" not in said.values(), said


RACE = (
    CALLS
    + """
home = sys.argv[1]
os.mkdir("folder")
open("folder/.bashrc", "w").close()
open("inside", "w").close()
stop = []
def swap():
    while not stop:
        for target in (home + "/.bashrc", os.path.abspath("inside")):
            os.symlink(target, "new")
            os.replace("new", "file")
        for target in (home, os.path.abspath("folder")):
            os.symlink(target, "new")
            os.replace("new", "way")
os.symlink("inside", "file")
os.symlink("folder", "way")
thread = threading.Thread(target=swap)
thread.start()
counts = {"done": 0, "refused": 0}
for number in range(1500):
    for path in ("file", "way/.bashrc"):
        try:
            os.chmod(path, 0o700 + number % 8)
            os.utime(path, (number, number))
            counts["done"] += 1
        except OSError:
            counts["refused"] += 1
stop.append(1)
thread.join()
say(**counts)
"""
)


@pytest.mark.promise("SAND-15")
async def test_a_link_that_is_swapped_during_the_call_leads_nowhere(room: Room) -> None:
    before = facts(room.home / ".bashrc")
    said = await room.tries(RACE, str(room.home))
    assert facts(*before) == before
    assert said["done"], said
    assert said["refused"], said


@pytest.mark.promise("SAND-15")
async def test_a_file_with_a_name_outside_keeps_its_metadata_under_landlock(room: Room) -> None:
    outside = room.home / "outside"
    outside.write_text("mine")
    for name in ("hard", "removed", "replaced"):
        os.link(outside, room.workspace / name)
    marked(outside)
    before = facts(outside)[outside][:4]  # removing one of the names changes the time of change
    said = await room.tries(
        CALLS
        + """
removed, replaced = os.open("removed", os.O_RDONLY), os.open("replaced", os.O_RDONLY)
def remove():
    os.unlink("removed")
    return call(FCHMOD, removed, 0o777)
def replace():
    os.rename("hard", "kept")
    open("new", "w").close()
    os.rename("new", "replaced")
    os.unlink("kept")
    return call(FCHMOD, replaced, 0o777)
say(
    chmod=tried(lambda: done(lambda: os.chmod("hard", 0o777))),
    times=tried(lambda: done(lambda: os.utime("hard", (1, 1)))),
    attribute=tried(lambda: done(lambda: os.setxattr("hard", "user.new", b"x"))),
    owner=tried(lambda: done(lambda: os.chown("hard", uid, gid))),
    another=tried(lambda: done(lambda: os.link("hard", "again") or os.chmod("again", 0o777))),
    removed=tried(remove),
    replaced=tried(replace),
)
"""
    )
    if room.protection.name == "Landlock":
        assert set(said.values()) == {"PermissionError"}, said
        assert facts(outside)[outside][:4] == before


@pytest.mark.promise("SAND-15")
async def test_hidden_places_in_the_workspace_keep_their_metadata(room: Room) -> None:
    key = room.home / ".ssh/id"
    before = facts(key, room.home / ".ssh", room.state)
    said = await room._replace(workspace=room.home).tries(
        """
names = (".ssh", ".ssh/id", "handrail", "handrail/log", "code/../.ssh/id")
say(**{name: tried(lambda: os.chmod(name, 0o777)) for name in names})
"""
    )
    assert facts(*before) == before, said


INSIDE = (
    CALLS
    + """
import shutil, subprocess, tarfile, tempfile
def mode(path):
    return oct(os.stat(path).st_mode & 0o7777)
def write_file(path, mode=0o644):
    os.close(os.open(path, os.O_WRONLY | os.O_CREAT, mode))
def number(action):
    try:
        return action()
    except OSError as error:
        return error.errno
write_file("a")
os.chmod("a", 0o751)
os.symlink("a", "to-a")
os.symlink(os.path.abspath("a"), "absolute")
found = {"chmod": mode("a")}
os.chmod("to-a", 0o640)
found["link"] = mode("a")
os.chmod("absolute", 0o641)
found["absolute link"] = mode("a")
fd = os.open("a", os.O_RDONLY)
os.fchmod(fd, 0o642)
found["fchmod"] = mode("a")
os.chmod(f"/proc/self/fd/{fd}", 0o643)
found["own descriptor"] = mode("a")
bare = os.open("a", os.O_PATH)
found["empty path"] = number(lambda: call(FCHMODAT2, bare, b"", 0o644, EMPTY))
found["its mode"] = mode("a")
os.utime("a", ns=(1_000_000_001, 2_000_000_002))
found["times"] = [os.stat("a").st_atime_ns, os.stat("a").st_mtime_ns]
os.utime("to-a", ns=(5, 5), follow_symlinks=False)
found["times of link"] = [os.lstat("to-a").st_mtime_ns, os.stat("a").st_mtime_ns]
call(UTIMENSAT, HERE, b"a", (ctypes.c_long * 4)(0, (1 << 30) - 2, 7, 7), 0)
found["one time"] = [os.stat("a").st_atime_ns, os.stat("a").st_mtime_ns]
os.utime("a")
found["now"] = os.stat("a").st_mtime > 1_000_000_000
os.chown("a", uid, gid)
os.lchown("to-a", uid, gid)
os.mkdir("folder")
os.chmod("folder", 0o2750)
found["folder"] = mode("folder")
inner = os.open("folder", os.O_RDONLY)
write_file("folder/b")
os.chmod("b", 0o600, dir_fd=inner)
found["in folder"] = mode("folder/b")
os.link("a", "second")
os.chmod("second", 0o604)
found["second name"] = mode("a")
gone = os.open("gone", os.O_RDWR | os.O_CREAT)
os.unlink("gone")
os.fchmod(gone, 0o600)
found["no name"] = oct(os.fstat(gone).st_mode & 0o777)
handle, temporary = tempfile.mkstemp()
os.chmod(temporary, 0o611)
found["temp"] = mode(temporary)
shutil.copy2("a", "copied")
found["copy2"] = os.stat("copied").st_mtime_ns == os.stat("a").st_mtime_ns
found["missing"] = number(lambda: os.chmod("missing", 0o600))
found["bad descriptor"] = number(lambda: call(FCHMOD, 999, 0o600))
found["no descriptor"] = number(lambda: call(FCHMOD, HERE, 0o600))
found["no path"] = number(lambda: call(UTIMENSAT, HERE, None, times, 0))
found["empty path without flag"] = number(lambda: call(FCHMODAT, HERE, b"", 0o600))
found["folder by descriptor"] = number(lambda: call(FCHOWNAT, inner, b"", uid, gid, EMPTY))
found["bad address"] = number(lambda: call(FCHMODAT, HERE, 8, 0o600))
found["bad flags"] = number(lambda: call(UTIMENSAT, HERE, b"a", times, 0x40))
found["long path"] = number(lambda: call(FCHMODAT, HERE, b"x" * 5000, 0o600))
found["not a folder"] = number(lambda: os.chmod("a/b", 0o600))
try:
    os.setxattr("a", "user.one", b"1" * 100)
    os.setxattr(fd, "user.two", b"")
    found["attributes"] = sorted(n for n in os.listxattr("a") if n.startswith("user."))
    found["value"] = len(os.getxattr("a", "user.one"))
    os.removexattr("a", "user.one")
    found["created twice"] = number(lambda: os.setxattr("a", "user.two", b"", os.XATTR_CREATE))
    found["removed"] = [n for n in os.listxattr("a") if n.startswith("user.")]
except OSError as error:
    found["no attributes"] = error.errno
say(**found)
"""
)


@pytest.mark.promise("SAND-16")
async def test_metadata_inside_is_changed_exactly_as_without_a_sandbox(room: Room, tmp_path: Path) -> None:
    (room.workspace / "new").mkdir()
    said = await room._replace(workspace=room.workspace / "new").tries(INSIDE)
    free = tmp_path / "free"
    free.mkdir()
    unconfined = furnished(free, Protection())
    # Memory and results as the kernel itself gives them.
    assert said == await unconfined.tries(INSIDE)
    assert (said["chmod"], said["second name"], said["temp"]) == ("0o751", "0o604", "0o611")
    assert (said["missing"], said["bad descriptor"], said["bad address"]) == (2, 9, 14)


TOOLS = r"""
set -euo pipefail
umask 022
echo one >a; chmod 754 a; touch -d 2001-02-03T04:05:06Z a
cp -p a copied; install -m 711 a installed; cp -a a archived
mkdir -p tree/sub; echo two >tree/sub/b; chmod 600 tree/sub/b; chmod 2750 tree/sub; ln -s ../a tree/link
touch -d 2002-01-01T00:00:00Z tree/sub/b tree/sub
tar -cf tree.tar tree; mkdir out; tar -xpf tree.tar -C out
"$PYTHON" -m venv --without-pip env; env/bin/python -c 'print("venv")'
"$PYTHON" -c 'import tarfile; tarfile.open("tree.tar").extractall("extracted")' 2>/dev/null
git init -q repository; cd repository; echo x >f; chmod +x f
git -c user.name=x -c user.email=x@x add f; git ls-files -s f | cut -c1-6; cd ..
stat -c '%a %Y' a copied archived out/tree/sub out/tree/sub/b extracted/tree/sub/b
stat -c '%a' installed
"""


@pytest.mark.promise("SAND-16")
async def test_ordinary_tools_keep_modes_and_times_inside(
    room: Room, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PYTHON", sys.executable)
    ended, output = await room.run("bash", "-c", TOOLS, timeout=120)
    assert ended.code == 0, output
    then, later = 981173106, 1009843200
    assert output.split("\n")[:-1] == [
        *("venv", "100755"),
        *(f"754 {then}" for _ in range(3)),
        *(f"2750 {later}", f"600 {later}", f"600 {later}"),
        "711",
    ]


@pytest.mark.promise("SAND-16")
async def test_nothing_that_a_command_asks_for_stops_the_supervisor(room: Room) -> None:
    said = await room.tries(
        CALLS
        + """
import random, signal
random.seed(7)
numbers = [FCHMOD, FCHMODAT, FCHMODAT2, FCHOWN, FCHOWNAT, UTIMENSAT, SETXATTR, LSETXATTR, FSETXATTR]
numbers += [REMOVEXATTR, LREMOVEXATTR, FREMOVEXATTR] + ([] if arm else [90, 92, 94, 132, 235, 261])
open("f", "w").close()
text = ctypes.create_string_buffer(b"f")
values = [0, 1, 3, -1, -100, 1 << 31, 1 << 63, (1 << 64) - 1, ctypes.addressof(text)]
for _ in range(3000):
    tried(lambda: call(random.choice(numbers), *(random.choice(values) for _ in range(6))))
def loop():
    while True:
        os.chmod("f", 0o600)
children = []
for _ in range(30):
    child = os.fork()
    if child == 0:
        loop()
    children.append(child)
for _ in range(200):
    os.chmod("f", 0o640)
for child in children:  # in the middle of a call, most of them
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
ticks = []
signal.signal(signal.SIGALRM, lambda *_: ticks.append(1))
signal.siginterrupt(signal.SIGALRM, False)
signal.setitimer(signal.ITIMER_REAL, 0.0005, 0.0005)
while len(ticks) < 50:
    os.chmod("f", 0o604)
signal.setitimer(signal.ITIMER_REAL, 0)
many = []
for _ in range(100):
    child = os.fork()
    if child == 0:
        for _ in range(10):
            os.chmod("f", 0o644)
        os._exit(0)
    many.append(child)
ended = [os.waitpid(child, 0)[1] for child in many]
os.chmod("f", 0o605)
say(mode=oct(os.stat("f").st_mode & 0o777), ended=sum(ended))
"""
    )
    assert said == {"mode": "0o605", "ended": 0}


@pytest.mark.promise("SAND-15")
def test_what_is_promised_here_holds_in_a_sandbox_of_this_machine() -> None:
    assert sys.platform != "linux" or any(found.metadata for found in working())


async def test_kernel_settings_cannot_be_written(room: Room) -> None:
    said: dict[str, Any] = await room.tries(
        """
names = ("sys/kernel/core_pattern", "sys/vm/swappiness", "sys/kernel/hostname")
say(**{name: tried(lambda: os.close(os.open("/proc/" + name, os.O_WRONLY))) for name in names})
"""
    )
    assert None not in said.values(), said
