"""The knowledge base as interfaces see it: values without the rooms below."""

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from msgspec import ValidationError, convert
from msgspec.structs import replace

from handrail.config.layers import load_settings
from handrail.config.places import find_places
from handrail.knowledge import adding
from handrail.knowledge.adding import Added, Labels
from handrail.knowledge.base import (
    EmbeddingModel,
    Filters,
    Hit,
    KnowledgeBase,
    Status,
    Where,
    base_folder,
    has_base,
    place_of,
)
from handrail.knowledge.checks.citation import check_citation
from handrail.knowledge.embeddings import model
from handrail.knowledge.hops import hop
from handrail.knowledge.open import open_base
from handrail.knowledge.ranking import highlights
from handrail.knowledge.toolset import TOOLS, Knowledge
from handrail.protocol.errors import UsageProblem
from handrail.protocol.values import Value
from handrail.storage.knowledge.rows import Document, Paragraph
from handrail.tools.tool import argument_schema

if TYPE_CHECKING:
    from handrail.app.app import App
    from handrail.knowledge.relations import Estimate, Found
    from handrail.models.embedded.download import DownloadProgress
    from handrail.models.model import Request

__all__ = [
    "Added",
    "Document",
    "EmbeddingDownload",
    "EmbeddingModel",
    "Filters",
    "Hit",
    "KnowledgeBase",
    "KnowledgeTools",
    "Labels",
    "Paragraph",
    "SourceState",
    "Status",
    "Where",
    "add",
    "base_problems",
    "check_sources",
    "estimate_relations",
    "existing_bases",
    "find_relations",
    "follow_hops",
    "highlights",
    "hit_row",
    "open_base",
    "opened_base",
    "opened_tools",
    "place_of",
    "verify_citation",
]
add, follow_hops = adding.add, hop


class ToolDescription(NamedTuple):
    name: str
    description: str
    schema: dict[str, Any]


def existing_bases(workspace: Path, environ: Mapping[str, str]) -> list[Where]:
    """Which bases there are; looking makes none."""
    places = find_places(environ)
    owners: tuple[Where, ...] = ("workspace", "user")
    return [where for where in owners if has_base(base_folder(places, workspace, where))]


@contextmanager
def opened_base(
    workspace: Path, where: Where | None = None, environ: Mapping[str, str] = os.environ
) -> Iterator[KnowledgeBase]:
    """The base of the workspace or of the user; see `open_base`."""
    base = open_base(workspace, environ, where)
    try:
        yield base
    finally:
        base.close()


class KnowledgeTools:
    """The tools of one base, as other programs call them."""

    def __init__(self, knowledge: Knowledge) -> None:
        self._knowledge = knowledge

    def specs(self) -> list[ToolDescription]:
        return [
            ToolDescription(tool.name, tool.description, argument_schema(tool.arguments))
            for tool in TOOLS.values()
        ]

    async def call(self, name: str, arguments: dict[str, Any]) -> dict[str, Any]:
        """The answer as plain data; raises UsageProblem for an unknown tool or wrong arguments."""
        tool = TOOLS.get(name)
        if tool is None:
            raise UsageProblem(f"There is no tool {name!r}. There are: {', '.join(TOOLS)}.")
        try:
            given = convert(arguments, tool.arguments)
        except ValidationError as error:
            raise UsageProblem(f"The arguments of {name} are wrong: {error}.") from error
        return await tool.run(self._knowledge, given)


@contextmanager
def opened_tools(workspace: Path, where: Where | None = None) -> Iterator[KnowledgeTools]:
    """The tools of the base of a workspace or of the user."""
    settings = load_settings(find_places(os.environ), workspace, environ=os.environ).settings
    with opened_base(workspace, where) as base:
        yield KnowledgeTools(Knowledge(base, settings.knowledge.web_search))


class EmbeddingDownload:
    """The embedding model as something to download."""

    name = model.WEIGHTS.model
    size = model.SIZE

    def __init__(self, environ: Mapping[str, str] = os.environ) -> None:
        self._environ = environ

    @property
    def missing(self) -> str:
        """What to do before it can be used; empty if nothing."""
        return model.missing_model(self._environ)

    @property
    def missing_libraries(self) -> bool:
        return bool(model.missing_libraries())

    @property
    def downloaded(self) -> int:
        """Bytes of an unfinished download."""
        from handrail.models.embedded.download import downloaded_bytes
        from handrail.models.embedded.model_files import models_folder

        return downloaded_bytes(model.WEIGHTS, models_folder(self._environ))

    def loadable(self) -> EmbeddingModel:
        """The model as a base uses it."""
        return model.embedding_model(self._environ)

    async def download(self, progress: "Callable[[DownloadProgress], None]") -> Path:
        return (await model.fetch_model(self._environ, progress))[0]


