"""Git with an allowlist of settings: every form of repository works, and none leads elsewhere."""

import os
import shutil
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from handrail.protocol.errors import UsageProblem
from handrail.storage import scratch
from handrail.tools.git import GitState, git_state
from handrail.tools.git_commit import FileToCommit, commit_files
from handrail.tools.process import run_for_output
from handrail.tools.safe_git import open_git
from handrail.workspace.files import Workspace
from handrail.workspace.git_folder import UnusableRepository
from tests.hostile.git_programs import append, git, start
from tests.tools.calls import Bench

pytestmark = pytest.mark.anyio
MakeBench = Callable[..., Bench]


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    """`a.txt` was committed twice and changed since."""
    folder = tmp_path / "repository"
    folder.mkdir()
    start(folder)
    identify(folder)
    return folder


def identify(folder: Path) -> None:
    git(folder, "config", "user.name", "Ada")
    git(folder, "config", "user.email", "ada@example.org")


def linked_worktree(folder: Path) -> Path:
    git(folder, "worktree", "add", "-q", "-b", "side", "../linked")
    return folder.parent / "linked"


def submodule(folder: Path) -> Path:
    outer = folder.parent / "outer"
    git(folder.parent, "init", "-q", "outer")
    git(outer, "-c", "protocol.file.allow=always", "submodule", "add", "-q", str(folder), "inner")
    git(outer / "inner", "checkout", "-q", "-b", "side")
    identify(outer / "inner")
    return outer / "inner"


def sha256(folder: Path) -> Path:
    shutil.rmtree(folder)
    folder.mkdir()
    git(folder, "init", "-q", "-b", "side", "--object-format=sha256")
    identify(folder)
    (folder / "a.txt").write_text("one\n")
    git(folder, "add", ".")
    git(folder, "commit", "-qm", "first")
    return folder


def clone(*options: str) -> Callable[[Path], Path]:
    def make(folder: Path) -> Path:
        git(folder.parent, "clone", "-q", *options, f"file://{folder}", "clone")
        git(folder.parent / "clone", "checkout", "-q", "-b", "side")
        identify(folder.parent / "clone")
        return folder.parent / "clone"

    return make


def changed_index(*words: str) -> Callable[[Path], Path]:
    def make(folder: Path) -> Path:
        git(folder, "checkout", "-q", "-b", "side")
        git(folder, *words)
        return folder

    return make


def packed(folder: Path) -> Path:
    git(folder, "checkout", "-q", "-b", "side")
    git(folder, "gc", "-q")
    return folder


def separate(folder: Path) -> Path:
    git(folder, "checkout", "-q", "-b", "side")
    git(folder, "init", "-q", "--separate-git-dir", "../separate.git")
    git(folder, "config", "core.worktree", str(folder))
    return folder


def worktree_config(folder: Path) -> Path:
    git(folder, "checkout", "-q", "-b", "side")
    git(folder, "sparse-checkout", "set", "--cone")
    return folder


FORMS = {
    "linked worktree": linked_worktree,
    "submodule": submodule,
    "SHA-256": sha256,
    "shallow clone": clone("--depth=1"),
    "clone with alternates": lambda folder: clone("--reference", str(folder))(folder),
    "clone without the contents": clone("--filter=blob:none"),
    "split index": changed_index("update-index", "--split-index"),
    "compressed index": changed_index("update-index", "--index-version", "4"),
    "untracked cache": changed_index("update-index", "--force-untracked-cache"),
    "packed references": packed,
    "separate git folder": separate,
    "settings of the worktree": worktree_config,
}


@pytest.mark.promise("GIT-6")
@pytest.mark.parametrize("form", FORMS)
async def test_every_form_of_repository_can_be_read_and_committed_to(repository: Path, form: str) -> None:
    git(repository, "config", "uploadpack.allowFilter", "true")
    root = FORMS[form](repository)
    old = (root / "a.txt").read_bytes()
    (root / "a.txt").write_text("new\n")
    assert await git_state(root) == GitState("side", 1)
    head = git(root, "rev-parse", "HEAD")
    made = await commit_files(Workspace(root), [FileToCommit("a.txt", old, b"new\n")], "New\n")
    assert git(root, "log", "-1", "--format=%H %P %an") == f"{made.commit} {head} Ada"
    assert git(root, "symbolic-ref", "HEAD") == "refs/heads/side"
    assert git(root, "reflog", "-1", "--format=%gs") == "commit (handrail): New"
    assert git(root, "reflog", "-1", "--format=%gs", "side") == "commit (handrail): New"
    assert git(root, "status", "--porcelain") == ""
    assert git(root, "fsck", "--strict") == ""
    assert await git_state(root) == GitState("side", 0)


