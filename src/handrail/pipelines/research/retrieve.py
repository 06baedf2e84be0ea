"""Find what a question can be answered from: paragraphs of the knowledge base, the web, earlier answers."""

import json
from collections.abc import Iterable, Sequence
from itertools import chain, zip_longest
from pathlib import Path
from typing import Annotated, Any
from urllib.parse import quote

from msgspec import convert
from msgspec.structs import replace

from handrail.engine.pipeline import CallResult, Output, StepContext
from handrail.knowledge.checks.citation import find_quote
from handrail.knowledge.context import CHARACTERS_A_TOKEN, INTRO, as_material
from handrail.knowledge.words import normal_key, stems
from handrail.pipelines.agent_file import AnyOutput, Reference, ReferenceMark, Texts, look_up
from handrail.pipelines.call_results import call_refusal, collapse_whitespace
from handrail.pipelines.research.depth import Depth, read_question
from handrail.pipelines.research.labels import Source
from handrail.protocol.errors import GiveUp
from handrail.protocol.values import Value, to_dict

MAX_WEB, MAX_AGAIN = 5, 500
BEST = 3
"""They go before earlier answers and the web. A model is shown the best last, next to the question."""
SMALL_ROOM, SMALL_SOURCES = 6_000, 4
MAX_HOPS, HOPS_FROM = 10, 5
SAME_QUESTION = 0.8
"""Of a question's words, so many are in an earlier answer that already answers it."""


WebResults = Annotated[
    Reference, ReferenceMark("items with the texts title, url and text", fields=("title", "url", "text"))
]


FoundSources = Annotated[
    Reference, ReferenceMark("what the step retrieve gives", fields=("label", "text", "place"))
]


class WebOptions(Value):
    pass


class RetrieveOptions(Value):
    questions: Texts
    refined: Texts = ""
    """The questions as the web changed them; they take the place of the others."""
    web: WebResults = ""
    earlier: AnyOutput = ""
    """What `report` kept of earlier answers."""


async def search_web(_options: WebOptions, work: StepContext) -> Output:
    """What the web says about the question, to refine the plan; and why nothing, if so."""
    asked = read_question(work.question)
    if not asked.depth.further:
        return {"results": [], "note": f"The web is not searched at the depth {asked.depth.name}."}
    end = await work.call("web_search", {"query": asked.question[:500], "limit": MAX_WEB})
    if not end.ok:
        return {"results": [], "note": f"The web was not searched: {call_refusal(end).message}"}
    found = _read(end) or {}
    results = [{name: each[name] for name in ("title", "url", "text")} for each in found.get("results", ())]
    return {"results": results, "note": found.get("problem", "") if not results else ""}


async def retrieve(options: RetrieveOptions, work: StepContext) -> Output:
    """The sources with their labels, as many as the depth allows, and what nothing was found for."""
    asked = read_question(work.question)
    depth = asked.depth
    named = look_up(work.outputs, options.refined) if options.refined else []
    named = named or look_up(work.outputs, options.questions)
    questions = list(dict.fromkeys(filter(None, map(collapse_whitespace, named))))[: depth.questions]
    earlier, looked_up = await _earlier_answers(work, options.earlier)
    reused = [each for each in questions if normal_key(each) in looked_up]
    # The user's own words as well: a small model's questions can lead away from them.
    new = (each for each in questions if each not in reused)
    sought = list(dict.fromkeys([asked.question, *new, *work.feedback]))
    ranked, missing = list[list[dict[str, Any]]](), list[str]()
    for each in sought:
        rows = await _search(work, each, depth.paragraphs)
        ranked.append(rows)
        if not rows:
            missing.append(each)
    best = {row["id"]: row for row in chain.from_iterable(zip_longest(*ranked)) if row}
    if depth.further and best:
        arguments = {"paragraphs": list(best)[:HOPS_FROM], "limit": MAX_HOPS}
        reached = _read(await work.call("hop_retrieve", arguments)) or {}
        for row in reached.get("results", ()):
            best.setdefault(row["id"], row)
    web = look_up(work.outputs, options.web) if options.web else []
    root = Path(work.workspace.root)
    found = _numbered("S", (_paragraph_source(row, root) for row in best.values()))
    others = _numbered("P", earlier) + _numbered("W", map(_web_source, web))
    sources = [*found[:BEST], *others, *found[BEST:]]
    again = f"The question again: {asked.question[:MAX_AGAIN]}"
    shown, left_out = _fitting(sources, depth, work.input_room - len(again))
    return {
        "sources": [to_dict(each) for each in shown],
        "context": "\n\n".join([INTRO, *map(_as_shown, reversed(shown)), again]) if shown else "",
        "searched": sought,
        "reused": reused,
        "missing": missing,
        "left_out": left_out,
    }


