"""Skills: folders with a `SKILL.md`, in the public Agent Skills format.

    skills/release-notes/
        SKILL.md            front matter (name, description), then instructions for the model
        references/...      files that the instructions name

The user's are in `skills/` beside the settings file, a workspace's in `.agents/skills/`, `.claude/skills/`
or `.handrail/skills/`. A workspace's skill can be used once the user has trusted the exact bytes of all its
files. A skill is text for the model and gives no permission: what the model does with it passes the gate.
"""

import hashlib
import os
import re
import unicodedata
from collections.abc import Iterator, Mapping
from itertools import islice
from pathlib import Path
from typing import Any, Literal, NamedTuple

from handrail.config.open_file import FileTooLarge, NotAFile, read_file
from handrail.config.places import Places
from handrail.config.trust import trusted_skills
from handrail.protocol.errors import ConfigProblem, UsageProblem

SKILL_FILE, FOLDER = "SKILL.md", "skills"
WORKSPACE_FOLDERS = (".agents/skills", ".claude/skills", ".handrail/skills")
NAME = re.compile(r"[a-z0-9]+(?:-[a-z0-9]+)*")
NAME_RULE = "small letters, digits and single dashes, at most 64"
REQUIRED = ("name", "description")
KEYS = (*REQUIRED, "license", "compatibility", "metadata", "allowed-tools")
MAX_NAME, MAX_DESCRIPTION, MAX_BYTES = 64, 1_024, 64_000
MAX_SKILLS, MAX_ENTRIES, MAX_FILES, MAX_FOLDER_BYTES, MAX_DEPTH = 100, 5_000, 200, 4_000_000, 6
FRONT_MATTER = re.compile(
    r"---[ \t]*\n(?P<head>.*?)^---[ \t]*(?:\n|\Z)(?P<body>.*)", re.DOTALL | re.MULTILINE
)

Origin = Literal["yours", "workspace"]
Trust = Literal["own", "trusted", "untrusted", "changed"]


class FoundSkill(NamedTuple):
    """A folder that has a `SKILL.md`."""

    name: str
    folder: Path
    where: Origin


class Skill(NamedTuple):
    found: FoundSkill
    description: str
    body: str
    files: Mapping[str, bytes]
    """All files by their paths in the folder. For a skill of the user: only `SKILL.md`."""
    warnings: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        return self.found.name

    @property
    def sha256(self) -> str:
        """Hash of all names and contents."""
        lines = [f"{name}\0{self.sha256_of(name)}" for name in sorted(self.files)]
        return hashlib.sha256("\n".join(lines).encode()).hexdigest()

    def sha256_of(self, file: str) -> str:
        return hashlib.sha256(self.files[file]).hexdigest()


