"""Mode `sandbox`: what commands can and cannot do, under each sandbox that works here."""

import os
import socket
import subprocess
from collections.abc import Callable
from pathlib import Path

import anyio
import pytest

from handrail.changes.apply import apply
from handrail.changes.undo import plan_undo, undo_change_set
from handrail.protocol.errors import UsageProblem
from handrail.protocol.events import ChangePrepared, ModeSet
from handrail.sessions.change_history import session_changes
from handrail.tools.sandbox.full_sandbox import INSTALL, check_mode, coverage_notice
from handrail.tools.sandbox.protected_paths import MAX_PATHS
from handrail.tools.sandbox.sandbox import Protection, Sandbox
from handrail.workspace.stat_index import snapshot
from tests.system.hundred_commands import manifest
from tests.tools.calls import Bench

pytestmark = pytest.mark.anyio
MakeBench = Callable[..., Bench]


@pytest.fixture
def mode(make_bench: MakeBench, protection: Protection) -> Callable[..., Bench]:
    """A bench in mode sandbox, with nobody to ask unless said otherwise."""

    def make(**options: object) -> Bench:
        return make_bench("sandbox", sandbox=Sandbox(found=protection), **{"answerable": False, **options})

    return make


def rewind(bench: Bench) -> None:
    """Take back everything, as a rewind does."""
    while True:
        made = [change.prepared for change in session_changes(bench.session.log, bench.session.id)]
        plan = plan_undo(bench.session.log, bench.workspace, made)
        change_set = undo_change_set(plan)
        if change_set:
            apply(bench.session, bench.workspace, change_set, emptied=plan.emptied)
        if not plan.first:
            return


def recorded(bench: Bench) -> set[str]:
    events = [event for event in bench.events() if isinstance(event, ChangePrepared)]
    return {file.path for event in events for file in event.files}


def make_repository_in(root: Path) -> None:
    subprocess.run(["git", "init", "-q", str(root)], check=True)


# What is closed


@pytest.mark.promise("POL-40")
async def test_there_is_no_network_and_no_local_service(mode: Callable[..., Bench], tmp_path: Path) -> None:
    bench = mode()
    (tmp_path / "run").mkdir()
    with socket.socket() as tcp, socket.socket(socket.AF_UNIX) as local:
        tcp.bind(("127.0.0.1", 0))
        tcp.listen()
        path = str(tmp_path / "run/s")
        local.bind(path)
        local.listen()
        program = (
            "import socket\n"
            f"for kind, address in ((socket.AF_INET, ('127.0.0.1', {tcp.getsockname()[1]})),"
            f" (socket.AF_UNIX, {path!r})):\n"
            "    try:\n"
            "        socket.socket(kind).connect(address)\n"
            "        print('CONNECTED', kind)\n"
            "    except OSError as error:\n"
            "        print(error)\n"
            "one, other = socket.socketpair()\n"
            "one.send(b'pairs work')\n"
            "print(other.recv(10).decode())\n"
        )
        finished = await bench.call("run", command=f"python3 - <<'E'\n{program}E")
    assert finished.status == "ok", finished.content
    assert "CONNECTED" not in finished.content
    assert "pairs work" in finished.content


@pytest.mark.promise("POL-40")
async def test_nothing_outside_and_nothing_of_gits_or_ours_is_written(
    mode: Callable[..., Bench], tmp_path: Path
) -> None:
    bench = mode()
    make_repository_in(bench.root)
    (bench.root / ".handrail").mkdir()
    (bench.root / ".handrail/settings").write_text("ours")
    (tmp_path / "outside").mkdir()
    before = {path: each for path, each in manifest(tmp_path).items() if "log" not in path.split("/")}
    hidden = "chr(46)+'git/hooks/pre-commit'"
    await bench.call(
        "run",
        command=f"""
        python3 -c "open({hidden}, 'w').write('evil')"
        x={tmp_path}/outside; cd "$x" && echo x > new; ln -s "$x" out; echo x > out/through
        g=.git; echo evil >> "$g/config"; h=.handrail; echo evil > "$h/settings"
        cd {bench.root}; rm -f out
        """,
    )
    after = {path: each for path, each in manifest(tmp_path).items() if "log" not in path.split("/")}
    changed = {path for path, _ in before.items() ^ after.items()}
    protection = await bench.tools.run_tool._sandbox.protection()
    if protection.name == "Landlock":  # which cannot close a part of the workspace
        changed = {path for path in changed if not path.startswith(("work/.git", "work/.handrail"))}
    assert not changed


