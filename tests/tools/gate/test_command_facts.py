"""What is gathered of a command, and what runs where nobody is asked."""

import shlex
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from msgspec.structs import replace

from handrail.policy.call_facts import ALLOW, Ask, Facts
from handrail.policy.commands.judge import CommandLists, all_rules, command_lists
from handrail.policy.decide import decide
from handrail.protocol.errors import ConfigProblem
from handrail.tools.commands.expansion import MAX_MATCHES
from handrail.tools.gate.approval import auto_approval
from handrail.tools.gate.command_facts import command_facts
from handrail.tools.sandbox.sandbox import Protection, Sandbox
from handrail.workspace.files import Workspace
from tests.tools.calls import Bench

MakeBench = Callable[..., Bench]


def why(text: str, root: Path, lists: CommandLists | None = None) -> str:
    """Why the command is asked about in mode auto, in a sandbox; empty where it is not."""
    known = command_facts(text, lists or CommandLists(), Workspace(root))
    decision = decide(Facts("run", "run", "auto", command=known, confined=True))
    return decision.reason if isinstance(decision, Ask) else "" if decision == ALLOW else "denied"


@pytest.mark.promise("POL-10")
@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("cat a.py", ""),
        ("cat ../x", "outside the workspace"),
        ("cat /etc/passwd", "outside the workspace"),
        ("cat link/x", "outside the workspace"),
        ("cat .env", "may hold a secret"),
        ("cat sub/../.env", "may hold a secret"),
        ("cat innocent", "may hold a secret"),
        ("ls .git", "belongs to git"),
        ("touch .git/hooks/x", "belongs to git"),
        ("touch .GIT/x", "belongs to git"),
        ("mkdir .handrail/x", "belongs to Handrail"),
        ("touch .orchestration/x", "belongs to Handrail"),
        ("git diff -- ../x", "outside the workspace"),
        ("git show HEAD:.env", "may hold a secret"),
        ("git diff /etc/passwd /etc/group", "outside the workspace"),
        ("python link/x.py", "outside the workspace"),
        ("python a.py --to=/etc/x", "outside the workspace"),
        ("pytest ../x.py::test_a", "outside the workspace"),
        ("pip install -r ../r.txt", "outside the workspace"),
        ("pip install ./link/x", "outside the workspace"),
        ("grep -f .env x", "may hold a secret"),
        ("find . -newer /etc/passwd", "outside the workspace"),
    ],
)
def test_paths_of_a_command_are_followed_to_where_they_lead(tmp_path: Path, text: str, reason: str) -> None:
    root = tmp_path / "ws"
    for folder in (root / ".git", root / "sub", tmp_path / "elsewhere"):
        folder.mkdir(parents=True)
    (root / "link").symlink_to(tmp_path / "elsewhere")
    (root / ".env").write_text("A=b\n")
    (root / "innocent").symlink_to(".env")
    found = why(text, root)
    assert reason in found
    assert bool(found) == bool(reason)


@pytest.mark.parametrize(
    ("files", "text", "reason"),
    [
        (("a.py", "b.py"), "ls *.py", ""),
        (("a.py",), "grep -rn x --include=*.py .", ""),
        ((), "cat *.md", ""),
        (("prod.env",), "cat prod.*", "may hold a secret"),
        (("id_rsa",), "cat id_*", "may hold a secret"),
        ((), "cat *.pem", "may hold a secret"),
        ((".env",), "cat .e*", "hidden files"),
        ((), "cat .git/*", "belongs to git"),
        ((), "cat ../*", "leads out of the workspace"),
        ((), "cat /etc/pass*", "leads out of the workspace"),
        (("-delete",), "find *", "`-delete`, which is not known to be harmless"),
        (("-exec",), "find a [^z]exec sh evil.sh ';'", "`-exec`, which is not known to be harmless"),
        (("-oout",), "sort [^z]oout a.py", "`-oout`, which is not known to be harmless"),
        (("-oout",), "sort ?oout", "`-oout`, which is not known to be harmless"),
        (("main.c", "main.py"), "uniq main.*", "with the argument `main.py`"),
        (("main.c",), "uniq main.*", ""),
        (("a.json", "b.json"), "python -m json.tool *.json", "with the argument `b.json`"),
        (("x",), "cat [[:alpha:]]*", "a bracket that not every shell and locale reads alike"),
        (("x",), "ls [z-a]", "a bracket"),
        (("x",), "ls []x]", "a bracket"),
        (("x",), "ls [=x=]", ""),
        (("x",), "ls [!x]", ""),
        (("@x",), "cat *", "is not a path"),
        (("a.py",), "python *.py", ""),
        (("a.py", "-c"), "python -? *.py", "`-c`, which is not known to be harmless"),
        (("a",), "touch *", ""),
        ((".mcp.json",), "touch .[m]cp.json", "hidden files"),
        (("--output=x",), "git diff *", "`--output=x`, which is not known to be harmless"),
        (("a.py",), "ls .//*", "empty folder name"),
        (("\udce9",), "ls *", "not UTF-8"),
        (("é",), "ls ?", "may or may not match"),
        (("é",), "ls *", ""),
    ],
)
def test_patterns_stand_for_what_they_match(
    tmp_path: Path, files: tuple[str, ...], text: str, reason: str
) -> None:
    for name in files:
        (tmp_path / name).touch()
    found = why(text, tmp_path)
    assert reason in found
    assert bool(found) == bool(reason)


