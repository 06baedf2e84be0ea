"""`python -m bench.router`: where sixty messages go by their words, and with a model where these do not say.

`--answers` lets messages that only ask be answered, too, in mode auto, and looks whether a file has changed.
"""

import argparse
import hashlib
import os
import shutil
import tempfile
import time
from collections import defaultdict
from contextlib import aclosing
from pathlib import Path
from typing import NamedTuple

import anyio

from handrail.app.app import App, Options, open_app
from handrail.engine.router.confidence import decide_by_rules
from handrail.engine.router.word_rules import match_rules
from handrail.protocol.commands import Cancel, SendMessage
from handrail.protocol.events import Recorded, Routed, TurnFinished

ROOT = Path(__file__).parents[2]
MESSAGES = Path(__file__).with_name("messages.txt")
ASKED = "a model"
"""Where a message goes of which the words do not say it."""


class Wanted(NamedTuple):
    """A message, and the routes that are right for it; the first is the best."""

    text: str
    routes: tuple[str, ...]


class Went(NamedTuple):
    route: str
    seconds: float = 0.0
    changed: bool = False


def messages() -> list[Wanted]:
    lines = [line for line in MESSAGES.read_text(encoding="utf-8").splitlines() if line and line[0] != "#"]
    parted = (line.partition("|") for line in lines)
    return [Wanted(text.strip(), tuple(routes.split())) for routes, _, text in parted]


def by_words(wanted: Wanted) -> Went:
    decision = decide_by_rules(match_rules(wanted.text))
    return Went(decision.decision if decision else ASKED)


async def with_model(wanted: Wanted, model: str, *, answer: bool) -> Went:
    """Where it goes in a conversation of its own, and whether that changed a file."""
    with tempfile.TemporaryDirectory() as folder:
        work, home = Path(folder, "cart"), Path(folder, "home")
        shutil.copytree(ROOT / "examples" / "cart", work)
        before = content(work)
        environ = {**os.environ, "HANDRAIL_HOME": str(home), "HANDRAIL_AUTO_ROUTE": "on"}
        async with open_app(Options(workspace=work, model=model, mode="auto"), environ) as app:
            began = time.monotonic()
            route = await routed(app, wanted, answer=answer)
        return Went(route, time.monotonic() - began, content(work) != before)


async def routed(app: App, wanted: Wanted, *, answer: bool) -> str:
    session = app.new_session()
    await app.send(session, SendMessage(text=wanted.text))
    route = ""
    async with aclosing(app.follow(session, 0)) as items:
        async for item in items:
            if not isinstance(item, Recorded):
                continue
            match item.event:
                case Routed() as event:
                    route = event.route or "clarify"
                    if not (answer and wanted.routes == ("chat",)):
                        await app.send(session, Cancel())
                case TurnFinished():
                    break
    return route


def content(folder: Path) -> dict[str, str]:
    files = [path for path in folder.rglob("*") if path.is_file()]
    return {str(path.relative_to(folder)): hashlib.sha256(path.read_bytes()).hexdigest() for path in files}


def table(title: str, rows: list[tuple[Wanted, Went]]) -> list[str]:
    """Right, asked about and wrong, by what is right."""
    groups: dict[str, list[tuple[Wanted, Went]]] = defaultdict(list)
    for row in rows:
        groups[row[0].routes[0]].append(row)
    lines = [
        f"| {title} | messages | right | left to a model | wrong |",
        "| --- | ---: | ---: | ---: | ---: |",
    ]
    for name, group in [*groups.items(), ("all", rows)]:
        right = sum(went.route in wanted.routes for wanted, went in group)
        left = sum(went.route == ASKED for _, went in group)
        lines.append(f"| {name} | {len(group)} | {right} | {left} | {len(group) - right - left} |")
    wrong = [each for each in rows if each[1].route not in (*each[0].routes, ASKED)]
    lines += ["", *(f"- went to {went.route}: {wanted.text}" for wanted, went in wrong)]
    changed = [wanted.text for wanted, went in rows if went.changed and wanted.routes[0] == "chat"]
    return [*lines, f"Messages that only ask and changed a file: {len(changed)}.", *changed]


async def measure(model: str, *, answers: bool) -> list[tuple[Wanted, Went]]:
    rows = []
    for wanted in messages():
        open_ = by_words(wanted).route == ASKED
        asks = answers and wanted.routes == ("chat",)
        went = await with_model(wanted, model, answer=answers) if open_ or asks else by_words(wanted)
        rows.append((wanted, went))
        if went.seconds:
            print(f"  {went.seconds:5.1f} s  {went.route:8} {wanted.text}", flush=True)
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.router", description=__doc__)
    parser.add_argument("--model", default="", help="such as embedded; nothing: the words alone")
    parser.add_argument("--answers", action="store_true", help="let questions be answered, too")
    options = parser.parse_args()
    print("\n".join(table("by words", [(each, by_words(each)) for each in messages()])))
    if options.model:
        rows = anyio.run(lambda: measure(options.model, answers=options.answers))
        print("\n".join(table(f"with {options.model}", rows)))


if __name__ == "__main__":
    main()
