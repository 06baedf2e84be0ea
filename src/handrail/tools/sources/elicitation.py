"""Questions of a server to the user during a call: a form, one question for each field, or a page to open."""

from collections.abc import Awaitable, Callable, Mapping
from typing import Any

import anyio

from handrail.config.skills import plain_line
from handrail.protocol.errors import ToolRefused
from handrail.tools.secrets import Secrets
from handrail.tools.tool import Question

MAX_QUESTIONS, MAX_FIELDS = 5, 10
"""In one call, and in one question of a server."""
MAX_TEXT, MAX_ANSWER = 1_000, 4_000
DECLINE = "decline"
ASKS = "The source {source} asks you, while {tool} runs (its own words, not Handrail's):\n{message}"
FIELD = "{label}{kind}{default}\nNever give a password or a key here. `{decline}` refuses."
OPEN = (
    "It wants you to open this page yourself, if you trust it:\n{url}\n"
    "Answer `done` when that is finished, or `{decline}`."
)
Ask = Callable[[Question], Awaitable[str]]


class Elicitation:
    """Answers what one server asks during one call."""

    def __init__(self, source: str, tool: str, ask: Ask, secrets: Secrets) -> None:
        self._source, self._tool = source, tool
        self._ask = ask
        self._secrets = secrets
        self._left = MAX_QUESTIONS
        self._lock = anyio.Lock()

    async def answer(self, params: Any) -> Any:
        """The result for the server: `accept` with what the user said, `decline`, or `cancel`."""
        from mcp_types import ElicitResult

        self._left -= 1
        if self._left < 0:
            return ElicitResult(action="decline")
        async with self._lock:  # a server may ask several things at once
            try:
                return await self._answer(params)
            except ToolRefused:  # nobody can be asked
                return ElicitResult(action="cancel")

    async def _answer(self, params: Any) -> Any:
        from mcp_types import ElicitResult

        message = self._plain(params.message)
        intro = ASKS.format(source=self._source, tool=self._tool, message=message)
        if params.mode == "url":
            text = OPEN.format(url=plain_line(params.url, MAX_TEXT), decline=DECLINE)
            said = await self._ask(Question(f"{intro}\n{text}", ("done", DECLINE)))
            return ElicitResult(action="accept" if said.strip().lower() == "done" else "decline")
        schema = params.requested_schema
        fields = schema.get("properties") if isinstance(schema, Mapping) else None
        required = schema.get("required") if isinstance(schema, Mapping) else None
        content = await self._ask_fields(intro, fields or {}, required or [])
        return (
            ElicitResult(action="decline")
            if content is None
            else ElicitResult(action="accept", content=content)
        )

    async def _ask_fields(
        self, intro: str, fields: Mapping[str, Any], required: list[str]
    ) -> dict[str, Any] | None:
        """The value of each field; None if the user declines."""
        if not fields:
            said = await self._ask(Question(intro, ("yes", DECLINE)))
            return None if said.strip().lower() == DECLINE else {}
        if len(fields) > MAX_FIELDS:
            return None
        content: dict[str, Any] = {}
        for name, field in fields.items():
            problem = ""
            while True:
                said = await self._ask(self._question(intro, name, field, problem))
                if said.strip().lower() == DECLINE:
                    return None
                if not said.strip() and "default" in field:
                    content[name] = field["default"]
                    break
                if not said.strip() and name not in required:
                    break
                value, wrong = _value(said[:MAX_ANSWER].strip(), field)
                if not wrong:
                    content[name] = value
                    break
                if problem:  # asked twice
                    return None
                problem = f"({wrong})\n"
        return content

    def _question(self, intro: str, name: str, field: Mapping[str, Any], problem: str) -> Question:
        title, text = field.get("title") or name, field.get("description")
        label = self._plain(f"{title}: {text}" if text else str(title))
        kind = f" ({field.get('type', 'string')})"
        default = f"; empty: {plain_line(str(field['default']), 100)}" if "default" in field else ""
        body = FIELD.format(label=label, kind=kind, default=default, decline=DECLINE)
        return Question(f"{intro}\n{problem}{body}", (*_options(field), DECLINE))

    def _plain(self, text: str) -> str:
        return plain_line(self._secrets.hide(text), MAX_TEXT)


def _options(field: Mapping[str, Any]) -> tuple[str, ...]:
    if field.get("type") == "boolean":
        return ("yes", "no")
    return tuple(plain_line(str(each), 100) for each in _choices(field)[:10])


def _choices(field: Mapping[str, Any]) -> list[Any]:
    """The values that a field can have, of the forms that the protocol knows."""
    items = field.get("items")
    if isinstance(items, Mapping):
        return _choices(items)
    if isinstance(found := field.get("enum"), list):
        return found
    for key in ("oneOf", "anyOf"):
        if isinstance(found := field.get(key), list):
            return [each.get("const") for each in found if isinstance(each, Mapping)]
    return []


def _value(said: str, field: Mapping[str, Any]) -> tuple[Any, str]:
    """What the user said as a value of the field, or what is wrong with it."""
    kind, choices = field.get("type"), _choices(field)
    if kind == "array":
        parts = [part.strip() for part in said.split(",") if part.strip()]
        wrong = [part for part in parts if choices and part not in choices]
        return parts, f"{wrong[0]} is none of the choices" if wrong else ""
    if choices:
        return said, "" if said in choices else "that is none of the choices"
    if kind == "boolean":
        known = {"yes": True, "true": True, "no": False, "false": False}
        return known.get(said.lower()), "" if said.lower() in known else "answer yes or no"
    if kind in ("integer", "number"):
        try:
            return (int(said) if kind == "integer" else float(said)), ""
        except ValueError:
            return None, f"that is no {kind}"
    return said, ""