def test_a_pattern_with_very_many_matches_is_asked_about(tmp_path: Path) -> None:
    for number in range(MAX_MATCHES + 1):
        (tmp_path / f"{number}.txt").touch()
    assert "too many matches" in why("cat *.txt", tmp_path)


def test_only_what_the_rules_let_through_runs_as_they_judged_it(tmp_path: Path) -> None:
    def facts(text: str, *, confined: bool = True, always: bool = False) -> Facts:
        known = command_facts(text, command_lists(("make",)), Workspace(tmp_path))
        return Facts("run", "run", "auto", command=known, confined=confined, always=always)

    found = auto_approval(facts("npm install && npm install"))
    assert found is not None
    assert not found.network
    for asked in (facts("rm x"), facts("make", confined=False), facts("ls", always=True)):
        assert auto_approval(asked) is None
    assert auto_approval(replace(facts("ls"), mode="ask")) is None


# In the gate


@pytest.mark.anyio
@pytest.mark.promise("POL-11")
async def test_modes_that_only_read_run_commands_that_only_read(make_bench: MakeBench) -> None:
    bench = make_bench("explore", allow=("find . -delete", "rm"))
    (bench.root / "a.txt").write_text("hello\n")
    assert "hello" in (await bench.call("run", command="ls && cat a.txt | head -5")).content
    for text in (
        "touch b",
        "cat a.txt > b",
        "python a.py",
        "cat a.txt && touch b",
        "rm a.txt",
        "find . -delete",
        "echo $(touch b)",
    ):
        finished = await bench.call("run", command=text)
        assert finished.error is not None
        assert finished.error.reason == "mode_forbids"
    assert bench.user.asked == []
    assert sorted(path.name for path in bench.root.iterdir()) == ["a.txt"]


@pytest.mark.promise("POL-11")
def test_what_is_said_to_only_read_changes_nothing(tmp_path: Path) -> None:
    root = tmp_path / "ws"
    (root / "src").mkdir(parents=True)
    for name in ("a", "b", "a.py", "README.md", "build.log", "src/a.py"):
        (root / name).write_text("x\n")
    for words in (("init", "-q"), ("add", "."), ("commit", "-qm", "first")):
        identity = ("-c", "user.name=a", "-c", "user.email=a@example.com")
        subprocess.run(["git", *identity, *words], cwd=root, check=True, capture_output=True, timeout=60)
    (root / "a.py").write_text("y\n")

    def state() -> list[tuple[str, int, bytes]]:
        files = sorted(path for path in tmp_path.rglob("*") if path.is_file())
        return [(str(path), path.stat().st_mtime_ns, path.read_bytes()) for path in files]

    before = state()
    examples = [
        text
        for rule in {id(each): each for each in all_rules().values()}.values()
        if rule.reads_only
        for text in rule.auto
    ]
    assert len(examples) > 50
    for text in examples:
        known = command_facts(shlex.join(text.split()), CommandLists(), Workspace(root)).judged
        assert known.reads_only, text
        subprocess.run(
            ["bash", "-c", known.runs],
            cwd=root,
            capture_output=True,
            check=False,
            timeout=60,
            stdin=subprocess.DEVNULL,
        )
        assert state() == before, text


