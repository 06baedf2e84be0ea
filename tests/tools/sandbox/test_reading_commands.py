"""Commands that run unasked because they only read: what they can read, whatever their paths have become."""

import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from handrail.tools.process import run_process
from handrail.tools.sandbox import protected_paths
from handrail.tools.sandbox.protected_paths import SandboxSetup, find_risks
from handrail.tools.sandbox.sandbox import Protection, Sandbox
from handrail.tools.secrets import without_secrets
from handrail.workspace.files import Workspace
from handrail.workspace.stat_index import snapshot
from tests.tools.calls import Bench, open_bench

pytestmark = pytest.mark.anyio
MakeBench = Callable[..., Bench]
READS = 60
OUTSIDE, SECRET, COMMITTED = "outside-value-never-shown", "dotenv-value-never-shown", "plain text"
SWAPPER = """
import os, sys
root, *targets = sys.argv[1:]
name, new = root + "/src/x", root + "/src/new"
print("swapping", flush=True)
while os.path.exists(root + "/a.txt"):
    for target in targets:
        os.symlink(target, new)
        os.rename(new, name)
        for _ in range(2000):
            os.lstat(name)
        with open(new, "w") as file:
            file.write("plain text\\n")
        os.rename(new, name)
        for _ in range(4000):
            os.lstat(name)
"""


def git(folder: Path, *words: str) -> None:
    settings = ("-c", "user.name=Ada", "-c", "user.email=ada@example.org", "-c", "protocol.file.allow=always")
    command = ["git", "-C", str(folder), *settings, *words]
    subprocess.run(command, check=True, timeout=60, capture_output=True)


def explore(folder: Path, protection: Protection, workspace_type: type[Workspace] = Workspace) -> Bench:
    sandbox = Sandbox(found=protection)
    return open_bench(folder, "explore", sandbox=sandbox, answerable=False, workspace_type=workspace_type)


@pytest.fixture
def bench(tmp_path: Path, protection: Protection) -> Iterator[Bench]:
    made = explore(tmp_path, protection)
    root = made.root
    (tmp_path / "outside.txt").write_text(OUTSIDE)
    (tmp_path / "folder").mkdir()
    (tmp_path / "folder" / "hidden-name").write_text(OUTSIDE)
    (root / "src").mkdir()
    for name, text in {
        "a.txt": "a\n",
        "src/x": "plain text\n",
        ".env": SECRET,
        "src/key.pem": SECRET,
    }.items():
        (root / name).write_text(text)
    yield made
    made.close()


