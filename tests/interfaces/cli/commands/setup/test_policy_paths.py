"""`handrail policy explain --path`: verdict, rule, and what would change it."""

import json
from pathlib import Path

import pytest

from tests.interfaces.cli.program import run


@pytest.mark.promise("POL-24")
@pytest.mark.parametrize(
    ("arguments", "verdict", "rule", "way"),
    [
        (["src/a.py", "--mode", "ask"], "ask", "mode", "another mode"),
        (["src/a.py", "--mode", "edit"], "allow", "none", "a narrower mode"),
        ([".git/config"], "deny", "paths: git", "nothing: no mode"),
        ([".env", "--op", "read"], "ask", "paths: secret", "the user's approval"),
        ([".mcp.json"], "ask", "paths: running file", "the user's approval"),
        (["../x", "--op", "delete"], "deny", "paths: outside", "nothing: no mode"),
        (["a.py", "--mode", "explore"], "deny", "mode", "another mode"),
    ],
)
def test_a_path_is_explained(tmp_path: Path, arguments: list[str], verdict: str, rule: str, way: str) -> None:
    done = run("policy", "explain", "--path", *arguments, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    facts = dict(line.split(maxsplit=1) for line in done.stdout.splitlines())
    assert (facts["verdict"], facts["decided"]) == (verdict, rule)
    assert facts["change"].startswith(way)


def test_many_paths_are_explained_a_line_each(tmp_path: Path) -> None:
    cases = [{"path": "a.py", "op": "write", "owned_scope": ["b/**"]}, {"path": "x\u0000", "op": "read"}]
    done = run("policy", "explain", "--jsonl", "-", cwd=tmp_path, stdin="\n".join(map(json.dumps, cases)))
    scope, invalid = [json.loads(line) for line in done.stdout.splitlines()]
    assert (scope["path"], scope["verdict"], scope["rule"]) == ("a.py", "deny", "scope")
    assert (invalid["verdict"], invalid["rule"]) == ("deny", "paths: no path")


@pytest.mark.parametrize("text", ["{", "[]", '{"op": "write"}', '{"path": "a", "op": "eat"}'])
def test_a_line_that_makes_no_sense_is_told(tmp_path: Path, text: str) -> None:
    done = run("policy", "explain", "--jsonl", "-", cwd=tmp_path, stdin=text)
    assert (done.returncode, done.stderr.startswith("handrail: -:1")) == (2, True)


def test_a_name_cannot_write_to_the_terminal(tmp_path: Path) -> None:
    done = run("policy", "explain", "--path", "a\x1b[31mb", cwd=tmp_path)
    assert "\x1b" not in done.stdout
