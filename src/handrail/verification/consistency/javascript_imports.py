"""Problems with the imports of JavaScript and TypeScript files: missing files, names and dependencies."""

import json
import posixpath
import re
from collections.abc import Iterator
from functools import cached_property
from pathlib import PurePosixPath
from typing import Any, NamedTuple

from handrail.tools.reports.issue import Issue
from handrail.verification.consistency.javascript_module import (
    ENDINGS,
    JsImport,
    JsModule,
    is_javascript,
    read_module,
)
from handrail.verification.consistency.python_imports import SIDE_FOLDERS, is_test_data
from handrail.verification.consistency.source_tree import SourceTree, is_generated

CODE = (".ts", ".tsx", ".d.ts", ".mts", ".d.mts", ".cts", ".d.cts", ".js", ".jsx", ".mjs", ".cjs")
OTHER = (
    ".json",
    ".vue",
    ".svelte",
    ".astro",
    ".node",
    ".wasm",
    ".mdx",
    ".ios.js",
    ".native.ts",
    ".web.ts",
    ".android.js",
)
WRITTEN = {
    ".js": (".ts", ".tsx", ".d.ts"),
    ".jsx": (".tsx",),
    ".mjs": (".mts", ".d.mts"),
    ".cjs": (".cts", ".d.cts"),
}
"""Sources of what an import names by the file that a compiler makes."""
NODE_MODULES = """
assert async_hooks buffer child_process cluster console constants crypto dgram diagnostics_channel dns
domain events fs http http2 https inspector module net os path perf_hooks process punycode querystring
readline repl stream string_decoder sys timers tls trace_events tty url util v8 vm wasi worker_threads zlib
test sqlite sea electron bun deno
"""
NODE = frozenset(NODE_MODULES.split())
TYPESCRIPT = (".ts", ".tsx", ".mts", ".cts")
PACKAGE = re.compile(r"(?:@[a-z0-9~-][\w.~-]*/)?[a-z0-9~-][\w.~-]*")
GROUPS = ("dependencies", "devDependencies", "peerDependencies", "optionalDependencies")
OTHER_GROUPS = ("bundledDependencies", "bundleDependencies", "overrides", "resolutions")
SIDE_NAMES = re.compile(
    r".*\.(?:config|conf|setup|stories|bench|d)\.[cm]?[jt]sx?|\..*|(?:Gruntfile|gulpfile|Gulpfile).*"
)
TESTS = re.compile(
    r"(?:^|/)(?:tests?|__tests__|__mocks__|spec|e2e|cypress)/|\.(?:test|spec)\.[cm]?[jt]sx?$|-test\."
)
MAX_MANIFESTS = 500


class Manifest(NamedTuple):
    folder: str
    data: dict[str, Any]


class Alias(NamedTuple):
    """A pattern of `paths` in a tsconfig, and the places that it stands for."""

    pattern: str
    targets: tuple[str, ...]


