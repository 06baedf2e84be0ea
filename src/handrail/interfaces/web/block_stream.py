"""Sends a conversation's blocks to one page until it is closed or takes nothing, or the server ends."""

from collections.abc import AsyncGenerator

from starlette.responses import JSONResponse

from handrail.interfaces.http.errors import kind_of
from handrail.interfaces.http.event_feed import HEARTBEAT, HEARTBEAT_SECONDS
from handrail.interfaces.http.message_stream import MessageStream, StreamForm
from handrail.interfaces.http.workspaces import OpenWorkspace
from handrail.protocol.errors import HandrailError


class BlockStream(MessageStream):
    def __init__(self, workspace: OpenWorkspace, messages: AsyncGenerator[bytes, None]) -> None:
        super().__init__(workspace, messages, StreamForm(HEARTBEAT, HEARTBEAT_SECONDS, _problem))


def _problem(problem: HandrailError) -> bytes:
    body = {"message": str(problem), "advice": kind_of(problem).advice}
    return b"event: problem\ndata: " + bytes(JSONResponse(body).body) + b"\n\n"