class SkillFolders:
    """The skills of the user and of a workspace, read when they are asked for."""

    def __init__(self, places: Places, workspace: Path, *, trusted: bool = False) -> None:
        """`trusted`: the workspace's may be used in this process."""
        self._places = places
        self._workspace = Path(os.path.realpath(workspace))
        self._trusted = trusted

    def all(self) -> list[FoundSkill]:
        """Every folder with a `SKILL.md`; of two with one name, the first is used."""
        return [
            FoundSkill(path.name, path, where) for where, folder in self._folders() for path in _in(folder)
        ]

    def used(self) -> dict[str, FoundSkill]:
        """By name, those that are not hidden by another: the user's come before the workspace's."""
        found: dict[str, FoundSkill] = {}
        for each in self.all():
            found.setdefault(each.name, each)
        return found

    def usable(self) -> list[Skill]:
        """The skills that the model may be told of; others, and broken ones, are left out."""
        known = trusted_skills(self._places, self._workspace)
        skills = []
        for name, found in sorted(self.used().items()):
            if found.where == "workspace" and not (self._trusted or name in known):
                continue  # not even read
            try:
                skill = self.load(found)
            except ConfigProblem:
                continue  # `handrail skills validate` says why
            if self.trust(skill) in ("own", "trusted"):
                skills.append(skill)
        return skills

    def named(self, name: str) -> FoundSkill:
        """The skill of this name; raises UsageProblem where there is none."""
        used = self.used()
        if name in used:
            return used[name]
        raise UsageProblem(
            f"There is no skill {name[:80]!r}. Skills here: {', '.join(sorted(used)) or 'none'}."
        )

    def find_usable(self, name: str) -> Skill:
        """The skill of this name; raises where it is wrong, missing or not trusted."""
        skill = self.load(self.named(name))
        if (trust := self.trust(skill)) in ("untrusted", "changed"):
            changed = "has changed since you trusted it" if trust == "changed" else "is not trusted"
            raise UsageProblem(
                f"The skill {name} came with this workspace and {changed}. `handrail trust` lets "
                "you look at it and trust it."
            )
        return skill

    def load(self, found: FoundSkill) -> Skill:
        """The skill as its files are now; raises ConfigProblem with file and line."""
        path = found.folder / SKILL_FILE
        if not NAME.fullmatch(found.name) or len(found.name) > MAX_NAME:
            raise ConfigProblem(
                f"{path}: {found.name[:80]!r} cannot be a skill's name: {NAME_RULE}. Rename the folder."
            )
        if found.where == "workspace":
            self._refuse_links(found)
            files = dict(_read_all(found.folder))
        else:
            files = {SKILL_FILE: _read(path, MAX_BYTES)}
        if len(files[SKILL_FILE]) > MAX_BYTES:
            raise ConfigProblem(
                f"{path} has more than {MAX_BYTES:,} bytes. Move parts of it to files beside it."
            )
        return _parse(found, files)

    def file(self, skill: Skill, name: str) -> bytes:
        """The content of a file of the skill; raises UsageProblem where it is missing or leads elsewhere."""
        if skill.found.where == "workspace":
            if (data := skill.files.get(os.path.normpath(name))) is not None:
                return data
            raise UsageProblem(f"The skill {skill.name} has no file {name[:200]!r}. {_listed(skill.files)}")
        root = Path(os.path.realpath(skill.found.folder))
        path = Path(os.path.realpath(root / name))
        if not path.is_relative_to(root):
            raise UsageProblem(
                f"{name[:200]!r} leads out of the skill {skill.name}. Name a file of the skill."
            )
        if not path.is_file():
            raise UsageProblem(
                f"The skill {skill.name} has no file {name[:200]!r}. {_listed(self.names(skill))}"
            )
        try:
            return _read(path, MAX_FOLDER_BYTES)
        except ConfigProblem as problem:
            raise UsageProblem(str(problem)) from problem

    def names(self, skill: Skill) -> list[str]:
        """The skill's files, without `SKILL.md`."""
        if skill.found.where == "workspace":
            return sorted(name for name in skill.files if name != SKILL_FILE)
        return sorted(name for name, _ in islice(_walk(skill.found.folder), MAX_FILES) if name != SKILL_FILE)

    def trust(self, skill: Skill) -> Trust:
        if skill.found.where == "yours":
            return "own"
        before = trusted_skills(self._places, self._workspace).get(skill.name)
        if self._trusted or before == skill.sha256:
            return "trusted"
        return "changed" if before else "untrusted"

    def untrusted(self) -> tuple[list[tuple[Skill, Trust]], dict[str, ConfigProblem]]:
        """Skills of the workspace that wait for trust; and {name: problem} of those that cannot be used."""
        waiting, wrong = list[tuple[Skill, Trust]](), dict[str, ConfigProblem]()
        for name, found in self.used().items():
            if found.where == "yours":
                continue
            try:
                skill = self.load(found)
            except ConfigProblem as problem:
                wrong[name] = problem
            else:
                if (trust := self.trust(skill)) != "trusted":
                    waiting.append((skill, trust))
        return waiting, wrong

    def folder(self, where: Origin) -> Path:
        return dict(reversed(self._folders()))[where]

    def _folders(self) -> list[tuple[Origin, Path]]:
        shared = [self._workspace / name for name in WORKSPACE_FOLDERS]
        return [("yours", self._places.settings.parent / FOLDER), *(("workspace", each) for each in shared)]

    def _refuse_links(self, found: FoundSkill) -> None:
        if Path(os.path.realpath(found.folder)) != found.folder:
            raise ConfigProblem(
                f"{found.folder} leads elsewhere; a skill of a workspace has to be a folder. Copy it."
            )