def sources_of(rows: Sequence[Any]) -> tuple[Source, ...]:
    return convert(rows, tuple[Source, ...])


async def _search(work: StepContext, query: str, count: int) -> list[dict[str, Any]]:
    """The paragraphs for one query; fewer, if so many are more than a result of a tool can hold."""
    end = await work.call("hybrid_search", {"query": query[:4_000], "limit": count})
    if not end.ok:
        raise GiveUp(f"The documents cannot be searched: {call_refusal(end).message}")
    return list((_read(end) or {}).get("results", ()))


def _read(end: CallResult) -> dict[str, Any] | None:
    """The answer of a tool; None where it was cut off."""
    try:
        found = json.loads(end.content)
    except ValueError:
        return None
    return found if isinstance(found, dict) else None


async def _earlier_answers(work: StepContext, reference: str) -> tuple[list[Source], set[str]]:
    """Quotes of earlier answers about the same things that still stand in their paragraphs.

    And the questions that were looked up for them.
    """
    asked = set(stems(read_question(work.question).question))
    found, looked_up = dict[tuple[str, str], Source](), set[str]()
    for answer in look_up(work.outputs, reference) if reference else ():
        words = set(stems(answer["question"]))
        if len(asked & words) * 2 < min(len(asked), len(words)):
            continue
        valid = [each for each in answer["claims"] if await _still_there(work, each)]
        if valid:
            looked_up |= {normal_key(each) for each in answer["searched"]}
        for each in valid:
            place = f"{each['place']} (earlier answer to: {answer['question'][:80]})"
            key = each["paragraph"], each["quote"]
            found[key] = Source("", each["quote"], place, each["link"], each["paragraph"], each["document"])
    return list(found.values()), looked_up


async def _still_there(work: StepContext, claim: dict[str, str]) -> bool:
    if not claim["paragraph"]:
        return False
    end = await work.call("get_paragraph", {"id": claim["paragraph"]})
    rows = (_read(end) or {}).get("paragraphs", ()) if end.ok else ()
    return any(find_quote(claim["quote"], row["text"]) for row in rows)


def _numbered(letter: str, sources: Iterable[Source]) -> list[Source]:
    return [replace(each, label=f"{letter}{number}") for number, each in enumerate(sources, 1)]


def _paragraph_source(row: dict[str, Any], root: Path) -> Source:
    # In a text that was made of another format, lines are not those of the file.
    line = 0 if row["page"] or "://" in row["source"] else row["line"]
    return Source("", row["text"], row["place"], _link(row, root), row["id"], row["document"], line)


def _link(row: dict[str, Any], root: Path) -> str:
    """The document at the right place: a line of a text, a page of a PDF; relative in the workspace."""
    source = row["source"]
    page = f"#page={row['page']}" if row["page"] else ""
    if "://" in source:
        return f"{source}{page}"
    path, line = Path(source), f"#L{row['line']}" if row["line"] else ""
    inside = path.relative_to(root) if path.is_relative_to(root) else path
    return f"{quote(inside.as_posix())}{page or line}"


def _web_source(row: dict[str, Any]) -> Source:
    return Source("", row["text"], row["title"], row["url"])


def _fitting(sources: Sequence[Source], depth: Depth, room: int) -> tuple[list[Source], int]:
    """As many sources as fit, whole ones; and how many did not.

    A small model is shown few: it takes any of them for the answer.
    """
    most = SMALL_SOURCES if room < SMALL_ROOM else len(sources)
    left = min(round(depth.tokens * CHARACTERS_A_TOKEN), room) - len(INTRO)
    shown = list[Source]()
    for source in sources:
        size = len(_as_shown(source)) + 2
        if size <= left and len(shown) < most:
            left -= size
            shown.append(source)
    return shown, len(sources) - len(shown)


def _as_shown(source: Source) -> str:
    return as_material(source.label, source.place, source.text)