@pytest.mark.promise("POL-40")
async def test_limits_still_end_a_command(mode: Callable[..., Bench]) -> None:
    bench = mode()
    finished = await bench.call("run", command="echo before > made; while :; do :; done", timeout=0.5)
    assert finished.error
    assert finished.error.reason == "timeout"
    assert recorded(bench) == {"made"}


# What needs more than the mode gives


@pytest.mark.promise("POL-42")
@pytest.mark.parametrize(
    ("command", "reason"),
    [
        ("git commit -am x", "`.git` is closed"),
        ("for f in a b; do git add $f; done", "`.git` is closed"),
        ("git -C . -c a=b stash && echo $(git status)", "`.git` is closed"),
        ("x=$(git checkout main)", "`.git` is closed"),
        ("timeout 5 git merge x", "`.git` is closed"),
        ("env A=1 /usr/bin/git rebase x", "`.git` is closed"),
        ("bash -c 'git reset --hard'", "`.git` is closed"),
        ("git branch new", "`.git` is closed"),
        ("git tag -a v1 -m x", "`.git` is closed"),
        ("git config user.name me", "`.git` is closed"),
        ("echo x > ~/../../somewhere/else/f", "Write inside the workspace"),
        ("echo x > /etc/motd", "Write inside the workspace"),
        ("cp a.txt ../b.txt", "Write inside the workspace"),
    ],
)
async def test_headless_it_is_refused_with_a_reason_to_act_on(
    mode: Callable[..., Bench], command: str, reason: str
) -> None:
    finished = await mode().call("run", command=command)
    if "~" in command:  # not known to be outside: it runs, and fails
        assert finished.status == "failed"
        return
    assert finished.status == "refused", finished.content
    assert reason in finished.content


@pytest.mark.promise("POL-42")
async def test_the_network_is_refused_headless_and_asked_about_otherwise(mode: Callable[..., Bench]) -> None:
    refused = await mode().call("run", command="true", network=True)
    assert "There is no network in mode sandbox" in refused.content
    bench = mode(answerable=True)
    allowed = await bench.call("run", command="true", network=True)
    assert [asked.why for asked in bench.user.asked] == ["the command needs the network"]
    assert allowed.summary.endswith("with network")


@pytest.mark.promise("POL-42")
async def test_git_that_reads_runs_unasked(mode: Callable[..., Bench]) -> None:
    bench = mode()
    make_repository_in(bench.root)
    for command in (
        *("git status; git diff", "git log || true", "git branch -a", "git tag -l 'v*'", "git stash list"),
        *("git config --get core.bare", "git remote -v", "git worktree list", "git grep x || true"),
    ):
        assert (await bench.call("run", command=command)).status == "ok", command


@pytest.mark.promise("POL-43")
async def test_an_approved_place_outside_is_writable_for_one_command(
    mode: Callable[..., Bench], tmp_path: Path
) -> None:
    bench = mode(answerable=True)
    other = tmp_path / "other"
    other.mkdir()
    finished = await bench.call("run", command=f"echo x > {other}/new; echo y > here")
    assert finished.status == "ok", finished.content
    assert "outside the workspace" in bench.user.asked[0].why
    assert "NOT RECORDED" in finished.summary
    assert (other / "new").read_text() == "x\n"
    assert recorded(bench) == {"here"}
    await bench.call("run", command=f"x={other}; echo z > $x/second")
    assert os.listdir(other) == ["new"]


@pytest.mark.promise("POL-43")
async def test_no_approval_opens_handrails_files_secrets_or_what_holds_them(
    mode: Callable[..., Bench], tmp_path: Path, home: Path
) -> None:
    (home / ".ssh").mkdir()
    bench = mode(answerable=True)
    for place in (tmp_path / "log", tmp_path, home, home / ".ssh", Path("/tmp"), Path("/etc"), Path("/")):
        finished = await bench.call("run", command=f"echo x > {place}/handrail-test-new")
        private = str(place) == "/tmp" and "bubblewrap" in finished.summary
        assert private or finished.status == "refused", (place, finished.content)
        assert not (place / "handrail-test-new").exists()
    assert not bench.user.asked


