"""Where runs and the route stand with rewinds heeded: what was set aside counts no more; its price does."""

import copy
from collections.abc import Iterable
from typing import NamedTuple

from handrail.protocol.events import (
    Recorded,
    Redone,
    Rewound,
    RunBrokenOff,
    RunCompleted,
    RunFailed,
    SessionCopied,
)
from handrail.sessions.routes import Routes
from handrail.sessions.run_state import Runs, RunState, Spent


class Point(NamedTuple):
    runs: Runs
    routes: Routes


class Standing:
    """A fold over a session from its start. It has to know beforehand where rewinds go back to."""

    def __init__(self, events: Iterable[Recorded]) -> None:
        """Of the events only the rewinds are looked at; `apply` folds."""
        self.runs, self.routes = Runs(), Routes()
        keeps = {one.event.keep for one in events if isinstance(one.event, Rewound)}
        self._keeps = sorted((keep for keep in keeps if keep is not None), reverse=True)
        self._points: dict[int, Point] = {}
        self._set_aside: dict[str, Point] = {}
        self._spent: dict[str, dict[str, Spent]] = {}
        """Of runs that have ended."""

    def apply(self, one: Recorded) -> None:
        """Fold one event in."""
        while self._keeps and self._keeps[-1] < one.seq:
            self._points[self._keeps.pop()] = copy.deepcopy(Point(self.runs, self.routes))
        match one.event:
            case Rewound(keep=int() as keep, request_id=request_id):
                self._set_aside[request_id] = Point(self.runs, self.routes)
                self._go_to(copy.deepcopy(self._points[keep]))
            case Redone(rewind_id=rewind_id) if rewind_id in self._set_aside:
                self._go_to(self._set_aside.pop(rewind_id))
            case RunCompleted() | RunFailed() | RunBrokenOff():
                self._note_spent()
            case SessionCopied():  # what an import takes away no rewind and no redo brings back
                for point in (*self._points.values(), *self._set_aside.values()):
                    point.runs.apply(one)
                    point.routes.apply(one)
        self.runs.apply(one)
        self.routes.apply(one)

    def _go_to(self, point: Point) -> None:
        self._note_spent()
        # A route that the user chose is a setting, as the mode is, and no part of the conversation.
        point.routes.chosen = self.routes.chosen
        self.runs, self.routes = point
        self.runs.current = None  # nothing is under way before a message
        for run in self._known():
            run.spent = copy.deepcopy(self._spent.get(run.run_id, run.spent))

    def _note_spent(self) -> None:
        self._spent.update((run.run_id, run.spent) for run in self._known())

    def _known(self) -> list[RunState]:
        return [run for run in (self.runs.current, self.runs.paused) if run]
