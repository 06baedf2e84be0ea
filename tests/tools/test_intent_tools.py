"""A workspace with intents: what is refused, what is let through, and what is recorded of it."""

import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from handrail.protocol.events import (
    ChangePrepared,
    IntentEdited,
    IntentSelected,
    OverlapSettled,
    ToolFinished,
)
from handrail.protocol.ids import new_id
from handrail.protocol.values import ToolCall
from handrail.sessions.session import Session
from handrail.sessions.workspace_events import intent_history, read_workspace
from handrail.tools.sandbox.sandbox import Protection, Sandbox
from handrail.tools.toolbox import Toolbox
from handrail.workspace.files import Workspace
from handrail.workspace.intents_file import INTENTS_FILE, IntentFile
from tests.tools.calls import Bench, open_bench
from tests.tools.hook_programs import hook

pytestmark = pytest.mark.anyio

INTENTS = """# What we work at.
active_intents:
  - id: CART
    name: Totals of the cart
    status: active
    owned_scope:
      - src/**
      - "!src/old/**"
    constraints: [no <new> dependency]
    acceptance_criteria: [tests pass]
    ticket: 42
  - id: DOCS
    owned_scope: [docs/**]
    depends_on: [CART]
  - id: PAST
    status: Done
    owned_scope: ["**"]
  - id: IDLE
    owned_scope: [idle/**]
  - id: AWAY
    owned_scope: [away/**]
"""
SELECT = {"intent_id": "CART"}


def bound(folder: Path, text: str = INTENTS, **options: Any) -> Bench:
    bench = open_bench(folder, **options)
    for name in ("src/a.py", "src/old/b.py", "docs/c.md"):
        (bench.root / name).parent.mkdir(parents=True, exist_ok=True)
        (bench.root / name).write_text("x = 1\n")
    (bench.root / INTENTS_FILE).parent.mkdir()
    (bench.root / INTENTS_FILE).write_text(text)
    (bench.root / ".intentignore").write_text("# not now\nIDLE  # later\n")
    (bench.root / ".orchestration/.intentignore").write_text("AWAY\n")
    return bench


@pytest.fixture
def bench(tmp_path: Path) -> Iterator[Bench]:
    made = bound(tmp_path, mode="auto", allow=("touch", "rm"))
    yield made
    made.close()


async def select(bench: Bench, intent_id: str = "CART") -> ToolFinished:
    return await bench.call("select_active_intent", intent_id=intent_id)


def reason(finished: ToolFinished) -> str:
    assert finished.error is not None, finished.content
    return finished.error.reason


# Which intent


DESTRUCTIVE: list[tuple[str, dict[str, Any]]] = [
    ("write", {"path": "src/new.py", "text": "y\n"}),
    ("edit", {"path": "src/a.py", "edits": [{"search": "x", "replace": "y"}]}),
    ("delete", {"path": "src/a.py"}),
    ("move", {"path": "src/a.py", "to": "src/b.py"}),
    ("run", {"command": "ls"}),
    ("fetch", {"url": "https://example.org/not-the-users"}),
]


@pytest.mark.promise("INTENT-1")
@pytest.mark.parametrize(("tool", "arguments"), DESTRUCTIVE)
async def test_nothing_is_written_run_or_sent_before_an_intent_is_selected(
    bench: Bench, tool: str, arguments: dict[str, Any]
) -> None:
    finished = await bench.call(tool, **arguments)
    assert reason(finished) == "missing_intent_id"
    assert "select_active_intent" in finished.content
    assert "CART, DOCS." in finished.content
    assert not (bench.root / "src/new.py").exists()


async def test_what_only_reads_needs_no_intent(bench: Bench) -> None:
    assert (await bench.call("read", path="src/a.py")).status == "ok"


@pytest.mark.promise("INTENT-2")
@pytest.mark.parametrize(
    ("intent", "expected"),
    [
        ("NONE", "unknown_intent"),
        ("cart", "unknown_intent"),
        ("PAST", "intent_done"),
        ("IDLE", "intent_ignored"),
        ("AWAY", "intent_ignored"),
    ],
)
async def test_an_intent_that_does_not_count_cannot_be_selected(
    bench: Bench, intent: str, expected: str
) -> None:
    finished = await select(bench, intent)
    assert reason(finished) == expected
    assert "Select one of: CART, DOCS." in finished.content
    assert bench.session.state.intent == ""


