"""Projects in other languages: with their real tools where these are installed, else as unavailable."""

import json
import os
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.verification.projects import commit, origins, statuses, verify, write

pytestmark = pytest.mark.anyio
ENVIRON = dict(os.environ)
"""Of this process before a test gets a home of its own: package managers and rustup have settings there."""
INSTALL_SECONDS = 300.0
PACKAGES = ("typescript@5", "vitest@3", "eslint@9", "typescript-eslint@8")
TSC = {"strict": True, "module": "nodenext", "target": "es2022", "skipLibCheck": True}
TYPESCRIPT = {
    "package.json": json.dumps({"name": "web", "type": "module", "devDependencies": {"vitest": "3"}}),
    "tsconfig.json": json.dumps(
        {
            "compilerOptions": {
                "strict": True,
                "module": "nodenext",
                "target": "es2022",
                "skipLibCheck": True,
            },
            "include": ["src"],
        }
    ),
    "eslint.config.js": 'import ts from "typescript-eslint";\nexport default [...ts.configs.recommended];\n',
    ".gitignore": "node_modules\n",
    "src/sum.ts": "export function sum(a: number, b: number): number {\n  return a + b;\n}\n",
    "src/sum.test.ts": """\
import { expect, it } from "vitest";
import { sum } from "./sum.js";

it("adds", () => {
  expect(sum(1, 2)).toBe(3);
});
it("is zero", () => {
  expect(sum(0, 0)).toBe(0);
});
""",
}


def npm_install(root: Path) -> None:
    words = ["npm", "install", "--no-audit", "--no-fund", "--silent", "--no-save", *PACKAGES]
    done = subprocess.run(
        words, cwd=root, env=ENVIRON, capture_output=True, text=True, timeout=INSTALL_SECONDS, check=False
    )
    if done.returncode:
        pytest.fail(f"npm could not install {PACKAGES}; is its registry reachable?\n{done.stderr[-2000:]}")


@pytest.mark.promise("VERIFY-1")
async def test_typescript_with_vitest_eslint_and_tsc(tmp_path: Path) -> None:
    root = commit(write(tmp_path / "web", TYPESCRIPT))
    if shutil.which("npm") is None:
        assert set(statuses(await verify(root)).values()) == {"unavailable"}
        return
    npm_install(root)
    environ = {"PATH": os.environ["PATH"]}
    passed = await verify(root, environ=environ)
    assert statuses(passed) == {"types": "passed", "lint": "passed", "tests": "passed"}, passed.checks
    wrong = TYPESCRIPT["src/sum.ts"].replace("return a + b", "var x: string = b; return a + x.length")
    write(root, {"src/sum.ts": wrong})
    failed = await verify(root, environ=environ)
    assert statuses(failed) == dict.fromkeys(("types", "lint", "tests"), "failed") | {"consistency": "passed"}
    assert {"TS2322 src/sum.ts:2", "adds", "no-var src/sum.ts:2"} <= set(origins(failed))


RUST = {
    "Cargo.toml": '[package]\nname = "sums"\nversion = "0.1.0"\nedition = "2021"\n',
    "Cargo.lock": 'version = 3\n[[package]]\nname = "sums"\nversion = "0.1.0"\n',
    ".gitignore": "target\n",
    "src/lib.rs": """\
pub fn sum(a: i32, b: i32) -> i32 {
    a - b
}
#[cfg(test)]
mod tests {
    #[test]
    fn adds() {
        assert_eq!(super::sum(1, 2), 3);
    }
}
""",
}


async def test_rust_with_cargo(tmp_path: Path) -> None:
    root = commit(write(tmp_path / "sums", RUST))
    wanted: tuple[str, ...] = ("HOME", "CARGO_HOME", "RUSTUP_HOME")
    home = {name: ENVIRON[name] for name in wanted if name in ENVIRON}
    verdict = await verify(root, environ={"PATH": os.environ["PATH"], **home})
    found = statuses(verdict)
    if shutil.which("cargo") is None:
        assert (verdict.status, found) == ("unverified", {"build": "unavailable", "tests": "unavailable"})
        return
    assert (found["build"], found["tests"]) == ("passed", "failed")
    (issue,) = verdict.issues
    assert (issue.test, issue.path, issue.line) == ("tests::adds", "src/lib.rs", 8)


GO = {
    "go.mod": "module example.com/sums\n\ngo 1.19\n",
    "sums.go": "package sums\n\nfunc Sum(a, b int) int { return a - b }\n",
    "sums_test.go": """\
package sums

import "testing"

func TestSum(t *testing.T) {
\tif got := Sum(1, 2); got != 3 {
\t\tt.Errorf("got %d", got)
\t}
}
""",
}


async def test_go(tmp_path: Path) -> None:
    root = commit(write(tmp_path / "sums", GO))
    verdict = await verify(root, environ={"PATH": os.environ["PATH"], "HOME": ENVIRON.get("HOME", "")})
    found = statuses(verdict)
    if shutil.which("go") is None:
        assert found == {"lint": "unavailable", "build": "unavailable", "tests": "unavailable"}
        return
    assert found == {"lint": "passed", "build": "passed", "tests": "failed"}
    (issue,) = verdict.issues
    assert (issue.test, issue.path, issue.line) == ("example.com/sums.TestSum", "sums_test.go", 7)


async def test_node_with_its_own_test_runner(tmp_path: Path) -> None:
    test = """\
import assert from "node:assert";
import { existsSync, writeFileSync } from "node:fs";
import test from "node:test";
test("adds", () => assert.equal(1 + 1, 3));
test("flaky", () => {
  const first = !existsSync("ran");
  writeFileSync("ran", "");
  assert.ok(!first);
});
"""
    package = json.dumps({"type": "module", "scripts": {"test": "node --test"}})
    root = commit(write(tmp_path / "web", {"package.json": package, "sums.test.js": test}))
    verdict = await verify(root, environ={"PATH": os.environ["PATH"]})
    if shutil.which("node") is None:
        assert statuses(verdict) == {"tests": "unavailable"}
        return
    assert statuses(verdict) == {"tests": "failed"}
    assert origins(verdict) == {"adds": "unknown", "flaky": "flaky"}
