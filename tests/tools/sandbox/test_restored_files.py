"""Git's settings and Handrail's files after commands that wrote them, where the sandbox cannot close them."""

import os
import stat
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import anyio
import pytest
from msgspec.json import encode

from handrail.changes.intents_writer import write_intent_file
from handrail.changes.protected import restore as restoring
from handrail.changes.protected.restore import GuardedCommand, restore_after_crash
from handrail.changes.trace.trace_file import TraceFile
from handrail.protocol.events import ToolFinished
from handrail.tools.sandbox.sandbox import Protection, Sandbox
from handrail.workspace.disk import DISK
from handrail.workspace.intents_file import INTENTS_FILE
from tests.tools.calls import Bench

pytestmark = pytest.mark.anyio
MakeBench = Callable[..., Bench]
INTENTS = """active_intents:
  - id: CART
    name: The cart
    status: IN_PROGRESS
    owned_scope: [src/cart/**]
"""
WIDE = INTENTS.replace("src/cart/**", "'**'")
HOOK = "#!/bin/sh\nexit 0\n"


def git(folder: Path, *words: str) -> None:
    subprocess.run(
        ["git", "-C", str(folder), "-c", "protocol.file.allow=always", *words],
        check=True,
        timeout=60,
        capture_output=True,
    )


@pytest.fixture
def world(make_bench: MakeBench, protection: Protection) -> Bench:
    """Every command is approved, in a repository with a submodule, a nested one and a worktree."""
    bench = make_bench(sandbox=Sandbox(found=protection))
    root = bench.root
    for folder in (root, root / "nested", root.parent / "library"):
        folder.mkdir(exist_ok=True)
        git(folder, "init", "-q", "-b", "main")
        git(folder, "config", "user.name", "Ada")
        git(folder, "config", "user.email", "ada@example.org")
        (folder / "a.txt").write_text("one\n")
        git(folder, "add", "a.txt")
        git(folder, "commit", "-qm", "first")
    git(root, "submodule", "add", "-q", str(root.parent / "library"), "libs/one")
    git(root, "commit", "-qm", "library")
    git(root, "worktree", "add", "-q", str(root.parent / "tree"))
    hook = root / ".git/hooks/pre-commit"
    hook.parent.mkdir(exist_ok=True)
    hook.write_text(HOOK)
    hook.chmod(0o755)
    (root / ".git/hooks/post-merge").symlink_to("pre-commit")
    (root / ".handrail/agents").mkdir(parents=True)
    (root / ".handrail/config.toml").write_text("# ours\n")
    (root / ".orchestration").mkdir()
    (root / INTENTS_FILE).write_text(INTENTS)
    (root / ".intentignore").write_text("IDLE\n")
    return bench


def look(root: Path) -> dict[str, str]:
    """All that may not change, as it is."""
    found = {}
    gits = [root / ".git", root / "nested/.git", root / ".git/modules/libs/one", root / ".git/worktrees/tree"]
    names = ("config", "config.worktree", "commondir", "gitdir", "hooks", "info", "objects/info/alternates")
    tops = [git / name for git in gits for name in names]
    tops += [root / name for name in (".handrail", ".orchestration", ".intentignore", "libs/one/.git")]
    for top in tops:
        for path in (top, *sorted(top.rglob("*"))) if top.is_dir() and not top.is_symlink() else (top,):
            if os.path.lexists(path) and path.name not in ("agent_trace.jsonl", ".gitattributes"):
                mode = os.lstat(path).st_mode
                text = (
                    os.readlink(path) if stat.S_ISLNK(mode) else path.read_bytes() if path.is_file() else ""
                )
                found[str(path.relative_to(root))] = f"{mode:o} {text!r}"
    return found


async def attack(bench: Bench, script: str) -> ToolFinished:
    """What came of a script that the user approved, as commands go that nobody reads."""
    (bench.root / "evil.sh").write_text(script)
    await select(bench)
    return await bench.call("run", command="sh evil.sh")


async def select(bench: Bench) -> None:
    if not bench.session.state.intent:
        assert (await bench.call("select_active_intent", intent_id="CART")).status == "ok"


