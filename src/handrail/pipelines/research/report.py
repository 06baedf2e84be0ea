"""The report: the answer, then sections with their sources, then the evidence; and `answer.json`."""

import json
import re
from collections.abc import Iterable
from typing import Any
from urllib.parse import quote

from msgspec.structs import replace

from handrail.engine.pipeline import Change, Output, StepContext
from handrail.knowledge.checks.number_words import with_digits
from handrail.knowledge.checks.statements import coverage, read_statement
from handrail.knowledge.words import stems
from handrail.pipelines.agent_file import AnyOutput, Texts, look_up
from handrail.pipelines.call_results import call_refusal
from handrail.pipelines.research.depth import read_question
from handrail.pipelines.research.labels import Labelled, Section, Sentence, Source
from handrail.pipelines.research.retrieve import FoundSources, WebResults, sources_of
from handrail.pipelines.research.verify import labelled_of
from handrail.pipelines.steps import NOT_SEEN_REASONS, escape_markdown
from handrail.protocol.values import Value, to_dict

FOLDER = "reports"
MAX_SLUG, MAX_QUESTION = 48, 300
KEPT_BYTES, KEPT_CLAIMS = 48_000, 20
BREAKS_LINK = re.compile(r"[<>\\\s\x00-\x1f]")
MIN_SHARED = 0.5
"""Of the question's words. With less, and a model that says no, an answer is about something else."""
DOUBTED = "a model doubts that this answers the question"
NO_ANSWER = "The documents do not answer this."
NOT_VERIFIED = "**Not verified.** What failed:"


class ReportOptions(Value):
    sources: FoundSources
    checked: AnyOutput  # a field of the stage that checked the draft
    judged: Texts = ""  # whether it tells what was asked: `yes` or `no`
    web: WebResults = ""
    earlier: AnyOutput = ""
    """What it kept of earlier answers."""


async def report(options: ReportOptions, work: StepContext) -> Output:
    """The report and the answer as data, both written into the workspace; and what a follow-up can use."""
    found, checked = (work.outputs[each.split(".")[0]] for each in (options.sources, options.checked))
    question = " ".join(read_question(work.question).question.split())
    sources = {each.label: each for each in sources_of(found["sources"])}
    doubted = bool(options.judged) and look_up(work.outputs, options.judged) == ["no"]
    answer = _answer(question, work, found, checked, sources, doubted=doubted)
    folder = f"{FOLDER}/{_slug(question)}"
    notes = [str(work.outputs[options.web.split(".")[0]]["note"])] if options.web else []
    written = report_text(answer, notes, "../" * len(folder.split("/")))
    texts = {"report.md": written, "answer.json": json.dumps(answer, ensure_ascii=False, indent=2) + "\n"}
    problem = await _write({f"{folder}/{name}": text for name, text in texts.items()}, work)
    end = f"Not written to files: {problem}" if problem else f"Written to {folder}/report.md and answer.json."
    before = look_up(work.outputs, options.earlier) if options.earlier else []
    return {
        "report": f"{report_text(answer, notes)}\n{end}\n",
        "answers": _kept([*before, _to_keep(answer)] if answer["answered"] else before),
        "path": "" if problem else f"{folder}/report.md",
        "problem": problem,
    }


def _answer(
    question: str,
    work: StepContext,
    found: Output,
    checked: Output,
    sources: dict[str, Source],
    *,
    doubted: bool,
) -> dict[str, Any]:
    labelled = labelled_of(checked)
    about_it = not doubted or _shares_words(question, labelled)
    if not about_it:
        labelled = _without_support(labelled)
    sections = [_section(each, sources) for each in labelled.sections]
    sections = [each for number, each in enumerate(sections) if each["claims"] or number == 0]
    used = {cited["label"] for each in sections for claim in each["claims"] for cited in claim["sources"]}
    answered = any(each["claims"] for each in sections)
    return {
        "question": question,
        "depth": read_question(work.question).depth.name,
        "answered": answered,
        "verified": answered and checked["verified"] and not doubted,
        "scores": checked["scores"],
        "failed": [*checked["failed"], *([DOUBTED] if doubted else [])],
        "sections": sections,
        "sources": [
            {
                "label": each.label,
                "place": each.place,
                "link": each.link,
                "paragraph": each.paragraph,
                "document": each.document,
            }
            for each in sources.values()
            if each.label in used
        ],
        "left_out": [{"text": each.text, "why": each.problem} for each in labelled.unsupported],
        "searched": found["searched"],
        "reused": found["reused"],
        "missing": found["missing"],
    }


def _shares_words(question: str, labelled: Labelled) -> bool:
    """Whether the answer and its quotes have half of the question's words."""
    supported = [each for each in labelled.sentences if each.passages]
    said = [each.text for each in supported] + [one.quote for each in supported for one in each.passages]
    return coverage(read_statement(question), frozenset(stems(with_digits(" ".join(said))))) >= MIN_SHARED


def _without_support(labelled: Labelled) -> Labelled:
    """The same with every sentence left out."""

    def left_out(each: Sentence) -> Sentence:
        return Sentence(each.text, problem=each.problem or "It does not answer the question.")

    sections = (
        replace(section, sentences=tuple(map(left_out, section.sentences))) for section in labelled.sections
    )
    return replace(labelled, sections=tuple(sections))


