"""A workspace with the Handrail that is running in it: nothing that it runs can be changed from inside."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import anyio
import pytest
from msgspec.json import encode

from handrail.tools.sandbox.sandbox import Protection

REPOSITORY = Path(__file__).parents[3]
RUNS = """
import anyio, json, sys
from pathlib import Path
from msgspec.json import decode
import handrail
from handrail.tools.sandbox.sandbox import Protection, Sandbox
from tests.tools.calls import open_bench
folder, protection, calls = sys.argv[1:]
assert Path(handrail.__file__).is_relative_to(folder), handrail.__file__
bench = open_bench(Path(folder), sandbox=Sandbox(found=decode(protection, type=Protection)))
async def main():
    for call in json.loads(calls):
        found = await bench.call(**call)
        print(json.dumps([found.status, found.summary, found.content]))
anyio.run(main)
bench.close()
"""
APP = """
import anyio, sys
from pathlib import Path
from handrail.app.app import Options, open_app
async def main():
    async with open_app(Options(Path(sys.argv[1]))) as app:
        print("\\n".join(app.notices))
anyio.run(main)
"""
LAUNCHER = "src/handrail/tools/sandbox/landlock_launcher.py"


@pytest.fixture
def room(tmp_path: Path) -> Path:
    """A folder whose workspace has a copy of the source, and a virtual environment to run it with."""
    root = tmp_path / "work"
    ignored = shutil.ignore_patterns("__pycache__")
    shutil.copytree(REPOSITORY / "src" / "handrail", root / "src" / "handrail", ignore=ignored)
    libraries = Path(anyio.__file__).parents[1]
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", root / ".venv"], check=True, timeout=60)
    ours = next((root / ".venv/lib").glob("python*/site-packages"))
    (ours / "others.pth").write_text(f"{root}/src\n{libraries}\n")
    (root / ".venv/bin/rg").write_text("#!/bin/sh\n")
    (root / "a.py").write_text("a = 1\n")
    (root / "docs").mkdir()
    return tmp_path


def python(room: Path, program: str, *words: str) -> str:
    environ = {**os.environ, "PYTHONPATH": str(room / "tests")}
    (room / "tests").mkdir(exist_ok=True)
    if not (room / "tests/tests").exists():
        (room / "tests/tests").symlink_to(REPOSITORY / "tests")
    words = (str(room / "work/.venv/bin/python"), "-P", "-c", program, *words)
    done = subprocess.run(words, check=False, env=environ, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    return done.stdout


def calls(room: Path, protection: Protection, *made: dict[str, Any]) -> list[list[str]]:
    """How calls end that are made by the copy."""
    lines = python(room, RUNS, str(room), encode(protection).decode(), json.dumps(made)).splitlines()
    return [json.loads(line) for line in lines]


def contents(room: Path, *, modes: bool = True) -> dict[str, str]:
    """The files of the copy and its environment."""
    found = {}
    for top in (room / "work/src", room / "work/.venv"):
        for path in sorted(top.rglob("*")):
            if "__pycache__" not in path.parts:
                text = os.readlink(path) if path.is_symlink() else path.read_bytes() if path.is_file() else ""
                found[str(path)] = f"{os.lstat(path).st_mode * modes:o} {text!r}"
    return found


ATTACKS = (
    f"echo evil > {LAUNCHER}",
    f"sed -i s/confine/evil/ {LAUNCHER}",
    f"rm {LAUNCHER}; echo evil > {LAUNCHER}",
    f"mv {LAUNCHER} x.py",
    "mv src src2; mkdir -p src/handrail; echo evil > src/handrail/__init__.py",
    "mv src/handrail src/other; cp -r src/other src/handrail",
    "rm -rf src",
    "rm -rf .venv",
    "mv .venv venv2; cp -r venv2 .venv; echo evil > .venv/bin/python",
    "ln -sf /bin/sh .venv/bin/python",
    "ln -sf /bin/sh .venv/bin/rg; echo evil > .venv/bin/shfmt",
    "echo 'home = /evil' > .venv/pyvenv.cfg",
    "echo 'import evil' > .venv/lib/python3*/site-packages/evil.pth",
    "echo evil > src/sitecustomize.py",
    "chmod -R 777 src .venv",
    f"ln {LAUNCHER} twin.py && echo evil > twin.py",
    f"ln -s {LAUNCHER} way.py; echo evil > way.py",
    "ln -s src way; echo evil > way/handrail/__main__.py",
    "cd src/handrail/tools/sandbox; echo evil > landlock_launcher.py",
    "echo evil > src/handrail/tools/sandbox/__pycache__/landlock_launcher.cpython-311.pyc",
    "python3 -c \"import os; os.rename('src', 'x')\"",
    "touch src/handrail/new.py; mkdir src/handrail/tools/new",
)


@pytest.mark.promise("SAND-20")
def test_no_command_changes_the_handrail_that_runs_it(room: Path, protection: Protection) -> None:
    calls(room, protection)  # what Python compiles is compiled now
    modes = protection.git or protection.metadata
    before = contents(room, modes=modes)
    made = [{"tool": "run", "command": command} for command in ATTACKS]
    last = {"tool": "run", "command": "touch ../outside; echo changed > a.py; cat a.py"}
    ended = calls(room, protection, *made, last)
    assert contents(room, modes=modes) == before
    assert not (room / "outside").exists()
    assert "changed" in ended[-1][2]


@pytest.mark.promise("SAND-20")
def test_other_names_of_handrails_files_cannot_be_written(room: Path, protection: Protection) -> None:
    launcher = room / "work" / LAUNCHER
    os.link(launcher, room / "work/twin.py")
    os.link(launcher, room / "work/docs/twin.py")
    before = launcher.read_bytes()
    calls(room, protection, {"tool": "run", "command": "echo evil > twin.py; echo evil > docs/twin.py"})
    assert launcher.read_bytes() == before


@pytest.mark.promise("SAND-20")
def test_a_link_that_leads_to_handrails_files_is_not_replaced(room: Path, protection: Protection) -> None:
    root = room / "work"
    (root / ".venv").rename(room / "environment")
    (root / ".venv").symlink_to(room / "environment")
    calls(
        room,
        protection,
        {"tool": "run", "command": "rm .venv; mkdir -p .venv/bin; echo x > .venv/bin/python"},
    )
    assert os.readlink(root / ".venv") == str(room / "environment")


@pytest.mark.promise("SAND-21")
def test_the_launcher_is_read_once(room: Path, protection: Protection) -> None:
    """Even if its file could be changed, commands of a running Handrail would be confined as before."""
    changed = f"(Path(folder) / 'work' / {LAUNCHER!r}).write_text('import os; os._exit(0)\\n')"
    program = RUNS.replace(
        "async def main():",
        "from handrail.tools.sandbox.launcher_program import launch_code\nasync def main():",
    )
    program = program.replace("found = await", f"launch_code(); {changed}; found = await")
    made = [{"tool": "run", "command": "touch ../outside; echo ran"}]
    (line,) = python(room, program, str(room), encode(protection).decode(), json.dumps(made)).splitlines()
    assert "ran" in json.loads(line)[2]
    assert not (room / "outside").exists()


@pytest.mark.promise("POL-27")
def test_no_edit_changes_the_handrail_that_runs_it(room: Path, protection: Protection) -> None:
    (room / "work/way").symlink_to("src/handrail")
    os.link(room / "work" / LAUNCHER, room / "work/twin.py")
    before = contents(room)
    made: list[dict[str, Any]] = [{"tool": "read", "path": path} for path in (LAUNCHER, "a.py", "twin.py")]
    paths = (LAUNCHER, "src/handrail/new.py", "way/__init__.py", "src/sitecustomize.py", ".venv/pyvenv.cfg")
    made += [{"tool": "write", "path": path, "text": "evil = 1\n"} for path in paths]
    made += [
        {"tool": "edit", "path": LAUNCHER, "edits": [{"search": "import os\n", "replace": "import evil\n"}]},
        {"tool": "delete", "path": LAUNCHER},
        {"tool": "move", "path": LAUNCHER, "to": "launcher.py"},
        {"tool": "move", "path": "a.py", "to": "src/handrail/a.py"},
        {"tool": "write", "path": "twin.py", "text": "import os\n"},
    ]
    ended = calls(room, protection, *made)
    assert contents(room) == before
    assert [status for status, *_ in ended[:3]] == ["ok"] * 3
    assert [status for status, *_ in ended[3:-1]] == ["refused"] * 9
    assert "part of the Handrail that is running. To work on Handrail itself" in ended[3][2]


@pytest.mark.promise("POL-28")
def test_the_start_says_that_handrails_files_are_in_the_workspace(room: Path) -> None:
    said = python(room, APP, str(room / "work"))
    assert ".venv, src are part of the Handrail that is running" in said
    (room / "elsewhere").mkdir()
    assert python(room, APP, str(room / "elsewhere")).strip() == ""
    inside = python(room, APP, str(room / "work/src/handrail/tools"))
    assert "This workspace is part of the Handrail that is running" in inside
