"""Runs over checklists, read from the workspace's stream: what was attempted, and what is unfinished."""

from msgspec import Struct

from handrail.protocol.events import ChecklistEnded, ChecklistPaused, ChecklistStarted, ItemStarted
from handrail.sessions.workspace_events import read_workspace
from handrail.storage.event_log import Log


class ChecklistRunState(Struct):
    checklist_id: str
    path: str
    began: float
    items: list[ItemStarted] = []
    """In order; an item that was stopped and tried again is there several times."""
    counted: int = 0
    """Items since the user was asked at the limit, or the run stopped."""
    ended: str = ""


def checklist_runs(log: Log, path: str = "") -> list[ChecklistRunState]:
    """All runs, oldest first; of one checklist if it is named."""
    runs: dict[str, ChecklistRunState] = {}
    for one in read_workspace(log):
        match one.event:
            case ChecklistStarted() as event if not path or event.path == path:
                runs[event.checklist_id] = ChecklistRunState(event.checklist_id, event.path, one.at)
            case ItemStarted() as event if event.checklist_id in runs:
                runs[event.checklist_id].items.append(event)
                runs[event.checklist_id].counted += 1
            case ChecklistPaused() as event if event.checklist_id in runs:
                runs[event.checklist_id].counted = 0
            case ChecklistEnded() as event if event.checklist_id in runs:
                runs[event.checklist_id].ended = event.why
    return list(runs.values())


def unfinished_run(log: Log, path: str) -> ChecklistRunState | None:
    """The run over this checklist that was stopped or killed, if the last one was."""
    last = checklist_runs(log, path)[-1:]
    return last[0] if last and not last[0].ended else None
