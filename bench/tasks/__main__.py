"""`python -m bench.tasks`: requests over a list of 40 tasks; what the embedded model makes of them.

Counts the proposals that are as expected, apart for the 30 requests that the prompts were written with, for
15 that were read while tuning, and for 15 that nothing was tuned on. Ends with 1 where anything was changed
without the user's word, or where a request that only asks got a proposal: neither depends on the model.
"""

import sys
import tempfile
import time
from pathlib import Path
from typing import Any, NamedTuple

import anyio

from handrail.app.app import App, Options, open_app
from handrail.protocol.commands import SendMessage
from handrail.protocol.events import Recorded, StageCompleted, TurnFinished
from handrail.tasks.dates import read_date
from handrail.tasks.normalise import Clock

SETS = {"requests.txt": "tuned on", "seen.txt": "seen while tuning", "fresh.txt": "not tuned on"}
TITLES = (
    *(
        "Plan the party",
        "Send the invoice",
        "Clean the windows",
        "Order the cake",
        "Oil change",
        "Bike repair",
    ),
    *("Return the library books", "Call the landlord", "Budget review", "Buy paint", "Buy a wedding gift"),
    *("Broken lamp", "Write to grandma", "Sort the photos", "Old newspapers", "Printer ink"),
)
TASKS: list[dict[str, Any]] = [
    {"title": title, "date": f"+{at % 7}" if at % 2 else ""} for at, title in enumerate(TITLES)
]
TASKS += [{"title": f"Chapter {number}", "date": f"+{30 + number}"} for number in range(1, 25)]


class Request(NamedTuple):
    message: str
    expected: list[dict[str, str]]
    """Empty: it only asks."""


def requests(name: str) -> list[Request]:
    found = []
    for line in Path(__file__).with_name(name).read_text(encoding="utf-8").splitlines():
        if line and not line.startswith("#"):
            message, _, wanted = (part.strip() for part in line.partition("|"))
            operations = [] if wanted == "ask" else [_operation(each) for each in wanted.split(" + ")]
            found.append(Request(message, operations))
    return found


def _operation(text: str) -> dict[str, str]:
    op, *fields = (part.strip() for part in text.split(","))
    return {"op": op, **dict(field.split("=", 1) for field in fields)}


def fits(expected: list[dict[str, str]], results: list[dict[str, Any]], clock: Clock) -> bool:
    """Whether exactly the expected operations are proposed, and all are valid."""
    if len(expected) != len(results) or not all(each["valid"] for each in results):
        return False
    return all(
        _holds(name, value, result["op"], clock)
        for wanted, result in zip(expected, results, strict=True)
        for name, value in wanted.items()
    )


def _holds(name: str, value: str, op: dict[str, Any], clock: Clock) -> bool:
    found = op.get(name, "")
    if name == "scheduled_for":
        return bool(found == str(read_date(value, *clock)))
    if name == "recurrence":
        return isinstance(found, dict) and found["type"] == value
    return value in str(found).lower() if name == "title" else str(found) == value


async def proposal(app: App, message: str) -> list[dict[str, Any]]:
    """What is proposed to the user, as `check` has it."""
    session_id = app.new_session()
    results: list[dict[str, Any]] = []
    await app.send(session_id, SendMessage(text=message))
    async for item in app.follow(session_id, 0):
        event = item.event if isinstance(item, Recorded) else None
        if isinstance(event, StageCompleted) and event.stage == "check" and event.output:
            results = event.output["results"]
        elif isinstance(event, TurnFinished):
            break
    return results


class Count(NamedTuple):
    right: int
    total: int
    asked_wrong: int
    """Requests that only ask and got a proposal."""
    seconds: float


async def measure(app: App, wanted: list[Request]) -> Count:
    right = wrong = 0
    began = time.monotonic()
    for message, expected in wanted:
        start = time.monotonic()
        results = await proposal(app, message)
        good = fits(expected, results, app.tasks.clock)
        right += good
        wrong += not expected and bool(results)
        shown = "" if good else f"  {[each['op'] for each in results]}"
        print(f"{'ok  ' if good else 'miss'} {time.monotonic() - start:5.1f} s  {message}{shown}", flush=True)
    return Count(right, len(wanted), wrong, time.monotonic() - began)


async def main() -> int:
    with tempfile.TemporaryDirectory() as folder:
        async with open_app(Options(workspace=Path(folder))) as app:
            app.tasks.apply(TASKS)
            before = app.tasks.as_bytes()
            counts = {words: await measure(app, requests(name)) for name, words in SETS.items()}
            changed = app.tasks.as_bytes() != before
    print()
    for words, count in counts.items():
        print(f"requests {words}: {count.right} of {count.total} as expected, in {count.seconds:.0f} s")
    wrong = sum(count.asked_wrong for count in counts.values())
    print(f"changed without the user's word: {changed}; questions that got a proposal: {wrong}")
    return int(changed or wrong > 0)


if __name__ == "__main__":
    sys.exit(anyio.run(main))
