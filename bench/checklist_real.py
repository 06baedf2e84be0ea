"""`python -m bench.checklist_real`: a real repository with five seeded bugs, and a checklist that names them.

After each item of `handrail do`, the tree must be fixed and verified, or byte for byte what it was. Tests run
by hand decide, not what Handrail says. Exits with 1 where that does not hold.
"""

import argparse
import hashlib
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
import xml.etree.ElementTree as ET
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from bench.agents import CACHE
from bench.verify.real import install, unpacked

PACKAGE = "humanize==4.12.3"
TOOLS = ("pytest", "freezegun", "python-dateutil")
CHECKLIST = "TODO.md"
TOLD = 200
NOT_COMPARED = (".git", ".venv")


class Bug(NamedTuple):
    path: str
    right: str
    wrong: str
    item: str


BUGS = (
    Bug(
        "src/humanize/lists.py",
        'str(item) for item in items[:-1]) + f" and',
        'str(item) for item in items[1:]) + f" and',
        "Fix natural_list in src/humanize/lists.py: three items come out wrong (test_natural_list).",
    ),
    Bug(
        "src/humanize/filesize.py",
        "base = 1024 if (gnu or binary) else 1000",
        "base = 1024 if gnu else 1000",
        "Fix naturalsize in src/humanize/filesize.py: binary sizes are wrong (test_naturalsize).",
    ),
    Bug(
        "src/humanize/number.py",
        "if value % 100 in (11, 12, 13):",
        "if value % 10 in (11, 12, 13):",
        "Fix ordinal in src/humanize/number.py: 11 gives 11st (test_ordinal).",
    ),
    Bug(
        "src/humanize/time.py",
        "if delta.days == -1:",
        "if delta.days == -2:",
        "Fix naturalday in src/humanize/time.py: yesterday is not recognised (test_naturalday).",
    ),
    Bug(
        "src/humanize/i18n.py",
        'if locale is None or locale.startswith("en"):',
        'if locale is None or locale.endswith("en"):',
        "Fix activate in src/humanize/i18n.py: English locales are not found (test_en_locale).",
    ),
)


class Tests(NamedTuple):
    passed: frozenset[str]
    failed: frozenset[str]


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m bench.checklist_real", description=__doc__)
    parser.add_argument("names", nargs="*", help="modules whose bugs are seeded; all when none is named")
    names = parser.parse_args().names
    bugs = [bug for bug in BUGS if not names or Path(bug.path).stem in names]
    (CACHE / "homes").mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=CACHE / "homes", ignore_cleanup_errors=True) as place:
        root = prepared(Path(place), bugs)
        before = tests(root)
        print(f"{PACKAGE}: {len(before.passed)} tests pass, {len(before.failed)} fail", flush=True)
        print("| item | build | tree | tests that fail | seconds | why |")
        print("| --- | --- | --- | ---: | ---: | --- |", flush=True)
        rows = [attempt(root, Path(place, "home"), bug) for bug in bugs]
    print(f"\n{sum(row == 'fixed' for row in rows)} fixed, {rows.count('untouched')} untouched")
    return 0 if set(rows) <= {"fixed", "untouched"} else 1


def prepared(place: Path, bugs: Sequence[Bug]) -> Path:
    """The package as its authors release it, with the bugs and the checklist as the only commit."""
    root = unpacked(PACKAGE, place)
    for bug in bugs:
        text = (root / bug.path).read_text()
        if text.count(bug.right) != 1:
            raise SystemExit(f"{bug.path} of {PACKAGE} does not have the line of this bug once: {bug.right}")
        (root / bug.path).write_text(text.replace(bug.right, bug.wrong))
    items = "".join(f"- [ ] {bug.item}\n" for bug in bugs)
    (root / CHECKLIST).write_text(f"# Bugs\n\n{items}")
    install(root, TOOLS)
    return root


def tests_of(bug: Bug) -> str:
    """The name of the tests that notice the bug."""
    return bug.item.rpartition("(")[2].partition(")")[0]


def attempt(root: Path, home: Path, bug: Bug) -> str:
    """What the next item of the checklist left: `fixed`, `untouched`, or what is wrong with the tree."""
    files, known = contents(root), tests(root)
    environ = {**os.environ, "HANDRAIL_HOME": str(home)}
    words = ["do", CHECKLIST, "--auto", "--max", "1", "--keep-going", "--json"]
    began = time.monotonic()
    done = subprocess.run(
        [sys.executable, "-P", "-m", "handrail", *words],
        cwd=root,
        env=environ,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )
    seconds = time.monotonic() - began
    if not done.stdout.startswith("{"):
        raise SystemExit(f"handrail do ended with {done.returncode}: {done.stderr[-2_000:]}")
    item = next(each for each in json.loads(done.stdout)["items"] if each["text"] == bug.item)
    now = tests(root)
    tree = judged(item, bug, difference(files, contents(root)), known, now)
    why = item["detail"].partition("\n")[0][:TOLD]
    print(
        f"| {bug.path} | {item['state']} | {tree} | {len(now.failed)} | {seconds:.0f} | {why} |", flush=True
    )
    return tree


def judged(item: Mapping[str, Any], bug: Bug, changed: set[str], before: Tests, now: Tests) -> str:
    if item["state"] != "complete":
        return f"LEFT CHANGED: {', '.join(sorted(changed))}" if changed else "untouched"
    if changed != {bug.path, CHECKLIST}:
        return f"ANOTHER CHANGE: {', '.join(sorted(changed))}"
    if before.passed - now.passed:
        return f"BROKEN: {', '.join(sorted(before.passed - now.passed)[:5])}"
    if still := [name for name in now.failed if tests_of(bug) in name]:
        return f"NOT FIXED: {', '.join(sorted(still)[:5])}"
    return "fixed"


def contents(root: Path) -> dict[str, str]:
    """The files with a hash of their content, and their permissions."""
    found = {}
    for path in root.rglob("*"):
        name = path.relative_to(root)
        if name.parts[0] not in NOT_COMPARED and path.is_file():
            told = hashlib.sha256(path.read_bytes()).hexdigest()
            found[str(name)] = f"{path.stat().st_mode:o} {told}"
    return found


def difference(before: Mapping[str, str], after: Mapping[str, str]) -> set[str]:
    return {path for path in before.keys() | after.keys() if before.get(path) != after.get(path)}


def tests(root: Path) -> Tests:
    """The project's tests as a person runs them, in a copy: a test run writes files."""
    with tempfile.TemporaryDirectory(dir=root.parent) as folder:
        copy = Path(folder, root.name)
        shutil.copytree(root, copy, ignore=shutil.ignore_patterns(*NOT_COMPARED))
        report = Path(folder, "report.xml")
        words = [str(root / ".venv/bin/python"), "-m", "pytest", "-q", f"--junitxml={report}"]
        # The package is installed as editable: this copy goes before it.
        environ = {**os.environ, "PYTHONPATH": str(copy / "src")}
        subprocess.run(words, cwd=copy, env=environ, stdout=subprocess.DEVNULL, check=False)
        cases = list(ET.parse(report).iter("testcase"))  # noqa: S314 - of a run of our own
    bad = {
        _name(case) for case in cases if case.find("failure") is not None or case.find("error") is not None
    }
    return Tests(frozenset(map(_name, cases)) - bad, frozenset(bad))


def _name(case: ET.Element) -> str:
    return f"{case.get('classname')}.{case.get('name')}"


if __name__ == "__main__":
    sys.exit(main())
