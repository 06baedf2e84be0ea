"""A model's word on how a batch of commands goes on, read from its answer."""

from typing import Any, NamedTuple

from handrail.models.reading.json_reader import parse_answer
from handrail.protocol.commands import MAX_COMMAND_CHARS
from handrail.protocol.events.tools import BatchDecision

DECISIONS: tuple[BatchDecision, ...] = ("continue", "stop", "replace")
DECISION_SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {
        "decision": {"enum": list(DECISIONS)},
        "command": {"type": "string", "maxLength": 300},
        "why": {"type": "string", "maxLength": 200},
    },
    "required": ["decision", "command", "why"],
    "additionalProperties": False,
}
READ_SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {
        "decision": {"type": "string", "enum": list(DECISIONS)},
        "command": {"type": "string"},
        "why": {"type": "string"},
        "network": {"type": "boolean"},
    },
    "required": ["decision"],
}


class ModelDecision(NamedTuple):
    """The model's decision; `problem` says why it could not be read."""

    decision: BatchDecision = "stop"
    command: str = ""
    why: str = ""
    network: bool = False
    problem: str = ""


def read_decision(text: str) -> ModelDecision:
    found = parse_answer(text, READ_SCHEMA, alone=True)
    if found.value is None:
        return ModelDecision(problem="; ".join(found.problems))
    decision = found.value["decision"]
    why = " ".join(found.value.get("why", "").split())[:400]
    if decision != "replace":
        return ModelDecision(decision, why=why)
    command = found.value.get("command", "").strip()
    if not command or len(command) > MAX_COMMAND_CHARS:
        return ModelDecision(problem="`replace` needs the `command` that is to run")
    return ModelDecision(decision, command, why, network=found.value.get("network", False))
