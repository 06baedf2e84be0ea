"""The typed outputs of a run's stages: small ones in the log, large ones beside it."""

import hashlib
import json
from collections.abc import Callable, Mapping
from typing import NamedTuple

from handrail.engine.pipeline.definition import Output
from handrail.protocol.errors import GiveUp
from handrail.protocol.events import StageCompleted
from handrail.protocol.values import ReadAs
from handrail.sessions.run_state import OpenStage, RunState, StageDone

INLINE = 16_000
"""Characters of an output that is kept in its event."""


class Completed(NamedTuple):
    event: StageCompleted
    blobs: tuple[bytes, ...]


def completed(run: RunState, stage: OpenStage, output: Output, read: tuple[ReadAs, ...] = ()) -> Completed:
    """The event that ends a stage, and what goes beside it."""
    data = json.dumps(output, ensure_ascii=False)
    event = StageCompleted(run_id=run.run_id, stage_id=stage.stage_id, stage=stage.stage, read=read)
    if len(data) <= INLINE:
        return Completed(event.model_copy(update={"output": output}), ())
    blob = data.encode()
    return Completed(event.model_copy(update={"blob": hashlib.sha256(blob).hexdigest()}), (blob,))


Stored = Callable[[str], bytes | None]
"""The content of a hash; None where it is not kept."""


def outputs_of(run: RunState, stored: Stored, read: dict[str, Output]) -> Mapping[str, Output]:
    """The latest output of each stage that was completed, by its name; `read` holds large ones by hash."""
    return {name: _output(name, done, stored, read) for name, done in run.stages.items()}


def _output(name: str, done: StageDone, stored: Stored, read: dict[str, Output]) -> Output:
    if done.output is not None:
        return done.output
    if done.blob not in read:
        data = stored(done.blob)
        if data is None:
            raise GiveUp(f"What the stage {name} found is not kept any more. Ask again.")
        read[done.blob] = json.loads(data)
    return read[done.blob]