ATTACKS = {
    "a changed hook": "echo evil >> .git/hooks/pre-commit",
    "a changed hook of the same size and time": (
        "cp -p .git/hooks/pre-commit x; printf '#!/bin/sh\\nexit 1\\n' > .git/hooks/pre-commit;"
        " touch -r x .git/hooks/pre-commit"
    ),
    "a new hook": "printf '#!/bin/sh\\n' > .git/hooks/post-commit; chmod +x .git/hooks/post-commit",
    "a removed hook": "rm .git/hooks/pre-commit",
    "a hook that is no longer run": "chmod -x .git/hooks/pre-commit",
    "a hook behind a link": "ln -sf ../../evil.sh .git/hooks/pre-commit",
    "a link that leads elsewhere": "ln -sfn ../../evil.sh .git/hooks/post-merge",
    "hooks behind a link": "mv .git/hooks h; mkdir h2; ln -s ../h2 .git/hooks; echo x > h2/pre-push",
    "hooks made unreadable": "chmod 000 .git/hooks .git/info",
    "hooks replaced by a file": "rm -r .git/hooks; echo x > .git/hooks",
    "hooks exchanged by a pipe": "rm .git/hooks/pre-commit; mkfifo .git/hooks/pre-commit",
    "settings": "git config core.hooksPath /tmp; git config filter.x.clean evil",
    "settings by another name": "ln .git/config twin; echo '[core]' >> twin",
    "settings moved away": "mv .git/config gone",
    "settings for a worktree": "echo '[core]' > .git/config.worktree",
    "attributes": "echo '* filter=evil' > .git/info/attributes",
    "objects elsewhere": "mkdir -p .git/objects/info; echo /tmp > .git/objects/info/alternates",
    "a common folder": "echo ../evil > .git/commondir",
    "the repository replaced": "mv .git .old; cp -r .old .git; echo evil >> .git/hooks/pre-commit",
    "the repository moved": "mkdir -p deep/er; mv .git deep/er/x; mkdir .git",
    "the repository behind a link": "mv .git .old; ln -s .old .git",
    "a submodule's hook": "cd .git/modules/libs/one; mkdir -p hooks; echo x > hooks/post-checkout",
    "a submodule's settings": "echo '[core]' >> .git/modules/libs/one/config",
    "a submodule without HEAD": "rm .git/modules/libs/one/HEAD; echo x > .git/modules/libs/one/hooks/update",
    "a new submodule": "mkdir -p .git/modules/libs/two/hooks; echo x > .git/modules/libs/two/hooks/update",
    "a submodule's .git": "echo 'gitdir: ../../evil' > libs/one/.git",
    "a worktree's folder": "echo /evil > .git/worktrees/tree/commondir; rm .git/worktrees/tree/gitdir",
    "a nested repository": "echo '[core]' >> nested/.git/config; echo x > nested/.git/hooks/pre-push",
    "junk first": (
        "i=0; while [ $i -lt 6000 ]; do : > .handrail/j$i; i=$((i+1)); done; echo x >> .git/hooks/pre-commit"
    ),
    "junk in folders": "mkdir -p .orchestration/a/b .handrail/x; touch .orchestration/a/b/c .handrail/x/z",
    "Handrail's settings": "echo evil > .handrail/config.toml; echo x > .handrail/agents/evil.toml",
    "a file of ignored intents": "rm .intentignore; mkdir .intentignore",
    "intents": f"cat > {INTENTS_FILE} <<'E'\n{WIDE}E\n",
    "intents removed": "rm -r .orchestration",
    "names that are no text": "printf x > \"$(printf '.handrail/\\377\\n')\"",
}


@pytest.mark.promise("SAND-22")
@pytest.mark.parametrize("script", ATTACKS.values(), ids=ATTACKS)
async def test_what_a_command_changed_of_them_is_restored_and_told(
    world: Bench, protection: Protection, script: str
) -> None:
    before, head = look(world.root), (world.root / ".git/HEAD").read_bytes()
    finished = await attack(world, script)
    assert look(world.root) == before
    if protection.name == "Landlock":
        assert "CHANGED " in finished.summary
        assert "restored" in finished.summary
        assert "restored" in finished.content
    assert (world.root / ".git/HEAD").read_bytes() == head
    assert "CHANGED" not in (await attack(world, "true")).summary


