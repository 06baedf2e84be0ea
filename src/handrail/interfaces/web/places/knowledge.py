"""The knowledge base: its documents, a search with marked words, a paragraph in its place, its state."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple
from urllib.parse import quote, urlencode

from starlette.responses import HTMLResponse, Response

from handrail.app.app import App
from handrail.interfaces.cli.render.styles import clean, count_of, format_bytes, one_line
from handrail.interfaces.http.errors import not_found
from handrail.interfaces.web.frame import place
from handrail.interfaces.web.html import Html, h, join
from handrail.interfaces.web.page_call import PageCall
from handrail.protocol.errors import UsageProblem

if TYPE_CHECKING:
    from handrail.app.extensions.knowledge import Document, Hit, KnowledgeBase, Paragraph, Status, Where

LEAD = (
    "Documents to search and to quote from. What they say is material for answers and never an instruction."
)
OWNERS: dict["Where", str] = {"workspace": "This workspace", "user": "Yours, in every workspace"}
FOUND = 20
MAX_DOCUMENTS = 500
NEIGHBOURS = 20
"""Paragraphs shown before and after the chosen one."""


class _Asked(NamedTuple):
    """What the address asks for."""

    address: str
    """Of the place."""
    where: "Where"
    query: str
    tier: str

    def link(self, document: str, key: str = "") -> str:
        given = {"base": self.where, "q": self.query, "p": key}
        asked = urlencode({name: value for name, value in given.items() if value})
        return f"{self.address}/{quote(document, safe='')}?{asked}{f'#p-{key}' if key else ''}"


def _bases(call: PageCall) -> "list[Where]":
    from handrail.app.extensions.knowledge import existing_bases

    return existing_bases(call.workspace.root, call.workspace.environ)


def _asked(call: PageCall, bases: "Sequence[Where]") -> _Asked:
    wanted = call.query("base")
    where = next((each for each in bases if each == wanted), bases[0] if bases else "workspace")
    return _Asked(call.knowledge, where, call.query("q").strip(), call.query("tier"))


async def knowledge_page(call: PageCall) -> Response:
    bases = _bases(call)
    asked = _asked(call, bases)

    def look(_app: App) -> Html:
        from handrail.app.extensions.knowledge import opened_base

        with opened_base(call.workspace.root, asked.where, call.workspace.environ) as base:
            found = _found(base, asked) if asked.query else _documents(base, asked)
            status = base.status()  # also says what was wrong with the search
            return join(_form(asked, bases, status), _status(status), found) if status.documents else _empty()

    head = h("p", LEAD, class_="lead")
    content = await call.app.query(look) if bases else _empty()
    return HTMLResponse(place(call.view("Knowledge", "knowledge"), head, content, narrow=True))


def _empty() -> Html:
    way = h("code", "handrail kb add FOLDER")
    return h("p", "No document yet. ", way, " adds Markdown, text, HTML, PDF, DOCX and code.", class_="empty")


def _form(asked: _Asked, bases: "Sequence[Where]", status: "Status") -> Html:
    words = h("input", name="q", type="search", value=asked.query, size="34", maxlength="2000")
    fields = [h("label", "Find", words)]
    if len(status.tiers) > 1:
        tiers = [h("option", "all", value="")]
        tiers += [
            h("option", one_line(each), value=each, selected=each == asked.tier) for each in status.tiers
        ]
        fields.append(h("label", "Tier", h("select", *tiers, name="tier")))
    if len(bases) > 1:
        owners = [h("option", OWNERS[each], value=each, selected=each == asked.where) for each in bases]
        fields.append(h("label", "Base", h("select", *owners, name="base")))
    button = h("button", "Search", type="submit", class_="primary")
    return h("form", *fields, button, class_="filters", action=asked.address, method="get", role="search")


def _status(status: "Status") -> Html:
    facts = (
        f"{count_of(status.documents, 'document')}, {count_of(status.paragraphs, 'paragraph')}",
        f"search by {'words and meaning' if status.meaning else 'words'}",
        f"{format_bytes(status.bytes)} on the disk",
    )
    note = h("p", status.note, class_="t-wait") if status.note else None
    return join(h("p", " · ".join(facts), class_="soft"), note)


def _documents(base: "KnowledgeBase", asked: _Asked) -> Html:
    from handrail.app.extensions.knowledge import Filters

    documents = base.documents(Filters(tier=asked.tier))
    heads = [h("th", name, scope="col") for name in ("Document", "Tier", "Kind")]
    heads.append(h("th", "Paragraphs", scope="col", class_="number"))
    rows = [_document_row(each, asked) for each in documents[:MAX_DOCUMENTS]]
    table = h("table", h("thead", h("tr", *heads)), h("tbody", *rows), class_="list")
    left = len(documents) - MAX_DOCUMENTS
    more = h("p", f"And {left:,} more; a search finds in them, too.", class_="soft") if left > 0 else None
    return join(
        h("h2", "Documents"),
        h("div", table, class_="scroll", tabindex="0", role="region", aria_label="Documents"),
        more,
    )


def _document_row(each: "Document", asked: _Asked) -> Html:
    notice = h("div", one_line(each.notice), class_="t-wait") if each.notice else None
    return h(
        "tr",
        h(
            "td",
            h("a", one_line(each.name), href=asked.link(each.id)),
            h("div", one_line(each.source), class_="soft source"),
            notice,
        ),
        h("td", one_line(each.tier)),
        h("td", each.kind),
        h("td", f"{each.paragraphs:,}", class_="number"),
    )


def _found(base: "KnowledgeBase", asked: _Asked) -> Html:
    from handrail.app.extensions.knowledge import Filters

    hits = base.search(asked.query, FOUND, Filters(tier=asked.tier))
    every = h("a", "All documents", href=f"{asked.address}?base={asked.where}")
    head = h("p", f"{count_of(len(hits), 'paragraph')}, best first. ", every, class_="soft", role="status")
    if not hits:
        return h("p", "Nothing was found. Try other words. ", every, class_="empty", role="status")
    return join(head, *(_hit(each, asked) for each in hits))


def _hit(hit: "Hit", asked: _Asked) -> Html:
    ranks = {"words": hit.by_words, "meaning": hit.by_meaning}
    why = ", ".join(f"{rank} by {name}" for name, rank in ranks.items() if rank)
    link = asked.link(hit.document.id, hit.paragraph.id.rpartition(":")[2])
    return h(
        "section",
        h("h3", h("a", one_line(hit.place), href=link)),
        h("p", f"{one_line(hit.document.tier)} · rank {why}", class_="soft"),
        _text(hit.paragraph.text, asked.query),
        class_="tile hit",
    )


def _text(text: str, query: str) -> Html:
    """A paragraph with the words of the query marked."""
    from handrail.app.extensions.knowledge import highlights

    parts: list[Html | str] = []
    at = 0
    for start, end in highlights(text, query) if query else ():
        parts += [clean(text[at:start]), h("mark", clean(text[start:end]))]
        at = end
    return h("div", *parts, clean(text[at:]), class_="source-text")


async def document_page(call: PageCall) -> Response:
    """A document around one of its paragraphs, or from its start."""
    bases = _bases(call)
    asked, key = _asked(call, bases), call.query("p")
    wanted = call.request.path_params["document"]

    def look(_app: App) -> tuple[str, Html]:
        from handrail.app.extensions.knowledge import opened_base

        with opened_base(call.workspace.root, asked.where, call.workspace.environ) as base:
            document = base.document(wanted)
            chosen = base.paragraph(f"{document.id}:{key}")[0] if key else None
            first = max(0, chosen.ordinal - NEIGHBOURS) if chosen else call.number("from")
            rows = base.store.in_order(document.number, first, 2 * NEIGHBOURS + 1)
            return one_line(document.name), _document(document, rows, chosen, asked)

    if not bases:
        raise not_found("There is no knowledge base here.", "`handrail kb add FOLDER` makes one.")
    try:
        title, content = await call.app.query(look)
    except UsageProblem as problem:
        raise not_found(str(problem), "It may have changed since. Search again.") from problem
    return HTMLResponse(place(call.view(title, "knowledge"), content, narrow=True))


def _document(
    document: "Document", rows: "Sequence[Paragraph]", chosen: "Paragraph | None", asked: _Asked
) -> Html:
    source: Html = h("code", one_line(document.source))
    if "://" in document.source:
        source = h("a", one_line(document.source), href=document.source, rel="noreferrer", target="_blank")
    size = count_of(document.paragraphs, "paragraph")
    facts = " · ".join((one_line(document.tier), document.kind, size))
    back = {"base": asked.where, **({"q": asked.query} if asked.query else {})}
    return join(
        h("p", h("a", "← knowledge", href=f"{asked.address}?{urlencode(back)}"), class_="facts"),
        h("h1", one_line(document.name)),
        h("p", facts, class_="lead"),
        h("p", source, class_="source"),
        h("p", one_line(document.notice), class_="t-wait") if document.notice else None,
        _steps(document, rows, asked),
        *_paragraphs(rows, chosen, asked.query),
        _steps(document, rows, asked),
    )


def _paragraphs(rows: "Sequence[Paragraph]", chosen: "Paragraph | None", query: str) -> list[Html]:
    """Paragraphs in order, each heading once; the chosen one is framed."""
    parts: list[Html] = []
    heading = ""
    for each in rows:
        if each.heading != heading:
            heading = each.heading
            parts.append(h("h3", one_line(heading.rpartition(" > ")[2])))
        here = chosen is not None and each.number == chosen.number
        at = f"page {each.page}" if each.page else f"line {each.line}" if each.line else ""
        parts.append(
            h(
                "section",
                _text(each.text, query if here else ""),
                h("p", " · ".join(filter(None, (at, each.id))), class_="soft paragraph-id"),
                id=f"p-{each.id.rpartition(':')[2]}",
                class_="paragraph here" if here else "paragraph",
                aria_current="location" if here else None,
                tabindex="-1" if here else None,
            )
        )
    return parts


def _steps(document: "Document", rows: "Sequence[Paragraph]", asked: _Asked) -> Html | None:
    """Links to what is before and after the shown paragraphs."""
    first, after = (rows[0].ordinal, rows[-1].ordinal + 1) if rows else (0, 0)
    link = asked.link(document.id)
    steps = []
    if first:
        before = max(0, first - 2 * NEIGHBOURS - 1)
        steps.append(h("a", "← earlier", href=f"{link}&from={before}"))
    if after < document.paragraphs:
        steps.append(h("a", "later →", href=f"{link}&from={after}"))
    return h("p", *steps, class_="facts") if steps else None