def _in(folder: Path) -> list[Path]:
    try:
        with os.scandir(folder) as entries:
            names = sorted(entry.name for entry in islice(entries, MAX_ENTRIES))
    except OSError:
        return []
    return [folder / name for name in names if os.path.lexists(folder / name / SKILL_FILE)][:MAX_SKILLS]


def _walk(folder: Path) -> Iterator[tuple[str, os.DirEntry[str]]]:
    """Every file below a folder by its path in it; links to folders are not followed."""
    waiting = [(folder, "", 1)]
    while waiting:
        place, prefix, depth = waiting.pop()
        with os.scandir(place) as entries:
            for entry in sorted(islice(entries, MAX_ENTRIES), key=lambda each: each.name):
                if not entry.is_dir(follow_symlinks=False):
                    yield prefix + entry.name, entry
                elif depth < MAX_DEPTH:
                    waiting.append((Path(entry.path), f"{prefix}{entry.name}/", depth + 1))
                else:
                    raise ConfigProblem(f"{entry.path}: folders are nested more than {MAX_DEPTH} deep.")


def _read_all(folder: Path) -> Iterator[tuple[str, bytes]]:
    """All files of a workspace's skill: what is hashed is what is used."""
    left, number = MAX_FOLDER_BYTES, 0
    try:
        for number, (name, entry) in enumerate(_walk(folder), start=1):
            if number > MAX_FILES:
                raise ConfigProblem(
                    f"{folder} has more than {MAX_FILES} files. Keep only what the skill needs."
                )
            if entry.is_symlink():
                raise ConfigProblem(f"{entry.path} is a link. Put the file itself there.")
            data = _read(Path(entry.path), left)
            left -= len(data)
            yield name, data
    except OSError as error:
        raise ConfigProblem(f"{folder} cannot be read: {error.strerror or error}.") from error


def _read(path: Path, most: int) -> bytes:
    try:
        return read_file(path, most)
    except FileTooLarge as error:
        raise ConfigProblem(f"{path}: {error.strerror}. Make the skill smaller.") from error
    except NotAFile as error:
        raise ConfigProblem(f"{path}: {error.strerror}.") from error
    except OSError as error:
        raise ConfigProblem(f"{path} cannot be read: {error.strerror or error}.") from error


def _listed(names: Any) -> str:
    shown = [name for name in sorted(names) if name != SKILL_FILE][:20]
    return f"Its files: {', '.join(shown)}." if shown else f"It has only {SKILL_FILE}."


# Reading SKILL.md


