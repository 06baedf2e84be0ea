"""`python -m bench.intents`: the embedded model in a workspace with intents, from refusal to blame.

It is refused, selects the intent, writes inside of its scope, is refused outside, asks for scope, gets it and
writes; then `handrail trace blame` names the intent.
Says what happened, and ends with 1 where a step is missing.
"""

import subprocess
import sys
import tempfile
import time
from pathlib import Path

import anyio

from handrail.app.app import App, Options, open_app
from handrail.protocol.commands import AnswerApproval, SendMessage
from handrail.protocol.events import (
    ApprovalAsked,
    ChangeApplied,
    ChangePrepared,
    Event,
    IntentSelected,
    Recorded,
    ToolFinished,
    TurnFinished,
)

INTENTS = """intents:
  - id: CART
    name: Totals of the shopping cart
    owned_scope: [src/**]
  - id: DOCS
    name: Documentation for users
    owned_scope: [docs/**]
"""
CODE = 'def total(prices):\n    """What all of it costs."""\n    return sum(prices)\n'
MESSAGES = (
    "Add a function average(prices) to src/totals.py.",
    "Write a file tools/show.py that prints the total of 1, 2 and 3.",
)
EXPECTED = [
    "write: missing_intent_id",
    "intent: CART",
    "write: ok",
    "changed: src/totals.py for CART",
    "write: scope_violation",
    "asked: request_scope for CART",
    "intent: CART",
    "write: ok",
    "changed: tools/show.py for CART",
]


def main() -> int:
    began = time.monotonic()
    with tempfile.TemporaryDirectory() as folder:
        work = Path(folder)
        for name, text in (("src/totals.py", CODE), (".orchestration/active_intents.yaml", INTENTS)):
            (work / name).parent.mkdir()
            (work / name).write_text(text)
        steps = anyio.run(talk, work)
        blame = [blamed(work, name) for name in ("src/totals.py", "tools/show.py")]
    for text in blame:
        print(text)
    missing = [step for step in EXPECTED if step not in steps]
    missing += ["blame: CART"] * (not all("CART" in text for text in blame))
    print(f"\n{time.monotonic() - began:.0f} s; missing: {', '.join(missing) or 'nothing'}")
    return 1 if missing else 0


async def talk(work: Path) -> list[str]:
    steps: list[str] = []
    async with open_app(Options(work, mode="edit", model="embedded/qwen2.5-coder-1.5b")) as app:
        session, after = app.new_session(), 0
        for words in MESSAGES:
            print(f"\n> {words}", flush=True)
            await app.send(session, SendMessage(text=words))
            async for item in app.follow(session, after):
                if isinstance(item, Recorded):
                    after = item.seq
                    steps += told(item.event)
                    await answer(app, session, item.event)
                    if isinstance(item.event, TurnFinished):
                        print(f"  {item.event.reason} in {item.event.seconds:.0f} s", flush=True)
                        break
    return steps


async def answer(app: App, session: str, event: Event) -> None:
    """The user says yes."""
    if isinstance(event, ApprovalAsked):
        await app.send(session, AnswerApproval(approval_id=event.approval_id, decision="once"))


def told(event: Event) -> list[str]:
    """What happened, as one of the expected steps."""
    steps: list[str] = []
    match event:
        case ToolFinished():
            steps = [f"{event.tool}: {event.error.reason if event.error else event.status}"]
        case IntentSelected():
            steps = [f"intent: {event.intent_id}"]
        case ApprovalAsked():
            steps = [f"asked: {event.tool} for {event.intent}"]
        case ChangePrepared():
            steps = [f"changed: {file.path} for {event.intent_id}" for file in event.files]
        case ChangeApplied() | _:
            pass
    for step in steps:
        print(f"  {step}", flush=True)
    return steps


def blamed(work: Path, name: str) -> str:
    words = [sys.executable, "-m", "handrail", "trace", "blame", name]
    done = subprocess.run(words, cwd=work, capture_output=True, text=True, check=False)
    return f"\n$ handrail trace blame {name}\n{done.stdout}{done.stderr}".rstrip()


if __name__ == "__main__":
    sys.exit(main())
