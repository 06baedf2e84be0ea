"""Patterns are expanded once, as bash expands them, and what was judged is what runs."""

import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from handrail.policy.commands.judge import CommandLists, command_lists
from handrail.protocol.errors import PathProblem
from handrail.tools.commands import expansion
from handrail.tools.commands.expansion import MAX_MATCHES, PatternExpander
from handrail.tools.commands.run import _only_git_writes
from handrail.tools.gate.command_facts import MAX_BYTES, command_facts
from handrail.workspace.files import Workspace
from tests.tools.calls import Bench
from tests.tools.commands.bash_words import words_of_bash

MakeBench = Callable[..., Bench]
NAMES = (
    *("-exec", "-delete", "-oout", "--output=x", "-", "--", "-rf", "$(touch ran)", "`touch ran`", "a b", " "),
    *("new\nline", "it's", 'a"b', "back\\slash", "[", "]", "[a]", "*", "?", "a*b", ";", "&", "|", ">x", "#x"),
    *("~", "~root", "{a,b}", "!x", "=x", "a=b", "@x", "%x", "^x", "a.py", "b.py", "B.py", "c.txt", "1", "22"),
    *("\ttab", "é.py", "naïve", "\u202eback", "main.c", "main.py", "z", "Z", ".hidden", ".env"),
)
FOLDERS = ("d/e", "d/.git", "dir with blanks/x", "-dir", "[dir]", "empty", "d2")
PATTERNS = (
    *("*", "*.py", "?", "??", "a*", "*b", "[ab]*", "[^z]exec", "[!z]exec", "[^z]oout", "?exec", "[-x]exec"),
    *("[a-c]*", "[A-Z]", "[a-z]", "[0-9]", "[0-9][0-9]", "[-a]*", "[a-]*", "[!a-z]*", "[^a-zA-Z]*", "*[!y]"),
    *("./*", "./*.py", "d/*", "*/", "*/*", "*/e", "*/e/", "*/.", "*/..", "d/../*.py", "d/./e*", "**", "**/x"),
    *("***", "*.*", "*a*b*", "main.*", "no*match", "no/*", "*/no", "--out*=*", "--include=*.py", "-[e-x]*"),
    *(
        "[",
        "[a",
        "a]",
        "[[:alpha:]]*",
        "[[.a.]]*",
        "[[=a=]]*",
        "[]a]",
        "[^]a]",
        "[!]",
        "[]",
        "[z-a]",
        "[a-A]",
    ),
    *(
        "[a-c-e]",
        "[.]env",
        "[.]*",
        "?env",
        ".*",
        ".e*",
        "d/.g*",
        "*/.git",
        "..*",
        "a[",
        "[dir]/*",
        "x*/",
        "//*",
    ),
    *(
        "d//*",
        "*//e",
        "/etc/pass*",
        "../*",
        "*/../../*",
        "out/*",
        "o*/*",
        "out*",
        "*/secret",
        "loop/*",
        "lo*/a.py",
    ),
    *("[,]*", "[=x]*", "[@%]x", "[:a]*", "*]", "]*", "[a]", "[^a]", "+*", "*=*", "[_]", "-*", "*-", "HEAD^*"),
)
"""What bash may expand: some of it is expanded alike, the rest is asked about."""


