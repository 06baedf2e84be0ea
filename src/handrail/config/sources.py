"""Sources: servers of the Model Context Protocol (MCP), each defined in a folder or in `.mcp.json`.

    sources/github/source.toml      beside the user's settings, or in a workspace
    .mcp.json                       in a workspace, in the format that other programs read

A source of a workspace can be used once the user has trusted the exact bytes of its definition, and of the
files of the workspace that its command and variables name. The user's come before the workspace's.
"""

import hashlib
import json
import os
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from itertools import islice, pairwise
from pathlib import Path
from typing import Annotated, Any, Literal, NamedTuple
from urllib.parse import urlsplit

from msgspec import Meta, ValidationError, convert, field

from handrail.config.places import Places
from handrail.config.settings import workspace_file
from handrail.config.toml_file import KeyPath, TomlFile, parse_toml, read_bytes
from handrail.config.trust import trusted_sources
from handrail.protocol.errors import ConfigProblem, UsageProblem
from handrail.protocol.problems import WrongField, problems_in
from handrail.protocol.values import Value, is_deeper

SOURCE_FILE, FOLDER, JSON_FILE = "source.toml", "sources", ".mcp.json"
NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,39}")
NAME_RULE = "letters, digits, `-` and `_`, at most 40"
MAX_SOURCES, MAX_ENTRIES, MAX_DEPTH = 50, 5_000, 16
LOOPBACK = ("localhost", "127.0.0.1", "::1")

Origin = Literal["yours", "workspace"]
Trust = Literal["own", "trusted", "untrusted", "changed"]
Line = Annotated[str, Meta(max_length=300, pattern=r"^[^\x00-\x1f]*$")]
Text = Annotated[str, Meta(max_length=4_000, pattern=r"^[^\x00]*$")]
Variable = Annotated[str, Meta(pattern=r"^[A-Za-z_][A-Za-z0-9_]{0,99}$")]
Header = Annotated[str, Meta(pattern=r"^[A-Za-z0-9-]{1,100}$")]
ToolPattern = Annotated[str, Meta(min_length=1, max_length=200)]
Seconds = Annotated[float, Meta(gt=0, le=3_600)]


class ToolRules(Value):
    """Names of tools; `*` stands for any characters."""

    allow: tuple[ToolPattern, ...] = ("*",)
    """The only ones that can be used."""
    deny: tuple[ToolPattern, ...] = ()
    """Never used."""
    unasked: tuple[ToolPattern, ...] = ()
    """In mode auto and sandbox they run without asking."""


class OAuthEntry(Value):
    """For a server that does not register clients by itself."""

    client_id: Text = ""
    client_secret: Text = ""
    """As `${NAME}`, which stands for a stored secret."""
    scopes: tuple[Line, ...] = ()


class SourceFile(Value, kw_only=True):
    """What `source.toml` can say."""

    description: Line = ""
    """One line for the model: what the source is for."""
    enabled: bool = True
    """False: only agents that need the source can use it."""
    command: Annotated[tuple[Text, ...], Meta(max_length=100)] = ()
    """The program that is the server, and its arguments."""
    env: dict[Variable, Text] = field(default_factory=dict)
    """Variables of the program; `${NAME}` stands for a stored secret or a variable of yours."""
    network: bool = False
    writes: tuple[Text, ...] = ()
    """Where the program may write: `workspace`, `.git`, or folders."""
    url: Text = ""
    """Of a server that is reached over streamable HTTP, in place of a command."""
    headers: dict[Header, Text] = field(default_factory=dict)
    oauth: OAuthEntry = OAuthEntry()
    tools: ToolRules = ToolRules()
    trust_annotations: bool = False
    """Believe the server when it says that a tool only reads."""
    start_seconds: Seconds = 60.0
    call_seconds: Seconds = 60.0

    def __post_init__(self) -> None:
        if bool(self.command) == bool(self.url):
            raise WrongField("command", "should be there, or `url` should be: one of the two")
        if self.command and not self.command[0]:
            raise WrongField("command", "should begin with a program")
        if self.url:
            _check_url(self)

    @property
    def kind(self) -> Literal["stdio", "http"]:
        return "http" if self.url else "stdio"

    @property
    def variables(self) -> list[str]:
        """The names that `${NAME}` stands for, in order."""
        texts = self._texts
        found = dict.fromkeys(match["name"] for text in texts for match in REFERENCE.finditer(text))
        return [name for name in found if name not in OWN_VARIABLES]

    @property
    def _texts(self) -> tuple[str, ...]:
        return (*self.command, *self.env.values(), self.url, *self.headers.values(), self.oauth.client_secret)

    @property
    def required(self) -> list[str]:
        """Those of them that have no `${NAME:-otherwise}`."""
        texts = self._texts
        found = (match for text in texts for match in REFERENCE.finditer(text))
        names = dict.fromkeys(match["name"] for match in found if match["otherwise"] is None)
        return [name for name in names if name not in OWN_VARIABLES]


