"""Values for later runs: the last one counts, and keeping one twice is keeping it once."""

from pathlib import Path

import pytest

from handrail.engine.pipeline import Keep, Output, Pipeline, Stage
from handrail.engine.run_record import keep, kept_before
from handrail.sessions.workspace_events import read_workspace
from handrail.storage.event_log import Log

PIPELINE = Pipeline("p", (Stage("ask", "ask"),), keeps=(Keep("seen", "ask", "topics"),))


@pytest.mark.promise("AGENT-6")
def test_a_value_is_recorded_once_however_often_its_run_comes_to_its_end(tmp_path: Path) -> None:
    log = Log(tmp_path)
    outputs: dict[str, Output] = {"ask": {"topics": ["costs"], "other": 1}}
    for _ in range(3):
        assert keep(log, PIPELINE, "run_1", outputs) == ""
    assert len(list(read_workspace(log))) == 1
    assert keep(log, PIPELINE, "run_2", {"ask": {"topics": []}}) == ""
    assert keep(log, PIPELINE, "run_3", {"ask": {}}) == ""
    assert kept_before(log, PIPELINE) == {"seen": []}
    assert kept_before(log, PIPELINE._replace(name="q")) == {}
    assert kept_before(log, PIPELINE._replace(keeps=(Keep("other", "ask", "topics"),))) == {}
    log.close()
