"""Mentions that are no paths: what they stand for, and what is only prose."""

from pathlib import Path

import pytest

from handrail.app.mentions import complete_mention
from handrail.context.map.builder import build_map
from handrail.context.mentions import attach_mentions
from handrail.engine.mention_lookup import look_up, look_up_names
from handrail.protocol.commands import SendMessage
from handrail.protocol.events import TurnFinished, UserMessage
from handrail.protocol.values import ChecklistItem
from handrail.storage.map_cache import MapCache
from handrail.tasks.task_list import TaskList
from handrail.workspace.files import Workspace
from handrail.workspace.intents_file import IntentFile
from tests.engine.conversation import conversation
from tests.pipelines.build.builds import COPIES
from tests.tools.test_git import git
from tests.verification.projects import checks_of, write

pytestmark = pytest.mark.anyio
INTENTS = """\
active_intents:
  - id: INT-1
    name: Totals are right
    status: active
    owned_scope: [src/**]
"""
CART = """\
class Cart:
    @property
    def total(self):
        return sum(self.prices)


def total(prices):
    return sum(prices)


LIMIT = 3
"""
PROJECT = {
    ".handrail/context.toml": '[names]\nSpec = "docs/spec.md"\nRules = ["docs/spec.md", "docs/more.md"]\n',
    ".orchestration/active_intents.yaml": INTENTS,
    "docs/spec.md": "It must add up.\n",
    "docs/more.md": "Always.\n",
    "src/cart.py": CART,
    "web/cart.ts": "export function addItem(id: string): void {\n  items.push(id)\n}\n",
}


def no_tasks() -> TaskList:
    raise AssertionError("no task is mentioned")


def attached(root: Path, message: str) -> tuple[str, tuple[str, ...]]:
    workspace = Workspace(root)
    found = attach_mentions(
        message,
        workspace,
        looked_up=look_up_names(message, workspace, IntentFile(workspace), no_tasks),
    )
    return found.text, found.unattached


@pytest.mark.promise("CTX-6")
@pytest.mark.parametrize(
    ("mention", "shown", "hidden"),
    [
        ("@Spec", "It must add up.", "Always."),
        ("@Rules", "Always.", "class Cart"),
        ("@intent:INT-1", "Totals are right", "class Cart"),
        ("@LIMIT", "### src/cart.py:11\nLIMIT = 3", "def total"),
        ("@Cart.total", "### src/cart.py:2\n    @property\n    def total(self):", "(prices)"),
        ("@addItem", "### web/cart.ts:1\nexport function addItem", "class Cart"),
    ],
)
async def test_name_intent_and_symbol_are_attached_as_they_are(
    tmp_path: Path, mention: str, shown: str, hidden: str
) -> None:
    text, unattached = attached(write(tmp_path, PROJECT), f"look at {mention}, please")
    assert shown in text
    assert hidden not in text
    assert unattached == ()


async def test_every_place_of_a_symbol_is_attached(tmp_path: Path) -> None:
    text, _ = attached(write(tmp_path, PROJECT), "@total")
    assert text.count("### src/cart.py") == 2


@pytest.mark.promise("CTX-6")
async def test_what_names_nothing_is_prose_or_an_error_with_the_nearest(tmp_path: Path) -> None:
    root = write(tmp_path, PROJECT)
    assert attached(root, "use @dataclass and @task") == ("", ())
    text, (told,) = attached(root, "see @intent:INT-2")
    assert "Did you mean INT-1?" in told
    assert "Do not guess" in text
    assert "docs/spec.md" in attached(root, "see @docs/spek.md")[1][0]
    write(root, {".handrail/context.toml": "[names]\nSpec = 3\n"})
    assert "Spec names no files" in attached(root, "see @Spec")[1][0]


@pytest.mark.promise("CTX-8")
async def test_word_that_was_chosen_from_completion_and_names_nothing_is_an_error(tmp_path: Path) -> None:
    root = write(tmp_path, {**PROJECT, "Makefile2": ""})
    async with conversation(root, [{"text": "Hello"}]) as talk:
        text = "look at @addItem, @Makefile, @gone and @diff"
        await talk.send(SendMessage(text=text, route="agent", chosen=("addItem", "Makefile", "other")))
        message = await talk.until(UserMessage)
        await talk.until(TurnFinished)
    assert "export function addItem" in message.attached
    told = [each for each in message.unattached if not each.startswith("diff")]
    assert told == ["Makefile does not exist. Did you mean Makefile2?"]
    assert "[@Makefile: Makefile does not exist. Did you mean Makefile2? Do not guess" in message.attached


