"""What a confined program can do, tried by real programs in every sandbox that works here."""

import fcntl
import os
import socket
import sys
import tempfile
from pathlib import Path

import pytest

from handrail.tools.sandbox.sandbox import Protection
from tests.tools.sandbox.machine import working
from tests.tools.sandbox.room import Room, furnished

pytestmark = pytest.mark.anyio


@pytest.fixture
def room(home: Path, protection: Protection) -> Room:
    return furnished(home, protection)


@pytest.mark.promise("SAND-1")
def test_linux_has_a_sandbox_that_confines_files_and_network() -> None:
    assert sys.platform != "linux" or any(found.files and found.offline for found in working())


@pytest.mark.promise("SAND-2")
async def test_a_program_writes_in_the_workspace_and_its_temp_folder_and_nowhere_else(room: Room) -> None:
    said = await room.tries(
        """
import tempfile
home = sys.argv[1]
say(
    workspace=tried(lambda: write("new")),
    temp=tried(lambda: write(tempfile.mkstemp()[1])),
    cache=tried(lambda: os.makedirs(os.environ["XDG_CACHE_HOME"])),
    home=tried(lambda: write(home + "/new")),
    existing=tried(lambda: write(home + "/.bashrc")),
    emptied=tried(lambda: os.truncate(home + "/.bashrc", 0)),
    removed=tried(lambda: os.unlink(home + "/.bashrc")),
    moved=tried(lambda: os.rename("new", home + "/new")),
    linked=tried(lambda: os.link(home + "/.bashrc", "linked")),
    state=tried(lambda: write(home + "/handrail/new")),
    keys=tried(lambda: write(home + "/.ssh/authorized_keys")),
    system=tried(lambda: write("/usr/local/new")),
)
""",
        str(room.home),
    )
    done = {name for name, result in said.items() if result in ("written", None)}
    assert done == {"workspace", "temp", "cache"}
    assert (room.workspace / "new").read_text() == "x"
    assert (room.home / ".bashrc").read_text() == "mine"
    assert not (room.home / "new").exists()
    assert not (room.home / ".ssh/authorized_keys").exists()


@pytest.mark.promise("SAND-3")
async def test_git_and_handrails_files_in_the_workspace_are_as_safe_as_the_sandbox_says(room: Room) -> None:
    said = await room.tries(
        """
say(
    hook=tried(lambda: write(".git/hooks/pre-commit")),
    settings=tried(lambda: write(".handrail/config.toml")),
    away=tried(lambda: os.rename(".git", "git")),
)
"""
    )
    if room.protection.git:
        assert not {"written", None} & set(said.values())
        assert not (room.workspace / ".git/hooks/pre-commit").exists()
    else:
        assert (
            "git's settings and Handrail's files are restored after a command, not closed"
            in room.protection.missing
        )


@pytest.mark.promise("SAND-4")
async def test_keys_of_the_home_and_handrails_own_data_cannot_be_read(room: Room) -> None:
    (room.home / "keys").symlink_to(room.home / ".ssh")
    said = await room.tries(
        """
home = sys.argv[1]
names = (".ssh/id", "keys/id", ".netrc", ".config/gh/hosts.yml", "handrail/log")
say(**{name: tried(lambda: read(home + "/" + name)) for name in names})
""",
        str(room.home),
    )
    assert "secret" not in said.values()


