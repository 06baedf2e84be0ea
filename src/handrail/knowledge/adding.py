"""Add files, folders and URLs to a knowledge base; what has not changed is not cut again."""

import hashlib
import os
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path, PurePosixPath
from typing import Literal, NamedTuple
from urllib.parse import unquote, urldefrag, urlsplit

import anyio
import anyio.to_thread

from handrail.config.open_file import FileTooLarge, read_file
from handrail.knowledge.base import KnowledgeBase
from handrail.knowledge.documents.cut import cut
from handrail.knowledge.documents.parsed import ENDINGS, Kind, Unreadable, kind_of
from handrail.knowledge.documents.read import read_document
from handrail.protocol.errors import UsageProblem
from handrail.protocol.values import Value
from handrail.storage.knowledge.rows import Document
from handrail.workspace.gitignore import GITIGNORE, ActiveRules, is_ignored, read_rules, rules_above
from handrail.workspace.sensitive_names import is_secret_name
from handrail.workspace.walk import SKIPPED_FOLDERS

MAX_BYTES = 50_000_000
"""Of one document."""
MAX_FILES = 100_000
"""Of one folder."""
URL_SECONDS = 60.0
READER = b"1"
"""Changed when documents are read or cut in another way, so that unchanged files are read again."""
HTML_TYPES = ("text/html", "application/xhtml+xml")


class Added(Value):
    """What became of one file or URL."""

    source: str
    outcome: Literal["added", "updated", "unchanged", "failed"]
    document: str = ""
    """Its id, if it is in the base."""
    paragraphs: int = 0
    note: str = ""
    """Why it failed, or what of it could not be read."""


class Labels(NamedTuple):
    """What documents are given; empty: what they had before, else a default."""

    name: str = ""
    """Default: the name of the file, or the URL."""
    tier: str = ""
    """Default: `code` for source code, `standard` for the rest."""


NO_LABELS = Labels()


async def add(
    base: KnowledgeBase,
    targets: Sequence[str],
    labels: Labels = NO_LABELS,
    told: Callable[[Added], None] = lambda _added: None,
) -> list[Added]:
    """Add what is named: each document whole or not at all. That one fails does not stop the others.

    Call it within `base.writing`. `base.embed` makes the vectors.
    """
    sources = await anyio.to_thread.run_sync(lambda: list(_sources(targets)))
    if labels.name and len(sources) > 1:
        raise UsageProblem("A name is for one document. Leave it out, or name one file.")
    results = []
    for source in sources:
        results.append(await _add_one(base, source, labels))
        told(results[-1])
    return results


async def _add_one(base: KnowledgeBase, source: str, labels: Labels) -> Added:
    try:
        source.encode()
    except UnicodeEncodeError:
        shown = os.fsencode(source).decode(errors="replace")
        return Added(shown, "failed", note="has a name that is not UTF-8. Rename it.")
    before = base.store.document_by_source(source)
    try:
        content = await (_fetch(source) if "://" in source else anyio.to_thread.run_sync(_read, source))
        kind = content.kind or kind_of(content.name, content.data)
        labels = _labels(labels, before, content.name, kind)
        digest = content_hash(content.data)
        if before and (before.sha256, before.name, before.tier) == (digest, *labels):
            return Added(source, "unchanged", before.id, before.paragraphs)
        parsed = await read_document(content.data, kind)
        document = await anyio.to_thread.run_sync(
            lambda: cut(
                parsed,
                name=labels.name,
                source=source,
                tier=labels.tier,
                sha256=digest,
                size=len(content.data),
            )
        )
        await anyio.to_thread.run_sync(base.put, [document])
    except Unreadable as problem:
        kept = " The version that was added before is kept." if before else ""
        return Added(source, "failed", before.id if before else "", note=f"{problem}{kept}")
    outcome: Literal["added", "updated"] = "updated" if before else "added"
    return Added(source, outcome, document.id, len(document.paragraphs), parsed.notice)