@pytest.mark.promise("INTENT-2")
@pytest.mark.parametrize(
    ("file", "old", "new", "expected"),
    [
        (INTENTS_FILE, "id: CART", "id: BASKET", "unknown_intent"),
        (INTENTS_FILE, "status: active", "status: done", "intent_done"),
        (".intentignore", "IDLE", "CART", "intent_ignored"),
        (INTENTS_FILE, "active_intents:", "active_intents: [", "intents_unreadable"),
        (INTENTS_FILE, INTENTS, "\x00", "intents_unreadable"),
    ],
)
async def test_what_becomes_of_an_intent_counts_from_the_next_call_on(
    bench: Bench, file: str, old: str, new: str, expected: str
) -> None:
    await select(bench)
    path = bench.root / file
    path.write_text(path.read_text().replace(old, new))
    finished = await bench.call("write", path="src/new.py", text="y\n")
    assert reason(finished) == expected
    assert finished.error
    assert finished.error.intent_id == "CART"
    assert '"intent_id":"CART"' in finished.content


@pytest.mark.promise("INTENT-8")
@pytest.mark.parametrize("make", ["folder", "loop", "outside", "latin", "huge", "gone", "fifo"])
async def test_a_file_of_intents_that_cannot_be_read_closes_the_workspace(bench: Bench, make: str) -> None:
    await select(bench)
    path = bench.root / INTENTS_FILE
    path.unlink()
    match make:
        case "folder":
            path.mkdir()
        case "loop":
            path.symlink_to(path.name)
        case "outside":
            (bench.root.parent / "mine.yaml").write_text(INTENTS.replace("src/**", "**"))
            path.symlink_to(bench.root.parent / "mine.yaml")
        case "latin":
            path.write_bytes(b"- id: CART\n  name: \xe4\n")
        case "huge":
            path.write_bytes(b"#" * 20_000_000)
        case "fifo":
            os.mkfifo(path)
    for tool, arguments in [("write", {"path": "src/n", "text": "y"}), ("run", {"command": "ls"})]:
        finished = await bench.call(tool, **arguments)
        assert reason(finished) == "intents_unreadable"
        assert INTENTS_FILE in finished.content


async def test_a_folder_of_intents_that_cannot_be_looked_into_closes_the_workspace(tmp_path: Path) -> None:
    bench = open_bench(tmp_path, mode="auto")
    (bench.root / ".orchestration").symlink_to(".orchestration")
    assert reason(await bench.call("write", path="a", text="y")) == "intents_unreadable"
    bench.close()


# Selecting


@pytest.mark.promise("INTENT-3")
async def test_selecting_answers_with_the_intent_and_records_its_version(bench: Bench) -> None:
    finished = await select(bench)
    assert finished.content == (
        '<intent_context id="CART">\n'
        "  <name>Totals of the cart</name>\n"
        "  <status>active</status>\n"
        "  <scope>\n    <path>src/**</path>\n    <path>!src/old/**</path>\n  </scope>\n"
        "  <constraints>\n    <constraint>no &lt;new&gt; dependency</constraint>\n  </constraints>\n"
        "  <acceptance_criteria>\n    <criterion>tests pass</criterion>\n  </acceptance_criteria>\n"
        "</intent_context>"
    )
    (event,) = [each for each in bench.events() if isinstance(each, IntentSelected)]
    assert event.intent_id == bench.session.state.intent == "CART"
    assert "ticket: 42" in event.text
    again = Session(bench.session.log, bench.session.id).load()
    assert again.state.intent == "CART"


async def test_recent_changes_of_the_intent_are_in_its_block_and_a_broken_trace_is_no_matter(
    bench: Bench,
) -> None:
    trace = bench.root / ".orchestration/agent_trace.jsonl"
    lines = [
        "not json",
        '{"intent_id": "DOCS", "file": "docs/x"}',
        '{"intent_id": "CART", "at": "2026-01-01T00:00:00Z", "op": "update", "file": "src/<a>.py",'
        ' "mutation_class": "AST_REFACTOR"}',
        '["CART"]',
    ]
    trace.write_text("\n".join(lines))
    finished = await select(bench)
    assert (
        '<change at="2026-01-01T00:00:00Z" op="update" file="src/&lt;a&gt;.py" class="AST_REFACTOR"/>'
        in finished.content
    )
    assert "docs/x" not in finished.content


@pytest.mark.promise("INTENT-6")
async def test_a_dependency_that_is_not_done_is_warned_of(bench: Bench) -> None:
    finished = await select(bench, "DOCS")
    assert finished.status == "ok"
    assert "[warning: DOCS depends on CART, which is not done.]" in finished.content
    (event,) = [each for each in bench.events() if isinstance(each, IntentSelected)]
    assert event.warnings == ("DOCS depends on CART, which is not done.",)


