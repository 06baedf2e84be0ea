"""Which checks are found in which project, and which tools they use."""

import json
from collections.abc import Mapping
from pathlib import Path

import pytest

from handrail.config.settings import CheckCommand, CheckSettings
from handrail.protocol.errors import UsageProblem
from handrail.verification.check import Check, Tree
from handrail.verification.detect.project import find_checks, find_parts
from handrail.workspace.stat_index import snapshot

PYPROJECT = '[project]\nname = "shop"\n[tool.ruff]\n[tool.mypy]\nstrict = true\n[tool.pytest.ini_options]\n'


def make(root: Path, files: Mapping[str, str], programs: tuple[str, ...] = ()) -> Path:
    """A project with these files, and programs that can be started."""
    for name, text in files.items():
        file = root / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
    for name in programs:
        file = root / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text("#!/bin/sh\n")
        file.chmod(0o755)
    return root


def found(root: Path, settings: CheckSettings = CheckSettings(), **environ: str) -> dict[str, Check]:  # noqa: B008
    tree = Tree(root, root)
    checks = find_checks(tree, snapshot(root).files, settings, {"PATH": "/nowhere", **environ})
    return {check.name: check for check in checks}


@pytest.mark.promise("VERIFY-1")
def test_python_tools_come_from_the_projects_own_environment(tmp_path: Path) -> None:
    tools = tuple(f".venv/bin/{name}" for name in ("python", "mypy", "ruff", "pytest"))
    files = {"pyproject.toml": PYPROJECT, "src/shop/a.py": "", "tests/test_a.py": "", ".venv/pyvenv.cfg": ""}
    outside = make(tmp_path / "bin", {}, ("mypy", "ruff", "pytest"))
    root = make(tmp_path / "shop", files, tools)
    checks = found(root, PATH=str(outside))
    assert {name: check.command.split()[0] for name, check in checks.items()} == {
        "types": ".venv/bin/mypy",
        "lint": ".venv/bin/ruff",
        "tests": ".venv/bin/pytest",
    }
    assert checks["types"].words[-1] == "src"


@pytest.mark.promise("VERIFY-2")
def test_a_tool_that_is_missing_is_unavailable_with_what_to_do(tmp_path: Path) -> None:
    root = make(tmp_path / "shop", {"pyproject.toml": PYPROJECT, ".venv/pyvenv.cfg": "", "a.py": ""})
    outside = make(tmp_path / "bin", {}, ("pytest",))
    checks = found(root, PATH=str(outside))
    assert checks["types"].missing == "mypy is not installed in .venv: .venv/bin/python -m pip install mypy"
    # One of another environment would not find what the project imports.
    assert checks["tests"].missing.startswith("pytest is not installed in .venv")
    assert checks["lint"].missing == "ruff is not installed: .venv/bin/python -m pip install ruff"


def test_a_folder_with_no_project_has_no_checks(tmp_path: Path) -> None:
    assert (
        found(make(tmp_path, {"README.md": "# hello", "notes/a.txt": "", "script.py": "import os\n"})) == {}
    )


@pytest.mark.parametrize(
    ("files", "tools"),
    [
        ({"setup.cfg": "[mypy]\n[tool:pytest]\n"}, {"types": "mypy", "tests": "pytest"}),
        (
            {"pyrightconfig.json": "{}", "setup.py": "", "mypy.ini": "[mypy]"},
            {"types-mypy": "mypy", "types-pyright": "pyright"},
        ),
        (
            {"pyproject.toml": "[tool.ty]\n", "requirements-dev.txt": "ruff==0.1\n"},
            {"types": "ty", "lint": "ruff"},
        ),
        ({"pyproject.toml": "# ruff and pytest are for later\n"}, {}),
        ({"tests/test_a.py": "import unittest\n", "setup.py": ""}, {"tests": "unittest"}),
        ({"tests/test_a.py": "import unittest\nimport pytest\n", "setup.py": ""}, {"tests": "pytest"}),
        ({"go.mod": "module x\n"}, {"lint": "go", "build": "go", "tests": "go"}),
        ({"Cargo.toml": "[package]\n"}, {"build": "cargo", "tests": "cargo"}),
        ({"Makefile": "all:\n\techo\n\ntest: all\n\t./run\n"}, {"tests": "make"}),
        ({"Makefile": "# test:\ntest := 1\n"}, {}),
        ({"Makefile": "test:\n\tpytest\n", "pytest.ini": ""}, {"tests": "pytest"}),
    ],
)
def test_checks_follow_from_what_the_project_configures(
    tmp_path: Path, files: dict[str, str], tools: dict[str, str]
) -> None:
    outside = make(tmp_path / "bin", {}, ("python3",))
    root = make(tmp_path / "shop", files)
    assert {name: check.tool for name, check in found(root, PATH=str(outside)).items()} == tools