@contextmanager
def swapping(root: Path, *targets: str) -> Iterator[None]:
    """While it lasts, `src/x` is a file and a link in turns."""
    words = [sys.executable, "-I", "-S", "-c", SWAPPER, str(root), *targets]
    with subprocess.Popen(words, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout
        assert process.stdout.readline() == "swapping\n"
        try:
            yield
        finally:
            process.kill()


@pytest.mark.promise("SAND-27")
@pytest.mark.parametrize("command", ["cat src/x", "grep -n . src/x | sort"])
async def test_a_file_that_another_process_swaps_for_a_link_shows_nothing_else(
    bench: Bench, command: str
) -> None:
    targets = (str(bench.root.parent / "outside.txt"), "../.env", "../keys/key.pem")
    with swapping(bench.root, *targets):
        seen = [(await bench.call("run", command=command)).content for _ in range(READS)]
    assert any("plain text" in each for each in seen)
    assert not any(OUTSIDE in each or SECRET in each for each in seen)


@pytest.mark.promise("SAND-27")
async def test_no_link_shows_what_is_outside_or_secret(bench: Bench, protection: Protection) -> None:
    """As if each path had been judged before it became a link."""
    root = bench.root
    links = {"l1": "../outside.txt", "l2": ".env", "l3": "../folder", "l4": "keys/key.pem"}
    for name, target in links.items():
        (root / "src" / name).symlink_to(Path("..") / target)
    os.link(root / ".env", root / "src/other-name")
    commands = [f"cat src/{name}" for name in ("l1", "l2", "l4", "l3/hidden-name", "other-name")]
    commands += ["ls -LR src", "grep -R value src", "find -L src", "cat .env keys/key.pem", "cat src/x"]
    said = [await read_confined(bench, protection, *command.split()) for command in commands]
    assert not any(OUTSIDE in each or SECRET in each for each in said), said
    assert not any("hidden-name\n" in each for each in said[5:]), said
    assert said[-1] == "plain text\n"


async def read_confined(bench: Bench, protection: Protection, *words: str) -> str:
    """What a program writes that is confined as one that only reads."""
    output = bytearray()

    def take(chunk: bytes) -> bool:
        output.extend(chunk)
        return True

    secrets = find_risks(snapshot(bench.root)).secrets
    state = bench.workspace.state_folders
    setup = SandboxSetup(bench.root, state, without_secrets(os.environ), secrets=secrets, reads=True)
    async with Sandbox(found=protection).confine(words, setup) as confined:
        environ = confined.environ
        await run_process(confined.words, folder=bench.root, environment=environ, timeout=50, on_output=take)
    return output.decode()


@pytest.mark.promise("SAND-27")
async def test_a_reading_command_writes_nothing(bench: Bench) -> None:
    git(bench.root, "init", "-q")
    git(bench.root, "add", "a.txt")
    before = sorted(str(path) for path in bench.root.rglob("*"))
    os.utime(bench.root / "a.txt", (1, 1))
    for command in ("git status", "git diff", "ls", "sort a.txt"):
        assert (await bench.call("run", command=command)).status == "ok", command
    assert sorted(str(path) for path in bench.root.rglob("*")) == before


@pytest.mark.promise("SAND-27")
async def test_git_reads_the_folders_of_a_worktree_a_submodule_and_a_repository_above(
    tmp_path: Path, protection: Protection, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = Path(os.environ["HOME"])
    (home / "more.inc").write_text("[alias]\n\tx = log\n")
    (home / ".gitconfig").write_text("[user]\n\tname = Ada\n[include]\n\tpath = more.inc\n")
    main = tmp_path / "main"
    (main / "sub").mkdir(parents=True)
    git(main, "init", "-q", "-b", "main")
    (main / "sub/a.txt").write_text(COMMITTED)
    git(main, "add", ".")
    git(main, "commit", "-qm", "The first one")
    git(main, "worktree", "add", "-q", str(tmp_path / "one/work"))
    git(tmp_path, "init", "-q", str(tmp_path / "super"))
    git(tmp_path / "super", "submodule", "add", "-q", str(main), "work")
    (main / "work").mkdir()
    for folder in (tmp_path / "one", tmp_path / "super", main):
        bench = explore(folder, protection)
        try:
            for command in ("git log", "git status", "git show HEAD", "git diff"):
                finished = await bench.call("run", command=command)
                assert finished.status == "ok", (folder, finished.content)
                assert "arning" not in finished.content, finished.content
            assert "The first one" in (await bench.call("run", command="git log")).content
        finally:
            bench.close()


@pytest.mark.promise("SAND-27")
async def test_a_git_file_that_names_somebody_elses_repository_shows_nothing_of_it(
    bench: Bench, tmp_path: Path
) -> None:
    other = tmp_path / "other"
    other.mkdir()
    git(other, "init", "-q")
    (other / "a.txt").write_text(OUTSIDE)
    git(other, "add", ".")
    git(other, "commit", "-qm", OUTSIDE)
    (bench.root / ".git").write_text(f"gitdir: {other}/.git\n")
    for command in ("git log", "git show HEAD", "git log -p"):
        assert OUTSIDE not in (await bench.call("run", command=command)).content


@pytest.mark.promise("SAND-28")
async def test_many_secrets_in_many_folders_are_all_hidden(bench: Bench, protection: Protection) -> None:
    for number in range(300):
        folder = bench.root / f"d{number % 100}" / f"e{number}"
        folder.mkdir(parents=True)
        for each in range(20):
            (folder / f"f{each}").touch()
        (folder / ".env").write_text(SECRET)
        (folder / "link").symlink_to(".env")
    names = ("d0/e0/link", "d99/e299/link", "d1/e101/.env", "a.txt", "d1/e101/f1")
    said = await read_confined(bench, protection, "cat", *names)
    assert SECRET not in said
    assert said.endswith("a\n")


@pytest.mark.promise("SAND-28")
async def test_more_secrets_than_can_be_hidden_close_the_way(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(protected_paths, "MAX_PATHS", 3)
    for name in ("one", "two", "three"):
        (bench.root / f"{name}.pem").write_text(SECRET)
    finished = await bench.call("run", command="cat a.txt")
    assert finished.status == "refused"
    assert "more than 3 files that may hold secrets" in finished.content
    assert (await bench.call("read", path="a.txt")).status == "ok"


class HomeWorkspace(Workspace):
    """The home itself, with Handrail's data and settings in it."""

    def __init__(self, root: Path, state_folders: tuple[Path, ...] = ()) -> None:
        super().__init__(root, (*state_folders, root / ".config/handrail", root / ".local/share/handrail"))


@pytest.mark.promise("POL-29")
async def test_in_a_home_as_workspace_no_command_makes_handrails_settings_or_reads_keys(
    tmp_path: Path, protection: Protection, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = tmp_path / "work"
    monkeypatch.setenv("HOME", str(root))
    for name in (".ssh", ".config/other", ".local/share/handrail", "code"):
        (root / name).mkdir(parents=True)
    (root / ".ssh/id_rsa").write_text(SECRET)
    (root / ".local/share/handrail/sandbox.json").write_text("true")
    (root / "a.txt").write_text("a\n")
    sandbox = Sandbox(found=protection)
    bench = open_bench(tmp_path, "auto", sandbox=sandbox, workspace_type=HomeWorkspace)
    attacks = (
        "mkdir -p .config/handrail; echo evil > .config/handrail/config.toml",
        "mv .config .c; mkdir -p .config/handrail; echo evil > .config/handrail/config.toml",
        "mv .local .l; mkdir -p .local/share/handrail; echo evil > .local/share/handrail/sandbox.json",
        "echo evil > .local/share/handrail/sandbox.json; rm -r .local/share/handrail",
        "rmdir .config/handrail; echo evil > .config/handrail",
        "ln -s ../.ssh code/way; cat code/way/id_rsa .ssh/id_rsa",
    )
    try:
        for command in attacks:
            assert SECRET not in (await bench.call("run", command=command)).content
        assert not (root / ".config/handrail/config.toml").exists()
        assert (root / ".config/handrail").is_dir()
        assert (root / ".local/share/handrail/sandbox.json").read_text() == "true"
        worked = await bench.call("run", command="echo new > code/new.txt; cat a.txt code/new.txt; ls")
        assert worked.status == "ok", worked.content
        assert "new" in worked.content
    finally:
        bench.close()
    reading = explore(tmp_path, protection, HomeWorkspace)
    try:
        assert (await reading.call("run", command="cat a.txt code/new.txt")).content.endswith("a\nnew")
        assert "code" in (await reading.call("run", command="ls")).content
    finally:
        reading.close()
