"""The class of a change: declared by the model, checked, recorded, and told."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from handrail.changes.change_set import FileEdit
from handrail.protocol.events import ChangePrepared, ToolFinished
from handrail.protocol.ids import new_id
from handrail.protocol.values import ToolCall
from handrail.tools.files.mutation_check import classify
from handrail.tools.toolbox import Toolbox
from handrail.workspace.files import Workspace
from handrail.workspace.intents_file import INTENTS_FILE, IntentFile
from tests.tools.calls import Bench, open_bench

pytestmark = pytest.mark.anyio

BEFORE = """def _sum(xs):
    s = 0
    for x in xs:
        s += x
    return s


def mean(xs):
    return _sum(xs) / len(xs)
"""
RENAMED = BEFORE.replace("_sum", "_total")
CHANGED = BEFORE.replace("s = 0", "s = 1")


@pytest.fixture
def bench(tmp_path: Path) -> Iterator[Bench]:
    made = open_bench(tmp_path, mode="auto")
    (made.root / INTENTS_FILE).parent.mkdir()
    (made.root / INTENTS_FILE).write_text(
        "- id: SUMS\n  owned_scope: ['**']\n- id: OTHER\n  owned_scope: ['x/**']\n"
    )
    (made.root / "sums.py").write_text(BEFORE)
    (made.root / "notes.sh").write_text("echo 1\n")
    yield made
    made.close()


async def ready(bench: Bench) -> None:
    await bench.call("select_active_intent", intent_id="SUMS")
    for path in ("sums.py", "notes.sh"):
        await bench.call("read", path=path)


async def write(bench: Bench, text: str, path: str = "sums.py", **more: str) -> ToolFinished:
    return await bench.call("write", path=path, text=text, **more)


def prepared(bench: Bench) -> ChangePrepared:
    return [event for event in bench.events() if isinstance(event, ChangePrepared)][-1]


def trace(bench: Bench) -> dict[str, str]:
    lines = (bench.root / ".orchestration/agent_trace.jsonl").read_text().splitlines()
    last: dict[str, str] = json.loads(lines[-1])
    return last


async def test_what_nobody_declared_is_a_change_of_behaviour(bench: Bench) -> None:
    await ready(bench)
    finished = await write(bench, RENAMED)
    assert (prepared(bench).mutation_class, prepared(bench).mutation_problem) == ("INTENT_EVOLUTION", "")
    assert "refactor" not in finished.content


@pytest.mark.promise("MUT-3")
async def test_a_declared_refactor_that_holds_is_recorded_as_one(bench: Bench) -> None:
    await ready(bench)
    finished = await write(bench, RENAMED, mutation_class="AST_REFACTOR")
    assert (prepared(bench).mutation_class, prepared(bench).mutation_problem) == ("AST_REFACTOR", "")
    assert "behaviour is kept" in finished.content
    assert finished.summary.endswith(", refactor")
    assert trace(bench)["mutation_class"] == "AST_REFACTOR"
    assert "mutation_problem" not in trace(bench)


@pytest.mark.promise("MUT-3")
async def test_a_declared_refactor_that_changes_behaviour_is_applied_and_flagged(bench: Bench) -> None:
    await ready(bench)
    finished = await write(bench, CHANGED, mutation_class="AST_REFACTOR")
    assert finished.status == "ok"
    assert (bench.root / "sums.py").read_text() == CHANGED
    first = "line 2 of sums.py: `s = 0` became `s = 1`"
    why = f"declared a refactor, but {first}"
    assert (prepared(bench).mutation_class, prepared(bench).mutation_problem) == ("INTENT_EVOLUTION", why)
    assert f"[recorded as INTENT_EVOLUTION: {first}]" in finished.content
    assert why in finished.summary
    assert trace(bench)["mutation_problem"] == why


@pytest.mark.promise("MUT-3")
async def test_a_file_that_cannot_be_checked_is_no_refactor(bench: Bench) -> None:
    await ready(bench)
    finished = await write(bench, "echo 2\n", "notes.sh", mutation_class="AST_REFACTOR")
    assert prepared(bench).mutation_class == "INTENT_EVOLUTION"
    assert prepared(bench).mutation_problem.startswith("declared a refactor, but notes.sh is not Python")
    assert "cannot be checked" in finished.content


@pytest.mark.promise("MUT-3")
@pytest.mark.parametrize("lengthy", ["_X = " + "1+" * 25_000 + "1\n", "_X = " + "-" * 25_000 + "1\n"])
async def test_code_that_the_check_fails_at_is_no_refactor(bench: Bench, lengthy: str) -> None:
    (bench.root / "sums.py").write_text(BEFORE + lengthy)
    await ready(bench)
    edit = {"path": "sums.py", "edits": [{"search": "s = 0", "replace": "s = 1"}]}
    assert (await bench.call("edit", **edit, mutation_class="AST_REFACTOR")).status == "ok"
    assert prepared(bench).mutation_class == "INTENT_EVOLUTION"
    assert prepared(bench).mutation_problem.startswith("declared a refactor, but ")


@pytest.mark.promise("MUT-1")
@pytest.mark.parametrize(
    ("path", "text"),
    [
        ("other.py", "from sums import _sum\n"),
        ("texts.py", "def call(module):\n    return getattr(module, '_sum')\n"),
        ("plugins.yaml", "entry: 'sums:_sum'\n"),
        ("README.rst", ">>> _sum([1])\n"),
        ("taken.py", "import sums\n\nsums._total = len\n"),
    ],
)
async def test_a_private_name_that_another_file_has_cannot_be_renamed(
    bench: Bench, path: str, text: str
) -> None:
    (bench.root / path).write_text(text)
    await ready(bench)
    finished = await write(bench, RENAMED, mutation_class="AST_REFACTOR")
    assert f"{path} also uses _sum or _total" in finished.content
    assert prepared(bench).mutation_class == "INTENT_EVOLUTION"


@pytest.mark.promise("MUT-1")
async def test_a_private_name_that_another_file_may_put_together_cannot_be_renamed(bench: Bench) -> None:
    (bench.root / "other.py").write_text("import sums\n\ndef call(n):\n    return getattr(sums, '_' + n)\n")
    (bench.root / "more.py").write_text("import sums\n\ndef call(n):\n    return getattr(sums, n)\n")
    await ready(bench)
    finished = await write(bench, RENAMED, mutation_class="AST_REFACTOR")
    assert "more.py may read _sum as text" in finished.content


async def test_a_module_of_the_workspace_keeps_imports_in_their_order(bench: Bench) -> None:
    (bench.root / "sums.py").write_text("import sys\nimport json\n")
    await ready(bench)
    await write(bench, "import json\nimport sys\n", mutation_class="AST_REFACTOR")
    assert prepared(bench).mutation_class == "AST_REFACTOR"
    (bench.root / "json.py").write_text("print('loaded')\n")
    await ready(bench)
    finished = await write(bench, "import sys\nimport json\n", mutation_class="AST_REFACTOR")
    assert "json is a module of the workspace" in finished.content


async def test_files_of_one_answer_are_checked_together(bench: Bench) -> None:
    (bench.root / "other.py").write_text("from sums import _sum\n\ndef twice(xs):\n    return 2 * _sum(xs)\n")
    await ready(bench)
    await bench.call("read", path="other.py")
    texts = {"sums.py": RENAMED, "other.py": (bench.root / "other.py").read_text().replace("_sum", "_total")}
    calls = [
        ToolCall(
            id=new_id("call"),
            name="write",
            arguments={"path": path, "text": text, "mutation_class": "AST_REFACTOR"},
        )
        for path, text in texts.items()
    ]
    await bench.gate.run_all([bench.wanted(call) for call in calls], "t_1")
    assert (prepared(bench).mutation_class, prepared(bench).mutation_problem) == ("AST_REFACTOR", "")


async def test_a_call_for_another_intent_than_the_active_one_is_refused(bench: Bench) -> None:
    await ready(bench)
    finished = await write(bench, RENAMED, intent_id="OTHER")
    assert finished.error
    assert "SUMS is active" in finished.error.message
    assert (bench.root / "sums.py").read_text() == BEFORE
    assert (await write(bench, RENAMED, intent_id="SUMS")).status == "ok"


async def test_another_class_than_the_two_is_refused(bench: Bench) -> None:
    await ready(bench)
    finished = await write(bench, RENAMED, mutation_class="COSMETIC")
    assert finished.error
    assert finished.error.reason == "invalid_arguments"


async def test_only_a_workspace_with_intents_tells_the_model_of_the_class(
    bench: Bench, tmp_path: Path
) -> None:
    told = {spec.name: spec.schema for spec in Toolbox(None, IntentFile(bench.workspace)).specs("auto")}
    assert "enum" in told["edit"]["properties"]["mutation_class"]
    assert "intent_id" not in told["edit"]["properties"]
    (tmp_path / "free").mkdir()
    free = {
        spec.name: spec.schema
        for spec in Toolbox(None, IntentFile(Workspace(tmp_path / "free"))).specs("auto")
    }
    assert "mutation_class" not in json.dumps(free)


async def test_a_private_function_that_only_others_use_cannot_change_unseen(bench: Bench) -> None:
    (bench.root / "sums.py").write_text("def _rate():\n    return 1\n")
    (bench.root / "other.py").write_text("from sums import _rate\n")
    await ready(bench)
    finished = await write(bench, "def _rate():\n    return 2\n", mutation_class="AST_REFACTOR")
    assert "`return 1` became `return 2`" in finished.content


@pytest.mark.parametrize(
    ("old", "new"), [(b"x = '\xff'\n", b"x = '\xfe'\n"), (b"#!/bin/x\n", b"\xef\xbb\xbf#!/bin/x\n")]
)
async def test_bytes_that_are_read_as_the_same_text_are_no_refactor(
    bench: Bench, old: bytes, new: bytes
) -> None:
    found = await classify(
        ["AST_REFACTOR"], [FileEdit(path="a.py", op="update", old=old, new=new)], bench.workspace
    )
    assert found.mutation_class == "INTENT_EVOLUTION"