@pytest.mark.promise("SAND-22")
async def test_nothing_is_lost_by_restoring(world: Bench, protection: Protection) -> None:
    if protection.name != "Landlock":
        return  # the sandbox closes them: nothing is restored
    script = "echo mine > .git/hooks/pre-push; echo '[mine]' > .git/config; mkdir .handrail/n"
    finished = await attack(world, f"{script}; touch .handrail/n/o")
    kept = world.session.log.folder / "quarantine"
    assert str(kept) in finished.summary
    found = {path.name: path for path in kept.glob("*/*")}
    assert found[".git%hooks%pre-push"].read_text() == "mine\n"
    assert found[".git%config"].read_text() == "[mine]\n"
    assert [path.name for path in found[".handrail%n"].iterdir()] == ["o"]


@pytest.mark.promise("SAND-22")
async def test_what_is_too_much_to_be_saved_counts_as_changed(
    world: Bench, protection: Protection, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in range(5_100):
        (world.root / f".handrail/agents/{number}").touch()
    before = look(world.root)
    finished = await attack(world, "true")
    assert "CHANGED .handrail (too many files to compare)" in finished.summary
    hooked = await attack(world, "echo evil >> .git/hooks/pre-commit")
    assert look(world.root) == before
    assert protection.git or ".git/hooks/pre-commit" in hooked.summary


@pytest.mark.promise("SAND-23")
async def test_a_script_that_widens_its_own_scope_widens_nothing(world: Bench) -> None:
    await select(world)
    await attack(world, f"cat > {INTENTS_FILE} <<'E'\n{WIDE}E\n")
    outside = await world.call("write", path="src/other.py", text="x = 1\n")
    assert outside.error
    assert outside.error.reason == "scope_violation"
    assert (await world.call("write", path="src/cart/a.py", text="x = 1\n")).status == "ok"


@pytest.mark.promise("SAND-23")
async def test_a_command_in_the_background_widens_nothing_while_it_runs(world: Bench) -> None:
    await select(world)
    script = f"""
import os, time
wide = {WIDE!r}
while True:
    try:
        with open({INTENTS_FILE!r}, "w") as file:
            file.write(wide)
        with open(".git/hooks/pre-push", "w") as file:
            file.write("evil")
    except OSError:
        pass
    print("wrote", flush=True)
"""
    (world.root / "evil.py").write_text(script)
    async with world.tools.background.open_for(world.session):
        begun = await world.call("run", command="python3 -I evil.py", background=True)
        assert begun.status == "ok", begun.content
        with anyio.fail_after(50):
            while "wrote" not in world.session.live.text("b1", "background"):
                await anyio.sleep(0.01)
        for number in range(20):
            outside = await world.call("write", path=f"src/{number}.py", text="x = 1\n")
            assert outside.error, outside
            assert outside.error.reason == "scope_violation"
        await world.call("background", id="b1", stop=True)
    assert (world.root / INTENTS_FILE).read_text() == INTENTS
    assert not (world.root / ".git/hooks/pre-push").exists()


EDITS = """
import sys
from pathlib import Path
from handrail.changes.intents_writer import write_intent_file
from handrail.changes.trace.trace_file import TraceFile
from handrail.storage.log_repair import open_log
from handrail.workspace.files import Workspace
root, state, text = Path(sys.argv[1]), Path(sys.argv[2]), sys.argv[3].encode()
log = open_log(state)
path = ".orchestration/active_intents.yaml"
write_intent_file(log, Workspace(root), path, old=(root / path).read_bytes(), new=text)
TraceFile(root, state).add("w_1", 1, [b'{"writer":"w_1","number":1}'])
log.close()
"""


@pytest.mark.promise("SAND-24")
async def test_what_handrail_itself_writes_meanwhile_is_not_undone(world: Bench) -> None:
    state = world.session.log.folder
    guarded = GuardedCommand(state, world.root, restores=True)
    new = INTENTS.replace("The cart", "The basket")
    words = [sys.executable, "-c", EDITS, str(world.root), str(state), new]
    await anyio.run_process(words)
    (world.root / ".handrail/config.toml").write_text("evil")
    report = guarded.finish()
    assert report.restored == (".handrail/config.toml",)
    assert (world.root / INTENTS_FILE).read_text() == new
    assert (world.root / ".orchestration/agent_trace.jsonl").read_bytes() == b'{"writer":"w_1","number":1}\n'
    assert (world.root / ".orchestration/.gitattributes").exists()


@pytest.mark.promise("SAND-24")
async def test_an_intent_that_could_not_be_written_does_not_come_with_restoring(world: Bench) -> None:
    guarded = GuardedCommand(world.session.log.folder, world.root, restores=True)
    with pytest.raises(Exception, match="Somebody else"):
        write_intent_file(world.session.log, world.workspace, INTENTS_FILE, old=b"other", new=WIDE.encode())
    (world.root / INTENTS_FILE).write_text("evil")
    guarded.finish()
    assert (world.root / INTENTS_FILE).read_text() == INTENTS


@pytest.mark.promise("SAND-24")
async def test_lines_that_sessions_add_to_the_trace_stay_and_earlier_ones_come_back(world: Bench) -> None:
    state, file = world.session.log.folder, world.root / ".orchestration/agent_trace.jsonl"
    trace = TraceFile(world.root, state)
    one, two = b'{"writer":"w_1","number":1}', b'{"writer":"w_1","number":2}'
    trace.add("w_1", 1, [one])
    guarded = GuardedCommand(state, world.root, restores=True)
    trace.add("w_1", 2, [two])
    assert not guarded.finish()
    guarded = GuardedCommand(state, world.root, restores=True)
    data = file.read_bytes()
    file.write_bytes(b"x" * len(one) + data[len(one) :])
    with file.open("ab") as added:
        added.write(b'{"writer":"w_2","number":1}\n')
    assert guarded.finish().restored == (".orchestration/agent_trace.jsonl",)
    assert file.read_bytes() == data + b'{"writer":"w_2","number":1}\n'


@pytest.mark.promise("SAND-24")
async def test_commands_of_two_sessions_restore_to_the_state_before_the_first(world: Bench) -> None:
    state, hook = world.session.log.folder, world.root / ".git/hooks/pre-commit"
    first = GuardedCommand(state, world.root, restores=True)
    hook.write_text("evil of the first")
    second = GuardedCommand(state, world.root, restores=True)
    assert hook.read_text() == HOOK
    hook.write_text("evil of either")
    assert second.finish().restored == (".git/hooks/pre-commit",)
    assert hook.read_text() == HOOK
    hook.write_text("evil again")
    assert first.finish().restored == (".git/hooks/pre-commit",)
    assert hook.read_text() == HOOK


KILLED = """
import anyio, sys
from pathlib import Path
from msgspec.json import decode
from handrail.tools.sandbox.sandbox import Protection, Sandbox
from tests.tools.calls import open_bench
bench = open_bench(Path(sys.argv[1]), sandbox=Sandbox(found=decode(sys.argv[2], type=Protection)))
anyio.run(lambda: bench.call("select_active_intent", intent_id="CART"))
anyio.run(lambda: bench.call("run", command="sh evil.sh", timeout=600))
"""


@pytest.mark.promise("SAND-25")
async def test_what_a_command_changed_before_handrail_was_killed_is_restored_by_the_next_one(
    world: Bench, protection: Protection
) -> None:
    root, state = world.root, world.session.log.folder
    script = "echo evil > .git/hooks/pre-commit; echo evil > .git/hooks/new; rm .git/config"
    (root / "evil.sh").write_text(f"{script}; echo done > ready; sleep 600")
    before = look(root)
    words = [sys.executable, "-c", KILLED, str(root.parent), encode(protection).decode()]
    environ = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[3])}
    async with await anyio.open_process(words, env=environ) as process:
        with anyio.fail_after(50):
            while not (root / "ready").exists():
                assert process.returncode is None
                await anyio.sleep(0.01)
        process.kill()
    if protection.name == "Landlock":
        assert look(root) != before
        report = restore_after_crash(state, root)
        assert set(report.restored) == {".git/config", ".git/hooks/new", ".git/hooks/pre-commit"}
    assert look(root) == before
    assert not restore_after_crash(state, root)
    assert "CHANGED" not in (await attack(world, "true")).summary


