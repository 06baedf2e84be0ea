"""`python -m bench.sources`: what a call of a source costs over the bare library, and a start without one.

The same server, in plain Python, is called by the library alone and through Handrail's gate, sandbox and log.
"""

import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable
from functools import partial
from pathlib import Path
from typing import NamedTuple

import anyio

from handrail.app.app import Options, open_app
from handrail.protocol.ids import new_id
from handrail.protocol.values import ToolCall
from tests.tools.calls import open_bench
from tests.tools.sources.places import define, words

CALLS, WANTED = 60, 10.0
LIBRARY = ("mcp", "mcp_types", "pydantic")
START = "import sys; import handrail.app.app, handrail.tools.toolbox; print(*sys.modules)"


class Figures(NamedTuple):
    """Milliseconds of a call, each the median."""

    bare: float
    ours: float
    loaded: tuple[str, ...]
    """Of the library, what a start without a source imports."""


def measure() -> Figures:
    started = subprocess.run([sys.executable, "-c", START], capture_output=True, text=True, check=True)
    modules = set(started.stdout.split())
    loaded = tuple(name for name in LIBRARY if name in modules)
    return Figures(anyio.run(_bare), anyio.run(_ours), loaded)


async def _bare() -> float:
    from mcp import Client, StdioServerParameters

    program, *arguments = words()
    async with Client(StdioServerParameters(command=program, args=arguments), mode="legacy") as client:
        await client.list_tools()
        call = partial(client.call_tool, "echo", {"text": "x"})
        return statistics.median([await _seconds(call) for _ in range(CALLS)]) * 1_000


async def _ours() -> float:
    with tempfile.TemporaryDirectory() as folder:
        home, work = Path(folder, "home"), Path(folder, "work")
        work.mkdir()
        environ = {"HANDRAIL_HOME": str(home), "HOME": folder, "PATH": "/usr/bin:/bin"}
        define(home, tools={"unasked": ["*"]})
        async with open_app(Options(workspace=work), environ) as app:
            bench = open_bench(Path(folder), tools=app._toolbox)
            await bench.call("mcp", source="plain")
            asked = {"source": "plain", "tool": "echo", "arguments": {"text": "x"}}
            taken = []
            for _ in range(CALLS):
                call = bench.wanted(ToolCall(id=new_id("call"), name="mcp", arguments=asked))
                taken.append(await _seconds(partial(bench.gate.run, call, bench.turn_id)))
            bench.session.release()
            bench.session.log.close()
            return statistics.median(taken) * 1_000


async def _seconds(call: Callable[[], Awaitable[object]]) -> float:
    began = time.perf_counter()
    await call()
    return time.perf_counter() - began


def report(found: Figures) -> list[str]:
    added = found.ours - found.bare
    loads = ", ".join(found.loaded) or "nothing"
    return [
        f"A call of a local source: {found.ours:.1f} ms, with the bare library {found.bare:.1f}; {added:.1f} "
        f"are added, wanted are {WANTED:g}. A start without a source imports {loads} of the library."
    ]


if __name__ == "__main__":
    print("\n".join(report(measure())))