def _parse(found: FoundSkill, files: Mapping[str, bytes]) -> Skill:
    path = found.folder / SKILL_FILE
    try:
        text = files[SKILL_FILE].decode().removeprefix("\ufeff").replace("\r\n", "\n")
    except UnicodeDecodeError as error:
        line = files[SKILL_FILE][: error.start].count(b"\n") + 1
        raise ConfigProblem(f"{path}:{line}: this is not valid UTF-8; save the file as UTF-8.") from error
    split = FRONT_MATTER.match(text)
    if split is None:
        started = text.startswith("---")
        what = (
            "the front matter does not end. Write `---` below it"
            if started
            else ("the front matter is missing. Begin with `---`, `name: ...`, `description: ...`, `---`")
        )
        raise ConfigProblem(f"{path}:1: {what}.")
    head = _front_matter(path, split["head"])
    for key in REQUIRED:
        if key not in head:
            raise ConfigProblem(f"{path}:1: `{key}` is missing. Write `{key}: ...` in the front matter.")
        value, line = head[key]
        if not isinstance(value, str) or not value.strip():
            raise ConfigProblem(f"{path}:{line}: `{key}` should be text.")
    name, line = head["name"]
    if name != found.name:
        raise ConfigProblem(
            f"{path}:{line}: the name {name[:80]!r} is not its folder's, {found.name!r}. Make them equal."
        )
    description, line = head["description"]
    if len(description) > MAX_DESCRIPTION:
        many = f"the description has {len(description):,} characters; {MAX_DESCRIPTION:,} are allowed"
        raise ConfigProblem(f"{path}:{line}: {many}. Say what the skill does and when to use it.")
    if not split["body"].strip():
        raise ConfigProblem(
            f"{path}:{text.count(chr(10)) + 1}: there are no instructions below the front matter."
        )
    warnings = [
        f"{path}:{line}: the key {plain_line(key, 60)!r} is not known; known are {', '.join(KEYS)}."
        for key, (_, line) in head.items()
        if key not in KEYS
    ]
    return Skill(
        found, plain_line(description, MAX_DESCRIPTION), split["body"].strip(), files, tuple(warnings)
    )


def _front_matter(path: Path, head: str) -> dict[str, tuple[Any, int]]:
    """{key: value and its line}; a value that is no text is only marked as such."""
    import yaml  # type: ignore[import-untyped]

    found: dict[str, tuple[Any, int]] = {}
    depth, key = 0, ""
    try:
        for event in yaml.parse(head, Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader)):
            kind, line = type(event).__name__, event.start_mark.line + 2
            if kind == "AliasEvent" or getattr(event, "anchor", None) or getattr(event, "tag", None):
                raise ConfigProblem(
                    f"{path}:{line}: anchors, aliases and tags are not supported. Write plain text."
                )
            if kind.endswith("EndEvent"):
                depth -= kind in ("MappingEndEvent", "SequenceEndEvent")
                continue
            starts = kind in ("MappingStartEvent", "SequenceStartEvent")
            if depth == 0 and kind in ("ScalarEvent", "SequenceStartEvent"):
                raise ConfigProblem(f"{path}:{line}: the front matter should have lines such as `name: ...`.")
            if depth == 1 and not key and kind == "ScalarEvent":
                key = event.value
                if key in found:
                    raise ConfigProblem(f"{path}:{line}: `{plain_line(key, 60)}` is there twice. Remove one.")
            elif depth == 1 and key:
                found[key], key = (event.value if kind == "ScalarEvent" else None, line), ""
            depth += starts
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        line = mark.line + 2 if mark else 1
        hint = "Put a text with `: ` or `#` in it in quotes."
        raise ConfigProblem(f"{path}:{line}: this is not YAML ({error.problem}). {hint}") from error
    except yaml.YAMLError as error:
        raise ConfigProblem(f"{path}:1: this is not YAML ({' '.join(str(error).split())[:120]}).") from error
    return found


def plain_line(text: str, most: int) -> str:
    """The text on one line without control and direction characters, cut where it is long."""
    kept = (
        " " if each.isspace() else each
        for each in text
        if each.isspace() or unicodedata.category(each)[0] != "C"
    )
    line = " ".join("".join(kept).split())
    return line if len(line) <= most else f"{line[: most - 1]}…"


STARTER = """\
---
name: {name}
description: What this skill does, and when to use it. The model sees only this line until it uses the skill.
---

# {title}

Write here what the model should know and do, step by step. It reads this text when it uses the skill.

Put longer material into files beside this one and name them, such as `references/details.md`: the model reads
them when it needs them. A skill gives no permission: commands and edits are asked about as always.
"""


def starter(name: str) -> str:
    """The `SKILL.md` of a new skill; raises UsageProblem where the name cannot be used."""
    if not NAME.fullmatch(name) or len(name) > MAX_NAME:
        raise UsageProblem(f"{name[:80]!r} cannot be a skill's name: {NAME_RULE}.")
    return STARTER.format(name=name, title=name.replace("-", " ").capitalize())