SECTIONS = (SourceFile, ToolRules, OAuthEntry)
REFERENCE = re.compile(r"\$\{(?P<name>[A-Za-z_][A-Za-z0-9_]*)(?::-(?P<otherwise>[^}]*))?\}")
OWN_VARIABLES = ("WORKSPACE", "CACHE", "HOME")
"""`${WORKSPACE}` is its folder, `${CACHE}` a folder of the source's own that it may write."""


def _check_url(file: SourceFile) -> None:
    try:
        parts = urlsplit(file.url)
        host = parts.hostname or ""
    except ValueError as error:
        raise WrongField("url", f"is not an address ({error})") from error
    if parts.scheme not in ("http", "https") or (not host and "${" not in file.url):
        raise WrongField("url", "should begin with https:// or http:// and name a host")
    if parts.username is not None:
        raise WrongField("url", "should have no user name in it; use `headers`")
    if parts.scheme == "http" and host not in LOOPBACK:
        raise WrongField("url", "should begin with https://: without encryption only this machine is reached")
    if file.env or file.writes:
        raise WrongField("env" if file.env else "writes", "is for a command, not for a url; remove it")


class Source(NamedTuple):
    """A definition as it was read."""

    name: str
    where: Origin
    path: Path
    file: SourceFile
    data: bytes
    """The bytes of the definition."""
    programs: Mapping[str, bytes] = {}
    """Files of the workspace that the command and its variables name, by their paths in it."""

    @property
    def sha256(self) -> str:
        """Hash of the definition and of the files that it names."""
        parts = {self.path.name: self.data, **self.programs}
        lines = [f"{name}\0{hashlib.sha256(data).hexdigest()}" for name, data in sorted(parts.items())]
        return hashlib.sha256("\n".join([self.name, *lines]).encode()).hexdigest()