@pytest.mark.promise("POL-44")
@pytest.mark.parametrize(
    "command",
    ["rm a", "x=$(rm a)", "timeout 5 rm a", "for f in *; do rm $f; done", "cd . && rm a", "rm \\\n a"],
)
async def test_denied_commands_are_denied(mode: Callable[..., Bench], command: str) -> None:
    bench = mode(deny=("rm",), answerable=True)
    (bench.root / "a").write_text("a")
    finished = await bench.call("run", command=command)
    assert finished.error
    assert finished.error.reason == "command_not_allowed"
    assert (bench.root / "a").exists()


@pytest.mark.promise("POL-44")
async def test_what_cannot_be_parsed_runs_only_without_a_list_of_denied_commands(
    mode: Callable[..., Bench],
) -> None:
    long = f"cat > long.txt <<'E'\n{'x' * 20_000}\nE"
    assert (await mode().call("run", command=long)).status == "ok"
    bench = mode(deny=("rm",))
    denied = await bench.call("run", command=f"{long}\nrm long.txt")
    assert "is on the list of denied commands" in denied.content
    refused = await bench.call("run", command=f"{long}\nr''m long.txt")
    assert "commands.deny cannot be checked" in refused.content


@pytest.mark.promise("POL-42")
async def test_files_that_run_something_outside_are_asked_about_or_named(mode: Callable[..., Bench]) -> None:
    bench = mode()
    for command in ("mkdir -p .vscode; echo x > .vscode/tasks.json", "cp a .github/workflows/x.yml"):
        refused = await bench.call("run", command=command)
        assert "can make other programs run something" in refused.content
    hidden = await bench.call("run", command="python3 -c \"open(chr(46)+'mcp.json', 'w').write('{}')\"")
    assert "LOOK AT .mcp.json" in hidden.summary


# Where it can be used


@pytest.mark.promise("POL-41")
@pytest.mark.parametrize("lacks", ["files", "secrets", "tcp", "udp", "children"])
async def test_a_sandbox_that_is_not_full_is_refused_and_runs_nothing(
    make_bench: MakeBench, protection: Protection, lacks: str
) -> None:
    from msgspec.structs import replace

    weaker = replace(protection, **{lacks: False})
    bench = make_bench("sandbox", sandbox=Sandbox(found=weaker))
    finished = await bench.call("run", command="echo x > made")
    assert finished.error
    assert finished.error.reason == "mode_forbids"
    assert INSTALL in finished.content
    assert os.listdir(bench.root) == []
    with pytest.raises(UsageProblem, match="apt install bubblewrap"):
        await check_mode(weaker, bench.workspace, (), bench.session)


@pytest.mark.promise("POL-41")
async def test_a_mode_that_is_changed_before_the_command_runs_counts(
    make_bench: MakeBench, protection: Protection
) -> None:
    """A command that was read in another mode is not confined as this one wants it."""
    bench = make_bench("ask", sandbox=Sandbox(found=protection))
    bench.user.while_thinking = lambda: bench.session.append(ModeSet(mode="sandbox"))
    finished = await bench.call("run", command="echo x > made")
    assert finished.status == "refused"
    assert not (bench.root / "made").exists()


@pytest.mark.promise("POL-45")
async def test_secrets_of_the_workspace_cannot_be_read(mode: Callable[..., Bench]) -> None:
    bench = mode()
    (bench.root / "deploy").mkdir()
    (bench.root / ".gitignore").write_text("deploy/\n")
    for path in (".env", "deploy/id_rsa"):
        (bench.root / path).write_text("hunter2")
    finished = await bench.call(
        "run", command="cat .env deploy/*; cp -r . copy; rm -rf .env deploy; grep -r hunter . "
    )
    protection = await bench.tools.run_tool._sandbox.protection()
    assert "hunter2" not in finished.content
    assert (bench.root / ".env").read_text() == (bench.root / "deploy/id_rsa").read_text() == "hunter2"
    if protection.name == "Landlock":
        assert finished.status == "refused"
        assert ".env, deploy/id_rsa" in finished.content
        assert "commands.readable_secrets" in finished.content
        with pytest.raises(UsageProblem, match=r"\.env, deploy/id_rsa"):
            await check_mode(protection, bench.workspace, (), bench.session)


