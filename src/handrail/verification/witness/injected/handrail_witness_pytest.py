"""A plugin of pytest (`-p handrail_witness_pytest`, found through PYTHONPATH) that witnesses the run.

At the end it lets tests of its own fail by pytest's own means. They are in no report, and no fixture of the
project runs for them.
"""

from __future__ import annotations

import unittest
from typing import Any

import pytest
from _pytest.runner import runtestprotocol
from handrail_witness import Witness, ways_to_fail  # type: ignore[import-not-found]

WITNESS = Witness()


class Observer:
    def __init__(self) -> None:
        self._outcomes: dict[tuple[str, str], str] = {}

    @pytest.hookimpl(hookwrapper=True, tryfirst=True)
    def pytest_runtest_makereport(self, item: Any, call: Any) -> Any:
        outcome = yield
        self._see(outcome.get_result())

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_logreport(self, report: Any) -> None:
        # Reports that another process made come only here (pytest-xdist).
        if (report.nodeid, report.when) not in self._outcomes:
            self._see(report)

    def _see(self, report: Any) -> None:
        """The last outcome counts: a test may run again (pytest-rerunfailures)."""
        self._outcomes[report.nodeid, report.when] = report.outcome

    @pytest.hookimpl(tryfirst=True)
    def pytest_sessionfinish(self, session: Any) -> None:
        if hasattr(session.config, "workerinput"):
            return
        outcomes = dict(self._outcomes)
        failed = [name for (name, _), outcome in outcomes.items() if outcome == "failed"]
        called = [name for (name, when), outcome in outcomes.items() if (when, outcome) == ("call", "passed")]
        passed = [name for name in called if name not in set(failed)]
        WITNESS.write(passed, failed, list(undetected(session)))


def undetected(session: Any) -> Any:
    """The ways to fail that this session does not report as failures."""
    ways = ways_to_fail(unittest.TestCase())
    ways["pytest.fail"] = lambda: pytest.fail("as it must")
    ways["pytest.raises"] = not_raised
    for name, way in ways.items():
        item = pytest.Function.from_parent(session, name=f"handrail_{len(name)}", callobj=way)
        item.fixturenames[:] = []
        reports = runtestprotocol(item, log=False, nextitem=None)
        if not any(report.outcome == "failed" for report in reports):
            yield name


def not_raised() -> None:
    with pytest.raises(ValueError):
        pass


def pytest_configure(config: Any) -> None:
    config.pluginmanager.register(Observer(), "handrail_observer")
