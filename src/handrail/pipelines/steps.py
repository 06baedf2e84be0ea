"""Code steps that agents can use: gather passages, cite them, write a file."""

import math
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import zip_longest
from typing import Annotated, NamedTuple

from msgspec import Meta

from handrail.engine.pipeline import Output, StepContext
from handrail.pipelines.agent_file import (
    Findings,
    RegisteredFunction,
    Sources,
    Texts,
    check_below_workspace,
    look_up,
)
from handrail.pipelines.call_results import SearchHit, call_refusal, collapse_whitespace, search_hits
from handrail.pipelines.plan_file import OpenPlanOptions, open_plan
from handrail.protocol.errors import GiveUp
from handrail.protocol.values import Value

Pattern = Annotated[str, Meta(min_length=1, max_length=200, pattern=r"^[^!/~\x00-\x1f][^\x00-\x1f]*$")]

MAX_QUESTIONS, MAX_WORDS = 12, 12  # questions, and words of each that are searched for
LINES_AROUND = 3  # lines before and after a hit that may belong to its paragraph
MAX_GAP, MAX_PASSAGE_LINES = 1, 12  # hits form one passage if they are this close, up to this many lines
WORD = re.compile(r"[^\W_]{3,}")
WORD_ENDING = re.compile(r"(?:ies|es|ed|ing|(?<!s)s|y|e)$")
COMMON_WORDS = frozenset(
    WORD.findall(
        """
    about after again all also and any are because been before being between both but can could did
    does doing document documents done down during each else every few find for from get give goes
    had has have having her here him his how into its just let like look made make many may more
    most much must need nor not now off one only other our out over own please say says see she
    should some step such tell than that the their them then there these they this those through too
    under until use very want was way were what when where which while who whom why will with would
    yes you your
    """
    )
)
PROMPT_FILE = re.compile(r"agents/[^/]+/prompts/")  # prompts of agents are no documents
ROW = re.compile(r"^(\d+)\t(.*)$")


class HitGroup(NamedTuple):
    path: str
    first: int
    last: int
    score: float = 0.0


class Passage(NamedTuple):
    """A paragraph of a file, word for word."""

    path: str
    first: int
    last: int
    text: str

    def overlaps(self, other: "Passage") -> bool:
        return self.path == other.path and self.first <= other.last and other.first <= self.last


async def _hit_groups(work: StepContext, question: str, files: Sequence[str]) -> list[HitGroup]:
    """Where the words of a question are, the best first."""
    words = _words_by_stem(question)
    stems = list(words)
    hits: list[SearchHit] = []
    for pattern in files if stems else ():
        given = {
            "pattern": rf"(?i)\b(?:{'|'.join(re.escape(stem) for stem in stems)})",
            "regex": True,
            "glob": pattern,
            "rows": True,
            "sought": f"{', '.join(words.values())} in {pattern}",
        }
        end = await work.call("search", given)
        if not end.ok:
            raise GiveUp(f"The documents cannot be searched: {call_refusal(end).message}")
        hits += [hit for hit in search_hits(end) if not PROMPT_FILE.match(hit.path)]
    return rank_hit_groups(hits, stems)


def word_stems(question: str) -> list[str]:
    """The words to search for, without their endings."""
    return list(_words_by_stem(question))


def _words_by_stem(question: str) -> dict[str, str]:
    """{word without its ending: word}."""
    found: dict[str, str] = {}
    for word in WORD.finditer(question):
        if len(found) == MAX_WORDS:
            break
        if (small := word[0].lower()) not in COMMON_WORDS:
            found.setdefault(_stem(small), small)
    return found


def _stem(word: str) -> str:
    for _ in range(2):  # crossings, crossing, cross
        short = WORD_ENDING.sub("", word)
        word = short if len(short) >= 4 else word
    return word