async def estimate_relations(app: "App", base: KnowledgeBase) -> "tuple[str, Estimate]":
    """The model that would be asked for relations, and what that sends and costs."""
    from handrail.knowledge.relations import estimate

    reference = (await app.chosen_model()).reference
    return reference, estimate(base, await app.model_pool.named(reference))


async def find_relations(
    app: "App", base: KnowledgeBase, reference: str, most_usd: float | None, told: Callable[[int], None]
) -> "Found":
    """Ask the model about the paragraphs, in a session of its own; credentials in them are hidden."""
    from handrail.engine.host.turn_factory import price
    from handrail.engine.requests.model_requests import SideCall
    from handrail.knowledge.relations import Answer, find_relations

    model = await app.model_pool.named(reference)
    session = app.proposals.open_session("Relations in the knowledge base")
    side = SideCall(session, model, "main", price, effort=app.settings.models.effort.main or None)

    async def ask(request: "Request") -> Answer:
        if not model.capabilities.schema_output:
            request = replace(request, output_schema=None)
        attempt = await side.attempt(request, "relations")
        if attempt.problem:
            raise attempt.problem
        return Answer(attempt.answered.text, attempt.answered.cost_usd)

    try:
        return await find_relations(base, ask, most_usd, app.model_pool.secrets().hide, told)
    finally:
        session.release()


class SourceState(Value):
    """Whether a document's file is as it was when it was added."""

    document: str
    source: str
    state: str
    """`same`, `changed`, `gone` or `not checked`."""


def check_sources(base: KnowledgeBase, documents: Sequence[Document]) -> list[SourceState]:
    """Compare files with what was added; URLs are not fetched."""
    found = []
    for each in documents:
        state = "not checked"
        if "://" not in each.source:
            try:
                state = "same" if adding.file_hash(each.source) == each.sha256 else "changed"
            except OSError:
                state = "gone"
        found.append(SourceState(each.id, each.source, state))
    return found


class Verified(Value):
    """A citation that was checked: in which paragraph the quote is, or what is wrong."""

    ok: bool
    problem: str = ""
    paragraph: str = ""
    place: str = ""


def verify_citation(base: KnowledgeBase, quote: str, paragraph: str, claim: str) -> Verified:
    """Whether a paragraph, or any that a search for the quote finds, has the quote and supports the claim."""
    if paragraph:
        candidates = [base.paragraph(paragraph)]
    else:
        candidates = [(hit.paragraph, hit.document) for hit in base.search(quote, 20)]
    problem = "The quote is in no paragraph, word for word."
    for found, document in candidates:
        check = check_citation(quote, found.text, claim)
        if check.ok:
            return Verified(ok=True, paragraph=found.id, place=place_of(document, found))
        if paragraph or check.start >= 0:
            problem = check.problem
    return Verified(ok=False, problem=problem)


def base_problems(base: KnowledgeBase) -> list[str]:
    """What is wrong with the files of the base; reads all of them."""
    problems = base.store.problems()
    slots = base.store.slots_used()
    if slots and (missing := model.missing_numpy()):
        return [*problems, f"The vectors were not checked: {missing}"]
    empty = base.vectors.empty_slots(slots)
    lost = sum(1 for slot in base.store.by_slots(sorted(empty)))
    if lost:
        problems.append(f"{lost:,} vectors are empty. `handrail kb index --rebuild` makes them again.")
    return problems


def hit_row(hit: Hit, query: str) -> dict[str, Any]:
    """A hit as plain data, with the places of the query's words in its text."""
    paragraph, document = hit.paragraph, hit.document
    return {
        "id": paragraph.id,
        "document": document.id,
        "name": document.name,
        "tier": document.tier,
        "source": document.source,
        "place": hit.place,
        "heading": paragraph.heading,
        "text": paragraph.text,
        "page": paragraph.page,
        "line": paragraph.line,
        "start": paragraph.start,
        "end": paragraph.end,
        "score": round(hit.score, 6),
        "by_words": hit.by_words,
        "by_meaning": hit.by_meaning,
        "highlights": highlights(paragraph.text, query),
    }
