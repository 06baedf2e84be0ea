"""The run that a message begins, once its way is known."""

from handrail.engine.pipeline.definition import Asked, Catalogue
from handrail.engine.pipeline.keeping import kept_before
from handrail.engine.pipeline.walker import begun
from handrail.engine.routing.beginning import Way, only_asks, pipeline_of
from handrail.engine.routing.mentioned import question_of
from handrail.protocol.commands import SendMessage
from handrail.protocol.events import Event
from handrail.storage.log import Log


def run_of(
    way: Way,
    turn_id: str,
    command: SendMessage,
    *,
    catalogue: Catalogue,
    log: Log,
    small: bool,
    continues: bool,
) -> list[Event]:
    """The events that begin it; none where a model is asked first which one that is."""
    if not way.route:
        return []
    text = question_of(command.text, way.route)
    reads_only = only_asks(way.route, text, decided=way.routed is not None, small=small)
    pipeline = pipeline_of(way.route, catalogue)
    skips = catalogue.skipped(pipeline, Asked(text, bool(command.images), small=small, reads_only=reads_only))
    run = begun(
        pipeline,
        turn_id,
        text,
        reads_only=reads_only,
        skips=skips,
        continues=continues,
        kept=kept_before(log, pipeline),
    )
    return [way.routed, *run] if way.routed else run