def package(**fields: object) -> str:
    return json.dumps({"name": "web", **fields})


@pytest.mark.parametrize(
    ("files", "commands"),
    [
        (
            {
                "package.json": package(devDependencies={"vitest": "1"}, scripts={"build": "vite"}),
                "tsconfig.json": "{}",
                "eslint.config.mjs": "",
            },
            {
                "types": "node_modules/.bin/tsc --noEmit --pretty false",
                "lint": "node_modules/.bin/eslint --format json --output-file '$REPORT/report' .",
                "tests": "node_modules/.bin/vitest run --reporter=json '--outputFile=$REPORT/report'",
                "build": "npm run build",
            },
        ),
        (
            {"package.json": package(scripts={"test": "jest"}), "jest.config.js": ""},
            {"tests": "node_modules/.bin/jest --json '--outputFile=$REPORT/report'"},
        ),
        (
            {"package.json": package(scripts={"test": "node --test test/"})},
            {"tests": "node --test --test-reporter=junit '--test-reporter-destination=$REPORT/report' test/"},
        ),
        (
            {"package.json": package(scripts={"test": "mocha && x"}), "pnpm-lock.yaml": ""},
            {"tests": "pnpm run test"},
        ),
        ({"package.json": package(scripts={"test": 'echo "Error: no test specified" && exit 1'})}, {}),
        ({"package.json": "not JSON"}, {}),
    ],
)
def test_javascript_checks(tmp_path: Path, files: dict[str, str], commands: dict[str, str]) -> None:
    outside = make(tmp_path / "bin", {}, ("node", "npm", "pnpm"))
    own = tuple(f"node_modules/.bin/{name}" for name in ("tsc", "eslint", "vitest", "jest"))
    root = make(tmp_path / "web", files, own)
    checks = found(root, PATH=str(outside))
    shown = {name: check.command.replace(f"{outside}/", "") for name, check in checks.items()}
    assert shown == commands


def test_javascript_without_its_packages_is_unavailable(tmp_path: Path) -> None:
    files = {
        "package.json": package(devDependencies={"vitest": "1"}, scripts={"build": "x"}),
        "tsconfig.json": "{}",
    }
    outside = make(tmp_path / "bin", {}, ("node", "npm"))
    checks = found(make(tmp_path / "web", files), PATH=str(outside))
    assert {name: check.missing for name, check in checks.items()} == {
        "types": "tsc is not installed: npm install --save-dev typescript",
        "tests": "vitest is not installed: npm install",
        "build": "the dependencies are not installed: npm install",
    }


def test_parts_of_a_monorepo_have_checks_of_their_own(tmp_path: Path) -> None:
    files = {
        "api/pyproject.toml": PYPROJECT,
        "api/tests/test_a.py": "",
        "web/package.json": package(scripts={"test": "node --test"}),
        "crates/Cargo.toml": '[workspace]\nmembers = ["one"]\n',
        "crates/one/Cargo.toml": "[package]\n",
        "api/tests/fixtures/pyproject.toml": PYPROJECT,
        "examples/demo/package.json": package(scripts={"test": "jest"}),
        "README.md": "",
    }
    root = make(tmp_path, files)
    names = {"api/types", "api/lint", "api/tests", "web/tests", "crates/build", "crates/tests"}
    assert set(found(root)) == names
    web = next(
        part for part in find_parts(Tree(root, root), snapshot(root).files, {}) if part.folder == "web"
    )
    assert list(web.files) == ["package.json"]


