"""`handrail kb`: the knowledge base, documents to search and to quote from."""

import sys
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING, Any

import click

from handrail.interfaces.cli.options import run_with_app, workspace_option, workspace_path
from handrail.interfaces.cli.render.styles import clean, count_of, format_bytes, one_line
from handrail.interfaces.cli.terminal import can_ask, confirm, is_terminal, print_json, print_text
from handrail.protocol.errors import UsageProblem

if TYPE_CHECKING:
    from handrail.app.app import App
    from handrail.app.extensions.knowledge import Added, Hit, KnowledgeBase, Where

FAILED = 1
ASKED = "asked for the embedding model"
user_option = click.option("--user", is_flag=True, help="Your own base, instead of this workspace's.")
json_option = click.option("--json", "as_json", is_flag=True, help="As JSON, one value a line.")
tier_option = click.option("--tier", default="", metavar="T", help="guide, standard, code, or one of yours.")
kind_option = click.option(
    "--kind",
    type=click.Choice(("markdown", "text", "html", "pdf", "docx", "code")),
    help="Only documents of this kind.",
)


@click.group()
@workspace_option
@user_option
@click.pass_context
def command(ctx: click.Context, /, **given: Any) -> None:
    """Documents to search and to quote from: this workspace's, or your own with --user.

    docs/knowledge.md says how documents are read, cut and searched.
    """
    ctx.obj = given


@contextmanager
def opened(given: dict[str, Any], where: "Where | None" = None) -> "Iterator[KnowledgeBase]":
    from handrail.app.extensions.knowledge import opened_base

    chosen: Where = "user" if given["user"] else where or "workspace"
    with opened_base(workspace_path(given), chosen) as base:
        yield base


@command.command()
@click.argument("targets", nargs=-1, required=True, metavar="PATH|URL...")
@click.option("--name", default="", help="The name of the document; default: the file's.")
@tier_option
@click.option("--yes", is_flag=True, help="Download the embedding model without asking, if it is missing.")
@json_option
@click.pass_obj
def add(
    given: dict[str, Any], /, *, targets: tuple[str, ...], name: str, tier: str, yes: bool, as_json: bool
) -> int:
    """Add files, folders or URLs; what has not changed since is not read again.

    Markdown, text, HTML, PDF, DOCX and source code. Interrupted, it goes on with the next call.
    """
    import anyio

    from handrail.app.extensions.knowledge import Labels
    from handrail.app.extensions.knowledge import add as add_all

    with opened(given) as base, base.writing():
        told = partial(show_added, as_json=as_json)
        added = anyio.run(add_all, base, targets, Labels(name, tier), told)
        if not added:
            raise UsageProblem(
                "There is no document to add. `handrail kb add --help` lists the kinds. Hidden files and "
                "those that git ignores have to be named."
            )
        counts = Counter(each.outcome for each in added)
        if any(counts[outcome] for outcome in ("added", "updated")):
            ask_for_model(base, yes=yes)
        make_vectors(base)
        if not as_json:
            print_text(", ".join(f"{counts[each]:,} {each}" for each in sorted(counts)) + ".")
            if note := base.status().note:
                print_text(note, file=sys.stderr)
    return FAILED if counts["failed"] else 0


def show_added(added: "Added", *, as_json: bool) -> None:
    if as_json:
        from handrail.protocol.values import to_dict

        print_json(to_dict(added))
    elif added.outcome == "failed":
        print_text(f"failed     {one_line(added.source)}: {one_line(added.note)}", file=sys.stderr)
    elif added.outcome != "unchanged":
        note = f" {added.note}" if added.note else ""
        size = count_of(added.paragraphs, "paragraph")
        print_text(
            f"{added.outcome:10} {one_line(added.source)} as {added.document}, {size}.{one_line(note)}"
        )


def ask_for_model(base: "KnowledgeBase", *, yes: bool) -> None:
    """Download the embedding model, if the user agrees; asked once for each base."""
    from handrail.app.extensions.knowledge import EmbeddingDownload

    model = EmbeddingDownload()
    if base.model.name != model.name or not model.missing or model.missing_libraries:
        return
    if not yes:
        if base.store.state(ASKED) or not can_ask(sys.stderr):
            return
        base.store.set_state(ASKED, "yes")
        size = model.size / 1e6
        question = f"Search by meaning, too? That needs a model of {size:.0f} MB. Download it?"
        if not confirm(question, err=True):
            return
    download(model)
    base.reload_model(model.loadable())