def _section(section: Section, sources: dict[str, Source]) -> dict[str, Any]:
    claims = [each for each in section.sentences if each.passages]
    return {
        "title": section.title,
        "claims": [
            {
                "text": each.text,
                "sources": [to_dict(one) for one in each.passages],
            }
            for each in claims
        ],
    }


def report_text(answer: dict[str, Any], notes: Iterable[str] = (), up: str = "") -> str:
    """The report in Markdown. `up` leads from its file to the workspace, for links."""
    lines = [f"# {escape_markdown(answer['question'])}", ""]
    if not answer["answered"]:
        lines += [NO_ANSWER, ""]
    elif not answer["verified"]:
        lines += [f"> {NOT_VERIFIED}", *(f"> - {escape_markdown(each)}" for each in answer["failed"]), ""]
    links = {each["label"]: _link(each, up) for each in answer["sources"]}
    for section in answer["sections"]:
        lines += [f"## {escape_markdown(section['title'])}", ""] if section["title"] else []
        lines += [" ".join(map(_claim, section["claims"])), ""] if section["claims"] else []
        used = dict.fromkeys(each["label"] for claim in section["claims"] for each in claim["sources"])
        lines += [f"- [{label}] {links[label]}" for label in used]
        lines += [""] if used else []
    if answer["answered"]:
        lines += ["## Evidence", ""]
        quotes = {
            (each["label"], " ".join(each["quote"].split()), each["line"]): None
            for section in answer["sections"]
            for claim in section["claims"]
            for each in claim["sources"]
        }
        lines += [
            f'- [{label}] "{escape_markdown(quote)}"{f" (line {line})" if line else ""}'
            for label, quote, line in quotes
        ]
        lines += [""]
    if answer["left_out"]:
        lines += ["## Left out", ""]
        lines += [
            f"- {escape_markdown(each['text'])} ({escape_markdown(each['why'].rstrip('.'))})"
            for each in answer["left_out"]
        ]
        lines += [""]
    return "\n".join([*lines, *_footer(answer, notes)]) + "\n"


def _claim(claim: dict[str, Any]) -> str:
    labels = "".join(f"[{each['label']}]" for each in claim["sources"])
    text = claim["text"]
    end = text[-1] if text[-1] in ".!?" else ""
    return f"{escape_markdown(text.removesuffix(end))} {labels}{end}"


def _link(source: dict[str, Any], up: str) -> str:
    place, link = escape_markdown(source["place"]), source["link"]
    if not link:
        return place
    # The address of a web page may be made to end the link and go on as text of the report.
    link = BREAKS_LINK.sub(lambda found: quote(found[0]), link)
    relative = "://" not in link and not link.startswith("/")
    # The page leads to the paragraph that the title names; elsewhere the address is what counts.
    title = f' "{source["paragraph"]}"' if source["paragraph"] else ""
    return f"[{place}](<{up if relative else ''}{link}>{title})"


def _footer(answer: dict[str, Any], notes: Iterable[str]) -> list[str]:
    scores = answer["scores"]
    lines = [
        f"Depth {answer['depth']}. Checked by code: citations {scores['citations']:.2f}, names and numbers "
        f"{scores['entities']:.2f}, relations {scores['relations']:.2f}, "
        f"contradictions {scores['contradictions']}."
    ]
    if answer["missing"]:
        lines.append(f"Nothing was found for: {escape_markdown('; '.join(answer['missing']))}")
    return [*lines, *(" ".join(each.split()) for each in notes if each)]


async def _write(texts: dict[str, str], work: StepContext) -> str:
    """Write the files, all or none; why not, if so."""
    changes = [Change("write", {"path": path, "text": text}) for path, text in texts.items()]
    ends = await work.change_together(changes)
    refusals = [call_refusal(end) for end in ends]
    if any(
        each.reason in NOT_SEEN_REASONS for each in refusals
    ):  # a file is only replaced by who has read it
        for path in texts:
            await work.call("read", {"path": path})
        ends = await work.change_together(changes)
        refusals = [call_refusal(end) for end in ends]
    problems = [each.message for each in refusals if each.message and each.reason != "no_change"]
    return problems[0] if problems else ""


def _slug(question: str) -> str:
    words = re.findall(r"[a-z0-9]+", question.lower())
    slug = ""
    for word in words:
        if len(slug) + len(word) > MAX_SLUG:
            break
        slug = f"{slug}-{word}".strip("-")
    return slug or "question"


def _to_keep(answer: dict[str, Any]) -> dict[str, Any]:
    """What a follow-up can use of an answer: its claims with their quotes."""
    places = {each["label"]: each for each in answer["sources"]}
    claims = [
        {
            "claim": claim["text"],
            "quote": each["quote"],
            **{name: places[each["label"]][name] for name in ("place", "link", "paragraph", "document")},
        }
        for section in answer["sections"]
        for claim in section["claims"]
        for each in claim["sources"][:1]
        if each["label"][0] != "W"
    ]
    return {
        "question": answer["question"][:MAX_QUESTION],
        "searched": answer["searched"],
        "claims": claims[:KEPT_CLAIMS],
    }


def _kept(answers: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The latest answers that fit, one for each question."""
    latest = {each["question"]: each for each in answers}
    kept: list[dict[str, Any]] = []
    left = KEPT_BYTES
    for each in reversed(latest.values()):
        left -= len(json.dumps(each, ensure_ascii=False).encode())
        if left < 0:
            break
        kept.insert(0, each)
    return kept
