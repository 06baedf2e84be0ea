"""What the disk looks like after each commit: where a killed process would have to go on from."""

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from handrail.app.app import App
from handrail.protocol.ids import session_stream


class Commits:
    """Copies of the home and the workspace, one after each commit that was watched."""

    def __init__(self, folder: Path, home: Path, workspace: Path) -> None:
        self._folder = folder
        self._places = {"home": home, "work": workspace}
        self.count = 0

    @contextmanager
    def watching(self, app: App) -> Iterator[None]:
        app.log.listeners.append(self._keep)
        try:
            yield
        finally:
            app.log.listeners.remove(self._keep)

    def restored(self) -> Iterator[int]:
        """The number of each, when home and workspace are as they were after it."""
        for number in range(self.count):
            for name, place in self._places.items():
                shutil.rmtree(place)
                shutil.copytree(self._folder / str(number) / name, place)
            yield number

    def _keep(self) -> None:
        for name, place in self._places.items():
            shutil.copytree(place, self._folder / str(self.count) / name)
        self.count += 1


def is_idle(app: App, session_id: str) -> bool:
    """Whether nothing is left to be done in the session without the user."""
    waiting = app.log.waiting(session_stream(session_id))
    return app.is_holder(session_id) and app.state(session_id).turn is None and not waiting
