"""All events: one file a family. `EVENT` reads any of them by its `type`.

Add a new event to its family's file and to the union at the end of that file.
"""
# ruff: noqa: F403, F405

from msgspec.json import Decoder

from handrail.protocol.events.approvals import *
from handrail.protocol.events.base import *
from handrail.protocol.events.changes import *
from handrail.protocol.events.checklists import *
from handrail.protocol.events.checks import *
from handrail.protocol.events.conversation import *
from handrail.protocol.events.intents import *
from handrail.protocol.events.plans import *
from handrail.protocol.events.requests import *
from handrail.protocol.events.runs import *
from handrail.protocol.events.session import *
from handrail.protocol.events.subagents import *
from handrail.protocol.events.subtasks import *
from handrail.protocol.events.tasks import *
from handrail.protocol.events.tools import *

TurnEvent = (
    SubagentsEvent | ConversationEvent | RequestEvent | RunEvent | ToolEvent | ApprovalEvent | CheckEvent
)
SessionsEvent = SessionEvent | PlanEvent | ChangeEvent
Event = TurnEvent | SessionsEvent | IntentEvent | TaskListEvent | ChecklistEvent | SplitEvent
EVENT: Decoder[Event] = Decoder(Event)
