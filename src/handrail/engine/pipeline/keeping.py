"""Small named values that an agent keeps from run to run: in the log, written by code alone."""

import json
from typing import Any

from handrail.engine.pipeline.definition import Outputs, Pipeline
from handrail.protocol.events import ValueKept
from handrail.sessions.workspace_events import append_to_workspace, read_workspace
from handrail.storage.log import Log

MOST_BYTES = 65_536


def kept_before(log: Log, pipeline: Pipeline) -> dict[str, Any]:
    """The values that earlier runs kept, of those that the pipeline still names."""
    if not pipeline.keeps:
        return {}
    wanted = {each.name for each in pipeline.keeps}
    events = (one.event for one in read_workspace(log))
    return {
        event.name: event.value
        for event in events
        if isinstance(event, ValueKept) and event.pipeline == pipeline.name and event.name in wanted
    }


def keep(log: Log, pipeline: Pipeline, run_id: str, outputs: Outputs) -> str:
    """Record what has changed; why it cannot be kept, where it cannot. Doing it twice changes nothing."""
    before = kept_before(log, pipeline)
    fresh = {
        each.name: outputs[each.stage][each.field]
        for each in pipeline.keeps
        if each.field in outputs.get(each.stage, {})
    }
    size = len(json.dumps({**before, **fresh}, ensure_ascii=False).encode(errors="replace"))
    if size > MOST_BYTES:
        return (
            f"What {pipeline.name} keeps between runs would be {size:,} bytes, more than {MOST_BYTES:,}. "
            "Nothing of it was kept. What was done stays; let it keep less."
        )
    news = [
        ValueKept(pipeline=pipeline.name, name=name, value=value, run_id=run_id)
        for name, value in fresh.items()
        if name not in before or before[name] != value
    ]
    if news:
        append_to_workspace(log, *news)
    return ""