class SourceFolders:
    """The sources of the user and of a workspace, read when they are asked for."""

    def __init__(self, places: Places, workspace: Path, *, trusted: bool = False) -> None:
        """`trusted`: the workspace's may be used in this process."""
        self._places = places
        self._workspace = Path(os.path.realpath(workspace))
        self._trusted = trusted
        self._parsed: dict[tuple[Path, bytes], dict[str, SourceFile | ConfigProblem]] = {}

    def all(self) -> "tuple[list[Source], dict[str, ConfigProblem]]":
        """Every source, also those that another of the same name hides; and {name: problem} of the rest."""
        found, wrong = list[Source](), dict[str, ConfigProblem]()
        for where, path in self._files():
            data, files = self._read(path)
            for name, file in files.items():
                if isinstance(file, ConfigProblem):
                    wrong.setdefault(name, file)
                    continue
                try:
                    found.append(self._source(name, where, path, file, data))
                except ConfigProblem as problem:
                    wrong.setdefault(name, problem)
        return found[:MAX_SOURCES], wrong

    def used(self) -> dict[str, Source]:
        """By name, those that are not hidden by another."""
        found: dict[str, Source] = {}
        for each in self.all()[0]:
            found.setdefault(each.name, each)
        return found

    def usable(self, needed: tuple[str, ...] = ()) -> dict[str, Source]:
        """Those that the model may use now: trusted, and enabled or needed by the agent that runs."""
        if not any(path for _, path in self._files()):
            return {}
        return {
            name: each
            for name, each in self.used().items()
            if self.trust(each) in ("own", "trusted") and (each.file.enabled or name in needed)
        }

    def named(self, name: str) -> Source:
        """The source of this name; raises UsageProblem if there is none, ConfigProblem if it is wrong."""
        found, wrong = self.all()
        for each in found:
            if each.name == name:
                return each
        if name in wrong:
            raise wrong[name]
        names = ", ".join(sorted({each.name for each in found})) or "none"
        raise UsageProblem(f"There is no source {name[:80]!r}. Sources here: {names}.")

    def find_usable(self, name: str, needed: tuple[str, ...] = ()) -> Source:
        """The source of this name; raises where it is wrong, missing, not trusted or switched off."""
        source = self.named(name)
        if (trust := self.trust(source)) in ("untrusted", "changed"):
            how = "has changed since you trusted it" if trust == "changed" else "is not trusted"
            raise UsageProblem(
                f"The source {name} came with this workspace and {how}. `handrail trust` lets you look at it "
                "and trust it."
            )
        if not source.file.enabled and name not in needed:
            raise UsageProblem(f"The source {name} is switched off: `enabled = false` in {source.path}.")
        return source

    def why_not(self, name: str) -> str:
        """Why an agent that needs the source cannot have it; empty where it can."""
        try:
            self.find_usable(name, needed=(name,))
        except (UsageProblem, ConfigProblem) as problem:
            return str(problem)
        return ""

    def trust(self, source: Source) -> Trust:
        if source.where == "yours":
            return "own"
        before = trusted_sources(self._places, self._workspace).get(source.name)
        if self._trusted or before == source.sha256:
            return "trusted"
        return "changed" if before else "untrusted"

    def untrusted(self) -> "tuple[list[tuple[Source, Trust]], dict[str, ConfigProblem]]":
        """Sources of the workspace that wait for trust; and {name: problem} of those that are wrong."""
        waiting = [(each, self.trust(each)) for each in self.used().values()]
        return [(each, trust) for each, trust in waiting if trust not in ("own", "trusted")], self.all()[1]

    def folder(self, where: Origin) -> Path:
        return self._workspace / FOLDER if where == "workspace" else self._places.settings.parent / FOLDER

    def remove(self, source: Source) -> None:
        """Remove the definition of a source of the user's, and its folder if nothing else is in it."""
        try:
            source.path.unlink(missing_ok=True)
            with suppress(OSError):
                source.path.parent.rmdir()
        except OSError as error:
            raise ConfigProblem(f"{source.path} cannot be removed ({error.strerror}).") from error

    def _files(self) -> list[tuple[Origin, Path]]:
        """The files that define sources, those of the user first."""
        found: list[tuple[Origin, Path]] = []
        origins: tuple[Origin, ...] = ("yours", "workspace")
        for where in origins:
            folder = self.folder(where)
            try:
                with os.scandir(folder) as entries:
                    names = sorted(entry.name for entry in islice(entries, MAX_ENTRIES))
            except OSError:
                names = []
            paths = (folder / name / SOURCE_FILE for name in names)
            found += [(where, path) for path in paths if os.path.lexists(path)]
        if os.path.lexists(shared := self._workspace / JSON_FILE):
            found.append(("workspace", shared))
        return found[:MAX_SOURCES]

    def _read(self, path: Path) -> tuple[bytes, dict[str, SourceFile | ConfigProblem]]:
        """The bytes of a file, and {name: definition, or what is wrong with it}."""
        name = path.parent.name if path.name == SOURCE_FILE else path.name
        try:
            data = read_bytes(path)
        except ConfigProblem as problem:
            return b"", {name: problem}
        if data is None:
            return b"", {}
        if (path, data) not in self._parsed:
            if len(self._parsed) > MAX_SOURCES * 2:
                self._parsed.clear()
            self._parsed[path, data] = _parse(path, data)
        return data, self._parsed[path, data]

    def _source(self, name: str, where: Origin, path: Path, file: SourceFile, data: bytes) -> Source:
        if where == "yours":
            return Source(name, where, path, file, data)
        if Path(os.path.realpath(path)) != path:
            raise ConfigProblem(f"{path} leads elsewhere; a workspace's source has to be a file. Copy it.")
        programs = {}
        for found in _named_files(file, self._workspace, path):
            programs[found.relative_to(self._workspace).as_posix()] = read_bytes(found) or b""
        return Source(name, where, path, file, data, programs)


# Files of the workspace that a definition names

SEPARATORS = re.compile(r"""[\s:;,=&|()<>"'`]+""")
MODULE_OPTION = re.compile(r"-[A-Za-z]*m(?P<name>.*)")
SHORT_OPTION = re.compile(r"-[A-Za-z](?P<value>.+)")
MODULE = re.compile(r"\w+(\.\w+)*")
READS_PACKAGE = ("node", "bun", "npm", "pnpm", "yarn")
"""Programs that find in the package.json of their folder what to run."""
MAX_NAMED = 1_000


def _named_files(file: SourceFile, workspace: Path, path: Path) -> Iterator[Path]:
    """The files that the program is started from, or told of: any of them can be what runs.

    Variables count with the value that they have now, and without it.
    """
    names, folders = dict[str, None](), {str(workspace): None}
    variables: tuple[Mapping[str, str], ...] = (os.environ, {})
    for environ in variables:
        words, values = (
            [_filled(text, workspace, environ) for text in texts]
            for texts in (file.command, file.env.values())
        )
        names |= dict.fromkeys((*words, *_names_in(words), *values, *_names_in(values)))
        places = (os.path.realpath(workspace / each) for text in values for each in text.split(":"))
        inside = (each for each in places if Path(each).is_relative_to(workspace))
        folders |= {each: None for each in inside if os.path.isdir(each)}
        if words and os.path.basename(words[0]) in READS_PACKAGE:
            names["package.json"] = None
    names.pop("", None)
    if len(names) * len(folders) > MAX_NAMED:
        raise ConfigProblem(f"{path}: the command and its variables are too long; put them in a script.")
    for folder in map(Path, folders):
        for name in names:
            whole = os.path.realpath(folder / os.path.expanduser(name)) == str(workspace)
            for ending in ("", ".js", "/__main__.py", "/index.js", *(() if whole else ("/package.json",))):
                if found := workspace_file(name + ending, folder, workspace):
                    yield found


