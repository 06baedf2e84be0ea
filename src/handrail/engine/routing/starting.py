"""The run that a message begins, once its way is known."""

from handrail.engine.pipeline.definition import Asked, Catalogue
from handrail.engine.pipeline.keeping import kept_before
from handrail.engine.pipeline.walker import begun
from handrail.engine.routing.beginning import Way, only_asks, pipeline_of
from handrail.engine.routing.mentioned import question_of
from handrail.models.base import Capabilities
from handrail.protocol.commands import SendMessage
from handrail.protocol.errors import UsageProblem
from handrail.protocol.events import Event, UserMessage
from handrail.storage.log import Log

NO_CHECK = (
    "A check says whether work is done, and {pipeline} has no stage in which the model works at files. "
    "Leave `--check` out, or send the message to `agent`."
)


def run_of(
    way: Way,
    turn_id: str,
    message: SendMessage | UserMessage,
    *,
    catalogue: Catalogue,
    log: Log,
    capabilities: Capabilities,
    continues: bool,
) -> list[Event]:
    """The events that begin it; none where a model is asked first which one that is."""
    if not way.route:
        return []
    text, small = way.meant or question_of(message.text, way.route), capabilities.one_action
    reads_only = only_asks(way.route, text, decided=way.routed is not None, small=small)
    pipeline = pipeline_of(way, catalogue, capabilities)
    if isinstance(message, SendMessage) and message.check and not pipeline.works:
        raise UsageProblem(NO_CHECK.format(pipeline=pipeline.name))
    asked = Asked(text, small=small, reads_only=reads_only)
    run = begun(
        pipeline,
        turn_id,
        text,
        reads_only=reads_only,
        skips=catalogue.skipped(pipeline, asked),
        continues=continues,
        kept=kept_before(log, pipeline),
    )
    return [way.routed, *run] if way.routed else run
