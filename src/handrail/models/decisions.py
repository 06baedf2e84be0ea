"""A model's word on how a batch of commands goes on, read from its answer."""

from typing import Any, NamedTuple

from handrail.models.reading import NOT_ALONE, courteous, read_object
from handrail.models.sendable import fault
from handrail.protocol.commands import LONGEST_COMMAND
from handrail.protocol.events.batches import BatchDecision

LONGEST_WHY = 400
DECISIONS: tuple[BatchDecision, ...] = ("continue", "stop", "replace")
SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {
        "decision": {"enum": list(DECISIONS)},
        "command": {"type": "string", "maxLength": 300},
        "why": {"type": "string", "maxLength": 200},
    },
    "required": ["decision", "command", "why"],
    "additionalProperties": False,
}
"""For models that write what a grammar lets them."""


class Decided(NamedTuple):
    """What the model wants; `problem` says why that cannot be told."""

    decision: BatchDecision = "stop"
    command: str = ""
    why: str = ""
    network: bool = False
    problem: str = ""


def read_decision(text: str) -> Decided:
    """The decision that an answer holds."""
    found = read_object(text)
    if found.value is None:
        return Decided(problem=found.problem)
    if not courteous(found.around):
        return Decided(problem=NOT_ALONE)
    value = found.value
    if unfit := fault(value):
        return Decided(problem=f"it holds {unfit}")
    decision = next((each for each in DECISIONS if each == value.get("decision")), None)
    if decision is None:
        return Decided(problem=f"`decision` is none of {', '.join(DECISIONS)}")
    command, why = value.get("command") or "", value.get("why") or ""
    network = value.get("network") or False
    if not (isinstance(command, str) and isinstance(why, str) and isinstance(network, bool)):
        return Decided(problem="`command` and `why` are texts, `network` is true or false")
    why = " ".join(why.split())[:LONGEST_WHY]
    if decision != "replace":
        return Decided(decision, why=why)
    if not command.strip() or len(command) > LONGEST_COMMAND:
        return Decided(problem="`replace` needs the `command` that is to run")
    return Decided(decision, command.strip(), why, network=network)