def rank_hit_groups(hits: Sequence[SearchHit], stems: Sequence[str]) -> list[HitGroup]:
    """Hits in groups, ranked by how many words they contain and how rare these are."""
    found = {
        hit: [stem for stem in stems if re.search(rf"\b{re.escape(stem)}", hit.text.lower())] for hit in hits
    }
    often = Counter(stem for each in found.values() for stem in each)
    groups = []
    for group in _adjacent_hits(sorted(found)):
        held = {stem for hit in group for stem in found[hit]}
        score = sum(math.log(1 + len(hits) / often[stem]) for stem in held)
        groups.append(HitGroup(group[0].path, group[0].line, group[-1].line, score))
    return sorted(groups, key=lambda group: (-group.score, group.path, group.first))


def _adjacent_hits(hits: Sequence[SearchHit]) -> Iterator[list[SearchHit]]:
    group: list[SearchHit] = []
    for hit in hits:
        near = group and hit.path == group[-1].path and hit.line - group[-1].line <= MAX_GAP
        if group and (not near or hit.line - group[0].line >= MAX_PASSAGE_LINES):
            yield group
            group = []
        group.append(hit)
    if group:
        yield group


def _round_robin(ranked: Sequence[Sequence[HitGroup]]) -> Iterator[HitGroup]:
    """The best group of each question, then the second best, so that no question is left out."""
    taken: list[HitGroup] = []
    for row in zip_longest(*ranked):
        for group in row:
            if group and group._replace(score=0) not in taken:
                taken.append(group._replace(score=0))
                yield group


async def _passage(work: StepContext, group: HitGroup) -> Passage | None:
    start, end_line = max(1, group.first - LINES_AROUND), group.last + LINES_AROUND
    end = await work.call("read", {"path": group.path, "start": start, "end": end_line})
    if not end.ok:
        return None  # the file was deleted since
    rows = {int(row[1]): row[2] for line in end.content.split("\n") if (row := ROW.match(line))}
    first, last = group.first, group.last
    while rows.get(first - 1, "").strip():
        first -= 1
    while rows.get(last + 1, "").strip():
        last += 1
    lines = [rows[number] for number in range(first, last + 1) if number in rows]
    says = any(line.strip() and not line.startswith("#") for line in lines)  # a heading alone says nothing
    return Passage(group.path, first, last, "\n".join(lines)) if says else None


MARKUP = re.compile(
    r"[\\`*\[\]<>~|@]|(?<![^\W_])_|_(?![^\W_])|&(?=#?\w+;)|:(?=//)|(?<=\bwww)\.", re.IGNORECASE
)
"""Markup in the middle of a line; addresses become links by themselves."""
LINE_START = re.compile(r"^(\d*)([#+\-=.)])")
NOT_SEEN_REASONS = ("no_hash", "stale_file", "file_exists")


class GatherOptions(Value):
    files: Annotated[tuple[Pattern, ...], Meta(min_length=1, max_length=10)]  # such as `docs/**/*.md`
    questions: Texts = ""  # questions to search for, such as `analyse.questions`; empty: the user's question
    most: Annotated[int, Meta(ge=1, le=50)] = 8
    characters: Annotated[int, Meta(ge=200, le=60_000)] = 6_000


class CiteOptions(Value):
    findings: Findings  # items with a `claim` and a `quote`
    passages: Sources
    title: str = ""  # empty: the user's question


class WriteOptions(Value):
    path: Annotated[str, Meta(min_length=1, max_length=400)]
    text: Texts
    base: Texts = ""  # the hash of the version that is replaced; a file that is another by then is kept

    def __post_init__(self) -> None:
        check_below_workspace("path", self.path)


