"""Forks for a test: `python -m tests.forking MODULE AHEAD...`; each child calls `MODULE.forked(words)`.

A line of standard input is a list of words in JSON, for a child, or empty: its end was seen.
"""

import json
import os
import sys
from importlib import import_module
from typing import Any

PID, END = b"\0pid ", b"\0end\n"


def main(module: str, *ahead: str) -> None:
    for name in ahead:
        import_module(name)
    forked = import_module(module).forked
    for line in sys.stdin:
        child = os.fork()
        if child == 0:
            begin(forked, json.loads(line))
        os.waitid(
            os.P_PID, child, os.WEXITED | os.WNOWAIT
        )  # it keeps its number until the test lets go of it
        os.write(1, END)
        sys.stdin.readline()
        os.waitpid(child, 0)


def begin(forked: Any, words: list[str]) -> None:
    try:
        os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
        os.write(1, PID + b"%d\n" % os.getpid())
        forked(words)
    finally:
        sys.stdout.flush()
        os._exit(1)


if __name__ == "__main__":
    main(*sys.argv[1:])