@pytest.mark.promise("CTX-6")
async def test_task_is_attached_with_its_notes(tmp_path: Path) -> None:
    root = write(tmp_path, PROJECT)
    async with conversation(root, [{"text": "Hello"}]) as talk:
        tasks = talk.app.tasks
        tasks.apply([{"op": "create", "title": "Round totals", "notes": "To cents.\n  Never up."}])
        await talk.send(SendMessage(text="what about @task:1 and @task:2?", route="agent"))
        message = await talk.until(UserMessage)
        await talk.until(TurnFinished)
        assert [each.text for each in complete_mention(talk.app, "task:", first=False)] == ["task:1"]
    assert "### Task 1 Round totals\nTo cents.\n  Never up." in message.attached
    assert "there is no such task. Open ones: 1 (Round totals)." in message.unattached[0]


@pytest.mark.promise("CTX-6")
async def test_task_that_is_not_there_is_reported_with_the_nearest_open_ones(tmp_path: Path) -> None:
    async with conversation(write(tmp_path, PROJECT), [{"text": "Hello"}]) as talk:
        titles = [*(f"Water plant {at}" for at in range(8)), "Round the totals"]
        talk.app.tasks.apply([{"op": "create", "title": title} for title in titles])
        await talk.send(SendMessage(text="what about @task:totals?", route="agent"))
        message = await talk.until(UserMessage)
        await talk.until(TurnFinished)
    assert "Open ones: 9 (Round the totals), " in message.unattached[0]


@pytest.mark.promise("CTX-6")
async def test_diff_problems_and_address_are_looked_up_now(tmp_path: Path) -> None:
    root = write(tmp_path, {**PROJECT, ".env": "KEY=old\n"})
    git(root, "init", "-q")
    git(root, "add", "-fA")
    git(root, "commit", "-qm", "first")
    edited = CART.replace("LIMIT = 3", "LIMIT = 4")
    write(root, {"src/cart.py": edited, ".env": "KEY=hunter2\n", "new.py": ""})
    intents = IntentFile(Workspace(root))
    found = await look_up(
        "@diff @problems @http://127.0.0.1:9/x", Workspace(root), intents, no_tasks, lambda: checks_of(root)
    )
    assert "+LIMIT = 4" in found["diff"].text
    assert "New files: new.py" in found["diff"].text
    assert "hunter2" not in found["diff"].text
    assert "no linter or type checker" in found["problems"].problem
    assert "could not be fetched" in found["http://127.0.0.1:9/x"].problem


async def test_problems_are_those_of_the_projects_linter(tmp_path: Path) -> None:
    checks = '[checks]\ndetect = false\n[[checks.commands]]\nname = "lint"\nkind = "lint"\n'
    checks += 'run = "echo a.py:1: unused >&2; false"\n'
    write(tmp_path, {"a.py": "import os\n"})
    async with conversation(tmp_path, [{"text": "Hello"}], settings=checks) as talk:
        await talk.send(SendMessage(text="look at @problems", route="agent"))
        message = await talk.until(UserMessage)
        await talk.until(TurnFinished)
    assert "### Problems (lint failed)" in message.attached or not COPIES


@pytest.mark.promise("CTX-6")
async def test_words_of_a_checklist_fetch_nothing_and_run_nothing(tmp_path: Path) -> None:
    root, item = write(tmp_path, PROJECT), ChecklistItem("plan.md", 1, "a")
    async with conversation(root, []) as talk:
        text = "@http://127.0.0.1:9/x @problems @diff @LIMIT"
        found = await talk.app.turn_factory.look_up(SendMessage(text=text, item=item))
    assert list(found) == ["LIMIT"]


@pytest.mark.promise("CTX-7")
async def test_completion_offers_all_that_can_be_mentioned(tmp_path: Path) -> None:
    root = write(tmp_path, PROJECT)
    async with conversation(root, []) as talk:
        app = talk.app
        cache = MapCache(app.log.folder / "map.db")
        build_map(root, cache)
        cache.close()

        app.tasks.apply([{"op": "create", "title": "Round totals"}])

        def offered(typed: str, *, first: bool = False) -> list[str]:
            return [each.text for each in complete_mention(app, typed, first=first)]

        assert offered("res", first=True) == ["research"]
        assert "research" not in offered("res")
        assert offered("task:") == ["task:1"]
        assert "docs/" in offered("do")
        assert "Spec" in offered("Sp")
        assert offered("di") == ["diff"]
        assert "problems" in offered("pro")
        assert offered("intent:") == ["intent:INT-1"]
        assert offered("docs/s") == ["docs/spec.md"]
        assert "addItem" in offered("addI")