async def gather(options: GatherOptions, work: StepContext) -> Output:
    """Passages of documents with their exact text and lines, the best of each question first."""
    named = look_up(work.outputs, options.questions) if options.questions else [work.question]
    questions = [collapse_whitespace(each) for each in named]
    # The user's own words as well: a small model's questions can lead away from them.
    asked = [collapse_whitespace(work.question), *questions, *map(collapse_whitespace, work.feedback)]
    ranked, missing = [], []
    for question in list(dict.fromkeys(asked))[:MAX_QUESTIONS]:
        groups = await _hit_groups(work, question, options.files)
        ranked.append(groups)
        if not groups and question in questions:
            missing.append(question)
    passages: list[Passage] = []
    room = options.characters
    for group in _round_robin(ranked):
        if len(passages) == options.most:
            break
        passage = await _passage(work, group)
        if passage and len(passage.text) <= room and not any(map(passage.overlaps, passages)):
            room -= len(passage.text)
            passages.append(passage)
    shown = [
        {"id": f"P{number}", "path": each.path, "lines": f"{each.first}-{each.last}", "text": each.text}
        for number, each in enumerate(passages, 1)
    ]
    return {"passages": shown, "missing": missing}


async def cite(options: CiteOptions, work: StepContext) -> Output:
    """A report in Markdown with a quote and a source for every claim."""
    passages = [
        (f"{each.get('path', '')}, lines {each.get('lines', '')}", collapse_whitespace(each.get("text", "")))
        for each in look_up(work.outputs, options.passages)
    ]
    sources: list[str] = []
    lines = [f"# {escape_markdown(options.title or work.question)}", ""]
    for finding in look_up(work.outputs, options.findings):
        claim, quote = (collapse_whitespace(finding.get(name, "")) for name in ("claim", "quote"))
        source = next((name for name, text in passages if quote and quote in text), "")
        if source and source not in sources:
            sources.append(source)
        mark = sources.index(source) + 1 if source else "no source"
        lines += [f"- {escape_markdown(claim)} [{mark}]", f'  > "{escape_markdown(quote)}"', ""]
    numbered = (f"{number}. {escape_markdown(source)}" for number, source in enumerate(sources, 1))
    return {"report": "\n".join([*lines, "## Sources", "", *numbered]) + "\n", "sources": sources}


def escape_markdown(text: object) -> str:
    """The text in Markdown that shows it as it is: no link, no picture, no number of a source."""
    escaped = MARKUP.sub(r"\\\g<0>", collapse_whitespace(text))
    return LINE_START.sub(r"\1\\\2", escaped)


async def write_file(options: WriteOptions, work: StepContext) -> Output:
    """Write a text into a file of the workspace; whether it was written, and why not."""
    text = "\n".join(str(part) for part in look_up(work.outputs, options.text))
    if not text.strip():
        return {"path": options.path, "written": False, "problem": f"{options.text} is empty."}
    arguments = {"path": options.path, "text": text}
    if options.base:
        base = "".join(look_up(work.outputs, options.base))
        arguments |= {"base_hash": base} if base else {"only": "create"}
    end = await work.call("write", arguments)
    # A file is only replaced by who has read it.
    if not options.base and call_refusal(end).reason in NOT_SEEN_REASONS:
        await work.call("read", {"path": options.path})
        end = await work.call("write", arguments)
    reason, problem = call_refusal(end)
    written = end.ok or reason == "no_change"
    return {"path": options.path, "written": written, "problem": "" if written else problem}


TEXT = {"type": "string"}
LIST = {"type": "array", "items": TEXT}
PASSAGE = {"type": "object", "properties": dict.fromkeys(("id", "path", "lines", "text"), TEXT)}
PLAN = {"text": TEXT, "hash": TEXT, "archived": TEXT}
STEPS = {
    "gather": RegisteredFunction(
        GatherOptions, gather, {"passages": {"type": "array", "items": PASSAGE}, "missing": LIST}
    ),
    "cite": RegisteredFunction(CiteOptions, cite, {"report": TEXT, "sources": LIST}),
    "write_file": RegisteredFunction(
        WriteOptions, write_file, {"path": TEXT, "written": {"type": "boolean"}, "problem": TEXT}
    ),
    "open_plan": RegisteredFunction(OpenPlanOptions, open_plan, PLAN),
}
