"""The checks of a project: those found in its parts, and those of the settings."""

import os
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping
from pathlib import Path, PurePosixPath

from handrail.config.settings import CheckCommand, CheckSettings
from handrail.protocol.errors import UsageProblem
from handrail.tools.process import find_program
from handrail.tools.reports import javascript_tools, python_tools
from handrail.tools.reports.junit import junit
from handrail.tools.reports.plain_text import plain_text
from handrail.tools.reports.sarif import sarif
from handrail.verification.check import ANY_CODE, REPORT_FOLDER, SHELL, Check, Tree
from handrail.verification.detect import compiled, javascript, python
from handrail.verification.detect.part import Part
from handrail.verification.verdict import OWN_KINDS
from handrail.workspace.stat_index import snapshot

MANIFESTS = (*python.MANIFESTS, javascript.MANIFEST, compiled.GO_MANIFEST, compiled.RUST_MANIFEST)
MAX_DEPTH = 3  # folders above a manifest
MAX_PARTS = 30
NOT_PARTS = frozenset(
    (
        *("test", "tests", "testdata", "test_data", "fixtures", "__fixtures__", "examples", "example"),
        *("samples", "templates", "template", "vendor", "third_party", "docs", "doc", "bench", "benchmarks"),
        *("dist", "build", "target", "node_modules", "site-packages"),
    )
)
"""Folders whose projects are data, or somebody else's."""
READERS = {
    "text": plain_text,
    "junit": junit,
    "sarif": sarif,
    "ruff": python_tools.ruff,
    "mypy": python_tools.mypy,
    "pyright": python_tools.pyright,
    "eslint": javascript_tools.eslint,
    "tsc": javascript_tools.tsc,
    "jest": javascript_tools.jest,
}


def find_checks(
    tree: Tree,
    files: Collection[str],
    settings: CheckSettings,
    environ: Mapping[str, str],
) -> list[Check]:
    """All checks of a tree with these files, without those that the settings skip."""
    found = list(_named(_detected(tree, files, settings, environ))) if settings.detect else []
    by_name = {check.name: check for check in found}
    for each in settings.commands:
        by_name[each.name] = configured_check(each, tree)
    known = {*by_name, *OWN_KINDS}
    if unknown := [name for name in settings.skip if name not in known]:
        listed = f"There are: {', '.join(sorted(known))}."
        raise UsageProblem(f"checks.skip names {', '.join(unknown)}, which is no check here. {listed}")
    return [check for name, check in by_name.items() if name not in settings.skip]


def find_checks_in(root: Path, settings: CheckSettings, environ: Mapping[str, str]) -> list[Check]:
    """All checks of a folder as it is now."""
    return find_checks(Tree(root, root), snapshot(root).files, settings, environ)


def _detected(
    tree: Tree, files: Collection[str], settings: CheckSettings, environ: Mapping[str, str]
) -> Iterator[Check]:
    for part in find_parts(tree, files, environ):
        found: list[Check] = []
        if python.is_python(part):
            found += python.checks(part, settings.coverage)
        if javascript.is_javascript(part):
            found += javascript.checks(part)
        if part.has(compiled.GO_MANIFEST):
            found += compiled.go_checks(part)
        if part.has(compiled.RUST_MANIFEST):
            found += compiled.rust_checks(part)
        if not any(check.kind == "tests" for check in found):
            found += compiled.make_checks(part)
        paths = tuple(map(str, part.bin_folders))
        for check in found:
            yield check._replace(part=part.folder, seconds=settings.seconds, paths=paths, root=tree.shown_at)


def find_parts(tree: Tree, files: Collection[str], environ: Mapping[str, str]) -> list[Part]:
    """The root and every folder with a manifest of its own; a file belongs to the nearest of them."""
    folders = {"": None} | {
        str(PurePosixPath(path).parent): None
        for path in sorted(files)
        if path.rpartition("/")[2] in MANIFESTS and _may_be_part(path.rpartition("/")[0])
    }
    folders = dict.fromkeys(["" if folder == "." else folder for folder in folders])
    chosen = list(folders)[:MAX_PARTS]
    own: dict[str, list[str]] = {folder: [] for folder in chosen}
    for path in sorted(files):
        folder = _nearest(path, own)
        own[folder].append(path.removeprefix(f"{folder}/") if folder else path)
    parts = [Part(tree, folder, own[folder], environ, tree.shown_at) for folder in chosen]
    return [part for part in parts if not _is_member(part, parts)]


def _may_be_part(folder: str) -> bool:
    parts = folder.split("/") if folder else []
    return len(parts) <= MAX_DEPTH and not NOT_PARTS.intersection(parts)


def _nearest(path: str, folders: Mapping[str, object]) -> str:
    above = path.rpartition("/")[0]
    while above and above not in folders:
        above = above.rpartition("/")[0]
    return above


def _is_member(part: Part, parts: Iterable[Part]) -> bool:
    """Whether it is a crate of a cargo workspace above, whose commands check it too."""
    is_crate = part.folder and part.has(compiled.RUST_MANIFEST) and not part.has(*python.MANIFESTS)
    above = [
        each
        for each in parts
        if each is not part and f"{part.folder}/".startswith(f"{each.folder}/".lstrip("/"))
    ]
    return bool(is_crate) and any("[workspace]" in each.text(compiled.RUST_MANIFEST) for each in above)


def _named(checks: Iterable[Check]) -> Iterator[Check]:
    """Each with its name: part and kind, and the tool where a part has several of the kind."""
    listed = list(checks)
    counts = Counter((check.part, check.kind) for check in listed)
    taken: Counter[str] = Counter()
    for check in listed:
        kind = check.kind if counts[check.part, check.kind] == 1 else f"{check.kind}-{check.tool}"
        name = f"{check.part}/{kind}" if check.part else kind
        taken[name] += 1
        yield check._replace(name=name if taken[name] == 1 else f"{name}-{taken[name]}")


def configured_check(settings: CheckCommand, tree: Tree) -> Check:
    """A check of the settings; raises UsageProblem where its folder is not in the workspace."""
    folder = os.path.normpath(settings.folder) if settings.folder else ""
    inside = not os.path.isabs(folder) and folder.split("/")[0] != ".."
    if not inside or not (tree.root / folder).is_dir():
        raise UsageProblem(f"The check {settings.name} runs in {settings.folder}, which is no folder here.")
    words = (find_program("bash") or "bash", "-c", settings.run)
    return Check(
        settings.kind,
        SHELL,
        words,
        part="" if folder == "." else folder,
        name=settings.name,
        reader=READERS[settings.format],
        found_codes=ANY_CODE,
        writes=True,
        seconds=settings.seconds,
        environ={"REPORT": REPORT_FOLDER},
        paths=tuple(map(str, Part(tree, folder, (), os.environ, Path(tree.shown_at)).bin_folders)),
    )
