"""The messages of the protocol, one JSON object a line; nothing else in this process can reach them."""

import asyncio
import json
import os
import stat
from collections.abc import Mapping
from contextvars import ContextVar
from typing import Any

from handrail.protocol.errors import UsageProblem

MAX_MESSAGE = 100_000_000
"""Bytes of one message; a longer line is refused and skipped."""
LAST_SENT: ContextVar[Any] = ContextVar("LAST_SENT", default=None)
"""The id of the last request that this task sent to the client."""
PARSE_ERROR, INVALID_REQUEST = -32700, -32600


class Stdio:
    """The connection to the program that started this one. It answers what is no message by itself."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self._writer = writer

    @classmethod
    async def take_over(cls) -> "Stdio":
        """Use standard input and output for messages alone: what is printed from now on goes to stderr."""
        incoming, outgoing = os.dup(0), os.dup(1)
        for descriptor in (incoming, outgoing):
            if stat.S_ISREG(os.fstat(descriptor).st_mode):
                raise UsageProblem("`handrail acp` talks with an editor over pipes: a file cannot be one.")
        os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
        os.dup2(2, 1)
        loop = asyncio.get_running_loop()
        reader = asyncio.StreamReader(limit=MAX_MESSAGE)
        await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), os.fdopen(incoming, "rb"))
        transport, protocol = await loop.connect_write_pipe(
            lambda: asyncio.streams.FlowControlMixin(loop), os.fdopen(outgoing, "wb")
        )
        return cls(reader, asyncio.StreamWriter(transport, protocol, None, loop))

    async def receive(self) -> dict[str, Any] | None:
        """The next message; None when the client has gone."""
        while True:
            try:
                line = await self._reader.readuntil(b"\n")
            except asyncio.IncompleteReadError:
                return None  # a message that was cut off is none
            except asyncio.LimitOverrunError:
                await self._skip_line()
                await self._refuse(INVALID_REQUEST, f"The message is longer than {MAX_MESSAGE:,} bytes.")
                continue
            except OSError:
                return None
            if not line.strip():
                continue
            try:
                message = json.loads(line)
            except (ValueError, RecursionError) as error:
                await self._refuse(PARSE_ERROR, f"This line is not JSON: {error}.")
                continue
            if problem := _problem(message):
                await self._refuse(INVALID_REQUEST, problem)
            elif not str(message.get("method", "")).startswith("$/"):  # those are optional by definition
                return message  # type: ignore[no-any-return]

    async def send(self, message: Mapping[str, Any]) -> None:
        """Write a message, then wait while the client is behind with reading.

        Messages are written in the order of the calls, before anything is waited for.
        """
        if "method" in message and "id" in message:
            LAST_SENT.set(message["id"])
        # Half of a surrogate pair is escaped in JSON: no text can make this fail.
        self._writer.write(json.dumps(message, separators=(",", ":"), default=str).encode() + b"\n")
        await self._writer.drain()

    async def close(self) -> None:
        self._writer.close()

    async def _skip_line(self) -> None:
        while True:
            try:
                await self._reader.readuntil(b"\n")
            except asyncio.LimitOverrunError as overrun:
                await self._reader.readexactly(overrun.consumed)
            except asyncio.IncompleteReadError:
                return
            else:
                return

    async def _refuse(self, code: int, why: str) -> None:
        await self.send({"jsonrpc": "2.0", "id": None, "error": {"code": code, "message": why}})


def _problem(message: object) -> str:
    """Why this is no message; empty if it is one."""
    if not isinstance(message, dict):
        return "A message is a JSON object; several at once are not supported."
    if "method" in message and not isinstance(message["method"], str):
        return "The method of a message is a string."
    if not isinstance(message.get("id"), str | int | None):
        return "The id of a message is a string or a number."
    if "method" not in message and "result" not in message and "error" not in message:
        return "A message has a method, a result or an error."
    if not isinstance(message.get("error"), dict | None):
        return "The error of an answer is an object."
    return ""
