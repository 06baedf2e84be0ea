"""Nothing of the machine that the work was done on stands in a tracked file."""

import re
import subprocess

import pytest

from tests.project.source import ROOT

HOMES = "roo[t]|wor[k]|home/(?!u/|me/|you/)[a-z]+|User[s]/(?!me/)[a-z]+"
REGISTRIES = "py[p]i|pythonhoste[d]|npmj[s]|debia[n]|crate[s]"
LEAK = re.compile(rf"(?<![\w.~-])/(?:{HOMES})/|https?://[a-z0-9.-]*(?:{REGISTRIES})\.[a-z]+")
UNFINISHED = re.compile(r"\b(?:TOD[O]|FIXM[E]|XX[X]|NotImplementedErro[r])\b|mark\.(?:ski[p]|xfai[l])")


def tracked(*folders: str) -> list[str]:
    """Paths that git knows, deleted ones left out."""
    git = ["git", "-C", str(ROOT), "ls-files", "-z", "--", *folders]
    done = subprocess.run(git, capture_output=True, check=True, timeout=60)
    names = [name for name in done.stdout.decode().split("\0") if name]
    return [name for name in names if (ROOT / name).is_file()]


def lines_with(pattern: re.Pattern[str], names: list[str]) -> list[str]:
    found = []
    for name in names:
        text = (ROOT / name).read_text(encoding="utf-8", errors="replace")
        found += [
            f"{name}:{number}: {line.strip()[:120]}"
            for number, line in enumerate(text.splitlines(), start=1)
            if pattern.search(line)
        ]
    return found


def test_no_tracked_file_names_a_path_of_a_machine_or_a_registry() -> None:
    assert lines_with(LEAK, tracked()) == []


def test_nothing_is_left_unfinished() -> None:
    assert lines_with(UNFINISHED, tracked("src", "tests")) == []


@pytest.mark.parametrize(
    ("text", "leaks"),
    [
        ("cd /" + "root/x", True),
        ("see /" + "work/main", True),
        ("https://" + "pypi.org/simple", True),
        ("https://files." + "pythonhosted.org/x", True),
        ("docs/" + "root/x", False),
        ("https://example.com/x", False),
        ("/home/me/project", False),
    ],
)
def test_a_leak_is_recognised(text: str, leaks: bool) -> None:
    assert bool(LEAK.search(text)) is leaks
