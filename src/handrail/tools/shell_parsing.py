"""Commands are read by shfmt, whose grammar is bash's; what it cannot read is a problem, never a guess."""

import json
import os
import select
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from functools import lru_cache
from pathlib import Path
from typing import Any, TypeVar

from handrail.policy.commands.script import Script, unreadable
from handrail.tools.command_writes import written
from handrail.tools.environment import find_program
from handrail.tools.shell_calls import calls
from handrail.tools.shell_tree import Node, read_tree

SECONDS = 2.0
# The dialect as an option also keeps shfmt from looking for an .editorconfig, which is the workspace's.
OPTIONS = ("--to-json", "--language-dialect=bash")
QUICKER = {"GOMAXPROCS": "1", "GOGC": "off"}
"""It is a Go program that ends before its second thread or its collector would be of use."""
MOST_KEPT = 256
CHUNK = 1 << 16
Found = TypeVar("Found")


class NotBash(Exception):
    """The grammar does not take it."""


def parse(text: str) -> Script:
    """The command read by a shell grammar; its `problem` says why it could not be."""
    return _read(text, lambda program: _parse(text, program), lambda problem: Script(text, problem=problem))


def statements(text: str) -> tuple[Node, ...]:
    """The statements of a script as nodes of shfmt's tree; none where it cannot be read."""
    return _read(text, lambda program: _tree(text, program).get("Stmts", ()), lambda _problem: ())


def _read(text: str, read: Callable[[str], Found], otherwise: Callable[[str], Found]) -> Found:
    """What is found with shfmt; otherwise what stands for the problem."""
    if problem := unreadable(text):
        return otherwise(problem)
    program = find_shfmt()
    if program is None:
        return otherwise("shfmt is missing, so that no command can be read (install shfmt-py)")
    try:
        return read(program)
    except subprocess.TimeoutExpired:
        return otherwise("the command takes too long to read")
    except NotBash:
        return otherwise("the command is not complete or not valid bash")
    except (OSError, ValueError, RecursionError) as error:
        return otherwise(f"the command cannot be read ({type(error).__name__})")


def find_shfmt() -> str | None:
    """The program that came with us, else the first on the PATH."""
    ours = Path(sys.executable).with_name("shfmt")
    return str(ours) if os.access(ours, os.X_OK) else find_program("shfmt")


@lru_cache(maxsize=MOST_KEPT)
def _parse(text: str, program: str) -> Script:
    """The same text is asked about again and again."""
    tree = _tree(text, program)
    return read_tree(text, tree).changed(writes=written(tree), calls=calls(tree))


def _tree(text: str, program: str) -> dict[str, Any]:
    """What shfmt says of the text."""
    with subprocess.Popen(
        [program, *OPTIONS],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        cwd="/",
        env=QUICKER,
    ) as process:
        try:
            output = _answer(process, text.encode())
        except BaseException:
            process.kill()
            raise
    if process.returncode:
        raise NotBash
    tree: dict[str, Any] = json.loads(output)
    return tree


def _answer(process: subprocess.Popen[bytes], question: bytes) -> bytes:
    """All that the program prints.

    Not `communicate`: with a deadline, that looks for the end only every now and then.
    """
    if process.stdin is None or process.stdout is None:
        raise ValueError("the program has no pipes")
    given, printed = process.stdin.fileno(), process.stdout.fileno()
    os.set_blocking(given, False)
    deadline = time.monotonic() + SECONDS
    ready = select.poll()
    ready.register(printed, select.POLLIN)
    ready.register(given, select.POLLOUT)
    output = bytearray()
    while found := ready.poll(max(0.0, deadline - time.monotonic()) * 1000):
        for number, _ in found:
            if number == printed:
                chunk = os.read(printed, CHUNK)
                if not chunk:
                    return bytes(output)
                output += chunk
            else:
                with suppress(BrokenPipeError):
                    question = question[os.write(given, question) :]
                    if question:
                        continue
                ready.unregister(given)
                process.stdin.close()
    raise subprocess.TimeoutExpired(process.args, SECONDS)