def test_environments_and_packages_above_a_part_count(tmp_path: Path) -> None:
    files = {
        "api/pyproject.toml": PYPROJECT,
        ".venv/pyvenv.cfg": "",
        "web/package.json": package(),
        "web/jest.config.js": "",
    }
    programs = (".venv/bin/ruff", ".venv/bin/mypy", ".venv/bin/pytest", "node_modules/.bin/jest")
    checks = found(make(tmp_path, files, programs))
    assert not [check.missing for check in checks.values() if check.missing]
    assert checks["api/lint"].command.startswith("../.venv/bin/ruff check")


def test_settings_add_replace_and_skip_checks(tmp_path: Path) -> None:
    root = make(tmp_path, {"pyproject.toml": PYPROJECT, "web/a.txt": ""})
    commands = (
        CheckCommand("tests", "tox -q", seconds=5),
        CheckCommand("web/e2e", "./e2e.sh | tee log", folder="web", format="junit"),
    )
    checks = found(root, CheckSettings(skip=("types",), commands=commands, seconds=7))
    assert {name: (check.command, check.part, check.seconds) for name, check in checks.items()} == {
        "lint": ("", "", 7),
        "tests": ("tox -q", "", 5),
        "web/e2e": ("./e2e.sh | tee log", "web", 600),
    }
    assert set(found(root, CheckSettings(detect=False, commands=commands))) == {"tests", "web/e2e"}


@pytest.mark.parametrize(
    "settings",
    [
        CheckSettings(skip=("lnt",)),
        CheckSettings(commands=(CheckCommand("x", "true", folder="../elsewhere"),)),
        CheckSettings(commands=(CheckCommand("x", "true", folder="missing"),)),
    ],
)
def test_settings_that_fit_nothing_here_are_refused(tmp_path: Path, settings: CheckSettings) -> None:
    with pytest.raises(UsageProblem):
        found(make(tmp_path, {"pyproject.toml": PYPROJECT}), settings)


def test_coverage_counts_only_where_the_project_measures_it(tmp_path: Path) -> None:
    measured = '[tool.pytest.ini_options]\naddopts = "--cov=shop"\n'
    own = f"{measured}[tool.coverage.report]\nfail_under = 85\n"
    programs = (".venv/bin/pytest",)
    for name, text, threshold in (("a", PYPROJECT, None), ("b", measured, 70.0), ("c", own, 85.0)):
        root = make(tmp_path / name, {"pyproject.toml": text, ".venv/pyvenv.cfg": ""}, programs)
        assert found(root)["tests"].threshold == threshold
    for file, text, threshold in (
        ("tox.ini", "[testenv]\ncommands = pytest --cov shop\n[pytest]\naddopts = -q\n", None),
        ("tox.ini", "[pytest]\naddopts = --cov=shop\n", 70.0),
        ("setup.cfg", "[tool:pytest]\naddopts =\n    -q\n    --cov=shop\n", 70.0),
        ("pytest.ini", "broken --cov", None),
    ):
        root = make(tmp_path / f"{file}{threshold}", {file: text, ".venv/pyvenv.cfg": ""}, programs)
        check = found(root)["tests"]
        assert check.threshold == threshold
        assert any("--cov" in word for word in check.words) == bool(threshold)


@pytest.mark.promise("VERIFY-7")
def test_manifests_that_are_no_files_are_no_manifests(tmp_path: Path) -> None:
    import os

    os.mkfifo(tmp_path / "pyproject.toml")
    (tmp_path / "setup.cfg").symlink_to("/dev/zero")
    (tmp_path / "package.json").write_text("[" * 100_000)
    (tmp_path / "Makefile").symlink_to(tmp_path / "Makefile")
    assert found(tmp_path) == {}
