"""A plugin of pytest (`-p handrail_localise`, found through PYTHONPATH) that records the lines of each test.

The failing tests run first, then those near them, until the time is up.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

import pytest
from handrail_localise_lines import Record  # type: ignore[import-not-found]

if TYPE_CHECKING:
    Line = tuple[str, int]

FAILING = set(os.environ.get("HANDRAIL_LOCALISE_FAILING", "").split("\n"))


class Recorder:
    def __init__(self) -> None:
        self._record = Record()
        self._failed = False
        self._stack: list[Line] = []

    @pytest.hookimpl(trylast=True)
    def pytest_collection_modifyitems(self, items: list[Any]) -> None:
        near = {item.nodeid.split("::")[0] for item in items if item.nodeid in FAILING}
        items.sort(key=lambda item: (item.nodeid not in FAILING, item.nodeid.split("::")[0] not in near))

    @pytest.hookimpl(hookwrapper=True)
    def pytest_runtest_protocol(self, item: Any) -> Any:
        self._failed, self._stack = False, []
        self._record.tracer.start()
        try:
            yield
        finally:
            lines = self._record.tracer.stop()
        self._record.add(item.nodeid, lines, self._stack, self._failed)
        if self._record.is_full():
            item.session.shouldstop = "enough was recorded"

    @pytest.hookimpl(hookwrapper=True)
    def pytest_runtest_makereport(self, item: Any, call: Any) -> Any:
        outcome = yield
        if outcome.get_result().outcome == "failed":
            self._failed = True
            self._stack = self._stack or self._stack_of(call.excinfo)

    def _stack_of(self, found: Any) -> list[Line]:
        places: list[Line] = []
        trace = found.tb if found is not None else None
        while trace is not None:
            path = self._record.tracer.name(trace.tb_frame.f_code.co_filename)
            if path:
                places.append((path, trace.tb_lineno))
            trace = trace.tb_next
        return places[::-1]

    def pytest_sessionfinish(self) -> None:
        self._record.write()


def pytest_configure(config: Any) -> None:
    config.pluginmanager.register(Recorder(), "handrail_localise_recorder")