@pytest.mark.promise("POL-45")
async def test_a_named_file_is_readable_and_a_made_one_too(mode: Callable[..., Bench]) -> None:
    bench = mode(readable_secrets=(".env.test", "fixtures/**"))
    (bench.root / ".env.test").write_text("for tests\n")
    (bench.root / "fixtures").mkdir()
    (bench.root / "fixtures/server.key").write_text("a test key\n")
    before = manifest(bench.root)
    read = await bench.call(
        "run", command="cat .env.test fixtures/server.key; cp .env.test .env; echo A=1 >> .env"
    )
    assert "for tests\na test key" in read.content
    again = await bench.call(
        "run", command="cat .env; echo B=2 >> .env; rm .env.test; echo x > fixtures/server.key"
    )
    assert "A=1" in again.content
    rewind(bench)
    assert manifest(bench.root) == before


@pytest.mark.promise("POL-45")
async def test_a_made_file_that_the_user_has_edited_is_theirs(mode: Callable[..., Bench]) -> None:
    bench = mode()
    assert (await bench.call("run", command="echo A=1 > .env")).status == "ok"
    (bench.root / ".env").write_text("A=hunter2")
    finished = await bench.call("run", command="cat .env")
    assert finished.status in ("failed", "refused")
    assert "hunter2" not in finished.content


@pytest.mark.promise("POL-45")
async def test_more_secrets_than_can_be_closed_close_the_mode(mode: Callable[..., Bench]) -> None:
    bench = mode()
    for number in range(MAX_PATHS + 1):
        (bench.root / f"{number}.pem").write_text("key")
    finished = await bench.call("run", command="cat *.pem")
    assert finished.status == "refused"
    assert "key" not in finished.content.replace("keys", "")


async def test_a_file_with_a_name_outside_is_not_written_through(
    mode: Callable[..., Bench], tmp_path: Path
) -> None:
    bench = mode()
    (tmp_path / "theirs").write_text("old")
    os.link(tmp_path / "theirs", bench.root / "linked")
    await bench.call("run", command="echo new > linked")
    assert (tmp_path / "theirs").read_text() == "old"


# What is recorded


@pytest.mark.promise("CMD-20")
@pytest.mark.parametrize(
    "command",
    [
        "echo more >> a.txt; truncate -s 1 b.bin; : > sub/c",
        "rm -rf sub; mv a.txt z.txt; chmod 755 b.bin; chmod 700 keep",
        "rm a.txt && mkdir a.txt && touch a.txt/inside; rm -r sub && ln -s keep sub",
        "ln -sfn keep link; rm dangling; ln -s a.txt new; ln -s loop loop; ln -s /etc abroad",
        "rmdir keep/empty; mkdir -p one/two/three; mkdir -m 500 closed; mv sub one/",
        "rm .gitignore; echo x > log.log; rm old.log; rm -rf cache; mkdir cache; echo y > cache/other",
        "rm fifo; mkfifo -m 604 pipe; python3 -c \"import os; os.mknod('sock', 0o140644)\" || true",
        r"printf x > $'bad\377'; mkdir $'bad\376'; printf y > $'bad\376/f\n'; mv a.txt $'\375'",
        "chmod 000 a.txt; chmod 000 sub; mkdir shut; echo x > shut/f; chmod 000 shut",
        "mkdir -p many; for i in {1..2500}; do : > many/$i; done",
        "truncate -s 70M huge; head -c 300000 /dev/zero > big; ln b.bin hard; echo x >> hard",
        "cp -a . ./copy 2>/dev/null; tar cf all.tar --exclude=all.tar .; rm -rf keep sub link a.txt",
    ],
)
async def test_whatever_a_shell_does_to_a_tree_is_given_back(
    mode: Callable[..., Bench], command: str
) -> None:
    bench = mode()
    root = bench.root
    (root / "a.txt").write_text("one\ntwo\n")
    (root / "b.bin").write_bytes(os.urandom(400_000))
    for folder in ("sub/deep", "keep/empty", "cache"):
        (root / folder).mkdir(parents=True)
    (root / "sub/c").write_text("c")
    (root / "sub/deep/d").write_text("d")
    (root / ".gitignore").write_text("*.log\ncache/\n")
    (root / "old.log").write_text("log\n")
    (root / "cache/kept").write_text("cached\n")
    (root / "link").symlink_to("a.txt")
    (root / "dangling").symlink_to("nowhere")
    os.mkfifo(root / "fifo", 0o640)
    before = manifest(root)
    finished = await bench.call("run", command=command)
    assert finished.status == "ok", finished.content
    assert manifest(root) != before
    rewind(bench)
    assert manifest(root) == before