def download(model: Any) -> None:
    import anyio

    from handrail.interfaces.cli.commands.setup.model import download_with_progress

    path = anyio.run(download_with_progress, model)
    print_text(f"{model.name} is here: {path}", file=sys.stderr)


def make_vectors(base: "KnowledgeBase") -> None:
    """Make the missing vectors, with a line of progress in a terminal."""
    total, characters = base.waiting()
    if total and not base.model.missing and (words := base.model.told(characters)):
        print_text(words, file=sys.stderr)
    live = is_terminal(sys.stderr)

    def told(done: int) -> None:
        if live:
            print_text(f"\r{done:,} of {total:,} paragraphs have a vector", file=sys.stderr, end="")

    if base.embed(told) and live:
        print_text(file=sys.stderr)


@command.command()
@click.option("--yes", is_flag=True, help="Download without asking.")
@click.pass_obj
def fetch(given: dict[str, Any], /, *, yes: bool) -> int:
    """Download the embedding model, so that searches go by meaning, too."""
    from handrail.app.extensions.knowledge import EmbeddingDownload

    model = EmbeddingDownload()
    if model.missing and not yes and not model.missing_libraries:
        if not can_ask(sys.stderr):
            size = f"{model.size / 1e6:.0f} MB"
            raise UsageProblem(f"This downloads {size}, and nobody can be asked here. Give --yes to do it.")
        if not confirm(f"Download {model.size / 1e6:.0f} MB?", err=True):
            return FAILED
    download(model)
    return 0


@command.command()
@click.option("--rebuild", is_flag=True, help="Make all vectors again.")
@click.pass_obj
def index(given: dict[str, Any], /, *, rebuild: bool) -> int:
    """Make the vectors that are missing, for example after an interruption."""
    with opened(given) as base, base.writing():
        if rebuild:
            base.forget_vectors()
        make_vectors(base)
        status = base.status()
        print_text(status.note or f"All {status.paragraphs:,} paragraphs have a vector.")
        return FAILED if status.without_vector else 0


@command.command("list")
@tier_option
@kind_option
@json_option
@click.pass_obj
def list_documents(given: dict[str, Any], /, *, tier: str, kind: str | None, as_json: bool) -> None:
    """List the documents."""
    from handrail.app.extensions.knowledge import Filters
    from handrail.protocol.values import to_dict

    with opened(given) as base:
        documents = base.documents(Filters(tier, kind or ""))
    for each in documents:
        if as_json:
            print_json(to_dict(each))
        else:
            size = count_of(each.paragraphs, "paragraph")
            print_text(f"{each.id:50} {each.tier:10} {each.kind:9} {size:>16}  {one_line(each.source)}")
    if not documents and not as_json:
        print_text("There is no document. `handrail kb add PATH` adds one.", file=sys.stderr)


@command.command()
@click.argument("query", nargs=-1, required=True)
@click.option("-n", "limit", default=5, show_default=True, type=click.IntRange(1, 1000))
@tier_option
@click.option("--by-tier", is_flag=True, help="The best of each tier: guides, standards, code, yours.")
@kind_option
@click.option("--document", "documents", multiple=True, metavar="ID", help="Only in this one; repeatable.")
@click.option("--expand", is_flag=True, help="Also search for other writings of the query's terms.")
@click.option("--rerank", is_flag=True, help="Order the best by how much of the query they have.")
@json_option
@click.pass_obj
def search(
    given: dict[str, Any],
    /,
    *,
    query: tuple[str, ...],
    limit: int,
    tier: str,
    by_tier: bool,
    kind: str | None,
    documents: tuple[str, ...],
    expand: bool,
    rerank: bool,
    as_json: bool,
) -> int:
    """Find paragraphs, by words and by meaning. Exits with 1 where nothing is found."""
    from handrail.app.extensions.knowledge import Filters, hit_row

    text = " ".join(query)
    with opened(given) as base:
        filters = Filters(tier, kind or "", documents)
        if by_tier:
            quotas = dict.fromkeys([tier] if tier else base.status().tiers, limit)
            tiers = base.search_tiers(text, quotas, filters, expand=expand, rerank=rerank)
            hits = [hit for found in tiers.values() for hit in found]
        else:
            hits = base.search(text, limit, filters, expand=expand, rerank=rerank)
        status = base.status()
    for hit in hits:
        if as_json:
            print_json(hit_row(hit, text))
        else:
            show_hit(hit)
    if status.note:
        print_text(status.note, file=sys.stderr)
    if not hits and not as_json:
        print_text("Nothing was found." if status.documents else "The base is empty.", file=sys.stderr)
    return 0 if hits else FAILED


