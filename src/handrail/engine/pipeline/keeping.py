"""Small named values that an agent keeps from run to run: in the log, written by code alone."""

import json
from collections.abc import Iterable
from itertools import count
from typing import Any

from handrail.engine.pipeline.definition import Outputs, Pipeline
from handrail.protocol.errors import WrongSequence
from handrail.protocol.events import Recorded, ValueKept
from handrail.sessions.workspace_events import TRIES, append_to_workspace, read_workspace
from handrail.storage.log import Log

MOST_BYTES = 65_536


def kept_before(log: Log, pipeline: Pipeline) -> dict[str, Any]:
    """The values that earlier runs kept, of those that the pipeline still names."""
    return _kept(read_workspace(log), pipeline) if pipeline.keeps else {}


def keep(log: Log, pipeline: Pipeline, run_id: str, outputs: Outputs) -> str:
    """Record what has changed; why it cannot be kept, where it cannot. Doing it twice changes nothing."""
    fresh = {
        each.name: outputs[each.stage][each.field]
        for each in pipeline.keeps
        if each.field in outputs.get(each.stage, {})
    }
    for tried in count(1):
        events = list(read_workspace(log))
        before = _kept(events, pipeline)
        if problem := _too_large({**before, **fresh}, pipeline):
            return problem
        news = [
            ValueKept(pipeline=pipeline.name, name=name, value=value, run_id=run_id)
            for name, value in fresh.items()
            if name not in before or before[name] != value
        ]
        if not news:
            return ""
        try:
            append_to_workspace(log, *news, after=events[-1].seq if events else 0)
        except WrongSequence:  # another run keeps something, too: what both keep has to fit
            if tried == TRIES:
                raise
        else:
            break
    return ""


def _kept(events: Iterable[Recorded], pipeline: Pipeline) -> dict[str, Any]:
    wanted = {each.name for each in pipeline.keeps}
    found = (one.event for one in events if isinstance(one.event, ValueKept))
    return {each.name: each.value for each in found if each.pipeline == pipeline.name and each.name in wanted}


def _too_large(values: dict[str, Any], pipeline: Pipeline) -> str:
    size = len(json.dumps(values, ensure_ascii=False).encode(errors="replace"))
    if size <= MOST_BYTES:
        return ""
    return (
        f"What {pipeline.name} keeps between runs would be {size:,} bytes, more than {MOST_BYTES:,}. "
        "Nothing of it was kept. What was done stays; let it keep less."
    )