class JsProject:
    """The modules of a tree, found as bundlers and TypeScript would find them."""

    def __init__(self, tree: SourceTree, touched: frozenset[str] = frozenset()) -> None:
        self.tree = tree
        self._touched = touched
        self._modules: dict[str, JsModule | None] = {}

    def module(self, path: str) -> JsModule | None:
        if path not in self._modules:
            data = self.tree.read(path)
            self._modules[path] = (
                read_module(path, data) if data is not None and is_javascript(path) else None
            )
        return self._modules[path]

    @cached_property
    def _manifests(self) -> tuple[Manifest, ...]:
        paths = [path for path in self.tree.files if PurePosixPath(path).name == "package.json"]
        nearest = sorted(paths, key=lambda path: (path.count("/"), path))[:MAX_MANIFESTS]
        return tuple(Manifest(posixpath.dirname(path), loose_json(self.tree.text(path))) for path in nearest)

    @cached_property
    def _is_other_runtime(self) -> bool:
        """Whether imports are mapped elsewhere than in a package.json."""
        names = {PurePosixPath(path).name for path in self.tree.files}
        return not names.isdisjoint(
            {"deno.json", "deno.jsonc", "import_map.json", "importmap.json", ".pnp.cjs", "jsr.json"}
        )

    @cached_property
    def _configs(self) -> dict[str, tuple[Alias, ...]]:
        """Aliases by the folder of their tsconfig; `extends` is read through the union of all configs."""
        found: dict[str, tuple[Alias, ...]] = {}
        for path in self.tree.files:
            if re.fullmatch(r"[jt]sconfig.*\.json", PurePosixPath(path).name):
                options = loose_json(self.tree.text(path)).get("compilerOptions")
                if isinstance(options, dict):
                    folder = posixpath.dirname(path)
                    found[folder] = (*found.get(folder, ()), *_aliases(folder, options))
        return found

    @cached_property
    def _has_root_dirs(self) -> bool:
        names = [
            path for path in self.tree.files if re.fullmatch(r"[jt]sconfig.*\.json", PurePosixPath(path).name)
        ]
        return any('"rootDirs"' in self.tree.text(path) for path in names)

    def find(self, path: str, source: str) -> tuple[str, ...] | None:
        """The files that a relative import or an alias may mean; empty: unknown; None: there is none."""
        plain = re.split(r"[?!]", source)[0]
        if plain != source or not plain:
            return ()
        if re.match(r"\.\.?(?:/|$)", plain):
            base = posixpath.normpath(posixpath.join(posixpath.dirname(path), plain))
            if base.startswith("..") or self._has_root_dirs:
                return self._files(base)
            return self._files(base) or self._missing(base)
        for alias in (each for folder in _parents(path) for each in self._configs.get(folder, ())):
            start, star, end = alias.pattern.partition("*")
            if (
                star
                and plain.startswith(start)
                and plain.endswith(end)
                and len(plain) >= len(start) + len(end)
            ):
                inner = plain[len(start) : len(plain) - len(end)]
                bases = [target.replace("*", inner) for target in alias.targets]
            elif plain == alias.pattern:
                bases = list(alias.targets)
            else:
                continue
            if any(base.startswith("..") for base in bases):
                return ()
            if files := tuple(file for base in bases for file in self._files(base)):
                return files
            # `*` alone is a base folder: what is not below it is a package.
            return None if start and not any(self._missing(base) is not None for base in bases) else ()
        return ()

    def _files(self, base: str) -> tuple[str, ...]:
        candidates = [base, *(base + ending for ending in (*CODE, *OTHER))]
        stem, ending = posixpath.splitext(base)
        candidates += [stem + source for source in WRITTEN.get(ending, ())]
        found = tuple(each for each in candidates if self.tree.is_file(each))
        if not found and self.tree.is_folder(base):
            inner = [f"{base}/index{ending}" for ending in (*CODE, *OTHER)]
            found = tuple(each for each in inner if self.tree.is_file(each))
            if not found and self.tree.is_file(f"{base}/package.json"):
                return (f"{base}/package.json",)
        return found

    def _missing(self, base: str) -> tuple[str, ...] | None:
        """None if a file certainly does not exist, and no build makes it."""
        ending = posixpath.splitext(base)[1]
        if self.tree.exists(base) and not self.tree.is_folder(base):
            return ()
        if (
            ending
            and ending not in CODE
            and re.fullmatch(r"\.[a-z0-9]{2,5}", ending)
            and not ending[1:].isdigit()
        ):
            known = ending in (".vue", ".svelte", ".json")
            if not known:
                return ()
        stem = base[: -len(ending)] if ending in CODE else base
        names = self.tree.names_in(posixpath.dirname(stem) or ".")
        if any(name.startswith(f"{posixpath.basename(stem)}.") for name in names):
            return ()  # in a language that is not known here, or for one platform
        return () if self.tree.may_be_generated(stem) else None

    def exports(self, files: tuple[str, ...], seen: frozenset[str] = frozenset()) -> frozenset[str] | None:
        """The names that modules export, together; None if they may export others."""
        names: set[str] = set()
        for file in files:
            module = self.module(file)
            if file in seen:
                continue
            if module is None or module.is_open or len(seen) > 100:
                return None
            names |= module.exports
            for source in module.stars:
                target = self.find(file, source)
                inner = self.exports(target, seen | {file}) if target else None
                if inner is None:
                    return None
                names |= inner - {"default"}
        return frozenset(names)

    @cached_property
    def _declared_modules(self) -> frozenset[str]:
        """Modules that declarations in the tree make known, and names of the tree's own packages."""
        own = {str(manifest.data.get("name", "")) for manifest in self._manifests}
        declarations = [path for path in self.tree.files if path.endswith((".d.ts", ".d.mts"))][
            :MAX_MANIFESTS
        ]
        modules = [module for path in declarations if (module := self.module(path))]
        return frozenset(own | {name for module in modules for name in module.ambient})

    def missing_package(self, path: str, each: JsImport) -> str:
        """The package to declare for an import; empty if it is declared, or nobody can tell."""
        source = each.source
        if (
            each.is_type
            or ":" in source
            or source.startswith((".", "/", "#", "~", "$"))
            or self._is_other_runtime
        ):
            return ""
        parts = source.split("/")
        name = "/".join(parts[:2] if source.startswith("@") else parts[:1])
        if not PACKAGE.fullmatch(name) or (parts[0] in NODE) or name in ("@", ""):
            return ""
        folders = set(_parents(path))
        if path.endswith(TYPESCRIPT) and folders.isdisjoint(self._configs):
            return ""  # its aliases are not known
        manifests = [manifest.data for manifest in self._manifests if manifest.folder in folders]
        if not any(isinstance(data.get(group), dict) for data in manifests for group in GROUPS):
            return ""
        if name in self._declared_modules or source in self._declared_modules:
            return ""
        if any(_lists(data, name) for data in manifests) or self._is_below_base(path, source):
            return ""
        is_test = bool(TESTS.search(path))
        if is_test and not any(data.get("devDependencies") for data in manifests):
            return ""
        return "" if self._is_used_elsewhere(name) else name

    def _is_used_elsewhere(self, name: str) -> bool:
        """Whether a file that the change did not touch imports a package, so that something provides it."""
        pattern = re.compile(rb"(?:from|import|require\()\s*[\"']%b[\"'/]" % re.escape(name.encode()))
        found = self.tree.search([name.encode()], ENDINGS)
        return any(path not in self._touched and pattern.search(data) for path, data in found)

    def _is_below_base(self, path: str, source: str) -> bool:
        """Whether an import is a path from a base folder, or an alias, of TypeScript or of a bundler."""
        top = source.partition("/")[0]
        for folder in _parents(path):
            for alias in self._configs.get(folder, ()):
                if alias.pattern == source or (
                    alias.pattern != "*" and source.startswith(alias.pattern.partition("*")[0])
                ):
                    return True
            names = {posixpath.splitext(name)[0] for name in self.tree.names_in(folder or ".")}
            names |= {
                posixpath.splitext(name)[0] for name in self.tree.names_in(posixpath.join(folder, "src"))
            }
            if top in names:
                return True
        return any(f'"{top}"' in text or f"'{top}'" in text for text in self._bundler_texts)

    @cached_property
    def _bundler_texts(self) -> tuple[str, ...]:
        names = re.compile(
            r"(?:vite|vitest|webpack|rollup|jest|babel|next|nuxt|metro|esbuild|rspack|svelte)\.config\..*|\.babelrc.*"
        )
        found = [path for path in self.tree.files if names.fullmatch(PurePosixPath(path).name)]
        return tuple(self.tree.text(path) for path in found[:50])