OVERLAP = """- id: ONE
  owned_scope: [src/**]
- id: TWO
  owned_scope: ["src/*.py"]
"""


@pytest.mark.promise("INTENT-6")
async def test_two_intents_that_own_the_same_files_are_shown_before_work_and_a_yes_is_kept(
    tmp_path: Path,
) -> None:
    bench = bound(tmp_path, OVERLAP)
    bench.user.says = "reject"
    refused = await select(bench, "TWO")
    assert reason(refused) == "user_rejected"
    assert bench.session.state.intent == ""
    assert "ONE and TWO both own files such as src/" in bench.user.asked[0].preview
    bench.user.says = "once"
    assert (await select(bench, "TWO")).status == "ok"
    (settled,) = [
        each.event for each in read_workspace(bench.session.log) if isinstance(each.event, OverlapSettled)
    ]
    assert (settled.intents, settled.choice) == (("ONE", "TWO"), "accepted")
    assert (await select(bench, "ONE")).status == "ok"
    assert len(bench.user.asked) == 2
    (bench.root / INTENTS_FILE).write_text(OVERLAP.replace("src/*.py", "src/**"))
    assert (await select(bench, "ONE")).status == "ok"
    assert len(bench.user.asked) == 3
    bench.close()


async def test_where_nobody_can_be_asked_an_overlap_is_a_warning(tmp_path: Path) -> None:
    bench = bound(tmp_path, OVERLAP, answerable=False)
    finished = await select(bench, "TWO")
    assert finished.status == "ok"
    assert "[warning: ONE and TWO both own" in finished.content
    bench.close()


async def test_intents_of_which_one_waits_for_the_other_do_not_conflict(tmp_path: Path) -> None:
    bench = bound(tmp_path, OVERLAP + "  depends_on: [ONE]\n")
    await select(bench, "ONE")
    assert not bench.user.asked
    bench.close()


# Scope


@pytest.mark.promise("INTENT-4")
@pytest.mark.parametrize(
    ("tool", "arguments", "file"),
    [
        ("write", {"path": "docs/new.md", "text": "y\n"}, "docs/new.md"),
        ("write", {"path": "src/old/new.py", "text": "y\n"}, "src/old/new.py"),
        ("write", {"path": "./src/../docs/new.md", "text": "y\n"}, "docs/new.md"),
        ("edit", {"path": "docs/c.md", "edits": [{"search": "x", "replace": "y"}]}, "docs/c.md"),
        ("delete", {"path": "docs/c.md"}, "docs/c.md"),
        ("move", {"path": "docs/c.md", "to": "src/c.md"}, "docs/c.md"),
        ("move", {"path": "src/a.py", "to": "docs/a.py"}, "docs/a.py"),
        ("write", {"path": "src/link/new.md", "text": "y\n"}, "docs/new.md"),
        ("run", {"command": "touch docs/new.md"}, "docs/new.md"),
        ("run", {"command": "rm docs/c.md"}, "docs/c.md"),
        ("run", {"command": "rm -r src"}, "src"),
        ("run", {"command": "echo x > docs/new.md"}, "docs/new.md"),
        ("run", {"command": "cd docs && rm c.md"}, "docs/c.md"),
        ("run", {"command": "mv src/a.py docs"}, "docs/a.py"),
        ("run", {"command": "mkdir docs/sub"}, "docs/sub"),
        ("run", {"command": "touch src/link/x"}, "docs/x"),
        ("run", {"command": "for x in 1; do echo > /tmp/x; done"}, "/tmp/x"),
    ],
)
async def test_what_leaves_the_scope_is_refused(
    bench: Bench, tool: str, arguments: dict[str, Any], file: str
) -> None:
    (bench.root / "src/link").symlink_to("../docs")
    await select(bench)
    before = sorted(str(path) for path in bench.root.rglob("*"))
    finished = await bench.call(tool, **arguments)
    assert reason(finished) == "scope_violation"
    assert finished.error
    assert (finished.error.file, finished.error.intent_id) == (file, "CART")
    assert "src/**, !src/old/**" in finished.error.message
    assert "request_scope" in finished.error.message
    assert sorted(str(path) for path in bench.root.rglob("*")) == before


