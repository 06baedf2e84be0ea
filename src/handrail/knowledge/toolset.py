"""The tools of the knowledge base: the same for agents inside Handrail and for other programs over MCP."""

from collections.abc import Awaitable, Callable
from typing import Annotated, Any, Literal, NamedTuple

import anyio.to_thread
from msgspec import Meta

from handrail.knowledge.base import TIER_ORDER, Filters, Hit, KnowledgeBase, place_of
from handrail.knowledge.checks.citation import check_citation
from handrail.knowledge.checks.contradictions import find_contradictions
from handrail.knowledge.checks.entities import check_entities
from handrail.knowledge.checks.relations import check_relation, check_relations
from handrail.knowledge.context import INTRO, format_context
from handrail.knowledge.hops import HopTrace, hop
from handrail.knowledge.ranking import highlights
from handrail.knowledge.web_search import search_web
from handrail.protocol.values import Value, to_dict
from handrail.storage.knowledge.rows import Document, Paragraph

Query = Annotated[str, Meta(min_length=1, max_length=4_000)]
Count = Annotated[int, Meta(ge=1, le=100)]
Text = Annotated[str, Meta(max_length=50_000)]
KindOrAny = Literal["", "markdown", "text", "html", "pdf", "docx", "code"]
Ids = tuple[Annotated[str, Meta(max_length=200)], ...]


class SearchArguments(Value):
    query: Query
    limit: Count = 10
    tier: str = ""
    kind: KindOrAny = ""
    documents: Ids = ()
    expand: bool = False
    rerank: bool = False


class TierArguments(Value):
    query: Query
    guide: Annotated[int, Meta(ge=0, le=100)] = 5
    standard: Annotated[int, Meta(ge=0, le=100)] = 10
    code: Annotated[int, Meta(ge=0, le=100)] = 5


class GuideArguments(Value):
    query: Query
    limit: Count = 5


class HopArguments(Value):
    paragraphs: Ids
    hops: Annotated[int, Meta(ge=1, le=5)] = 2
    limit: Count = 20
    tier: str = ""


class ListArguments(Value):
    tier: str = ""
    kind: KindOrAny = ""


class ParagraphArguments(Value):
    id: Annotated[str, Meta(max_length=200)]
    around: Annotated[int, Meta(ge=0, le=20)] = 0


class CitationArguments(Value):
    quote: Text
    paragraph: Annotated[str, Meta(max_length=200)]
    claim: Text = ""


class TextArguments(Value):
    text: Text
    paragraphs: Ids


class RelationArguments(Value):
    paragraphs: Ids
    text: Text = ""
    subject: str = ""
    relation: str = ""
    object: str = ""


class ParagraphsArguments(Value):
    paragraphs: Ids


class ContextArguments(Value):
    paragraphs: Ids
    tokens: Annotated[int, Meta(ge=100, le=200_000)] = 4_000


class WebArguments(Value):
    query: Query
    limit: Count = 10


class NoArguments(Value):
    pass


class Knowledge(NamedTuple):
    """What the tools work with."""

    base: KnowledgeBase
    web_endpoint: str = ""


Run = Callable[[Knowledge, Any], Awaitable[dict[str, Any]]]


class KnowledgeTool(NamedTuple):
    name: str
    description: str
    arguments: type[Value]
    run: Run


def _blocking(answer: Callable[[KnowledgeBase, Any], dict[str, Any]]) -> Run:
    """The tool, run in a thread: SQLite and vectors block."""

    async def run(knowledge: Knowledge, arguments: Any) -> dict[str, Any]:
        return await anyio.to_thread.run_sync(answer, knowledge.base, arguments)

    return run


def _paragraph(paragraph: Paragraph, document: Document) -> dict[str, Any]:
    return {
        "id": paragraph.id,
        "place": place_of(document, paragraph),
        "document": document.id,
        "tier": document.tier,
        "source": document.source,
        "start": paragraph.start,
        "end": paragraph.end,
        "page": paragraph.page,
        "line": paragraph.line,
        "text": paragraph.text,
    }


def _hits(base: KnowledgeBase, hits: list[Hit], query: str) -> dict[str, Any]:
    found = [
        _paragraph(hit.paragraph, hit.document)
        | {"by_words": hit.by_words, "by_meaning": hit.by_meaning}
        | {"highlights": highlights(hit.paragraph.text, query)}
        for hit in hits
    ]
    note = (
        "" if found else "Nothing was found. Do not answer from memory: say that the documents do not tell."
    )
    return {"note": " ".join(filter(None, [INTRO if found else note, base.status().note])), "results": found}


def _search(base: KnowledgeBase, given: SearchArguments) -> dict[str, Any]:
    filters = Filters(given.tier, given.kind, given.documents)
    hits = base.search(given.query, given.limit, filters, expand=given.expand, rerank=given.rerank)
    return _hits(base, hits, given.query)


def _search_tiers(base: KnowledgeBase, given: TierArguments) -> dict[str, Any]:
    quotas = {tier: count for tier in TIER_ORDER if (count := getattr(given, tier))}
    found = base.search_tiers(given.query, quotas)
    return {tier: _hits(base, hits, given.query)["results"] for tier, hits in found.items()} | {"note": INTRO}


def _guides(base: KnowledgeBase, given: GuideArguments) -> dict[str, Any]:
    return _hits(base, base.search(given.query, given.limit, Filters(tier="guide")), given.query)