@pytest.mark.promise("CMD-20")
async def test_what_is_too_large_to_copy_is_said_before_and_after(
    mode: Callable[..., Bench],
) -> None:
    bench = mode()
    with (bench.root / "huge").open("wb") as file:
        file.truncate(70_000_000)
    index = snapshot(bench.root, everything=True)
    assert "huge (70 MB)" in coverage_notice(index, ())
    finished = await bench.call("run", command="echo x >> huge; echo y > small")
    assert "UNDO CANNOT GIVE BACK huge" in finished.summary
    plan = plan_undo(
        bench.session.log,
        bench.workspace,
        [change.prepared for change in session_changes(bench.session.log, bench.session.id)],
    )
    assert [(conflict.path, conflict.kind) for conflict in plan.conflicts] == [("huge", "lost")]


@pytest.mark.promise("CMD-21")
async def test_what_a_command_in_the_background_changes_is_recorded(mode: Callable[..., Bench]) -> None:
    bench = mode()
    (bench.root / "a.txt").write_text("one\n")
    before = manifest(bench.root)
    with anyio.fail_after(120):
        async with bench.tools.background.open_for(bench.session):
            await bench.call(
                "run",
                command="until [ -e go ]; do sleep 0.05; done; echo two >> a.txt; touch done; sleep 600",
                background=True,
            )
            await bench.call(
                "run", command="echo x > between; touch go; until [ -e done ]; do sleep 0.05; done"
            )
            await bench.call("run", command="(echo late > late.txt); true")
            await bench.call("run", command="touch last", background=True)
            await bench.call("background", id="b2", wait=60)
            await bench.call("background", id="b1", stop=True)
    assert recorded(bench) == {"a.txt", "between", "go", "done", "late.txt", "last"}
    rewind(bench)
    assert manifest(bench.root) == before


@pytest.mark.promise("POL-45")
async def test_a_secret_does_not_move_with_its_folder(make_bench: MakeBench, protection: Protection) -> None:
    bench = make_bench("sandbox", sandbox=Sandbox(found=protection), answerable=False)
    (bench.root / "config/deep").mkdir(parents=True)
    (bench.root / "config/deep/.env").write_text("KEY=value-4711\n")
    for move in ("mv config other", "mv config/deep d", "mkdir node_modules && mv config node_modules/"):
        await bench.call("run", command=move)
        shown = await bench.call(
            "run", command="find . -name .env -exec cat {} +; cat */.env */*/.env */*/*/.env"
        )
        assert "4711" not in shown.content, move


@pytest.mark.promise("CMD-20")
async def test_a_workspace_that_a_command_closes_is_opened_again(mode: Callable[..., Bench]) -> None:
    bench = mode()
    (bench.root / "src").mkdir()
    (bench.root / "src/a.py").write_text("a\n")
    before = manifest(bench.root)
    await bench.call("run", command="rm -rf src; chmod 0 .")
    assert recorded(bench) == {"src/a.py"}
    rewind(bench)
    assert manifest(bench.root) == before


@pytest.mark.promise("POL-40")
async def test_a_pair_of_sockets_reaches_no_service(mode: Callable[..., Bench], tmp_path: Path) -> None:
    bench = mode()
    script = """
import socket, sys
one, two = socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM)
one.connect(sys.argv[1])
one.send(b"hello")
"""
    (bench.root / "reach.py").write_text(script)
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as service:
        service.bind(str(tmp_path / "service"))
        service.settimeout(0)
        finished = await bench.call("run", command=f"python3 reach.py {tmp_path}/service")
        assert finished.status == "failed"
        with pytest.raises(BlockingIOError):
            service.recv(10)
    stream = "python3 -c 'import socket; a, b = socket.socketpair(); a.send(b\"x\"); print(b.recv(1))'"
    assert "b'x'" in (await bench.call("run", command=stream)).content
