"""What an edit breaks goes back to the model with its result."""

import os
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from handrail.protocol.events import ToolFinished, TurnStarted
from handrail.protocol.ids import new_id
from handrail.protocol.values import ToolCall
from handrail.tools.files.diagnostics import find_ruff
from tests.hangs import no_hang
from tests.tools.calls import Bench

pytestmark = pytest.mark.anyio


def diagnostics(finished: ToolFinished) -> list[str]:
    assert finished.status == "ok"
    head, found, lines = finished.content.partition("\ndiagnostics:\n")
    assert "[hash: " in head
    return lines.split("\n") if found else []


async def changed(bench: Bench, path: str, search: str, replace: str) -> ToolFinished:
    await bench.call("read", path=path)
    return await bench.call("edit", path=path, edits=[{"search": search, "replace": replace}])


@pytest.mark.promise("DIAG-1")
@pytest.mark.parametrize(
    ("path", "text", "said"),
    [
        ("a.py", "def f():\n    return (1,\n", "a.py:2 SyntaxError: '(' was never closed"),
        ("a.py", "def f():\nreturn 1\n", "a.py:2 IndentationError: expected an indented block"),
        ("a.json", '{\n  "a": 1,\n}\n', "a.json:3 JSON: "),
        ("a.toml", "[a]\nb = \n", "a.toml:2 TOML: Invalid value"),
        ("a.ts", "function f(): number {\n  return (1;\n}\n", "a.ts:2 syntax error: ')' is missing"),
        ("a.jsx", "const a = <b>;\nconst c = 1\n", "a.jsx:1 syntax error"),
        ("a.go", "package a\n\nfunc f() int {\n\treturn 1 +\n}\n", "a.go:4 syntax error"),
    ],
)
async def test_a_syntax_error_is_told_with_its_line(bench: Bench, path: str, text: str, said: str) -> None:
    finished = await bench.call("write", path=path, text=text)
    assert diagnostics(finished)[0].startswith(said)
    assert "new problems" in finished.summary
    assert (bench.root / path).read_text() == text


@pytest.mark.parametrize(
    ("path", "text"),
    [
        ("a.py", "type A[T] = list[T]\ndef f[T](x: T) -> T:\n    return x\n"),
        ("a.py", 'x = f\'{"a" + "b"} {x!r:>{9}}\'\n'),
        ("a.ts", "export const f = async <T,>(x: T) => x satisfies unknown;\n"),
        ("a.jsx", "const a = <b c={1}>x</b>;\n"),
        ("tsconfig.json", "{\n  // comment\n}\n"),
        ("a.txt", "def f(:\n"),
    ],
)
async def test_what_is_right_is_not_complained_about(bench: Bench, path: str, text: str) -> None:
    assert diagnostics(await bench.call("write", path=path, text=text)) == []


@pytest.mark.promise("DIAG-1")
@pytest.mark.parametrize("text", ["{a: " * 100_000, "[" * 100_000, "{? " * 100_000])
async def test_yaml_that_is_nested_deeply_stops_nobody(bench: Bench, text: str) -> None:
    """It is parsed on the event loop, in a time that grows with the square of the depth."""
    with no_hang():
        assert diagnostics(await bench.call("write", path="a.yaml", text=text)) == []
        nested = "a: " + "[" * 50 + "]" * 50 + "\nb: [1\n"
        (said,) = diagnostics(await bench.call("write", path="b.yaml", text=nested))
    assert said.startswith("b.yaml:3 YAML: ")


@pytest.mark.promise("DIAG-1")
async def test_what_was_wrong_before_is_not_told_again(bench: Bench) -> None:
    (bench.root / "a.ts").write_text("const a = (1;\nconst b = 2;\n")
    assert diagnostics(await changed(bench, "a.ts", "b = 2", "b = 3")) == []


async def test_edits_of_one_answer_are_each_told_of_their_own(bench: Bench) -> None:
    calls = [
        bench.wanted(ToolCall(id=new_id("call"), name="write", arguments={"path": path, "text": text}))
        for path, text in (("a.py", "x = (\n"), ("b.py", "x = 1\n"), ("c.json", "{"))
    ]
    await bench.gate.run_all(calls, bench.turn_id)
    told = [diagnostics(bench.finished(call.id)) for call in calls]
    assert [bool(each) for each in told] == [True, False, True]


# The project's linter


@pytest.fixture
def ruff(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> Bench:
    """A project that uses ruff, which is on the path."""
    (bench.root / "pyproject.toml").write_text(
        "[tool.ruff]\nline-length = 30\n[tool.ruff.lint]\nselect = ['F', 'E']\n"
    )
    monkeypatch.setenv("PATH", f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}")
    return bench


@pytest.mark.promise("DIAG-2")
async def test_the_linter_of_the_project_tells_what_the_edit_brought(ruff: Bench) -> None:
    (ruff.root / "a.py").write_text("import os\n\nx = 1\n")
    finished = await changed(ruff, "a.py", "x = 1", "x = y\nimport sys")
    assert diagnostics(finished) == [
        "a.py:3 F821 Undefined name `y`",
        "a.py:4 E402 Module level import not at top of file",
        "a.py:4 F401 `sys` imported but unused",
    ]
    assert not (ruff.root / ".ruff_cache").exists()


async def test_no_more_than_five_are_told(ruff: Bench) -> None:
    text = "".join(f"x{number} = y{number}\n" for number in range(9))
    lines = diagnostics(await ruff.call("write", path="a.py", text=text))
    assert len(lines) == 6
    assert lines[-1] == "4 more"


async def test_a_project_without_settings_for_it_is_not_linted(ruff: Bench) -> None:
    (ruff.root / "pyproject.toml").write_text("[project]\nname = 'x'\n")
    assert diagnostics(await ruff.call("write", path="a.py", text="x = y\n")) == []


async def test_where_a_check_decides_the_linter_is_not_asked(ruff: Bench) -> None:
    ruff.session.append(
        TurnStarted(turn_id="t_1", number=1, model="scripted/one", mode="auto", check="true"),
    )
    assert diagnostics(await ruff.call("write", path="a.py", text="x = y\n")) == []


@pytest.mark.promise("DIAG-3")
async def test_a_program_of_the_workspace_is_not_run(
    make_bench: Callable[..., Bench], monkeypatch: pytest.MonkeyPatch
) -> None:
    bench = make_bench()
    tools = bench.root / ".venv/bin"
    tools.mkdir(parents=True)
    (tools / "ruff").write_text(f"#!/bin/sh\ntouch {bench.root}/ran\n")
    (tools / "ruff").chmod(0o755)
    (bench.root / "ruff.toml").write_text("line-length = 30\n")
    monkeypatch.setenv("PATH", f"{tools}{os.pathsep}.venv/bin{os.pathsep}/usr/bin{os.pathsep}/bin")
    monkeypatch.delenv("VIRTUAL_ENV", raising=False)
    await bench.call("write", path="a.py", text="x = y\n")
    assert not (bench.root / "ran").exists()
    monkeypatch.setenv("VIRTUAL_ENV", str(tools.parent))
    assert find_ruff(bench.workspace, "a.py") == str(tools / "ruff")


async def test_a_linter_that_fails_does_not_stand_in_the_way(ruff: Bench) -> None:
    (ruff.root / "pyproject.toml").write_text("[tool.ruff]\nno-such-setting = 1\n")
    finished = await ruff.call("write", path="a.py", text="x = y\n")
    assert diagnostics(finished) == []
    assert (ruff.root / "a.py").exists()
