"""`/commit`: exactly what the session changed, beside all that the user has in git."""

import subprocess
from pathlib import Path
from typing import Any

import pytest

from handrail.protocol.commands import CommitChanges, Rewind
from handrail.protocol.errors import UsageProblem
from handrail.protocol.events import ChangeApplied, CommitRefused, Committed, Rewound
from handrail.tools.git_commit import FileToCommit, commit_files
from handrail.workspace.files import Workspace
from tests.engine.conversation import Conversation, call, calls, conversation

pytestmark = [pytest.mark.anyio, pytest.mark.promise("GIT-1")]
IDENTITY = "[user]\nname = Ada\nemail = ada@example.org\n"


def git(root: Path, *words: str) -> str:
    done = subprocess.run(["git", *words], cwd=root, check=True, capture_output=True, text=True, timeout=60)
    return done.stdout


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A repository with one commit of three files."""
    folder = tmp_path / "repo"
    folder.mkdir()
    git(folder, "init", "-q", "-b", "main")
    with (folder / ".git" / "config").open("a") as config:
        config.write(IDENTITY)
    for name in ("a.txt", "b.txt", "c.txt"):
        (folder / name).write_text(f"{name}\n")
    git(folder, "add", ".")
    git(folder, "commit", "-qm", "first")
    return folder


def rewrite(path: str, text: str, **given: str) -> dict[str, Any]:
    return calls(call("read", path=path), call("write", path=path, text=text, **given))


async def commit(talk: Conversation, message: str = "") -> Committed | CommitRefused:
    await talk.send(CommitChanges(message=message))
    made = await talk.until(object, lambda event: isinstance(event, Committed | CommitRefused))
    assert isinstance(made, Committed | CommitRefused)
    return made


async def test_only_the_changed_file_is_committed_and_what_was_staged_stays_staged(root: Path) -> None:
    (root / "b.txt").write_text("staged\n")
    git(root, "add", "b.txt")
    (root / "c.txt").write_text("not staged\n")
    git(root, "stash", "push", "-q", "c.txt")
    (root / "c.txt").write_text("not staged again\n")
    kept = {name: (root / ".git" / name).read_bytes() for name in ("config", "refs/stash", "HEAD")}
    async with conversation(root, [rewrite("a.txt", "new\n"), {"text": "ok"}], mode="edit") as talk:
        await talk.turn("change it")
        made = await commit(talk, "Change what matters")
        assert isinstance(made, Committed), made
        (change,) = talk.all(ChangeApplied)
    assert made.files == ("a.txt",)
    assert made.branch == "main"
    assert git(root, "rev-parse", "HEAD").strip() == made.commit
    assert git(root, "show", "--name-only", "--format=").split() == ["a.txt"]
    assert git(root, "show", "HEAD:a.txt") == "new\n"
    assert git(root, "status", "--porcelain").splitlines() == ["M  b.txt", " M c.txt"]
    assert git(root, "log", "-1", "--format=%an <%ae>|%B").strip() == (
        "Ada <ada@example.org>|Change what matters\n\n"
        f"Change-Set: {change.change_id}\nAssisted-by: handrail (scripted/test)"
    )
    assert {name: (root / ".git" / name).read_bytes() for name in kept} == kept


async def test_what_the_user_staged_in_the_same_file_stays_and_is_said(root: Path) -> None:
    (root / "a.txt").write_text("staged by hand\n")
    git(root, "add", "a.txt")
    (root / "a.txt").write_text("a.txt\n")
    async with conversation(root, [rewrite("a.txt", "new\n"), {"text": "ok"}], mode="edit") as talk:
        await talk.turn("change it")
        made = await commit(talk)
    assert isinstance(made, Committed), made
    assert "a.txt stays staged" in " ".join(made.notes)
    assert git(root, "show", ":a.txt") == "staged by hand\n"
    assert git(root, "show", "HEAD:a.txt") == "new\n"
    assert (root / "a.txt").read_text() == "new\n"


@pytest.mark.parametrize("when", ["before", "after"])
async def test_other_lines_that_the_user_staged_in_the_same_file_are_not_in_it_and_undo_nothing(
    root: Path, when: str
) -> None:
    first = "".join(f"{number}\n" for number in range(20))
    (root / "a.txt").write_text(first)
    git(root, "commit", "-qam", "longer")

    def stage() -> None:
        now = (root / "a.txt").read_text()
        (root / "a.txt").write_text(first.replace("2\n", "2 by hand\n", 1))
        git(root, "add", "a.txt")
        (root / "a.txt").write_text(now.replace("2\n", "2 by hand\n", 1))

    edit = call("edit", path="a.txt", edits=[{"search": "17\n", "replace": "17 by the model\n"}])
    script = [calls(call("read", path="a.txt"), edit), {"text": "ok"}]
    async with conversation(root, script, mode="edit") as talk:
        if when == "before":
            stage()
        await talk.turn("change it")
        if when == "after":
            stage()
        made = await commit(talk)
    assert isinstance(made, Committed), made
    assert git(root, "show", "HEAD:a.txt") == first.replace("17\n", "17 by the model\n")
    assert git(root, "show", ":a.txt") == (root / "a.txt").read_text()
    changed = [line for line in git(root, "diff", "--cached", "-U0").splitlines() if line[:1] in "+-"]
    assert changed[2:] == ["-2", "+2 by hand"]
    assert "a.txt stays staged" in " ".join(made.notes)


async def test_a_file_of_a_submodule_is_left_out_and_the_others_are_committed(root: Path) -> None:
    git(root, "init", "-q", "inner")
    with (root / "inner" / ".git" / "config").open("a") as config:
        config.write(IDENTITY)
    (root / "inner" / "f.txt").write_text("f\n")
    git(root / "inner", "add", ".")
    git(root / "inner", "commit", "-qm", "first")
    git(root, "add", "inner")
    git(root, "commit", "-qm", "a repository as a submodule")
    both = calls(call("read", path="inner/f.txt"), call("read", path="a.txt"))
    edits = calls(call("write", path="inner/f.txt", text="g\n"), call("write", path="a.txt", text="b\n"))
    async with conversation(root, [both, edits, {"text": "ok"}], mode="edit") as talk:
        await talk.turn("change them")
        made = await commit(talk)
    assert isinstance(made, Committed), made
    assert made.files == ("a.txt",)
    assert "inner/f.txt is left out: it is in a repository of its own." in made.notes


async def test_a_new_file_that_the_user_staged_is_left_to_them(root: Path) -> None:
    (root / "new.txt").write_text("by hand\n")
    git(root, "add", "new.txt")
    both = calls(call("read", path="new.txt"), call("read", path="a.txt"))
    edits = calls(
        call("write", path="new.txt", text="by hand\nnew\n"), call("write", path="a.txt", text="b\n")
    )
    async with conversation(root, [both, edits, {"text": "ok"}], mode="edit") as talk:
        await talk.turn("change them")
        made = await commit(talk)
    assert isinstance(made, Committed), made
    assert made.files == ("a.txt",)
    assert "new.txt is left out: you have staged something in it" in " ".join(made.notes)
    assert git(root, "show", ":new.txt") == "by hand\n"


async def test_what_the_user_wrote_since_is_not_in_it(root: Path) -> None:
    async with conversation(root, [rewrite("a.txt", "new\n"), {"text": "ok"}], mode="edit") as talk:
        await talk.turn("change it")
        (root / "a.txt").write_text("new\nby hand\n")
        made = await commit(talk)
    assert isinstance(made, Committed), made
    assert git(root, "show", "HEAD:a.txt") == "new\n"
    assert (root / "a.txt").read_text() == "new\nby hand\n"
    assert git(root, "status", "--porcelain").splitlines() == [" M a.txt"]


async def test_what_the_user_committed_meanwhile_is_not_undone(root: Path) -> None:
    async with conversation(root, [rewrite("a.txt", "new\n"), {"text": "ok"}], mode="edit") as talk:
        await talk.turn("change it")
        (root / "a.txt").write_text("better\n")
        git(root, "commit", "-qam", "mine")
        refused = await commit(talk)
    assert isinstance(refused, CommitRefused)
    assert "a.txt" in refused.why
    assert git(root, "show", "HEAD:a.txt") == "better\n"


async def test_new_moved_deleted_and_executable_files_in_a_folder_of_the_repository(root: Path) -> None:
    inner = root / "inner"
    inner.mkdir()
    for name in ("gone.txt", "old.txt", "tool.sh"):
        (inner / name).write_text(f"{name}\n")
    (inner / "tool.sh").chmod(0o755)
    git(root, "add", ".")
    git(root, "commit", "-qm", "second")
    answers = [
        calls(*(call("read", path=name) for name in ("gone.txt", "old.txt", "tool.sh"))),
        call("delete", path="gone.txt"),
        call("move", path="old.txt", to="deep/new.txt"),
        call("write", path="tool.sh", text="#!/bin/sh\n"),
        call("write", path="made.txt", text="made\n"),
        {"text": "ok"},
    ]
    async with conversation(inner, answers, mode="edit") as talk:
        await talk.turn("change it")
        made = await commit(talk)
    assert isinstance(made, Committed), made
    assert set(made.files) == {"gone.txt", "old.txt", "deep/new.txt", "tool.sh", "made.txt"}
    assert git(root, "status", "--porcelain") == ""
    listed = git(root, "ls-tree", "-r", "HEAD", "inner").splitlines()
    assert [(row.split()[0], row.split("\t")[1]) for row in listed] == [
        ("100644", "inner/deep/new.txt"),
        ("100644", "inner/made.txt"),
        ("100755", "inner/tool.sh"),
    ]


async def test_the_repository_runs_nothing(root: Path, tmp_path: Path) -> None:
    ran = tmp_path / "ran"
    for hook in ("pre-commit", "commit-msg", "post-commit", "reference-transaction", "post-index-change"):
        file = root / ".git" / "hooks" / hook
        file.parent.mkdir(exist_ok=True)
        file.write_text(f"#!/bin/sh\ntouch {ran}\n")
        file.chmod(0o755)
    git(root, "config", "filter.evil.clean", f"touch {ran}; cat")
    git(root, "config", "commit.gpgsign", "true")
    git(root, "config", "gpg.program", f"touch {ran}")
    git(root, "config", "core.fsmonitor", f"touch {ran}")
    (root / ".gitattributes").write_text("b.txt filter=evil\n")
    answers = [rewrite("a.txt", "new\n"), rewrite("b.txt", "new\n"), {"text": "ok"}]
    async with conversation(root, answers, mode="edit") as talk:
        await talk.turn("change it")
        ran.unlink(missing_ok=True)
        made = await commit(talk)
    assert isinstance(made, Committed), made
    assert made.files == ("a.txt",)
    assert "b.txt is left out" in " ".join(made.notes)
    assert not ran.exists()


async def test_ignored_files_are_left_out(root: Path) -> None:
    (root / ".gitignore").write_text("*.log\n")
    answers = [call("write", path="x.log", text="1\n"), rewrite("a.txt", "new\n"), {"text": "ok"}]
    async with conversation(root, answers, mode="edit") as talk:
        await talk.turn("change it")
        made = await commit(talk)
    assert isinstance(made, Committed), made
    assert made.files == ("a.txt",)
    assert "x.log is left out: git ignores it." in made.notes


@pytest.mark.parametrize("state", ["merge", "nothing", "none"])
async def test_refusals_say_why_and_change_nothing(root: Path, tmp_path: Path, state: str) -> None:
    folder = root
    if state == "none":
        folder = tmp_path / "plain"
        folder.mkdir()
        (folder / "a.txt").write_text("a.txt\n")
    answers = [rewrite("a.txt", "new\n"), {"text": "ok"}]
    async with conversation(folder, answers, mode="edit") as talk:
        if state != "nothing":
            await talk.turn("change it")
        if state == "merge":
            (root / ".git" / "MERGE_HEAD").write_text(git(root, "rev-parse", "HEAD"))
        refused = await commit(talk)
    assert isinstance(refused, CommitRefused)
    words = {
        "merge": "merge is in progress",
        "nothing": "Nothing was changed",
        "none": "not in a git repository",
    }
    assert words[state] in refused.why
    assert git(root, "log", "--format=%s").split() == ["first"]


async def test_without_a_branch_or_a_first_commit_it_works_too(root: Path, tmp_path: Path) -> None:
    git(root, "checkout", "-q", "--detach")
    fresh = tmp_path / "fresh"
    fresh.mkdir()
    git(fresh, "init", "-q", "-b", "main")
    with (fresh / ".git" / "config").open("a") as config:
        config.write(IDENTITY)
    (fresh / "a.txt").write_text("old\n")
    for folder, branch in ((root, ""), (fresh, "main")):
        async with conversation(folder, [rewrite("a.txt", "new\n"), {"text": "ok"}], mode="edit") as talk:
            await talk.turn("change it")
            made = await commit(talk)
        assert isinstance(made, Committed), made
        assert made.branch == branch
        assert git(folder, "show", "--format=", "--name-only", "HEAD").split() == ["a.txt"]
        assert git(folder, "status", "--porcelain") == ""


async def test_a_second_commit_has_only_what_came_after_and_a_rewind_can_be_committed(root: Path) -> None:
    answers = [rewrite("a.txt", "new\n"), {"text": "ok"}, rewrite("b.txt", "new\n"), {"text": "ok"}]
    async with conversation(root, answers, mode="edit") as talk:
        await talk.turn("change a")
        assert isinstance(await commit(talk), Committed)
        assert isinstance(await commit(talk), CommitRefused)
        await talk.turn("change b")
        second = await commit(talk)
        assert isinstance(second, Committed)
        assert second.files == ("b.txt",)
        await talk.send(Rewind(to=second.change_ids[0]))
        await talk.until(Rewound)
        third = await commit(talk)
    assert isinstance(third, Committed), third
    assert git(root, "show", "HEAD:b.txt") == "b.txt\n"
    assert git(root, "status", "--porcelain") == ""


async def test_an_index_that_somebody_else_holds_is_left_and_said(root: Path) -> None:
    async with conversation(root, [rewrite("a.txt", "new\n"), {"text": "ok"}], mode="edit") as talk:
        await talk.turn("change it")
        (root / ".git" / "index.lock").touch()
        made = await commit(talk)
    assert isinstance(made, Committed), made
    assert "index was not updated" in " ".join(made.notes)
    assert git(root, "show", "HEAD:a.txt") == "new\n"


@pytest.mark.promise("GIT-2")
@pytest.mark.parametrize("setting", ["off", "per_change_set"])
async def test_each_change_set_is_a_commit_where_the_user_has_set_it_so(root: Path, setting: str) -> None:
    answers = [
        rewrite("a.txt", "one\n"),
        rewrite("a.txt", "two\n"),
        rewrite("b.txt", "three\n"),
        {"text": "ok"},
    ]
    settings = f'[git]\ncommit = "{setting}"\n'
    async with conversation(root, answers, mode="edit", settings=settings) as talk:
        await talk.turn("change them")
        ids = [event.change_id for event in talk.all(ChangeApplied)]
    subjects = git(root, "log", "--format=%s").splitlines()
    if setting == "off":
        assert subjects == ["first"]
        return
    assert subjects == ["Change b.txt", "Change a.txt", "Change a.txt", "first"]
    assert git(root, "show", "HEAD~2:a.txt") == "one\n"
    assert [each for event in talk.all(Committed) for each in event.change_ids] == ids
    assert git(root, "status", "--porcelain") == ""


async def test_a_file_that_may_hold_secrets_is_left_out(root: Path) -> None:
    (root / ".env").write_text("KEY=1\n")
    with pytest.raises(UsageProblem, match="secrets"):
        await commit_files(Workspace(root), [FileToCommit(".env", None, b"KEY=1\n")], "No\n")
    assert git(root, "log", "--format=%s").split() == ["first"]


@pytest.mark.promise("GIT-2")
async def test_the_commits_of_a_turn_are_made_before_it_has_ended(root: Path) -> None:
    answers = [rewrite("a.txt", "one\n"), {"text": "ok"}]
    async with conversation(
        root, answers, mode="edit", settings='[git]\ncommit = "per_change_set"\n'
    ) as talk:
        await talk.turn("change it")
    assert talk.types[-4:] == ["committed", "stage_completed", "run_completed", "turn_finished"]


@pytest.mark.promise("GIT-2")
async def test_what_is_taken_back_later_is_a_commit_too(root: Path) -> None:
    answers = [rewrite("a.txt", "one\n"), {"text": "ok"}]
    async with conversation(
        root, answers, mode="edit", settings='[git]\ncommit = "per_change_set"\n'
    ) as talk:
        await talk.turn("change it")
        await talk.send(Rewind(to=talk.all(ChangeApplied)[0].change_id))
        await talk.until(Committed)
    assert git(root, "show", "HEAD:a.txt") == "a.txt\n"
    assert git(root, "log", "--format=%s").splitlines() == ["Change a.txt", "Change a.txt", "first"]
