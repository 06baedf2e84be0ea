"""Events for the tests of this folder, and what a screen makes of them."""

from handrail.interfaces.cli.render.screen import Screen
from handrail.interfaces.cli.render.styles import plain
from handrail.protocol.errors import RefusalReason, ToolError
from handrail.protocol.events import (
    Answered,
    ApprovalAsked,
    CallStatus,
    Delta,
    Event,
    ToolFinished,
    ToolStarted,
    TurnFinished,
    UserMessage,
)
from handrail.protocol.values import FinishReason, ToolCall, Usage

DIFF = """\
--- a/src/cart.py
+++ b/src/cart.py
@@ -50,4 +50,4 @@
 def total():
     tax = 1
-    return (subtotal + tax) * (1 - discount)
+    return subtotal * (1 - discount) + tax
 # end
"""


def shown(*items: Event | Delta, width: int = 79, colour: bool = False) -> str:
    """What a screen of 80 columns shows after these."""
    screen = Screen(width, colour=colour)
    rows = []
    for item in items:
        rows += screen.stream(item) if isinstance(item, Delta) else screen.show(item)
    return "\n".join(plain(row) for row in rows)


def said(text: str) -> UserMessage:
    return UserMessage(message_id="m_1", turn_id="t_1", text=text)


def answered(text: str, *calls: ToolCall, message_id: str = "m_2") -> Answered:
    return Answered(
        turn_id="t_1",
        request_id="r_1",
        message_id=message_id,
        model="scripted/x",
        text=text,
        calls=calls,
        end="stop",
    )


def started(tool: str, summary: str, call_id: str = "c_1") -> ToolStarted:
    return ToolStarted(turn_id="t_1", call_id=call_id, tool=tool, arguments={}, kind="safe", summary=summary)


def finished(
    tool: str, summary: str = "", shown: str = "", call_id: str = "c_1", status: CallStatus = "ok"
) -> ToolFinished:
    return ToolFinished(
        turn_id="t_1", call_id=call_id, tool=tool, status=status, summary=summary, shown=shown
    )


def refused(tool: str, reason: RefusalReason, message: str, call_id: str = "c_1") -> ToolFinished:
    error = ToolError(tool=tool, reason=reason, message=message)
    return ToolFinished(turn_id="t_1", call_id=call_id, tool=tool, status="refused", error=error)


def asked(tool: str = "edit", summary: str = "src/cart.py", preview: str = DIFF) -> ApprovalAsked:
    return ApprovalAsked(
        turn_id="t_1",
        approval_id="a_1",
        call_id="c_1",
        tool=tool,
        summary=summary,
        preview=preview,
        why="mode ask: edits are asked",
    )


def ended(reason: FinishReason = "answered", detail: str = "", cost: float | None = 0.0) -> TurnFinished:
    return TurnFinished(
        turn_id="t_1",
        reason=reason,
        detail=detail,
        usage=Usage(input_tokens=1204, output_tokens=96),
        cost_usd=cost,
        seconds=3.1,
        steps=2,
    )