class _Content(NamedTuple):
    data: bytes
    name: str
    kind: Kind | None = None


def content_hash(data: bytes) -> str:
    """The hash of a document's bytes, by which a change of it is noticed."""
    return hashlib.sha256(READER + data).hexdigest()


def file_hash(source: str) -> str:
    """The content hash of a file as it is now; raises OSError."""
    return content_hash(read_file(source, MAX_BYTES))


def _labels(given: Labels, before: Document | None, name: str, kind: Kind) -> Labels:
    tier = given.tier or (before.tier if before else "code" if kind == "code" else "standard")
    return Labels(given.name or (before.name if before else name), tier)


def _sources(targets: Sequence[str]) -> Iterator[str]:
    for target in targets:
        if urlsplit(target).scheme in ("http", "https"):
            yield urldefrag(target)[0]
            continue
        path = Path(os.path.abspath(target))
        if path.is_dir():
            yield from map(str, files_below(path))
        elif os.path.lexists(path):
            yield str(path)
        else:
            raise UsageProblem(f"There is no file {target}. Name a file, a folder or a URL.")


def files_below(folder: Path) -> Iterator[Path]:
    """The documents in a folder and the folders below, by name: nothing hidden, no secrets, no links.

    Files that git ignores are left out, too; to add them, name them.
    """
    count = 0
    above: ActiveRules = tuple((0, prefix, rules) for prefix, rules in reversed(rules_above(folder)))
    rules_in: dict[str, ActiveRules] = {str(folder): above}
    for parent, folders, names in os.walk(folder):
        prefix = "" if parent == str(folder) else f"{os.path.relpath(parent, folder)}/"
        own = read_rules(Path(parent, GITIGNORE))
        rules = ((len(prefix), "", own), *rules_in.pop(parent)) if own else rules_in.pop(parent)
        folders[:] = sorted(
            name
            for name in folders
            if not name.startswith(".")
            and name not in SKIPPED_FOLDERS
            and not is_ignored(rules, name, prefix + name, folder=True)
        )
        rules_in |= {os.path.join(parent, name): rules for name in folders}
        for name in sorted(names):
            path = Path(parent, name)
            known = os.path.splitext(name.lower())[1] in ENDINGS
            if (
                name.startswith(".")
                or not known
                or is_secret_name(name)
                or is_ignored(rules, name, prefix + name, folder=False)
                or not path.is_file()
                or path.is_symlink()
            ):
                continue
            count += 1
            if count > MAX_FILES:
                raise UsageProblem(
                    f"{folder} has more than {MAX_FILES:,} documents. Add its folders one by one."
                )
            yield path


def _read(source: str) -> _Content:
    try:
        return _Content(read_file(source, MAX_BYTES), os.path.basename(source))
    except FileTooLarge as error:
        raise Unreadable(f"is larger than {MAX_BYTES / 1e6:.0f} MB. Split it.") from error
    except OSError as error:
        raise Unreadable(f"cannot be read: {error.strerror or error}.") from error


async def _fetch(url: str) -> _Content:
    """The page of a URL that the user wrote; a redirect into the own network is not followed."""
    from handrail.tools.web.fetch import FetchError, address_of, fetch_page

    try:
        with anyio.fail_after(URL_SECONDS):
            page = await fetch_page(url, address_of(url), MAX_BYTES)
    except FetchError as problem:
        raise Unreadable(f"was not fetched: {problem}") from problem
    except TimeoutError as error:
        raise Unreadable(f"did not arrive within {URL_SECONDS:.0f} s.") from error
    if page.status >= 400:
        raise Unreadable(f"was not fetched: the server answered {page.status}.")
    if page.cut:
        raise Unreadable(f"is larger than {MAX_BYTES / 1e6:.0f} MB.")
    name = unquote(PurePosixPath(urlsplit(page.url).path).name) or urlsplit(url).netloc
    kind: Kind | None = "html" if page.kind in HTML_TYPES and not page.data.startswith(b"%PDF-") else None
    return _Content(page.data, name, kind)
