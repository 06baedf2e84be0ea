"""The files of an agent, each read once; what is used and what was trusted are these bytes."""

import hashlib
import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal, NamedTuple

from handrail.config.toml_file import TomlFile, parse_toml, read_bytes
from handrail.protocol.errors import ConfigProblem

FOLDER, FILE, PROMPTS = "agents", "agent.toml", "prompts"
SLUG = re.compile(r"[a-z][a-z0-9]*(?:-[a-z0-9]+)*")
LONGEST_SLUG = 40
TAKEN = frozenset({"agent", "auto", "build", "chat", "tasks", "kept"})
"""Routes of Handrail's own."""
MOST_BYTES = {"agent.toml": 64_000, "prompt": 32_000}
MOST_PROMPTS = 30
PROMPT = re.compile(r"prompts/[A-Za-z0-9][A-Za-z0-9_.-]{0,80}\.md")

Where = Literal["yours", "workspace"]


class Found(NamedTuple):
    """A folder that has an `agent.toml`."""

    slug: str
    folder: Path
    where: Where


class AgentFiles(NamedTuple):
    """All that an agent is made of."""

    found: Found
    toml: TomlFile
    files: Mapping[str, bytes]
    """By their names below the folder."""

    @property
    def sha256(self) -> str:
        """Of all names and contents: another byte anywhere is another agent."""
        lines = [f"{name}\0{hashlib.sha256(data).hexdigest()}" for name, data in sorted(self.files.items())]
        return hashlib.sha256("\n".join(lines).encode()).hexdigest()


def slug_problem(slug: str) -> str:
    """Why this can be no agent's name; empty where it can."""
    if slug in TAKEN:
        return f"{slug} is a route of Handrail's own; choose another name"
    if not SLUG.fullmatch(slug) or len(slug) > LONGEST_SLUG:
        return (
            f"{slug[:60]!r} cannot be an agent's name: small letters, digits and single dashes, "
            f"a letter first, at most {LONGEST_SLUG}"
        )
    return ""


def is_agent(folder: Path) -> bool:
    return os.path.lexists(folder / FILE)


def read_agent(found: Found) -> AgentFiles:
    """The definition and the prompts that it names; raises ConfigProblem for what may not be there."""
    if problem := slug_problem(found.slug):
        raise ConfigProblem(f"{found.folder.parent}: {problem}.")
    if found.where == "workspace":
        for folder in (found.folder.parent, found.folder):
            if folder.is_symlink():
                raise ConfigProblem(
                    f"{folder} is a link; an agent of a workspace has to be a folder. Copy it there."
                )
    data = _read(found, FILE, MOST_BYTES[FILE])
    if data is None:
        raise ConfigProblem(
            f"{found.folder / FILE} does not exist. `handrail agents new {found.slug}` writes one."
        )
    toml = parse_toml(found.folder / FILE, data)
    prompts = {name: _read(found, name, MOST_BYTES["prompt"]) for name in _prompts(toml.data.get("stages"))}
    files = {FILE: data, **{name: text for name, text in prompts.items() if text is not None}}
    return AgentFiles(found, toml, files)


def _prompts(stages: Any) -> list[str]:
    """The prompts that the stages name and that may be named; the rest is told where they are checked."""
    entries = [each for each in stages if isinstance(each, dict)] if isinstance(stages, list) else []
    names = [name for each in entries if isinstance(name := each.get("prompt"), str)]
    return [name for name in dict.fromkeys(names) if PROMPT.fullmatch(name)][:MOST_PROMPTS]


def _read(found: Found, name: str, most: int) -> bytes | None:
    path = found.folder / name
    real = Path(os.path.realpath(path))
    if not real.is_relative_to(os.path.realpath(found.folder)):
        raise ConfigProblem(f"{path} leads out of the agent's folder. Put the file itself there.")
    data = read_bytes(path)
    if data is not None and len(data) > most:
        raise ConfigProblem(f"{path} has {len(data):,} bytes, more than {most:,}. Make it shorter.")
    return data