@pytest.mark.promise("INTENT-4")
@pytest.mark.parametrize(
    ("tool", "arguments"),
    [
        ("write", {"path": "src/new.py", "text": "y\n"}),
        ("run", {"command": "touch src/new.py"}),
        ("run", {"command": "mkdir src/sub"}),
        ("run", {"command": "ls docs"}),
    ],
)
async def test_what_stays_in_scope_is_done_and_belongs_to_the_intent(
    bench: Bench, tool: str, arguments: dict[str, Any]
) -> None:
    await select(bench)
    assert (await bench.call(tool, **arguments)).status == "ok"
    changes = [each for each in bench.events() if isinstance(each, ChangePrepared)]
    assert {change.intent_id for change in changes} <= {"CART"}


@pytest.mark.promise("INTENT-4")
async def test_what_a_hook_makes_of_a_call_stays_in_scope_too(tmp_path: Path) -> None:
    away = hook(
        tmp_path / "mine",
        "before_tool",
        'say(arguments={"path": "docs/n.md", "text": "y\\n"})',
        match=("write",),
    )
    bench = bound(tmp_path, mode="auto", hooks=[away])
    await select(bench)
    assert reason(await bench.call("write", path="src/n.py", text="y\n")) == "scope_violation"
    assert not (bench.root / "docs/n.md").exists()
    bench.close()


@pytest.mark.promise("INTENT-4")
async def test_a_command_in_the_background_has_the_same_scope(bench: Bench) -> None:
    await select(bench)
    assert reason(await bench.call("run", command="touch docs/n.md", background=True)) == "scope_violation"
    assert not (bench.root / "docs/n.md").exists()


@pytest.mark.promise("INTENT-4")
async def test_of_changes_in_one_answer_none_is_made_where_one_leaves_the_scope(bench: Bench) -> None:
    await select(bench)
    calls = [
        ToolCall(id=new_id("call"), name="write", arguments={"path": path, "text": "y\n"})
        for path in ("src/n.py", "docs/n.md")
    ]
    await bench.gate.run_all([bench.wanted(call) for call in calls], "t_1")
    ended = [event for event in bench.events() if isinstance(event, ToolFinished)][-2:]
    assert [reason(each) for each in ended] == ["other_refused", "scope_violation"]
    assert not (bench.root / "src/n.py").exists()


async def test_a_scope_gives_no_right_to_protected_places(tmp_path: Path) -> None:
    bench = bound(tmp_path, '- id: ALL\n  owned_scope: ["**"]\n')
    await select(bench, "ALL")
    for path in (INTENTS_FILE, ".intentignore", ".git/config", ".env"):
        assert reason(await bench.call("write", path=path, text="x")) == "protected_path"
    bench.close()


@pytest.mark.promise("INTENT-4")
async def test_what_a_command_changed_outside_of_the_scope_is_told(tmp_path: Path) -> None:
    bench = bound(tmp_path)
    await select(bench)
    command = "python3 -c \"open('docs/new.md', 'w').write('x'); open('src/new.py', 'w').write('x')\""
    finished = await bench.call("run", command=command)
    assert finished.status == "ok"
    assert "outside the scope of CART: docs/new.md" in finished.content
    assert "1 outside the scope of CART" in finished.summary
    assert "CHANGED" not in finished.summary  # the trace, where Handrail itself has written of it
    bench.close()


@pytest.mark.parametrize("command", ["echo x > {trace}", "rm {trace}", "sed -i s/CART/DOCS/ {trace}"])
async def test_a_command_that_changes_what_stands_in_the_trace_is_told_at_once(
    tmp_path: Path, command: str
) -> None:
    bench = bound(tmp_path, 'intents: [{id: CART, owned_scope: ["**"]}]', sandbox=Sandbox(found=Protection()))
    await select(bench)
    await bench.call("write", path="src/new.py", text="y\n")
    kept = await bench.call("run", command="touch src/more.py")
    assert "CHANGED" not in kept.summary
    finished = await bench.call("run", command=command.format(trace=".orchestration/agent_trace.jsonl"))
    assert "CHANGED .orchestration/agent_trace.jsonl" in finished.summary
    bench.close()


async def test_an_approval_names_the_intent(tmp_path: Path) -> None:
    bench = bound(tmp_path, mode="ask")
    await select(bench)
    await bench.call("write", path="src/new.py", text="y\n")
    assert [asked.intent for asked in bench.user.asked] == ["CART"]
    bench.close()


# More scope