def check_imports(project: JsProject, path: str, old: JsModule | None) -> Iterator[Issue]:
    """Issues of the imports of one file; `old` is what it was before, if that is known."""
    module = project.module(path)
    if module is None or is_test_data(path) or is_generated(path):
        return
    before = {each.source for each in old.imports} if old else set()
    for each in module.imports[:5_000]:
        if problem := broken_import(project, path, each):
            yield Issue("consistency", "high", problem, path, each.line, rule="broken-import")
        elif old is None or each.source in before:
            continue  # what was imported before the change is not the change's affair
        elif not _is_beside(path) and (name := project.missing_package(path, each)):
            message = f"`{each.source}` is imported, but {name} is not a declared dependency"
            fix = f"Add {name} to package.json, or remove the import."
            yield Issue(
                "consistency", "high", message, path, each.line, rule="undeclared-dependency", fix=fix
            )


def broken_import(project: JsProject, path: str, each: JsImport) -> str:
    """What does not exist of an import within the tree; empty if it is fine, or nobody can tell."""
    files = project.find(path, each.source)
    if files is None:
        return "" if each.is_optional else f"`{each.source}` does not exist"
    if not files or not each.names:
        return ""
    exported = project.exports(files)
    if exported is None:
        return ""
    for name in each.names:
        if name not in exported and not (name == "default" and each.is_type):
            what = "no default export" if name == "default" else f"no export `{name}`"
            return f"`{each.source}` has {what}"
    return ""


def _is_beside(path: str) -> bool:
    """Whether a file is not part of the package itself, so that it may use what happens to be installed."""
    *folders, name = PurePosixPath(path).parts
    return not SIDE_FOLDERS.isdisjoint(folders) or bool(SIDE_NAMES.fullmatch(name))


def _lists(data: dict[str, Any], name: str) -> bool:
    names = {name, f"@types/{name.removeprefix('@').replace('/', '__')}"}
    groups = [data.get(group) for group in GROUPS + OTHER_GROUPS]
    return any(each in group for group in groups if isinstance(group, dict | list) for each in names)


def _aliases(folder: str, options: dict[str, Any]) -> Iterator[Alias]:
    base = options.get("baseUrl")
    start = posixpath.join(folder, base) if isinstance(base, str) else folder
    paths = options.get("paths")
    for pattern, targets in paths.items() if isinstance(paths, dict) else ():
        if isinstance(targets, list):
            places = [
                posixpath.normpath(posixpath.join(start, each)) for each in targets if isinstance(each, str)
            ]
            yield Alias(pattern, tuple(places))
    if isinstance(base, str):
        yield Alias("*", (posixpath.normpath(posixpath.join(start, "*")),))


def _parents(path: str) -> list[str]:
    return ["" if str(parent) == "." else str(parent) for parent in PurePosixPath(path).parents]


def loose_json(text: str) -> dict[str, Any]:
    """A JSON object with comments and trailing commas; empty where it is none."""
    strings = r'"(?:[^"\\]|\\.)*"'
    plain = re.sub(rf"({strings})|//[^\n]*|/\*.*?\*/", lambda found: found[1] or "", text, flags=re.DOTALL)
    plain = re.sub(rf"({strings})|,(?=\s*[}}\]])", lambda found: found[1] or "", plain)
    try:
        data = json.loads(plain)
    except (ValueError, RecursionError):
        return {}
    return data if isinstance(data, dict) else {}