def _reached(base: KnowledgeBase, given: HopArguments) -> HopTrace:
    return hop(base, given.paragraphs, hops=given.hops, limit=given.limit, tier=given.tier)


def _hop(base: KnowledgeBase, given: HopArguments) -> dict[str, Any]:
    found = [
        _paragraph(each.paragraph, each.document)
        | {"score": round(each.score, 4), "trace": [to_dict(step) for step in each.trace]}
        for each in _reached(base, given).reached
    ]
    return {"note": INTRO, "results": found}


def _trace(base: KnowledgeBase, given: HopArguments) -> dict[str, Any]:
    found = _reached(base, given)
    steps = [to_dict(step) for step in found.considered]
    return {"considered": steps, "reached": [each.paragraph.id for each in found.reached]}


def _list(base: KnowledgeBase, given: ListArguments) -> dict[str, Any]:
    return {"documents": [to_dict(each) for each in base.documents(Filters(given.tier, given.kind))]}


def _get(base: KnowledgeBase, given: ParagraphArguments) -> dict[str, Any]:
    paragraph, document = base.paragraph(given.id)
    near = base.around(paragraph, given.around, given.around)
    return {"note": INTRO, "paragraphs": [_paragraph(each, document) for each in near]}


def _texts(base: KnowledgeBase, ids: Ids) -> list[str]:
    return [base.paragraph(each)[0].text for each in ids]


def _citation(base: KnowledgeBase, given: CitationArguments) -> dict[str, Any]:
    paragraph, document = base.paragraph(given.paragraph)
    found = to_dict(check_citation(given.quote, paragraph.text, given.claim))
    return found | {"paragraph": paragraph.id, "place": place_of(document, paragraph)}


def _entities(base: KnowledgeBase, given: TextArguments) -> dict[str, Any]:
    return to_dict(check_entities(given.text, _texts(base, given.paragraphs)))


def _relations(base: KnowledgeBase, given: RelationArguments) -> dict[str, Any]:
    texts = _texts(base, given.paragraphs)
    if given.subject or given.object:
        return to_dict(check_relation(given.subject, given.relation, given.object, texts))
    return to_dict(check_relations(given.text, texts))


def _contradictions(base: KnowledgeBase, given: ParagraphsArguments) -> dict[str, Any]:
    found = find_contradictions([(each, base.paragraph(each)[0].text) for each in given.paragraphs])
    return {"candidates": [to_dict(each) for each in found]}


def _context(base: KnowledgeBase, given: ContextArguments) -> dict[str, Any]:
    hits = [Hit(*base.paragraph(each), 0.0, 0, 0) for each in given.paragraphs]
    found = format_context(hits, given.tokens)
    return {
        "text": found.text,
        "sources": [
            {"label": each.label, "paragraph": each.paragraph, "place": each.place} for each in found.sources
        ],
        "left_out": found.left_out,
    }


def _status(base: KnowledgeBase, _given: NoArguments) -> dict[str, Any]:
    return to_dict(base.status())


async def _web(knowledge: Knowledge, given: WebArguments) -> dict[str, Any]:
    found = await search_web(given.query, knowledge.web_endpoint, given.limit)
    return to_dict(found) | {"note": INTRO}


TOOLS = {
    tool.name: tool
    for tool in (
        KnowledgeTool(
            "hybrid_search",
            "Find paragraphs of the documents by words and meaning. Quote from them by their ids.",
            SearchArguments,
            _blocking(_search),
        ),
        KnowledgeTool(
            "multi_tier_search",
            "Find paragraphs in guides, standards and code, so many of each.",
            TierArguments,
            _blocking(_search_tiers),
        ),
        KnowledgeTool("guide_search", "Find paragraphs of guides.", GuideArguments, _blocking(_guides)),
        KnowledgeTool(
            "hop_retrieve",
            "Follow references, terms and links from paragraphs to others, with the reason for each step.",
            HopArguments,
            _blocking(_hop),
        ),
        KnowledgeTool(
            "debug_hop_trace", "All steps that hop_retrieve considers.", HopArguments, _blocking(_trace)
        ),
        KnowledgeTool(
            "list_documents", "The documents, with tier and size.", ListArguments, _blocking(_list)
        ),
        KnowledgeTool(
            "get_paragraph",
            "A paragraph by its id; with `around`, its neighbours.",
            ParagraphArguments,
            _blocking(_get),
        ),
        KnowledgeTool(
            "citation_verify",
            "Whether a quote is in a paragraph word for word, and the paragraph supports a claim.",
            CitationArguments,
            _blocking(_citation),
        ),
        KnowledgeTool(
            "entity_verify",
            "Which names, numbers and terms of a text the paragraphs mention.",
            TextArguments,
            _blocking(_entities),
        ),
        KnowledgeTool(
            "relation_verify",
            "Whether the paragraphs relate things as a text does, or as subject, relation and object.",
            RelationArguments,
            _blocking(_relations),
        ),
        KnowledgeTool(
            "contradiction_check",
            "Sentences of the paragraphs that may contradict each other; judge them yourself.",
            ParagraphsArguments,
            _blocking(_contradictions),
        ),
        KnowledgeTool(
            "format_context",
            "Paragraphs as labelled sources within a number of tokens.",
            ContextArguments,
            _blocking(_context),
        ),
        KnowledgeTool("web_search", "Search the web, if the user has set that up.", WebArguments, _web),
        KnowledgeTool("status", "What the knowledge base holds.", NoArguments, _blocking(_status)),
    )
}