@pytest.mark.anyio
@pytest.mark.promise("POL-7")
async def test_settings_of_a_repository_run_nothing_where_git_runs_unasked(make_bench: MakeBench) -> None:
    bench = make_bench("auto")
    root, ran = bench.root, bench.root / "ran"

    def git(*words: str) -> None:
        identity = ("-c", "user.name=a", "-c", "user.email=a@example.com")
        subprocess.run(["git", *identity, *words], cwd=root, check=True, capture_output=True, timeout=60)

    git("init", "-q")
    (root / "a.bin").write_text("one\n")
    (root / ".gitattributes").write_text("*.bin diff=evil filter=evil\n")
    git("add", "a.bin", ".gitattributes")
    git("commit", "-qm", "first")
    (root / "a.bin").write_text("two\n")
    evil = root / "evil.sh"
    evil.write_text(f"#!/bin/sh\ntouch {ran}\ncat\n")
    evil.chmod(0o755)
    for name in (
        "core.fsmonitor",
        "core.pager",
        "diff.external",
        "diff.evil.textconv",
        "gpg.program",
        "filter.evil.clean",
    ):
        git("config", name, str(evil))
    git("config", "log.showSignature", "true")
    git("config", "core.hooksPath", str(root))
    for text in (
        *(
            "git status",
            "git diff",
            "git log -p -3",
            "git show",
            "git blame a.bin",
            "git --no-pager diff HEAD",
        ),
        *("git branch -a", "git ls-files", "git rev-parse HEAD", "git status -s && git diff --stat"),
    ):
        finished = await bench.call("run", command=text)
        assert (finished.status, ran.exists(), bench.user.asked) == ("ok", False, []), (
            text,
            finished.content,
        )
    diff = await bench.call("run", command="git diff a.bin")
    assert "+two" in diff.content


@pytest.mark.anyio
async def test_what_the_user_approved_runs_as_it_was_written(make_bench: MakeBench) -> None:
    bench = make_bench("ask")
    finished = await bench.call("run", command="echo $((1+1)) | cat; echo $GIT_ALLOW_PROTOCOL.")
    assert finished.content.endswith("2\n.")
    assert len(bench.user.asked) == 1


@pytest.mark.anyio
@pytest.mark.promise("POL-12")
async def test_code_of_the_workspace_runs_unasked_only_where_it_is_confined(make_bench: MakeBench) -> None:
    for found, asked in ((Protection(), 1), (None, 0)):
        bench = make_bench("auto", sandbox=Sandbox(found=found))
        (bench.root / "a.py").write_text("print('ran')\n")
        assert "ran" in (await bench.call("run", command="python3 a.py")).content
        assert len(bench.user.asked) == asked
        assert "a.py" in (await bench.call("run", command="ls")).content
        assert len(bench.user.asked) == asked


@pytest.mark.anyio
@pytest.mark.promise("POL-14")
async def test_a_command_that_was_allowed_is_not_asked_about_again(make_bench: MakeBench) -> None:
    kept: list[str] = []
    bench = make_bench("auto", keep_entry=kept.append)
    bench.user.says = "allow"
    for text in ("cp a b", "cp a b", "cp a c", "cp a 'b c'", "cp a b | cat"):
        await bench.call("run", command=text)
    assert kept == ["cp a b", "cp a c"]
    assert [asked.entry for asked in bench.user.asked] == ["cp a b", "cp a c", ""]


@pytest.mark.anyio
async def test_an_entry_that_cannot_be_kept_runs_nothing(make_bench: MakeBench) -> None:
    def keep(_entry: str) -> None:
        raise ConfigProblem("The file cannot be written.")

    bench = make_bench("auto", keep_entry=keep)
    bench.user.says = "allow"
    finished = await bench.call("run", command="ln -s x y")
    assert finished.error is not None
    assert finished.error.reason == "storage_failed"
    assert not (bench.root / "y").is_symlink()


@pytest.mark.promise("POL-10")
@pytest.mark.parametrize(
    "command", ["touch .mcp.json", "touch .VSCODE/tasks.json", "mkdir -p .github/workflows/x"]
)
def test_a_command_that_makes_what_other_programs_run_is_asked_about(tmp_path: Path, command: str) -> None:
    assert "can make other programs run something" in why(command, tmp_path)


@pytest.mark.promise("POL-6")
@pytest.mark.parametrize(
    "text",
    [
        "git push",
        "git --no-pager push",
        "git push > out.txt",
        "(git push)",
        "for x in a; do git push $x; done",
        "A=b git push",
        "echo $(git push)",
        "ls && git push &",
        "command git push",
        "sudo -n /usr/bin/git push",
        r"g'i't pu\sh",
    ],
)
def test_what_is_denied_is_denied_wherever_it_stands_in_a_command(tmp_path: Path, text: str) -> None:
    assert why(text, tmp_path, command_lists(("git push",), ("git push",))) == "denied"


def test_words_that_only_look_like_a_denied_command_are_not_denied(tmp_path: Path) -> None:
    for text in ("echo git push", "git status push", "grep 'git push' a"):
        assert why(text, tmp_path, command_lists((), ("git push",))) == "", text