@pytest.mark.promise("SAND-4")
async def test_a_secret_file_that_a_variable_names_cannot_be_read_and_its_name_is_not_told(
    room: Room, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number, name in enumerate(("GOOGLE_APPLICATION_CREDENTIALS", "KUBECONFIG", "PGPASSFILE")):
        file = room.home / f"plain-{number}"
        file.write_text("secret")
        monkeypatch.setenv(name, str(file))
    monkeypatch.setenv("GIT_ASKPASS", "/bin/true")
    said = await room.tries(
        """
home = sys.argv[1]
say(
    files=[tried(lambda: read(f"{home}/plain-{number}")) for number in range(3)],
    told=[name for name in os.environ if "CREDENTIALS" in name or name in ("PGPASSFILE", "GIT_ASKPASS")],
)
""",
        str(room.home),
    )
    assert "secret" not in said["files"]
    assert said["told"] == []


@pytest.mark.promise("SAND-4")
async def test_keys_stay_unreadable_also_when_the_home_is_the_workspace(room: Room) -> None:
    said = await room._replace(workspace=room.home).tries(
        """
say(
    key=tried(lambda: read(".ssh/id")),
    log=tried(lambda: read("handrail/log")),
    plain=tried(lambda: read(".bashrc")),
    inside=tried(lambda: write("code/new")),
    added=tried(lambda: write(".ssh/authorized_keys")),
)
"""
    )
    assert "secret" not in said.values()
    assert (said["plain"], said["inside"]) == ("mine", "written")
    assert not (room.home / ".ssh/authorized_keys").exists()


async def test_programs_and_settings_of_the_user_stay_of_use(
    room: Room, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", f"{room.home}/.cargo/bin:{os.environ['PATH']}")
    ended, output = await room.run("bash", "-c", 'tool && cat "$HOME/.config/tool.toml"')
    assert (ended.code, output) == (0, "works\nplain")


CONNECT = """
tcp, udp = int(sys.argv[1]), int(sys.argv[2])
def connect():
    socket.create_connection(("127.0.0.1", tcp), timeout=5).close()
    return "connected"
def send():
    socket.socket(socket.AF_INET, socket.SOCK_DGRAM).sendto(b"x", ("127.0.0.1", udp))
    return "sent"
say(tcp=tried(connect), udp=tried(send))
"""


@pytest.mark.promise("SAND-5")
@pytest.mark.parametrize("network", [False, True])
async def test_nothing_outside_is_reached_over_the_network_unless_it_was_asked_for(
    room: Room, network: bool
) -> None:
    with (
        socket.create_server(("127.0.0.1", 0)) as tcp,
        socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as udp,
    ):
        udp.bind(("127.0.0.1", 0))
        ports = [str(each.getsockname()[1]) for each in (tcp, udp)]
        said = await room.tries(CONNECT, *ports, network=network)
        for server, kind in ((tcp, "tcp"), (udp, "udp")):
            server.settimeout(0)
            try:
                server.recv(1) if server is udp else server.accept()[0].close()
                arrived = True
            except BlockingIOError:
                arrived = False
            assert arrived == (network or not getattr(room.protection, kind))
    assert (said["tcp"] == "connected") == (network or not room.protection.tcp)


@pytest.mark.promise("SAND-5")
async def test_local_services_are_as_far_as_the_sandbox_says(room: Room) -> None:
    with (
        tempfile.TemporaryDirectory(dir="/tmp") as folder,
        socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as named,
        socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as abstract,
    ):
        named.bind(f"{folder}/socket")
        abstract.bind(f"\0handrail-{os.getpid()}")
        for server in (named, abstract):
            server.listen()
        said = await room.tries(
            """
def connect(address):
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as client:
        client.settimeout(5)
        client.connect(address)
    return "connected"
say(named=tried(lambda: connect(sys.argv[1])), abstract=tried(lambda: connect("\\0" + sys.argv[2])))
""",
            f"{folder}/socket",
            f"handrail-{os.getpid()}",
        )
    assert (said["named"] == "connected") != room.protection.sockets
    told = "local services (session bus, docker) can be reached"
    assert (told in room.protection.missing) != room.protection.sockets
    if room.protection.name == "bubblewrap":
        assert said["abstract"] != "connected"


async def test_a_link_made_by_the_command_leads_nowhere(room: Room) -> None:
    said = await room.tries(
        """
home = sys.argv[1]
os.symlink(home, "out")
os.symlink(home + "/.ssh", "keys")
say(through=tried(lambda: write("out/new")), keys=tried(lambda: read("keys/id")))
""",
        str(room.home),
    )
    assert {"written", "secret"}.isdisjoint(said.values())
    assert not (room.home / "new").exists()


async def test_other_processes_are_no_way_out(room: Room, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NOTE_KEY", "secret")
    said = await room.tries(
        """
home, ours = sys.argv[1], sys.argv[2]
ways = {}
for pid in ("1", ours):
    for root in ("root", "cwd"):
        ways[pid + root] = tried(lambda: write(f"/proc/{pid}/{root}{home}/new"))
        ways[pid + root + "key"] = tried(lambda: read(f"/proc/{pid}/{root}{home}/.ssh/id"))
    ways[pid + "environ"] = tried(lambda: "secret" in read(f"/proc/{pid}/environ"))
    ways[pid + "memory"] = tried(lambda: write(f"/proc/{pid}/mem"))
say(**ways)
""",
        str(room.home),
        str(os.getpid()),
    )
    assert {"written", "secret", True}.isdisjoint(said.values())
    assert not (room.home / "new").exists()


async def test_no_open_file_of_ours_is_inherited(room: Room) -> None:
    outside = room.home / ".bashrc"
    with outside.open("r+") as file:
        number = fcntl.fcntl(file.fileno(), fcntl.F_DUPFD, 200)  # one that nobody has
        said = await room.tries(
            """
for number in range(3, 2048):
    tried(lambda: os.write(number, b"x"))
say(open=[tried(lambda: os.readlink(f"/proc/self/fd/{number}")) for number in os.listdir("/proc/self/fd")])
"""
        )
        os.close(number)
    assert outside.read_text() == "mine"
    assert not [name for name in said["open"] if str(room.home) in name]


async def test_a_file_has_a_largest_size_and_there_are_no_core_dumps(room: Room) -> None:
    said = await room.tries(
        """
import resource
with open("big", "wb") as file:
    say(big=tried(lambda: file.truncate(9 << 30)), core=resource.getrlimit(resource.RLIMIT_CORE)[0])
"""
    )
    assert said == {"big": "OSError", "core": 0}


async def test_no_new_rights_can_be_had(room: Room) -> None:
    _, output = await room.run("grep", "-E", "NoNewPrivs|CapBnd|CapEff", "/proc/self/status")
    facts = dict(line.split(":\t") for line in output.splitlines())
    assert facts["NoNewPrivs"] == "1"
    # chown, dac_override, fowner and fsetid are what may be left, and only to root.
    assert int(facts["CapEff"], 16) & ~0b11011 == 0
    assert os.geteuid() == 0 or int(facts["CapEff"], 16) == 0


async def test_semaphores_and_a_local_pair_of_sockets_work(room: Room) -> None:
    said = await room.tries(
        """
import multiprocessing
one, other = socket.socketpair()
one.send(b"x")
say(lock=multiprocessing.Lock().acquire(timeout=1), pair=other.recv(1).decode())
"""
    )
    assert said == {"lock": True, "pair": "x"}


@pytest.mark.promise("SAND-8")
async def test_nothing_is_left_in_the_temp_folder(
    room: Room, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    command = (
        'mkdir -p "$TMPDIR/a/b"; echo x > "$TMPDIR/a/b/c"; ln -s "$HOME" "$TMPDIR/a/h"; chmod 000 "$TMPDIR/a"'
    )
    ended, _ = await room.run("bash", "-c", command)
    assert ended.code == 0
    assert list(tmp_path.iterdir()) == []
    assert (room.home / ".bashrc").read_text() == "mine"


async def test_a_command_that_is_not_there_says_so(room: Room) -> None:
    ended, _ = await room.run("no-such-command")
    assert ended.code == 127


@pytest.mark.promise("SAND-3")
async def test_policy_files_and_what_git_is_a_link_to_are_as_safe(room: Room) -> None:
    (room.workspace / ".git").rename(room.workspace / "store")
    (room.workspace / ".git").symlink_to("store")
    (room.workspace / ".orchestration").mkdir()
    (room.workspace / ".intentignore").write_text("INT-1\n")
    said = await room.tries(
        """
say(
    hook=tried(lambda: write("store/hooks/pre-commit")),
    ignored=tried(lambda: write(".intentignore")),
    removed=tried(lambda: os.unlink(".intentignore")),
    intents=tried(lambda: write(".orchestration/active_intents.yaml")),
    replaced=tried(lambda: write("new") and os.replace("new", ".intentignore")),
)
"""
    )
    if room.protection.git:
        assert not {"written", None} & set(said.values()), said
        assert (room.workspace / ".intentignore").read_text() == "INT-1\n"