def show_hit(hit: "Hit") -> None:
    found = [f"#{hit.by_words} by words"] if hit.by_words else []
    found += [f"#{hit.by_meaning} by meaning"] if hit.by_meaning else []
    print_text(f"{one_line(hit.place)}  ({', '.join([one_line(hit.document.tier), *found])})")
    print_text(f"  {hit.paragraph.id}")
    for row in clean(hit.paragraph.text).splitlines():
        print_text(f"  | {row}")
    print_text()


@command.command()
@click.argument("name")
@click.option("--around", default=1, show_default=True, type=click.IntRange(0, 50), help="Its neighbours.")
@json_option
@click.pass_obj
def show(given: dict[str, Any], /, *, name: str, around: int, as_json: bool) -> None:
    """Show a paragraph in its place, by its id; or a document."""
    from handrail.app.extensions.knowledge import place_of
    from handrail.protocol.values import to_dict

    with opened(given) as base:
        if ":" in name and base.store.document_by_id(name.rpartition(":")[0]):
            paragraph, document = base.paragraph(name)
            rows = base.around(paragraph, around, around)
        else:
            document, paragraph = base.document(name), None
            rows = base.store.in_order(document.number, 0, document.paragraphs)
    if as_json:
        print_json(to_dict(document) | {"text": [to_dict(each) for each in rows]})
        return
    print_text(f"{one_line(document.name)}: {one_line(document.source)}, added as {document.id}")
    for each in rows:
        mark = ">" if paragraph and each.number == paragraph.number else " "
        print_text(f"\n{mark} {one_line(place_of(document, each))}  {each.id}")
        for row in clean(each.text).splitlines():
            print_text(f"{mark} | {row}")


@command.command()
@json_option
@click.pass_obj
def status(given: dict[str, Any], /, *, as_json: bool) -> None:
    """What the base holds, and how it can be searched."""
    from handrail.protocol.values import to_dict

    with opened(given) as base:
        found = base.status()
    if as_json:
        print_json(to_dict(found))
        return
    print_text(f"{found.folder}, {format_bytes(found.bytes)}")
    tiers = ", ".join(f"{tier} {count:,}" for tier, count in found.tiers.items())
    print_text(f"{count_of(found.documents, 'document')}, {count_of(found.paragraphs, 'paragraph')}: {tiers}")
    print_text("Search is by words and by meaning." if found.meaning else "Search is by words.")
    if found.note:
        print_text(found.note)


@command.command()
@click.argument("names", nargs=-1, required=True, metavar="DOCUMENT...")
@click.pass_obj
def remove(given: dict[str, Any], /, *, names: tuple[str, ...]) -> None:
    """Remove documents with everything that was made of them. The files themselves stay."""
    with opened(given) as base:
        documents = {each.number: each for each in map(base.document, names)}
        base.remove(list(documents.values()))
    for each in documents.values():
        print_text(f"removed    {each.id}, {count_of(each.paragraphs, 'paragraph')}")


@command.command()
@click.argument("quote", default="")
@click.option("--paragraph", default="", metavar="ID", help="The paragraph that the quote is from.")
@click.option("--claim", default="", help="What the quote is to support.")
@click.pass_obj
def verify(given: dict[str, Any], /, *, quote: str, paragraph: str, claim: str) -> int:
    """Check the base against itself and the files; with QUOTE, whether a paragraph has it word for word.

    Exits with 0 where nothing is wrong, with 1 otherwise.
    """
    with opened(given) as base:
        if quote:
            return verify_quote(base, quote, paragraph, claim)
        return verify_base(base)


def verify_quote(base: "KnowledgeBase", quote: str, paragraph: str, claim: str) -> int:
    from handrail.app.extensions.knowledge import verify_citation

    found = verify_citation(base, quote, paragraph, claim)
    supports = ", which supports the claim" if claim else ""
    print_text(found.problem or f"The quote is in {found.paragraph} ({found.place}){supports}.")
    return 0 if found.ok else FAILED


