"""`python -m bench.research`: the research agent on the example collection, with any model."""

import argparse
import json
import os
import shutil
import statistics
import tempfile
import time
from pathlib import Path
from typing import Any, NamedTuple

import anyio

from handrail.app.app import App, Options, open_app
from handrail.app.extensions.knowledge import add, opened_base
from handrail.protocol.commands import SendMessage
from handrail.protocol.events import Recorded, TurnFinished

ROOT = Path(__file__).parent.parent
COLLECTION = ROOT / "examples" / "knowledge"
EVERY = 20
"""Of the 200 questions of the collection, each so-manieth."""
NO_ANSWER = ("How many moons does Jupiter have?", "What does a ferryman earn in a winter?")
"""No document says this; the second is about things that they know."""
DEADLINE = 1_800.0


class Asked(NamedTuple):
    question: str
    quote: str
    """The sentence that answers it; empty if none does."""


class Result(NamedTuple):
    answer: dict[str, Any]
    """As in `answer.json`; empty where the run ended without one."""
    reason: str
    seconds: float
    tokens: int
    usd: float | None
    detail: str


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.research", description=__doc__)
    parser.add_argument("--model", default="", help="as connection/name; else the one that is set")
    parser.add_argument("--depth", default="quick", choices=("quick", "standard", "deep"))
    parser.add_argument("--only", type=int, default=0, help="the first so many questions")
    options = parser.parse_args()
    rows = [json.loads(line) for line in (COLLECTION / "questions.jsonl").read_text().splitlines()]
    asked = [Asked(question, "") for question in NO_ANSWER]
    asked += [Asked(row["question"], row["quote"]) for row in rows[::EVERY]]
    asked = asked[: options.only or len(asked)]
    with tempfile.TemporaryDirectory() as folder:
        anyio.run(run, Path(folder), asked, options.depth, options.model)


async def run(folder: Path, asked: list[Asked], depth: str, model: str) -> None:
    """Ask each question in a session of its own, and print what came of it."""
    workspace = folder / "work"
    shutil.copytree(COLLECTION, workspace / "docs", ignore=shutil.ignore_patterns("*.jsonl"))
    texts = [" ".join(each.read_text().split()) for each in sorted((workspace / "docs").glob("*.md"))]
    with opened_base(workspace, "workspace") as base:
        with base.writing():
            await add(base, [str(workspace / "docs")])
            base.embed()
        print(f"{base.status().paragraphs} paragraphs. {base.status().note}".rstrip(), flush=True)
    print("| question | outcome | claims | seconds | tokens |\n| --- | --- | ---: | ---: | ---: |")
    results, claims, lost = list[Result](), 0, 0
    right = refused = 0
    async with open_app(Options(workspace=workspace, model=model, mode="edit"), os.environ) as app:
        for each in asked:
            result = await ask(app, workspace, each.question, depth)
            results.append(result)
            said = [claim for part in result.answer.get("sections", ()) for claim in part["claims"]]
            quotes = [" ".join(one["quote"].split()) for claim in said for one in claim["sources"]]
            claims += len(said)
            lost += sum(not any(quote in text for text in texts) for quote in quotes)
            lost += sum(not claim["sources"] for claim in said)
            hit = bool(each.quote) and any(each.quote in quote or quote in each.quote for quote in quotes)
            right += hit
            refused += (
                not each.quote and not said and result.reason in ("answered", "failed") and result.tokens > 0
            )
            outcome = (
                "refused" if not said else "answered by the right sentence" if hit else "another sentence"
            )
            outcome += "" if result.answer.get("verified", True) or not said else ", not verified"
            outcome += "" if result.reason == "answered" else f" ({result.reason}: {result.detail[:80]})"
            print(
                f"| {each.question} | {outcome} | {len(said)} | {result.seconds:.0f} | {result.tokens:,} |",
                flush=True,
            )
            for claim in said:
                print(f"<!-- {claim['text']} -->")
    wanted = sum(bool(each.quote) for each in asked)
    costs = [result.usd for result in results]
    known = [cost for cost in costs if cost is not None]
    print(
        f"\n{right} of {wanted} answered by the right sentence; {refused} of {len(asked) - wanted} without "
        f"an answer refused\n{claims} claims delivered, {lost} without a quote that is in a document\n"
        f"{statistics.median(result.seconds for result in results):.0f} s a question (median), "
        f"{sum(result.tokens for result in results) // len(results):,} tokens, "
        f"{f'${sum(known):.4f} in all' if len(known) == len(costs) else 'price not known'}"
    )


async def ask(app: App, workspace: Path, question: str, depth: str) -> Result:
    """Ask in a new session, and go on at every pause."""
    session = app.new_session()
    seen, began = 0, time.monotonic()
    tokens, usd, text = 0, 0.0, f"@research {depth}: {question}"
    ended: TurnFinished | None = None
    shutil.rmtree(workspace / "reports", ignore_errors=True)
    while ended is None or ended.reason == "waiting":
        await app.send(session, SendMessage(text=text))
        with anyio.fail_after(DEADLINE):
            async for item in app.follow(session, seen):
                if isinstance(item, Recorded):
                    seen = item.seq
                    if isinstance(item.event, TurnFinished):
                        ended = item.event
                        tokens += ended.usage.input_tokens + ended.usage.output_tokens
                        usd += ended.cost_usd or 0.0
                        text = "1"
                        break
    found = next((workspace / "reports").glob("*/answer.json"), None)
    answer = json.loads(found.read_text()) if found else {}
    cost = usd if ended.cost_usd is not None else None
    return Result(answer, ended.reason, time.monotonic() - began, tokens, cost, ended.detail)


if __name__ == "__main__":
    main()
