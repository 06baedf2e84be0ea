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
SHARED = "handrail_witness"


class Observer:
    def __init__(self) -> None:
        self._outcomes: dict[tuple[str, str], str] = {}
        self._undetected: list[str] = []
        self._replaced: list[str] = []

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
        outcomes = dict(self._outcomes)  # before the tests below, which fail
        self._undetected += undetected(session)
        self._replaced += WITNESS.replaced()
        if hasattr(session.config, "workerinput"):
            session.config.workeroutput[SHARED] = [self._undetected, self._replaced]
            return
        failed = [name for (name, _), outcome in outcomes.items() if outcome == "failed"]
        called = [name for (name, when), outcome in outcomes.items() if (when, outcome) == ("call", "passed")]
        passed = [name for name in called if name not in set(failed)]
        WITNESS.write(passed, failed, self._undetected, self._replaced)

    @pytest.hookimpl(optionalhook=True)
    def pytest_testnodedown(self, node: Any) -> None:
        """Take what was seen in another process (pytest-xdist)."""
        found, replaced = getattr(node, "workeroutput", {}).get(SHARED, [[], []])
        self._undetected += found
        self._replaced += [name for name in replaced if name not in self._replaced]


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
    with pytest.raises(ZeroDivisionError):
        pass


def pytest_configure(config: Any) -> None:
    config.pluginmanager.register(Observer(), "handrail_observer")
