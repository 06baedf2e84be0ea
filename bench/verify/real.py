"""Real packages: whether `verify` says what pytest says when a person runs it."""

import json
import os
import subprocess
import sys
import tarfile
import tempfile
import xml.etree.ElementTree as ET
from pathlib import Path

PACKAGES = {
    "click": ("pytest", "ruff", "mypy"),
    "jinja2": ("pytest", "ruff", "trio"),
    "starlette": (
        *("pytest", "ruff", "mypy", "trio", "httpx", "httpx2", "itsdangerous", "jinja2", "python-multipart"),
        *("pyyaml", "types-PyYAML", "opentelemetry-api", "opentelemetry-sdk"),
    ),
}
IGNORED = ".venv\n__pycache__\n*.egg-info\n.pytest_cache\n.mypy_cache\n.ruff_cache\n"


def run() -> None:
    with tempfile.TemporaryDirectory(prefix="handrail-verify-", dir=Path.home()) as place:
        for name, tools in PACKAGES.items():
            print(f"{name}: {compare(unpacked(name, Path(place)), tools, Path(place))}", flush=True)


def unpacked(name: str, place: Path) -> Path:
    pip = [sys.executable, "-m", "pip", "download", "-q", "--no-deps", "--no-binary", ":all:", name]
    subprocess.run([*pip, "-d", str(place / name)], check=True)
    (archive,) = (place / name).glob("*.tar.gz")
    with tarfile.open(archive) as file:
        file.extractall(place / name, filter="data")
    (root,) = (each for each in (place / name).iterdir() if each.is_dir())
    return root


def install(root: Path, tools: tuple[str, ...]) -> str:
    """Install the package with these tools in a virtual environment, and commit it; the Python of that."""
    subprocess.run([sys.executable, "-m", "venv", root / ".venv"], check=True)
    python = str(root / ".venv/bin/python")
    words = [python, "-m", "pip", "install", "-q", "--disable-pip-version-check", "-e", ".", *tools]
    subprocess.run(words, cwd=root, check=True)
    (root / ".gitignore").write_text(IGNORED)
    git = ["git", "-c", "user.name=bench", "-c", "user.email=bench@example.com"]
    for given in (["init", "-q"], ["add", "-A"], ["commit", "-q", "-m", "as released"]):
        subprocess.run([*git, *given], cwd=root, check=True)
    return python


def compare(root: Path, tools: tuple[str, ...], place: Path) -> str:
    python = install(root, tools)
    report = place / f"{root.name}.xml"
    by_hand = [python, "-m", "pytest", "-q", "-o", "junit_family=xunit1", f"--junitxml={report}"]
    subprocess.run(by_hand, cwd=root, stdout=subprocess.DEVNULL, check=False)
    cases = list(ET.parse(report).iter("testcase"))  # noqa: S314 - of a run of our own
    ran = sum(case.find("skipped") is None for case in cases)
    failed = {case.get("name") for case in cases if case.find("failure") is not None}
    environ = {**os.environ, "HANDRAIL_HOME": str(place / "home")}
    words = [sys.executable, "-P", "-m", "handrail", "verify", "--json", "-C", str(root)]
    done = subprocess.run(words, env=environ, capture_output=True, check=False)
    verdict = json.loads(done.stdout)
    tests = next(check for check in verdict["checks"] if check["name"] == "tests")
    ours = {issue["test"].rpartition("::")[2] for issue in tests["issues"]}
    same = failed == ours and tests["detail"] == f"{ran:,} tests"
    others = {check["name"]: check["status"] for check in verdict["checks"] if check["name"] != "tests"}
    state = subprocess.run(["git", "status", "--short"], cwd=root, capture_output=True, text=True, check=True)
    clean = "the files are untouched" if not state.stdout else f"CHANGED {state.stdout!r}"
    agrees = "agrees with" if same else f"DISAGREES ({ours ^ failed}, {tests['detail']}) with"
    return f"{agrees} pytest by hand: {ran:,} tests, {len(failed)} failed; {others}; {clean}"
