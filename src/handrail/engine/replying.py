"""Requests for a structured answer in the conversation."""

import json
from collections.abc import Callable
from typing import Any

from handrail.engine.asking import Asking
from handrail.models.base import Model, Request
from handrail.models.structured import StructuredModel

FORM = """\
This message you answer at once: you have no tools in it, and what could be found of what it needs is in \
the conversation. Say so where something is missing; never guess what a file holds. Answer with one JSON \
object of the schema below, and nothing else: first `summary`, the answer itself in a few sentences of \
markdown, then `sections` with what takes more room, `commands` that the user may want to run, one shell \
line each, and `next_steps`: up to three things that the user could say next, a short label with the whole \
message."""
ONLY_SAID = """\
Nothing is changed for this message. If you notice a change worth making, the last next step asks for it."""
CHANGING = """\
`changes` are made to the files, all or none: `create` and `rewrite` with `text`, `replace` with `edits`, \
each `search` standing once in the file, `delete`; all but `create` with the `base_hash` that the file was \
shown with. `todos` are all steps of the request. If it takes three or more steps or files, do only the \
next one or two of them in this answer, mark these as `done`, and leave the others for the next."""


def as_structured(asking: Asking, schema: dict[str, Any]) -> Asking:
    """The same models, their answers read by the schema."""
    return asking._replace(models=[StructuredModel(model, schema) for model in asking.models])


def replying(request_for: Callable[[Model], Request], schema: dict[str, Any], model: Model) -> Request:
    """The request without tools, with the form of the answer."""
    request = request_for(model)
    more = CHANGING if "changes" in schema["properties"] else ONLY_SAID
    return request.changed(
        system=f"{request.system}\n\n{FORM}\n{more}\n{json.dumps(schema)}",
        tools=(),
        output_schema=schema if model.capabilities.schema_output else None,
    )
