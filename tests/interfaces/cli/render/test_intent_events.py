"""What a person is shown of intents in a conversation."""

from pathlib import Path

from msgspec.structs import replace

from handrail.interfaces.cli.render.approvals import approval_preview
from handrail.interfaces.cli.render.events import event_lines
from handrail.interfaces.cli.render.styles import plain
from handrail.interfaces.cli.render.tool_calls import RenderContext
from handrail.protocol.events import ApprovalAsked, IntentSelected
from tests.interfaces.cli.program import script, terminal

CTRL_D, ENTER = "\x04", "\r"

ASKED = ApprovalAsked(
    turn_id="t", approval_id="a", call_id="c", tool="run", summary="make", preview="make", why="mode ask"
)


def test_an_approval_names_the_intent_where_there_is_one() -> None:
    assert [plain(row) for row in approval_preview(ASKED, 80)] == ["  run       make"]
    named = approval_preview(replace(ASKED, intent="CART"), 80)
    assert [plain(row) for row in named] == ["  run       make", "  intent    CART"]


def test_what_the_user_selects_is_shown_with_what_to_know_before() -> None:
    selected = IntentSelected(
        intent_id="CART", warnings=("CART depends on TAX, which is not done.",), by="user"
    )
    rows = [plain(row) for row in event_lines(selected, RenderContext(), 80)]
    assert rows == ["  intent    CART", "            CART depends on TAX, which is not done."]
    assert not event_lines(replace(selected, by="agent"), RenderContext(), 80)


def test_the_intent_is_selected_in_the_terminal_and_approvals_name_it(tmp_path: Path) -> None:
    work = tmp_path / "shop"
    (work / ".orchestration").mkdir(parents=True)
    (work / ".orchestration/active_intents.yaml").write_text("- id: CART\n  owned_scope: [src/**]\n")
    write = {"calls": [{"name": "write", "arguments": {"path": "src/a.py", "text": "x = 1\n"}}]}
    model = script(tmp_path, write, {"text": "So be it."})
    with terminal("--model", model, cwd=work) as talk:
        talk.expect("model ")
        talk.type("/intent" + ENTER)
        talk.expect("none is active; /intent ID selects one")
        talk.expect("[src/**]")
        talk.type("/intent NONE" + ENTER)
        talk.expect("Select one of: CART.")
        talk.type("/intent CART" + ENTER)
        talk.expect("intent    CART")
        talk.type("write it" + ENTER)
        talk.expect("intent    CART")
        talk.expect("y yes")
        talk.type("y")
        talk.expect("So be it.")
        talk.type(CTRL_D)
        assert talk.end() == 0
    with terminal("--model", model, "resume", cwd=work) as talk:
        talk.expect("intent CART")
        talk.expect("So be it.")
        talk.type(CTRL_D)
        assert talk.end() == 0
