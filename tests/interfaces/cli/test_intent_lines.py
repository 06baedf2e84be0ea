"""What a person is shown of intents in a conversation."""

from handrail.interfaces.cli.approvals import asked_lines
from handrail.interfaces.cli.rendering import lines_of
from handrail.interfaces.cli.styles import plain
from handrail.interfaces.cli.tool_lines import Known
from handrail.protocol.events import ApprovalAsked, IntentSelected

ASKED = ApprovalAsked(
    turn_id="t", approval_id="a", call_id="c", tool="run", summary="make", preview="make", why="mode ask"
)


def test_an_approval_names_the_intent_where_there_is_one() -> None:
    assert [plain(row) for row in asked_lines(ASKED, 80)] == ["  run       make"]
    named = asked_lines(ASKED.model_copy(update={"intent": "CART"}), 80)
    assert [plain(row) for row in named] == ["  run       make", "  intent    CART"]


def test_what_the_user_selects_is_shown_with_what_to_know_before() -> None:
    selected = IntentSelected(
        intent_id="CART", warnings=("CART depends on TAX, which is not done.",), by="user"
    )
    rows = [plain(row) for row in lines_of(selected, Known(), 80)]
    assert rows == ["  intent    CART", "            CART depends on TAX, which is not done."]
    assert not lines_of(selected.model_copy(update={"by": "agent"}), Known(), 80)
