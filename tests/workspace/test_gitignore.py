"""Rules of `.gitignore`, compared with git's own understanding of them."""

import os
import subprocess
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from handrail.workspace.gitignore import parse_rules
from handrail.workspace.stat_index import snapshot

NAMES = [
    "a",
    "b",
    "ab",
    "a.py",
    "b.pyc",
    "foo",
    "x.tar.gz",
    ".env",
    "[x]",
    "a b",
    "a]",
    "!x",
    "#y",
    "a*",
    "1",
]
PATTERNS = [
    *(
        "a",
        "*.py",
        "/foo",
        "foo/",
        "/a/b",
        "a/b",
        "**/foo",
        "foo/**",
        "a/**/b",
        "*",
        "!a",
        "!*.py",
        "!foo/",
        "?",
    ),
    *("[ab]", "[!a]", "[a-c]*", "*.tar.gz", ".*", "!.env", "*b*", "/*", "!/a", "a b", "a\\ ", "\\#y", "\\!x"),
    *(
        "**",
        "a/*",
        "a/*/b",
        "\\[x\\]",
        "[x]",
        "[]a]",
        "a[",
        "*a*b",
        "x.t*",
        "**/a/b",
        "a\\*",
        "[^a]b",
        "b/",
        "*/",
    ),
    *("//a", "/", "[[:digit:]]", "[a&&b]", "a[]", "ab/**/*", "***", "a**b", "# c", "", "  "),
]
paths = st.lists(st.sampled_from(NAMES), min_size=1, max_size=4).map("/".join)
rules = st.lists(st.sampled_from(PATTERNS), min_size=1, max_size=4).map("\n".join)


@pytest.mark.promise("WORK-7")
@settings(max_examples=40, deadline=None, suppress_health_check=list(HealthCheck))
@given(files=st.lists(paths, min_size=3, max_size=15), top=rules, inner=rules)
def test_the_same_files_are_left_out_as_by_git(
    tmp_path_factory: pytest.TempPathFactory, files: list[str], top: str, inner: str
) -> None:
    root = tmp_path_factory.mktemp("repository")
    subprocess.run(["git", "init", "-q", root], check=True)
    for path in files:
        try:
            (root / path).parent.mkdir(parents=True, exist_ok=True)
            (root / path).write_text("x")
        except OSError:
            continue  # a folder or file of this name is there already
    (root / ".gitignore").write_text(top)
    if (root / "a").is_dir():
        (root / "a" / ".gitignore").write_text(inner)
    listed = subprocess.run(
        ["git", "-C", root, "ls-files", "-coz", "--exclude-standard"], capture_output=True, check=True
    ).stdout
    assert set(snapshot(root).files) == {os.fsdecode(path) for path in listed.split(b"\0") if path}


@pytest.mark.parametrize("rule", ["*a" * 100 + "b", "**/" * 40 + "x", "[" * 3000, "a/" + "**/a" * 30])
def test_hostile_rule_is_answered_at_once(tmp_path: Path, rule: str) -> None:
    found = parse_rules(rule.encode())
    name = "a" * 250
    assert found is None or found.verdict(name, f"a/{name}", folder=False) in {None, False, True}