@pytest.fixture(scope="module")
def hostile(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A workspace with the names of a hostile repository, and links that lead out of it and in a circle."""
    outside = tmp_path_factory.mktemp("outside")
    (outside / "secret").touch()
    root = tmp_path_factory.mktemp("ws")
    for folder in FOLDERS:
        (root / folder).mkdir(parents=True)
    for name in NAMES:
        (root / name).touch()
    (root / "d" / "e" / "f.py").touch()
    (root / "out").symlink_to(outside)
    (root / "loop").symlink_to(".")
    (root / "dangling").symlink_to("nowhere")
    return root


def expand(pattern: str, root: Path) -> list[str] | None:
    """The names for a pattern; None if it is asked about."""
    try:
        return PatternExpander(Workspace(root)).expand(pattern)
    except PathProblem:
        return None


@pytest.mark.promise("CMD-12")
@pytest.mark.parametrize("locale", ["C", "C.UTF-8"])
def test_patterns_match_what_bash_matches_or_are_asked_about(hostile: Path, locale: str) -> None:
    expanded = {pattern: expand(pattern, hostile) for pattern in PATTERNS}
    for pattern, ours in expanded.items():
        if ours is not None:
            assert words_of_bash(f"show {pattern}", hostile, locale) == [["show", *ours]], pattern
    assert sum(ours is not None for ours in expanded.values()) > 50
    for asked in ("[[:alpha:]]*", ".*", "/etc/pass*", "../*", "out/*", "o*/*", "[z-a]", "[", "[]a]", "d//*"):
        assert expanded[asked] is None, asked


@settings(max_examples=150, deadline=None)
@given(
    names=st.sets(st.text("ab-[]*?^!.é \n'", min_size=1, max_size=4), max_size=12),
    pattern=st.text("ab-[]*?^!.", min_size=1, max_size=6),
)
def test_any_pattern_matches_what_bash_matches_or_is_asked_about(
    tmp_path_factory: pytest.TempPathFactory, names: set[str], pattern: str
) -> None:
    if not set("*?[") & set(pattern):
        return
    root = tmp_path_factory.mktemp("ws")
    for name in names - {".", ".."}:
        (root / name).touch()
    if (ours := expand(pattern, root)) is not None:
        for locale in ("C", "C.UTF-8"):
            assert words_of_bash(f"show {pattern}", root, locale) == [["show", *ours]]


@pytest.mark.promise("CMD-12")
@pytest.mark.parametrize(
    "command",
    [
        *("find d/e [^z]exec sh evil.sh ';'", "sort [^z]oout a.py", "cat [[:alpha:]]*", "uniq main.*"),
        *("cat *", "ls -la *", "ls *.py", "ls -- *", "ls ./*", "wc -l *.py", "head -n 1 main.*", "echo *"),
        *(
            "echo a[b]c ? [ab]*",
            "grep x *.py",
            "grep -r --include=*.py x d",
            "find . -name *.py",
            "diff *.py",
        ),
        *("find *", "find d -name no*match", "ls [!a-z]*", "stat -c %n d/*", "du -s */e", "file -b *.txt"),
        *(
            "cut -d: -f1 *.txt",
            "git diff -- *.py",
            "python *.py",
            "python3 a.py *",
            "touch *.py",
            "mkdir -p x*",
        ),
        *(
            "ls *.py; cat main.*",
            "pytest [ab].py",
            "ruff check *.py",
            "sort -u ?[.]py",
            "ls -d */",
        ),
        *("make *", "make [^z]exec", "rm *.txt", "basename *.py", "ls d2/* no/*", "ls out*", "ls */secret"),
    ],
)
def test_what_runs_unasked_is_what_was_judged_and_what_bash_would_run(hostile: Path, command: str) -> None:
    known = command_facts(command, command_lists(("make", "rm *.txt")), Workspace(hostile))
    if known.judged.problem:
        assert known.judged.runs == ""
        return
    ran = words_of_bash(known.judged.runs, hostile)
    assert ran is not None
    if known.judged.git or "grep" in command or "diff" in command:
        return  # these run in a safer form
    assert ran == words_of_bash(command, hostile)
    assert not (hostile / "ran").exists()


@pytest.mark.promise("CMD-12")
def test_files_that_appear_after_the_judgement_change_nothing(tmp_path: Path) -> None:
    (tmp_path / "a.py").touch()
    runs = [
        command_facts(text, CommandLists(), Workspace(tmp_path)).judged.runs
        for text in ("find . -type f -name *.py", "sort ?oout *.py", "ls *.py *.none", "cat [a]*")
    ]
    before = [words_of_bash(text, tmp_path) for text in runs]
    for name in ("b.py", "-oout", "xoout", "x.none", "a -delete", "aa"):
        (tmp_path / name).touch()
    assert [words_of_bash(text, tmp_path) for text in runs] == before
    assert before[0] == [["find", ".", "-type", "f", "-name", "a.py"]]
    assert before[1] == [["sort", "?oout", "a.py"]]
    assert before[2] == [["ls", "a.py", "*.none"]]


@pytest.mark.anyio
@pytest.mark.promise("CMD-12")
async def test_no_pattern_makes_a_mode_that_only_reads_run_or_write_something(make_bench: MakeBench) -> None:
    bench = make_bench("explore", answerable=False)
    root = bench.root
    (root / "evil.sh").write_text("touch ran\n")
    (root / "d").mkdir()
    for name in ("-exec", "-oout", "d/f", ";", "-delete", "--compress-program=sh", "-fprint", "+"):
        (root / name).write_text("text\n")
    (root / "main.c").write_text("int a;\n")
    (root / "main.py").write_text("print()\n")
    before = sorted((path.name, path.read_bytes()) for path in root.rglob("*") if path.is_file())
    for command in (
        "find d/f [^z]exec sh evil.sh ';'",
        "find d/f [^z]exec sh evil.sh ?",
        "find d/f -[^z]xec sh evil.sh [^a]",
        "find d/f ?exec sh evil.sh ';'",
        "find d/f [^z]delete",
        "find d/f [!z]fprint main.py",
        "find *",
        "sort [^z]oout main.py",
        "sort ?oout main.py",
        "sort [^z]-compress-program=sh main.py",
        "uniq main.*",
        "uniq main.? main.py",
        "uniq main.[cp]*",
    ):
        finished = await bench.call("run", command=command)
        assert finished.status == "refused", command
    after = sorted((path.name, path.read_bytes()) for path in root.rglob("*") if path.is_file())
    assert after == before
    finished = await bench.call("run", command="cat main.*")
    assert finished.content.endswith("int a;\nprint()")


@pytest.mark.anyio
async def test_a_command_that_the_user_approved_runs_as_it_was_shown(make_bench: MakeBench) -> None:
    bench = make_bench("ask")
    (bench.root / "a.py").touch()
    bench.user.while_thinking = (bench.root / "b.py").touch
    finished = await bench.call("run", command="echo *.py")
    assert bench.user.asked[0].summary == "echo *.py"
    assert finished.content.endswith("a.py b.py")


@pytest.mark.promise("CMD-13")
def test_a_pattern_that_looks_at_very_many_files_is_asked_about(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def why(command: str) -> str:
        return command_facts(command, CommandLists(), Workspace(tmp_path)).judged.problem

    for number in range(20_000):
        (tmp_path / f"{number}.txt").touch()
    assert "too many matches" in why("ls *")
    assert why("ls 1234*.txt") == ""
    # Circles of links would be followed to any depth.
    for name in "abcdefgh":
        (tmp_path / name).symlink_to(".")
    assert "too many files" in why("ls " + "*/" * 200)
    assert "too many files" in why("ls " + "[a-h]/" * 50 + "a")
    monkeypatch.setattr(expansion, "SECONDS", -1.0)
    assert "too many files" in why("ls *.md")


@pytest.mark.promise("CMD-13")
def test_names_that_are_too_long_for_one_command_are_asked_about(tmp_path: Path) -> None:
    for number in range(MAX_BYTES // 200):
        (tmp_path / f"{number:0200}").touch()
    assert MAX_BYTES // 200 < MAX_MATCHES
    found = command_facts("ls 0*", CommandLists(), Workspace(tmp_path)).judged
    assert "too long together" in found.problem
    shorter = command_facts("ls 0*0", CommandLists(), Workspace(tmp_path)).judged
    assert shorter.problem == ""
    subprocess.run(["bash", "-c", shorter.runs], cwd=tmp_path, check=True, capture_output=True, timeout=60)


def test_a_pattern_with_many_stars_is_matched_in_no_time(tmp_path: Path) -> None:
    (tmp_path / ("a" * 250)).touch()
    assert expand("*a" * 40 + "b", tmp_path) == ["*a" * 40 + "b"]


def test_an_entry_of_the_user_with_a_pattern_covers_that_pattern(tmp_path: Path) -> None:
    for name in ("a.pyc", "b.pyc", "id_rsa"):
        (tmp_path / name).touch()
    lists = command_lists(("rm *.pyc", "rm id*", "mv *.none x"))

    def facts(command: str) -> tuple[str, str, bool]:
        found = command_facts(command, lists, Workspace(tmp_path)).judged
        return found.problem, found.runs, found.named

    assert facts("rm *.pyc") == ("", "rm a.pyc b.pyc", True)
    assert facts("mv *.none x") == ("", "mv '*.none' x", True)
    for other in ("rm *", "rm *.py?", "rm *.pyc id_rsa"):
        assert "not on the list" in facts(other)[0]
    assert command_facts("cp *.pyc x", lists, Workspace(tmp_path)).judged.entry == "cp *.pyc x"
    # What the names lead to is still checked.
    assert [place.secret for place in command_facts("rm id*", lists, Workspace(tmp_path)).places] == [True]


def init(root: Path) -> None:
    subprocess.run(["git", "init", "-q", str(root)], check=True, timeout=60)


@pytest.mark.anyio
@pytest.mark.promise("CMD-12")
async def test_a_name_that_git_would_read_as_an_option_does_not_open_the_repository(
    make_bench: MakeBench,
) -> None:
    bench = make_bench("auto", allow=("git add",), answerable=False)
    root = bench.root
    init(root)
    for name in ("a.txt", "b.txt"):
        (root / name).touch()
    assert (await bench.call("run", command="git add *.txt")).status == "ok"
    (root / "--exec=x.txt").touch()
    (root / "c.txt").touch()
    finished = await bench.call("run", command="git add [!b]*.txt")
    assert "hooks were not run" not in finished.content
    assert _only_git_writes("git add ?.txt", bench.workspace)
    assert not _only_git_writes("git add *.txt", bench.workspace)
    assert not _only_git_writes("git add [[:alpha:]].txt", bench.workspace)
