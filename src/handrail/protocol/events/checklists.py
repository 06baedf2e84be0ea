"""Events of runs over checklists, in the workspace's stream; each item is built in a session of its own."""

from typing import Literal

from handrail.protocol.events.base import EventBase
from handrail.protocol.values import ChecklistItem


class ChecklistStarted(EventBase, tag="checklist_started"):
    """A run over the open items of a checklist begins."""

    checklist_id: str
    """Of the run."""
    path: str


class ItemStarted(EventBase, tag="item_started"):
    """Committed before the task is sent to the session; what came of it is in the session's stream."""

    checklist_id: str
    item: ChecklistItem
    session_id: str
    message_id: str
    task: str


class ChecklistPaused(EventBase, tag="checklist_paused"):
    """The user was asked at the limit of items, or the run stopped; the next items count anew."""

    checklist_id: str


class ChecklistEnded(EventBase, tag="checklist_ended"):
    """The run is over. One without this event is resumed by the next call."""

    checklist_id: str
    why: Literal["done", "not_complete"]
    """`not_complete`: an item was not complete, and the run was not told to keep going."""


ChecklistEvent = ChecklistStarted | ItemStarted | ChecklistPaused | ChecklistEnded
