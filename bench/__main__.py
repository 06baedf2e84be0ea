"""`python -m bench`: Handrail and the peers that are installed, against a model that answers at once."""

import argparse
import json
import platform
import random
import time
from collections.abc import Callable
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import TypeVar

from bench import (
    changes,
    copies,
    deciding,
    editors,
    following,
    long_session,
    sources,
    subagents,
    tasks_list,
    web_page,
    web_server,
)
from bench.agents import STEADY, Agent, Handrail
from bench.commits import Gap, longest_gap
from bench.figures import Measured, missed, table
from bench.peers import PEERS
from bench.repository import repository
from bench.running import Failed, Place, call_gaps, hello_bytes, one_edit, peak_megabytes, placed, version_ms
from bench.server import Server
from bench.timing import PythonPass, python_pass_ms
from bench.verify import overhead

RESULTS = Path(__file__).parent / "results"
SIZES = (5, 20_000)
Result = TypeVar("Result")
CELL_SECONDS = 45.0
"""An agent that has used so much in a repository is run no further there."""


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench", description=__doc__)
    parser.add_argument("--runs", type=int, default=9, help="rounds; the median counts")
    parser.add_argument("--only", default="", help="agents, with commas between")
    parser.add_argument(
        "--short", action="store_true", help="agents only: no change sets, no session of 10,000 turns"
    )
    options = parser.parse_args()
    agents = wanted(options.only)
    with Server() as server:
        rows = measure(agents, server, options.runs)
        gap = sorted(longest_gap(server) for _ in range(options.runs))[options.runs // 2]
    lines = report(rows, gap)
    print("\n".join(lines), flush=True)
    ours = (
        []
        if options.short
        else [*changes.measure(), *copies.measure(), *overhead.measure(), *long_session.measure()]
    )
    lines += [
        "",
        *(f"{row.name}: {row.milliseconds:.1f} ms, {row.ratio:.2f} times {row.against}" for row in ours),
    ]
    print("\n".join(lines[-len(ours) :] if ours else []), flush=True)
    decision = deciding.measure()
    print(
        f"The gate, a new command: {decision.new:.1f} ms; an edit: {decision.edit:.1f}; wanted are 5.",
        flush=True,
    )
    delay = following.measure()
    print(
        f"A step of a run is seen by a follower after {delay.inside:.1f} ms at most, in another process"
        f" after {delay.outside:.1f}; wanted are 50.",
        flush=True,
    )
    listed = tasks_list.measure()
    print("\n".join(tasks_list.report(listed)), flush=True)
    sourced = sources.measure()
    print("\n".join(sources.report(sourced)), flush=True)
    cancelled = subagents.measure()
    print("\n".join(subagents.report(cancelled)), flush=True)
    in_editor = editors.measure()
    print("\n".join(editors.report(in_editor)), flush=True)
    served = None if options.short else web_server.measure()
    if served:
        print("\n".join(web_server.report(served)), flush=True)
    page = None if options.short else web_page.measure()
    if page:
        print("\n".join(web_page.report(page)), flush=True)
    facts = {
        "at": time.strftime("%Y-%m-%dT%H:%M:%S%z"),
        "machine": platform.platform(),
        "result_to_request": gap._asdict(),
        "command_decision_ms": decision._asdict(),
        "step_to_follower_ms": delay._asdict(),
        "task_list_ms": listed._asdict(),
        "source_call_ms": sourced._asdict(),
        "subagents_cancelled_s": cancelled._asdict(),
        "editors": in_editor._asdict(),
        "server": served and served._asdict() | {"readers": served.readers._asdict()},
        "page": page and page._asdict() | {"tasks": page.tasks._asdict()},
        "agents": [row.facts() for row in rows],
        "handrail": [row._asdict() for row in ours],
    }
    RESULTS.mkdir(exist_ok=True)
    target = RESULTS / time.strftime("%Y%m%dT%H%M%S.json")
    target.write_text(json.dumps(facts, indent=2) + "\n")
    target.with_suffix(".md").write_text("\n".join(lines) + "\n")
    print(f"\nwritten to {target} and, as a table, beside it")


def wanted(only: str) -> list[Agent]:
    """Handrail and the peers that are there; says which are not."""
    names = {name for name in only.split(",") if name}
    if unknown := names - {agent.name for agent in (Handrail(), *PEERS)}:
        raise SystemExit(f"There is no agent {', '.join(sorted(unknown))} here.")
    found: list[Agent] = []
    for agent in (Handrail(), *PEERS):
        if names and agent.name not in names:
            continue
        if agent.installed:
            found.append(agent)
        else:
            print(f"{agent.name}: not installed (python -m bench.peers --install)")
    return found


def measure(agents: list[Agent], server: Server, runs: int) -> list[Measured]:
    """All agents in all repositories, in turns, so that a busy moment is not the bad luck of one."""
    idle = Measured("python -c pass", 0)
    with ExitStack() as stack:
        cells = [
            (Measured(agent.name, files), stack.enter_context(placed(agent, repository(files), server)))
            for files in SIZES
            for agent in agents
        ]
        for row, place in cells:
            attempt(row, "first", partial(one_edit, place))  # fills caches; not counted
        for number in range(runs):
            # In another order every round: what ran before leaves caches and processes behind.
            for row, place in random.Random(number).sample(cells, len(cells)):
                if not row.problems.get("first") and row.seconds < CELL_SECONDS:
                    python = python_pass_ms()
                    idle.add("whole", python.whole, python=python.whole)
                    idle.add("cpu", python.cpu, python=python.cpu)
                    again(row, place, python)
        for row, place in cells:
            once(row, place)
    return [idle, *(row for row, _ in cells)]


def again(row: Measured, place: Place, python: PythonPass) -> None:
    """What is measured in every round."""
    began = time.monotonic()
    if edit := attempt(row, "first", partial(one_edit, place)):
        row.add("first", edit.first, python=python.whole)
        row.add("gap", *edit.gaps, python=python.whole)
        row.add("whole", edit.whole, python=python.whole)
        row.add("cpu", edit.cpu, python=python.cpu)
    if calls := attempt(row, "write", partial(call_gaps, place)):
        for kind, gaps in (("write", calls.writes), ("command", calls.commands)):
            row.add(f"first_{kind}", gaps[0], python=python.whole)
            row.add(kind, *gaps[STEADY:], python=python.whole)
    if place.agent.tells_version and (spent := attempt(row, "version", partial(version_ms, place))):
        row.add("version", spent, python=python.whole)
    row.seconds += time.monotonic() - began


def once(row: Measured, place: Place) -> None:
    """What does not vary from run to run."""
    if row.problems.get("first"):
        return
    words, chat = place.agent.words(place.bed, "hi"), place.agent.chat_words(place.bed, "hi")
    if size := attempt(row, "hi_tools", partial(hello_bytes, place, words)):
        row.add("hi_tools", size)
    if chat and (size := attempt(row, "hi_chat", partial(hello_bytes, place, chat))):
        row.add("hi_chat", size)
    if peak := attempt(row, "memory", partial(peak_megabytes, place)):
        row.add("memory", peak)


def attempt(row: Measured, key: str, action: Callable[[], Result]) -> Result | None:
    """What the action gives; where it fails, the reason is kept and told instead."""
    try:
        return action()
    except Failed as failure:
        row.problems[key] = str(failure)
        print(f"{row.agent}, {row.files:,} files, {key}: {failure}", flush=True)
        return None


def report(rows: list[Measured], gap: Gap) -> list[str]:
    """The table and what it means."""
    lines = ["Medians; times also as multiples of `python -c pass` in the same round.", ""]
    lines += [table(rows), ""]
    taken = f"{gap.milliseconds:.0f} ms with {gap.commits} commits of the log"
    lines.append(f"From a tool's result to the next request: {taken}; wanted are 15 ms and at most 2.")
    lines += [f"Not reached: {sentence}." for sentence in missed(rows)] or ["All that is wanted is reached."]
    return lines


if __name__ == "__main__":
    main()