@pytest.mark.promise("GIT-6")
async def test_a_commit_without_a_branch_moves_the_real_head(repository: Path) -> None:
    git(repository, "checkout", "-q", "--detach")
    main = git(repository, "rev-parse", "main")
    made = await commit_files(Workspace(repository), [FileToCommit("a.txt", b"one\n", b"two\n")], "Two\n")
    assert git(repository, "rev-parse", "HEAD") == made.commit
    assert git(repository, "rev-parse", "main") == main
    assert (repository / ".git" / "HEAD").read_text() == f"{made.commit}\n"


@pytest.mark.promise("GIT-6")
@pytest.mark.parametrize("lock", ["HEAD.lock", "refs/heads/main.lock"])
async def test_a_commit_of_the_users_at_the_same_time_is_not_overtaken(repository: Path, lock: str) -> None:
    head = git(repository, "rev-parse", "HEAD")
    (repository / ".git" / lock).touch()
    with pytest.raises(UsageProblem, match="Nothing was committed"):
        await commit_files(Workspace(repository), [FileToCommit("a.txt", b"one\n", b"two\n")], "Two\n")
    (repository / ".git" / lock).unlink()
    assert git(repository, "rev-parse", "HEAD") == head


def foreign(root: Path) -> Path:
    """Another repository of the user's, with a secret in it."""
    other = root.parent / "other"
    other.mkdir()
    git(other, "init", "-q", "-b", "secret-branch")
    (other / "told.txt").write_text("secret content\n")
    git(other, "add", ".")
    git(other, "commit", "-qm", "secret subject")
    return other


def git_file(root: Path) -> None:
    shutil.rmtree(root / ".git")
    (root / ".git").write_text(f"gitdir: {foreign(root)}/.git\n")


def git_link(root: Path) -> None:
    shutil.rmtree(root / ".git")
    (root / ".git").symlink_to(foreign(root) / ".git")


def worktree_of_another(root: Path) -> None:
    git(foreign(root), "worktree", "add", "-q", "--detach", "../third")
    shutil.rmtree(root / ".git")
    shutil.copy(root.parent / "third" / ".git", root / ".git")


def common_folder(root: Path) -> None:
    (root / ".git" / "commondir").write_text(f"{foreign(root)}/.git\n")


def link_in_git(name: str, to: str = "") -> Callable[[Path], None]:
    def make(root: Path) -> None:
        place = root / ".git" / name
        other = foreign(root) / ".git" / name
        if place.is_dir():
            shutil.rmtree(place)
        place.unlink(missing_ok=True)
        place.symlink_to(to or other)

    return make


def pipe(name: str) -> Callable[[Path], None]:
    def make(root: Path) -> None:
        (root / ".git" / name).unlink(missing_ok=True)
        os.mkfifo(root / ".git" / name)

    return make


def unknown_extension(root: Path) -> None:
    append(root / ".git" / "config", "core.repositoryformatversion", "1")
    append(root / ".git" / "config", "extensions.ours", "x")


def compatible_hashes(root: Path) -> None:
    """Version 0 lets git overlook what it does not know."""
    append(root / ".git" / "config", "extensions.compatObjectFormat", "sha256")


ELSEWHERE = {
    "a file that names another git folder": git_file,
    "a link to another git folder": git_link,
    "a copied file of a linked worktree": worktree_of_another,
    "another common folder": common_folder,
    "objects of another": link_in_git("objects"),
    "references of another": link_in_git("refs"),
    "index of another": link_in_git("index"),
    "HEAD of another": link_in_git("HEAD"),
    "HEAD without an end": link_in_git("HEAD", "/dev/zero"),
    "index without an end": link_in_git("index", "/dev/zero"),
    "packed references without an end": link_in_git("packed-refs", "/dev/zero"),
    "a pipe as HEAD": pipe("HEAD"),
    "a pipe as index": pipe("index"),
    "a pipe as config": pipe("config"),
    "a pipe as packed references": pipe("packed-refs"),
    "a pipe as common folder": pipe("commondir"),
    "an unknown extension": unknown_extension,
    "an extension that git overlooks": compatible_hashes,
}