@pytest.mark.promise("SAND-25")
async def test_what_the_user_changed_after_handrail_was_killed_is_left(
    world: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    state, root = world.session.log.folder, world.root
    guarded = GuardedCommand(state, root, restores=True)
    (root / ".git/hooks/pre-commit").write_text("evil")
    restoring._heartbeat.remove(guarded._marker)
    guarded._lock.release()  # as if the process were gone
    marker = next((state / "protected/running").iterdir())
    monkeypatch.setattr(restoring, "GRACE_SECONDS", -1)
    os.utime(marker)
    report = restore_after_crash(state, root)
    assert report.left == (".git/hooks/pre-commit",)
    assert (root / ".git/hooks/pre-commit").read_text() == "evil"


@pytest.mark.promise("SAND-22")
async def test_what_could_not_be_restored_is_told_and_tried_again(
    world: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    state, root = world.session.log.folder, world.root
    guarded = GuardedCommand(state, root, restores=True)
    (root / ".git/hooks/pre-commit").write_text("evil")

    def full(*_: object) -> int:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patched:
        patched.setattr(DISK, "create", full)
        assert guarded.finish().failed == (".git/hooks/pre-commit",)
    again = GuardedCommand(state, root, restores=True)
    assert (root / ".git/hooks/pre-commit").read_text() == HOOK
    assert again.finish().restored == (".git/hooks/pre-commit",)


MARKS = {
    ".git/HEAD": "echo 'ref: refs/heads/other' > .git/HEAD",
    ".git/refs": "cp .git/refs/heads/main .git/refs/heads/other",
    ".git/index": "rm .git/index",
    ".git/objects": "rm -f .git/objects/??/*",
    ".git/logs": "echo x >> .git/logs/HEAD",
    ".git/rebase-merge": "mkdir .git/rebase-merge",
    ".git/objects/pack (packs are gone)": "rm -f .git/objects/pack/*.pack",
}


@pytest.mark.promise("SAND-26")
@pytest.mark.parametrize("name", MARKS)
async def test_a_change_of_what_git_records_is_told_but_not_undone(
    world: Bench, protection: Protection, name: str
) -> None:
    git(world.root, "repack", "-adq")
    git(world.root, "hash-object", "-w", "a.txt")
    finished = await attack(world, f"chmod -R u+w .git/objects; {MARKS[name]}")
    told = finished.summary.partition("CHANGED ")[2].split(", ")
    assert (name in told) != protection.git
    quiet = await attack(world, "cat a.txt; touch a.txt; git status; ls .git")
    assert "CHANGED" not in quiet.summary


@pytest.mark.promise("SAND-26")
async def test_a_git_command_is_not_told_to_have_changed_what_git_records(world: Bench) -> None:
    (world.root / "b.txt").write_text("b\n")
    await select(world)
    finished = await world.call("run", command="git add b.txt && git commit -qm second")
    assert finished.status == "ok", finished.content
    assert "CHANGED" not in finished.summary


@pytest.mark.promise("SAND-25")
def test_mount_points_of_bubblewrap_are_no_change(tmp_path: Path) -> None:
    state, root = tmp_path / "state", tmp_path / "root"
    for folder in (state, root):
        folder.mkdir()
    guarded = GuardedCommand(state, root, restores=False)
    (root / ".handrail").mkdir()
    (root / ".intentignore").touch()
    (root / ".orchestration").mkdir()
    (root / ".orchestration/intents.yaml").touch()
    assert guarded.finish().left == (".orchestration",)
    guarded = GuardedCommand(state, root, restores=False)
    (root / ".handrail/config.toml").touch()
    (root / ".intentignore").write_text("*")
    assert guarded.finish().left == (".handrail/config.toml", ".intentignore")
