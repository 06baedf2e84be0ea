"""Steps of code that agents in folders can name. What they do to the world are calls, through the gate."""

import re
from typing import Annotated

from pydantic import AfterValidator, Field

from handrail.engine.pipeline.definition import Output, Step, Work
from handrail.pipelines.calls import squeezed, why_not
from handrail.pipelines.gathering import MostCharacters, MostPassages, Pattern, Sought, gathered
from handrail.pipelines.registered import Findings, Registered, Sources, Texts, looked_up
from handrail.protocol.values import Value

MARKUP = re.compile(
    r"[\\`*\[\]<>~|@]|(?<![^\W_])_|_(?![^\W_])|&(?=#?\w+;)|:(?=//)|(?<=\bwww)\.", re.IGNORECASE
)
"""What means something in the middle of a line; addresses become links by themselves."""
LINE_START = re.compile(r"^(\d*)([#+\-=.)])")
UNSEEN = ("no_hash", "stale_file", "file_exists")


def relative(path: str) -> str:
    """The path, where it can only lead to a file of the workspace."""
    parts = path.split("/")
    if path.startswith(("/", "~")) or "\\" in path or "\0" in path or not {"", ".", ".."}.isdisjoint(parts):
        raise ValueError("should be a path below the workspace, such as reports/report.md")
    return path


class Gathering(Value):
    files: Annotated[tuple[Pattern, ...], Field(min_length=1, max_length=10)]
    """Which documents, such as `docs/**/*.md`."""
    questions: Texts = ""
    """What is sought, such as `analyse.questions`; the user's question where nothing is said."""
    most: MostPassages = 8
    characters: MostCharacters = 6_000


class Citing(Value):
    findings: Findings
    """Items with a `claim` and a `quote`."""
    passages: Sources
    title: str = ""
    """The user's question where nothing is said."""


class Writing(Value):
    path: Annotated[str, Field(min_length=1, max_length=400), AfterValidator(relative)]
    text: Texts


def gather(options: Gathering) -> Step:
    """Passages of the workspace's documents, with their exact text and lines."""

    async def step(work: Work) -> Output:
        named = looked_up(work.outputs, options.questions) if options.questions else [work.question]
        questions = tuple(squeezed(each) for each in named)
        # The user's own words as well: a small model's questions can lead away from them.
        asked = dict.fromkeys([squeezed(work.question), *questions, *map(squeezed, work.feedback)])
        sought = Sought(tuple(asked), questions, options.files, options.most, options.characters)
        return await gathered(work, sought)

    return step


def cite(options: Citing) -> Step:
    """A report in Markdown in which every claim has its quote and its source; of theirs nothing is markup."""

    async def step(work: Work) -> Output:
        passages = [
            (f"{each.get('path', '')}, lines {each.get('lines', '')}", squeezed(each.get("text", "")))
            for each in looked_up(work.outputs, options.passages)
        ]
        sources: list[str] = []
        lines = [f"# {as_text(options.title or work.question)}", ""]
        for finding in looked_up(work.outputs, options.findings):
            claim, quote = (squeezed(finding.get(name, "")) for name in ("claim", "quote"))
            source = next((name for name, text in passages if quote and quote in text), "")
            if source and source not in sources:
                sources.append(source)
            mark = sources.index(source) + 1 if source else "no source"
            lines += [f"- {as_text(claim)} [{mark}]", f'  > "{as_text(quote)}"', ""]
        told = (f"{number}. {as_text(source)}" for number, source in enumerate(sources, 1))
        return {"report": "\n".join([*lines, "## Sources", "", *told]) + "\n", "sources": sources}

    return step


def as_text(said: object) -> str:
    """Words of others in Markdown that shows them as they are: no link, no picture, no number of a source."""
    escaped = MARKUP.sub(r"\\\g<0>", squeezed(said))
    return LINE_START.sub(r"\1\\\2", escaped)


def write_file(options: Writing) -> Step:
    """Write a text into a file of the workspace; whether it was, and why not."""

    async def step(work: Work) -> Output:
        text = "\n".join(str(part) for part in looked_up(work.outputs, options.text))
        if not text.strip():
            return {"path": options.path, "written": False, "problem": f"{options.text} is empty."}
        wanted = {"path": options.path, "text": text}
        end = await work.call("write", wanted)
        if why_not(end)[0] in UNSEEN:  # what is there is only replaced as it was seen
            await work.call("read", {"path": options.path})
            end = await work.call("write", wanted)
        reason, problem = why_not(end)
        written = end.ok or reason == "no_change"
        return {"path": options.path, "written": written, "problem": "" if written else problem}

    return step


TEXT = {"type": "string"}
LIST = {"type": "array", "items": TEXT}
PASSAGE = {"type": "object", "properties": dict.fromkeys(("id", "path", "lines", "text"), TEXT)}
STEPS: dict[str, Registered[Step]] = {
    "gather": Registered(
        Gathering,
        gather,
        "passages of documents, with exact text and lines",
        {"passages": {"type": "array", "items": PASSAGE}, "missing": LIST},
    ),
    "cite": Registered(
        Citing, cite, "a report with a source for every claim", {"report": TEXT, "sources": LIST}
    ),
    "write_file": Registered(
        Writing,
        write_file,
        "a file of the workspace, through the gate",
        {"path": TEXT, "written": {"type": "boolean"}, "problem": TEXT},
    ),
}