def verify_base(base: "KnowledgeBase") -> int:
    from handrail.app.extensions.knowledge import base_problems, check_sources

    problems = base_problems(base)
    for problem in problems:
        print_text(problem)
    states = check_sources(base, base.documents())
    for each in states:
        if each.state in ("changed", "gone"):
            print_text(f"{each.state:10} {one_line(each.source)}")
    same = sum(each.state == "same" for each in states)
    print_text(f"{'Nothing is wrong' if not problems else 'There are problems'} with the base.")
    print_text(
        f"{same:,} of {count_of(len(states), 'document')} are as they were added; URLs are not fetched."
    )
    return FAILED if problems or any(each.state in ("changed", "gone") for each in states) else 0


@command.command()
@click.argument("start", nargs=-1, required=True, metavar="PARAGRAPH|QUERY")
@click.option("--hops", default=2, show_default=True, type=click.IntRange(1, 5))
@click.option("-n", "limit", default=10, show_default=True, type=click.IntRange(1, 300))
@tier_option
@json_option
@click.pass_obj
def hop(
    given: dict[str, Any], /, *, start: tuple[str, ...], hops: int, limit: int, tier: str, as_json: bool
) -> int:
    """Follow references, terms and links from a paragraph, or from what a query finds; with the reasons."""
    from handrail.app.extensions.knowledge import follow_hops, place_of
    from handrail.protocol.values import to_dict

    with opened(given) as base:
        ids = list(start) if all(":" in each for each in start) else []
        if not ids:
            ids = [hit.paragraph.id for hit in base.search(" ".join(start), 3)]
        found = follow_hops(base, ids, hops=hops, limit=limit, tier=tier)
    for each in found.reached:
        if as_json:
            print_json(to_dict(each))
            continue
        print_text(f"{one_line(place_of(each.document, each.paragraph))}  {each.paragraph.id}")
        for step in each.trace:
            label = f" {step.label!r}" if step.label else ""
            print_text(f"  {step.why}{label}: {step.paragraph}")
    if not found.reached and not as_json:
        print_text("Nothing is referred to from there.", file=sys.stderr)
    return 0 if found.reached else FAILED


@command.command()
@click.option("--yes", is_flag=True, help="Do it at the stated cost without asking.")
@click.pass_obj
def relations(given: dict[str, Any], /, *, yes: bool) -> int:
    """Let the model find who does what to whom in the paragraphs, for `hop`; tells the cost and asks before.

    Only what the paragraph says word for word is kept. Interrupted, it goes on with the next call.
    """
    with opened(given) as base, base.writing():
        return run_with_app(given, partial(ask_for_relations, base=base, yes=yes))


async def ask_for_relations(app: "App", *, base: "KnowledgeBase", yes: bool) -> int:
    from handrail.app.extensions.knowledge import estimate_relations, find_relations

    model, wanted = await estimate_relations(app, base)
    if not wanted.paragraphs:
        print_text("The relations of all paragraphs were looked for.")
        return 0
    price = "its price is not known" if wanted.usd is None else f"about {wanted.usd:.2f} USD"
    tokens = wanted.usage.input_tokens + wanted.usage.output_tokens
    print_text(
        f"{model} is asked {count_of(wanted.paragraphs, 'time')}, about {tokens:,} tokens: {price}.",
        file=sys.stderr,
    )
    if not yes and not can_ask(sys.stderr):
        raise UsageProblem("Nobody can be asked here whether that is fine. Give --yes to do it.")
    if not yes and not confirm("Find the relations?", err=True):
        return FAILED
    live = is_terminal(sys.stderr)

    def told(done: int) -> None:
        if live:
            print_text(f"\r{done:,} of {wanted.paragraphs:,} paragraphs", file=sys.stderr, end="")

    most = None if wanted.usd is None else max(2 * wanted.usd, 0.01)
    found = await find_relations(app, base, model, most, told)
    if live:
        print_text(file=sys.stderr)
    cost = "not known" if found.usd is None else f"{found.usd:.2f} USD"
    print_text(
        f"{count_of(found.relations, 'relation')} in {count_of(found.paragraphs, 'paragraph')}, "
        f"{found.refused:,} refused because the paragraph does not have them; cost: {cost}."
    )
    if found.paragraphs < wanted.paragraphs:
        print_text("Stopped at twice the stated cost. The next call goes on.", file=sys.stderr)
        return FAILED
    return 0


@command.command()
@click.pass_obj
def serve(given: dict[str, Any], /) -> None:
    """Offer the base to other programs, as an MCP server on standard input and output."""
    import anyio

    from handrail.interfaces.mcp.knowledge import serve_stdio

    where: Where | None = "user" if given["user"] else None
    anyio.run(serve_stdio, workspace_path(given), where)