@pytest.mark.promise("GIT-5")
@pytest.mark.parametrize("where", ELSEWHERE)
async def test_a_git_folder_that_leads_elsewhere_is_not_used(
    repository: Path, make_bench: MakeBench, where: str
) -> None:
    bench = make_bench("explore", answerable=False)
    shutil.copytree(repository, bench.root, dirs_exist_ok=True)
    ELSEWHERE[where](bench.root)
    with pytest.raises(UnusableRepository):
        await open_git(bench.root)
    assert await git_state(bench.root) is None
    with pytest.raises(UsageProblem, match="Nothing was committed"):
        await commit_files(bench.workspace, [FileToCommit("a.txt", b"one\n", b"two\n")], "Two\n")
    for command in ("git status", "git log -p", "ls && git show", "git rev-parse HEAD"):
        finished = await bench.call("run", command=command)
        assert finished.status == "refused"
        assert "git was not run" in finished.content
        assert "secret" not in finished.content


@pytest.mark.promise("GIT-5")
async def test_the_working_tree_is_the_folder_with_git_whatever_the_settings_say(
    make_bench: MakeBench, tmp_path: Path
) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "a.txt").write_text("of the outside\n")
    (outside / "private.txt").write_text("x")
    bench = make_bench("explore", answerable=False)
    start(bench.root)
    git(bench.root, "config", "core.worktree", str(outside))
    shown = ""
    for command in (
        "git status",
        "git diff",
        "git blame a.txt",
        "git ls-files -o",
        "git rev-parse --show-toplevel",
    ):
        finished = await bench.call("run", command=command)
        assert finished.status == "ok", finished.content
        shown += finished.content
    assert "outside" not in shown
    assert "private" not in shown
    assert "+two" in shown
    assert str(bench.root) in shown
    assert await git_state(bench.root) == GitState("main", 1)


