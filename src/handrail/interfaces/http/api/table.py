"""All endpoints of the API: the server routes by this table, and the OpenAPI document describes it."""

from typing import TYPE_CHECKING

from handrail import __version__
from handrail.interfaces.http.api.agents import AGENT_ENDPOINTS
from handrail.interfaces.http.api.assistant import ASSISTANT_ENDPOINTS
from handrail.interfaces.http.api.audit import AUDIT_ENDPOINTS
from handrail.interfaces.http.api.changes import CHANGE_ENDPOINTS
from handrail.interfaces.http.api.checks import CHECK_ENDPOINTS
from handrail.interfaces.http.api.conversation import CONVERSATION_ENDPOINTS
from handrail.interfaces.http.api.credentials import CREDENTIAL_ENDPOINTS
from handrail.interfaces.http.api.intents import INTENT_ENDPOINTS
from handrail.interfaces.http.api.models import MODEL_ENDPOINTS
from handrail.interfaces.http.api.own_commands import OWN_COMMAND_ENDPOINTS
from handrail.interfaces.http.api.sessions import SESSION_ENDPOINTS
from handrail.interfaces.http.api.settings import SETTING_ENDPOINTS
from handrail.interfaces.http.api.sources import SOURCE_ENDPOINTS
from handrail.interfaces.http.api.splits import SPLIT_ENDPOINTS
from handrail.interfaces.http.api.tasks import TASK_ENDPOINTS
from handrail.interfaces.http.api.workspace import WORKSPACE_ENDPOINTS
from handrail.interfaces.http.endpoint import Endpoint
from handrail.protocol.values import Value

if TYPE_CHECKING:
    from handrail.interfaces.http.server import Server


class WorkspaceInfo(Value):
    name: str
    """For `/api/w/{workspace}`."""
    path: str


class WorkspaceList(Value):
    version: str
    workspaces: tuple[WorkspaceInfo, ...]


async def list_workspaces(call: "Server") -> WorkspaceList:
    """The workspaces of this server."""
    found = (WorkspaceInfo(each.name, str(each.root)) for each in call.workspaces.values())
    return WorkspaceList(__version__, tuple(found))


ENDPOINTS: tuple[Endpoint, ...] = (
    Endpoint("GET", "/workspaces", list_workspaces, of_server=True),
    *SESSION_ENDPOINTS,
    *CONVERSATION_ENDPOINTS,
    *CHANGE_ENDPOINTS,
    *CHECK_ENDPOINTS,
    *SPLIT_ENDPOINTS,
    *INTENT_ENDPOINTS,
    *AUDIT_ENDPOINTS,
    *AGENT_ENDPOINTS,
    *SOURCE_ENDPOINTS,
    *OWN_COMMAND_ENDPOINTS,
    *MODEL_ENDPOINTS,
    *CREDENTIAL_ENDPOINTS,
    *SETTING_ENDPOINTS,
    *WORKSPACE_ENDPOINTS,
    *TASK_ENDPOINTS,
    *ASSISTANT_ENDPOINTS,
)
