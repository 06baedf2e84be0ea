"""A small model in a workspace with intents: the grammar leaves it only what can be done."""

from pathlib import Path

import pytest

from handrail.context.prompt import Prompt
from handrail.context.small.one_action_model import as_action_request, as_file_request
from handrail.context.small.prompt import answer_refusal, small_prompt
from handrail.models.model import AssistantTurn, Request, ToolResult, UserTurn
from handrail.protocol.errors import RefusalReason, ToolError
from handrail.protocol.values import ToolCall
from handrail.tools.toolbox import Toolbox
from handrail.workspace.files import Workspace
from handrail.workspace.intents_file import INTENTS_FILE, IntentFile

INTENTS = """- id: CART
  name: Totals
  owned_scope: [src/**]
  constraints: [no globals]
- id: PAST
  status: done
"""


@pytest.fixture
def workspace(tmp_path: Path) -> Workspace:
    (tmp_path / ".orchestration").mkdir()
    (tmp_path / INTENTS_FILE).write_text(INTENTS)
    (tmp_path / "cart.py").write_text("x = 1\n")
    return Workspace(tmp_path)


def prompt(workspace: Workspace, active: str = "") -> Prompt:
    file = IntentFile(workspace)
    tools = Toolbox(intents=file).specs("auto")
    words = "add a total to cart.py"
    return small_prompt(workspace, tools, words, checked=False, intents=file.now(), active=active)


def offered(prompt: Prompt) -> dict[str, dict[str, object]]:
    """The fields of each action that can be taken."""
    asked = as_action_request(Request(prompt.whole, (UserTurn("go"),), prompt.tools, choices=prompt.choices))
    assert asked.output_schema
    actions = [each["properties"] for each in asked.output_schema["oneOf"]]
    return {each.pop("action")["const"]: each for each in actions}


def refused(reason: RefusalReason, tool: str = "write", file: str = "") -> ToolError:
    return ToolError(tool=tool, reason=reason, message="no", file=file)


def test_the_prompt_names_what_can_be_selected_or_what_is_selected(workspace: Workspace) -> None:
    assert "which is selected first: CART (Totals)." in prompt(workspace).whole
    assert "the intent CART (Totals), which owns: src/**.\n- no globals" in prompt(workspace, "CART").whole
    plain = small_prompt(workspace, Toolbox().specs("auto"), checked=False)
    assert plain.whole == plain.system


def test_a_refusal_leaves_only_the_way_out_of_it(workspace: Workspace) -> None:
    begun = prompt(workspace)
    assert "select_active_intent" not in offered(begun)
    assert offered(answer_refusal(begun, refused("missing_intent_id"))) == {
        "select_active_intent": {"intent_id": {"enum": ["CART"]}},
        "answer": {"text": {"type": "string"}},
    }
    outside = answer_refusal(begun, refused("scope_violation", file="docs/a.md"))
    assert offered(outside)["request_scope"]["paths"] == {
        "type": "array",
        "items": {"enum": ["docs/a.md"]},
        "minItems": 1,
        "maxItems": 1,
    }
    for error in (None, refused("stale_file"), refused("scope_violation", "request_scope", "docs/a.md")):
        assert answer_refusal(begun, error) == begun
    assert as_action_request(Request(outside.whole, (), outside.tools)).system.startswith(begun.whole)


def test_what_it_was_told_of_the_intent_is_not_shown_where_it_writes_a_file() -> None:
    call = ToolCall(id="c", name="write", arguments={"path": "cart.py"})
    messages = (
        UserTurn("add a total"),
        AssistantTurn("", (call,)),
        ToolResult("c", "select_active_intent", "<intent_context/>"),
        ToolResult("d", "read", "x = 1"),
    )
    shown = str(as_file_request(Request("", messages), call).messages)
    assert "intent_context" not in shown
    assert "x = 1" in shown
