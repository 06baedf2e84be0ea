"""How a server is asked for an answer by a schema: by the schema, in JSON mode, or by the prompt alone.

The best way comes first. If the server refuses or ignores it, the next one is used. The schema need not be
the reason for a refusal, so a refused way is given up only once another one has worked.
"""

import hashlib
from pathlib import Path
from typing import Any

from handrail.models.model import Capabilities
from handrail.protocol.errors import ModelProblem, SchemaRefused
from handrail.protocol.values import StructuredWay
from handrail.storage.scratch import read_cached, write_cached

WAY_TEXT: dict[StructuredWay, str] = {
    "schema": "a JSON schema",
    "json": "JSON mode",
    "prompt": "the prompt alone",
}
VALID_SECONDS = 7 * 86_400
"""Then the best way is tried again: servers are updated."""
SERVER_ERRORS = 2
"""Server errors in a row after which the schema is suspected, although nothing in them says so."""


class StructuredOutput:
    """The way that works with one model of one server."""

    def __init__(
        self, ways: tuple[StructuredWay, ...] = ("schema",), memory: "WayMemory | None" = None
    ) -> None:
        self._ways = ways
        self._memory = memory
        known = memory.read() if memory else ""
        self.way: StructuredWay = next((way for way in ways if way == known), ways[0])
        self._kept = known
        self._before: StructuredWay | None = None  # what was refused, as long as nothing else has worked
        self._certain = True
        self._errors = 0

    def refused(self, way: StructuredWay, problem: SchemaRefused) -> ModelProblem:
        """What to raise for a refused request. A SchemaRefused can be repeated at once, in another way."""
        if way == self._ways[-1]:
            self.way, self._before = self._before or self.way, None
            return problem.otherwise
        self._errors += not problem.sure
        if not problem.sure and self._errors < SERVER_ERRORS:
            return problem.otherwise
        if way == self.way:  # otherwise another request was refused first
            self._before = self._before or way
            self._certain = problem.sure
            self.way = self._next(way)
        used = f"{WAY_TEXT[way]} seems to be refused, so {WAY_TEXT[self.way]} is tried"
        return SchemaRefused(f"{str(problem).rstrip('.')}; {used}.", problem.otherwise, sure=problem.sure)

    def answered(self, way: StructuredWay, text: str, schema: dict[str, Any]) -> None:
        """Note a complete answer: the way has worked, or it was ignored."""
        self._errors = 0
        if way != self.way:
            return
        if way != self._ways[-1] and text.strip() and not _has_form(text, schema):
            self.way, self._certain = self._next(way), True
        self._before = None
        if self._memory and self._certain and self._kept != self.way:
            self._kept = self.way
            self._memory.write(self.way)

    def _next(self, way: StructuredWay) -> StructuredWay:
        return self._ways[self._ways.index(way) + 1]


class WayMemory:
    """Remembers the way of one model across processes; if it is not `trusted`, only for others."""

    def __init__(self, folder: Path, server: str, model: str, *, trusted: bool = True) -> None:
        self._key = hashlib.sha256(f"{server}\n{model}".encode()).hexdigest()
        self._file = folder / "structured-output" / self._key[:16]
        self._trusted = trusted

    def read(self) -> str:
        return read_cached(self._file, self._key, VALID_SECONDS) if self._trusted else ""

    def write(self, way: StructuredWay) -> None:
        write_cached(self._file, self._key, way)


def structured_text(can: Capabilities) -> str:
    """How answers in JSON are asked for, for the user."""
    if not can.schema_output:
        return f"{WAY_TEXT['prompt']} (schema_output = false)"
    refused = {
        "schema": "",
        "json": " (the server takes no schema)",
        "prompt": " (it takes no JSON mode either)",
    }
    return f"{WAY_TEXT[can.structured]}{refused[can.structured]}"


def _has_form(text: str, schema: dict[str, Any]) -> bool:
    """Whether the text is an object with the required fields; a server that follows schemas sends no less."""
    from handrail.models.reading.json_reader import parse_answer

    read = parse_answer(text, {"type": "object", "required": schema.get("required", [])}).read
    return read[:1] == ("as_is",)