def _filled(text: str, workspace: Path, environ: Mapping[str, str]) -> str:
    own = {"WORKSPACE": str(workspace), "HOME": os.path.expanduser("~")}

    def value(match: re.Match[str]) -> str:
        return own.get(match["name"]) or environ.get(match["name"]) or match["otherwise"] or ""

    return REFERENCE.sub(value, text)


def _names_in(texts: Iterable[str]) -> Iterator[str]:
    """The parts of words that may be paths, and the files of modules after `-m`."""
    parts = [part for text in texts for part in SEPARATORS.split(text) if part]
    for before, part in pairwise(("", *parts)):
        yield part
        if short := SHORT_OPTION.fullmatch(part):
            yield short["value"]
        if module := MODULE_OPTION.fullmatch(part):
            yield from _module_files(module["name"])
        if (option := MODULE_OPTION.fullmatch(before)) and not option["name"]:
            yield from _module_files(part)


def _module_files(module: str) -> Iterator[str]:
    if not MODULE.fullmatch(module):
        return
    place = module.replace(".", "/")
    yield from (f"{place}.py", f"{place}/__main__.py")
    while place:
        yield f"{place}/__init__.py"
        place = place.rpartition("/")[0]


# Reading definitions


def _parse(path: Path, data: bytes) -> dict[str, SourceFile | ConfigProblem]:
    if path.name != SOURCE_FILE:
        return _parse_json(path, data)
    name = path.parent.name
    try:
        if not NAME.fullmatch(name):
            raise ConfigProblem(f"{path}: {name[:80]!r} cannot be a source's name: {NAME_RULE}.")
        toml = parse_toml(path, data)
        return {name: _convert(toml.data, toml.place)}
    except ConfigProblem as problem:
        return {name: problem}


def parse_source(path: Path, data: bytes) -> SourceFile:
    """The definition in these bytes of a `source.toml`; raises ConfigProblem with file and line."""
    toml: TomlFile = parse_toml(path, data)
    return _convert(toml.data, toml.place)


def _convert(data: Any, place: Callable[[KeyPath], str]) -> SourceFile:
    try:
        return convert(data, SourceFile)
    except ValidationError as error:
        problem = min(problems_in(data, SourceFile), key=lambda each: each.kind != "unknown")
        at = place(tuple(map(str, problem.path)))
        if problem.kind == "unknown":
            known = ", ".join(sorted({name for section in SECTIONS for name in section.__struct_fields__}))
            raise ConfigProblem(f"{at}: unknown key {problem.where!r}; known are {known}.") from error
        raise ConfigProblem(f"{at}: {problem.where} {problem.should}.") from error


def _parse_json(path: Path, data: bytes) -> dict[str, SourceFile | ConfigProblem]:
    """The servers of `.mcp.json`. Keys of other programs are left alone; `handrail` has keys of ours."""
    try:
        content = json.loads(data)
        if is_deeper(content, MAX_DEPTH):
            raise ValueError("it is nested too deeply")
        servers = content["mcpServers"]
        entries = dict(islice(servers.items(), MAX_SOURCES))
    except (ValueError, RecursionError, KeyError, AttributeError, TypeError) as error:
        why = "`mcpServers` is missing, or no object" if not isinstance(error, ValueError) else str(error)
        return {path.name: ConfigProblem(f"{path}: {why}. Correct it, or remove it.")}
    found: dict[str, SourceFile | ConfigProblem] = {}
    for name, entry in entries.items():
        try:
            if not NAME.fullmatch(name):
                raise ConfigProblem(f"{path}: {name[:80]!r} cannot be a source's name: {NAME_RULE}.")
            found[name] = _convert(_from_json(entry), lambda key, name=name: f"{path}: {name}")  # type: ignore[misc]
        except ConfigProblem as problem:
            found[name[:80]] = problem
    return found


def _from_json(entry: Any) -> Any:
    """An entry of `.mcp.json` in our own words. What it starts may use the network, as it may elsewhere."""
    if not isinstance(entry, dict):
        return entry
    if entry.get("url"):
        kept = {name: entry[name] for name in ("url", "headers") if name in entry}
    else:
        arguments = entry.get("args")
        command = [entry.get("command"), *(arguments if isinstance(arguments, list) else [])]
        kept = {"command": command, "network": True}
        kept |= {"env": entry["env"]} if "env" in entry else {}
    more = entry.get("handrail")
    description = {"description": entry["description"]} if "description" in entry else {}
    enabled = {"enabled": False} if entry.get("disabled") is True else {}
    return {**kept, **description, **enabled, **(more if isinstance(more, dict) else {})}