@pytest.mark.promise("INTENT-5")
async def test_a_yes_to_more_scope_is_a_new_version_of_the_intent(bench: Bench) -> None:
    await select(bench)
    finished = await bench.call("request_scope", paths=["docs/c.md"], reason="the page names the total")
    assert finished.status == "ok"
    (asked,) = bench.user.asked
    assert asked.intent == "CART"
    assert "+ docs/c.md" in asked.preview
    assert "the page names the total" in asked.preview
    assert (bench.root / INTENTS_FILE).read_text() == INTENTS.replace(
        '      - "!src/old/**"\n', '      - "!src/old/**"\n      - docs/c.md\n'
    )
    edits = [each.event for each in intent_history(bench.session.log).versions["CART"]]
    assert [isinstance(each, IntentEdited) and (each.why, each.by) for each in edits] == [
        ("first seen", "user"),
        ("the page names the total", "agent"),
    ]
    await bench.call("read", path="docs/c.md")
    edit = {"path": "docs/c.md", "edits": [{"search": "x", "replace": "y"}]}
    assert (await bench.call("edit", **edit)).status == "ok"


@pytest.mark.promise("INTENT-5")
async def test_a_no_to_more_scope_changes_nothing(bench: Bench) -> None:
    await select(bench)
    bench.user.says, bench.user.note = "reject", "docs belong to DOCS"
    finished = await bench.call("request_scope", paths=["docs/c.md"], reason="r")
    assert reason(finished) == "user_rejected"
    assert "docs belong to DOCS" in finished.content
    assert (bench.root / INTENTS_FILE).read_text() == INTENTS


@pytest.mark.promise("INTENT-5")
async def test_where_nobody_can_be_asked_no_scope_is_given(tmp_path: Path) -> None:
    bench = bound(tmp_path, answerable=False)
    await select(bench)
    assert reason(await bench.call("request_scope", paths=["docs/**"], reason="r")) == "nobody_to_ask"
    assert (bench.root / INTENTS_FILE).read_text() == INTENTS
    bench.close()


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("../x", "invalid_arguments"),
        ("/etc/**", "invalid_arguments"),
        ("!src/a.py", "invalid_arguments"),
        (" ", "invalid_arguments"),
        ("src/old/b.py", "scope_violation"),
        ("src/new.py", "no_change"),
        ("src/lib/**", "no_change"),
    ],
)
async def test_scope_that_makes_no_sense_is_not_asked_for(bench: Bench, path: str, expected: str) -> None:
    await select(bench)
    assert reason(await bench.call("request_scope", paths=[path], reason="r")) == expected
    assert not bench.user.asked


async def test_a_pattern_that_means_more_than_is_owned_is_asked_for(tmp_path: Path) -> None:
    bench = bound(tmp_path, "intents: [{id: CART, owned_scope: [src/*]}]")
    await select(bench)
    assert (await bench.call("request_scope", paths=["src/**"], reason="r")).status == "ok"
    assert (await bench.call("write", path="src/deep/a.py", text="y\n")).status == "ok"
    bench.close()


async def test_the_file_that_changed_while_the_user_thought_is_not_written_over(bench: Bench) -> None:
    await select(bench)
    path = bench.root / INTENTS_FILE
    bench.user.while_thinking = lambda: path.write_text(INTENTS.replace("- src/**", "- lib/**"))
    finished = await bench.call("request_scope", paths=["docs/c.md"], reason="r")
    assert reason(finished) == "stale_file"
    assert "docs/c.md" not in path.read_text()


# Without intents


@pytest.mark.promise("INTENT-9")
async def test_without_a_file_of_intents_there_is_none_of_it(tmp_path: Path) -> None:
    bench = open_bench(tmp_path, mode="auto")
    plain, with_file = Toolbox(), Toolbox(intents=IntentFile(Workspace(bench.root)))
    assert with_file.specs("auto") == plain.specs("auto")
    assert reason(await select(bench)) == "unknown_tool"
    assert (await bench.call("write", path="a.txt", text="x\n")).status == "ok"
    bench.close()


async def test_where_intents_are_required_nothing_is_done_without_a_file(tmp_path: Path) -> None:
    required = IntentFile(Workspace(tmp_path), required=True).now()
    assert required
    assert "handrail intents init" in required.problem


@pytest.mark.parametrize("write", [Path.write_text, lambda path, text: path.write_bytes(text.encode())])
def test_a_change_of_the_file_is_seen_at_once(tmp_path: Path, write: Callable[[Path, str], object]) -> None:
    file = IntentFile(Workspace(tmp_path))
    (tmp_path / ".orchestration").mkdir()
    for number in range(50):
        write(tmp_path / INTENTS_FILE, f"- id: A{number % 2}\n")
        found = file.now()
        assert found
        assert [each.id for each in found.intents] == [f"A{number % 2}"]