@pytest.mark.promise("GIT-5")
async def test_a_repository_of_another_user_is_used_if_the_user_says_so(
    repository: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    user = os.geteuid()
    monkeypatch.setattr(os, "geteuid", lambda: user + 1)
    with pytest.raises(UnusableRepository, match=r"safe\.directory"):
        await open_git(repository)
    append(repository / ".git" / "config", "safe.directory", "*")
    with pytest.raises(UnusableRepository, match=r"safe\.directory"):
        await open_git(repository)
    append(tmp_path / "settings", "safe.directory", str(repository))
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", str(tmp_path / "settings"))
    assert await git_state(repository) == GitState("main", 1)


@pytest.mark.promise("GIT-9")
async def test_settings_that_matter_are_kept_and_others_are_not(
    repository: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", str(tmp_path / "settings"))
    name = 'A "b" \\c; # d'
    git(repository, "config", "user.name", name)
    git(repository, "config", "core.autocrlf", "input")
    git(repository, "config", "core.excludesFile", str(repository / "b.txt"))
    git(repository, "config", "alias.x", "!false")
    git(repository, "config", "remote.origin.url", "https://user:secret@example.org")
    git(repository, "config", "remote.origin.fetch", "+refs/heads/*:refs/remotes/origin/*")
    git(repository, "config", "branch.main.remote", "origin")
    git(repository, "config", "branch.main.merge", "refs/heads/main")
    git(repository, "update-ref", "refs/remotes/origin/main", "HEAD~1")
    append(tmp_path / "settings", "core.excludesFile", str(tmp_path / "ignored"))
    (tmp_path / "ignored").write_text("*.log\n")
    for path in ("x.log", "zero"):
        (repository / path).write_text("x")
    opened = await open_git(repository)
    assert opened
    kept = git(repository, "config", "--file", str(opened.folder / "config"), "--list", "-z").split("\0")
    assert f"user.name\n{name}" in kept
    assert "core.autocrlf\ninput" in kept
    assert f"core.excludesfile\n{tmp_path / 'ignored'}" in kept
    assert not [text for text in kept if "alias" in text or "secret" in text or "b.txt" in text]
    status = await opened.output("status", "-sb")
    assert status is not None
    assert b"## main...origin/main [ahead 1]" in status
    assert b".log" not in status
    assert b"?? zero" in status
    (repository / "a.txt").write_bytes(b"two\r\n")
    files = [FileToCommit("a.txt", b"one\n", b"two\r\n")]
    await commit_files(Workspace(repository), files, "Two\n")
    assert git(repository, "cat-file", "-s", "HEAD:a.txt") == "4"
    assert git(repository, "log", "-1", "--format=%an") == name


@pytest.mark.promise("GIT-9")
async def test_only_git_gets_the_variables_and_no_other_part_of_a_command(
    make_bench: MakeBench, monkeypatch: pytest.MonkeyPatch
) -> None:
    bench = make_bench("auto", answerable=False)
    start(bench.root)
    (bench.root / "show.py").write_text(
        "import os\nprint([name for name in os.environ if 'GIT_DIR' in name])\n"
    )
    monkeypatch.setenv("GIT_EXTERNAL_DIFF", "false")
    monkeypatch.setenv("GIT_INDEX_FILE", "/nowhere")
    monkeypatch.setenv("PATH", f"{Path(sys.executable).parent}:{os.environ['PATH']}")
    finished = await bench.call(
        "run", command="python3 show.py && git status -s && git diff && python3 show.py"
    )
    assert finished.status == "ok", finished.content
    assert finished.content.count("[]") == 2
    assert " M a.txt" in finished.content
    assert "+two" in finished.content


@pytest.mark.promise("GIT-9")
async def test_without_a_repository_git_says_so(make_bench: MakeBench) -> None:
    bench = make_bench("explore", answerable=False)
    for command in ("git status", "git log", "git show HEAD"):
        finished = await bench.call("run", command=command)
        assert "not a git repository" in finished.content


async def test_the_folder_of_settings_is_made_again_if_somebody_changed_it(repository: Path) -> None:
    opened = await open_git(repository)
    assert opened
    (opened.folder / "config").write_text("[core]\n\tfsmonitor = /evil\n")
    (opened.folder / "refs").unlink()
    assert await git_state(repository) == GitState("main", 1)
    assert "evil" not in (opened.folder / "config").read_text()
    shutil.rmtree(opened.folder.parent)
    assert await git_state(repository) == GitState("main", 1)


async def test_a_temp_folder_in_the_workspace_is_not_used(
    repository: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (repository / "tmp").mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(repository / "tmp"))
    scratch._process_scratch.cache_clear()
    with pytest.raises(UnusableRepository, match="TMPDIR"):
        await open_git(repository)
    scratch._process_scratch.cache_clear()


@pytest.mark.parametrize("count", [9, 10, 11])
async def test_output_that_reaches_the_limit_has_no_exit_code(tmp_path: Path, count: int) -> None:
    found = await run_for_output(
        ["printf", "x" * count], folder=tmp_path, environment=os.environ, timeout=60, limit=10
    )
    assert (found.code == 0) is (count < 10)


LINKS = {
    "log of HEAD": "logs/HEAD",
    "logs of branches": "logs/refs",
    "log of the branch": "logs/refs/heads/main",
    "a folder of objects": "objects/00",
    "branches": "refs/heads/main",
}


@pytest.mark.promise("GIT-3")
@pytest.mark.parametrize("name", LINKS)
async def test_a_commit_writes_through_no_link(repository: Path, tmp_path: Path, name: str) -> None:
    """A reflog line begins with two ids, but has the user's name of the repository's choice in it."""
    place, outside = repository / ".git" / LINKS[name], tmp_path / "outside"
    is_folder = place.is_dir() or "objects" in LINKS[name]
    if is_folder:
        outside.mkdir()
    else:
        outside.write_text("mine\n")
    if place.is_dir():
        shutil.rmtree(place)
    place.unlink(missing_ok=True)
    place.symlink_to(outside)
    with pytest.raises(UsageProblem):
        await commit_files(Workspace(repository), [FileToCommit("a.txt", b"", b"new\n")], "New\n")
    assert list(outside.iterdir()) == [] if is_folder else outside.read_text() == "mine\n"


@pytest.mark.promise("GIT-5")
@pytest.mark.parametrize("name", ["logs/HEAD", "objects/info/alternates"])
async def test_a_commit_does_not_wait_for_a_pipe(repository: Path, name: str) -> None:
    place = repository / ".git" / name
    place.unlink(missing_ok=True)
    os.mkfifo(place)
    with pytest.raises(UsageProblem, match=Path(name).name):
        await commit_files(Workspace(repository), [FileToCommit("a.txt", b"", b"new\n")], "New\n")


@pytest.mark.promise("GIT-5")
async def test_no_unasked_command_reads_the_objects_of_another_repository(
    make_bench: MakeBench, repository: Path
) -> None:
    bench = make_bench("explore", answerable=False)
    git(bench.root, "init", "-q")
    (bench.root / ".git/objects/info/alternates").write_text(f"{repository}/.git/objects\n")
    finished = await bench.call("run", command=f"git show {git(repository, 'rev-parse', 'HEAD')}")
    assert finished.status == "refused"
    assert "alternates" in finished.content
