"""The files in an agent's folder: reading them, and what `handrail agents new` writes."""

import hashlib
import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal, NamedTuple

from handrail.config.toml_file import TomlFile, parse_toml, read_bytes
from handrail.protocol.errors import ConfigProblem

AGENT_FILE = "agent.toml"
SLUG = re.compile(r"[a-z][a-z0-9]*(?:-[a-z0-9]+)*")
MAX_SLUG = 40
RESERVED_NAMES = frozenset({"agent", "auto", "build", "chat", "follow", "init", "kept", "plan-mode", "tasks"})
MAX_BYTES = {"agent.toml": 64_000, "prompt": 32_000}
MAX_PROMPTS = 30
PROMPT_PATH = re.compile(r"prompts/[A-Za-z0-9][A-Za-z0-9_.-]{0,80}\.md")

AgentOrigin = Literal["yours", "workspace", "built in"]


class FoundAgent(NamedTuple):
    """A folder that has an `agent.toml`."""

    slug: str
    folder: Path
    where: AgentOrigin


class AgentFiles(NamedTuple):
    found: FoundAgent
    toml: TomlFile
    files: Mapping[str, bytes]  # contents by their names in the folder

    @property
    def sha256(self) -> str:
        """Hash of all names and contents."""
        lines = [f"{name}\0{hashlib.sha256(data).hexdigest()}" for name, data in sorted(self.files.items())]
        return hashlib.sha256("\n".join(lines).encode()).hexdigest()


def slug_problem(slug: str) -> str:
    """Why an agent cannot have this name; empty where it can."""
    if slug in RESERVED_NAMES:
        return f"{slug} is a route of Handrail's own; choose another name"
    if not SLUG.fullmatch(slug) or len(slug) > MAX_SLUG:
        return (
            f"{slug[:60]!r} cannot be an agent's name: small letters, digits and single dashes, "
            f"a letter first, at most {MAX_SLUG}"
        )
    return ""


def is_agent(folder: Path) -> bool:
    return os.path.lexists(folder / AGENT_FILE)


def read_agent(found: FoundAgent) -> AgentFiles:
    """Read the definition and its prompts; raises ConfigProblem for links and oversized files."""
    if problem := slug_problem(found.slug):
        raise ConfigProblem(f"{found.folder.parent}: {problem}.")
    if found.where == "workspace":
        for folder in (found.folder.parent, found.folder):
            if folder.is_symlink():
                raise ConfigProblem(
                    f"{folder} is a link; an agent of a workspace has to be a folder. Copy it there."
                )
    data = _read_file(found, AGENT_FILE, MAX_BYTES[AGENT_FILE])
    if data is None:
        raise ConfigProblem(
            f"{found.folder / AGENT_FILE} does not exist. `handrail agents new {found.slug}` writes one."
        )
    toml = parse_toml(found.folder / AGENT_FILE, data)
    prompts = {
        name: _read_file(found, name, MAX_BYTES["prompt"]) for name in _named_prompts(toml.data.get("stages"))
    }
    files = {AGENT_FILE: data, **{name: text for name, text in prompts.items() if text is not None}}
    return AgentFiles(found, toml, files)


def _named_prompts(stages: Any) -> list[str]:
    """The prompts that the stages name; invalid names are reported when the stages are checked."""
    entries = [each for each in stages if isinstance(each, dict)] if isinstance(stages, list) else []
    names = [name for each in entries if isinstance(name := each.get("prompt"), str)]
    return [name for name in dict.fromkeys(names) if PROMPT_PATH.fullmatch(name)][:MAX_PROMPTS]


def _read_file(found: FoundAgent, name: str, most: int) -> bytes | None:
    path = found.folder / name
    real = Path(os.path.realpath(path))
    if not real.is_relative_to(os.path.realpath(found.folder)):
        raise ConfigProblem(f"{path} leads out of the agent's folder. Put the file itself there.")
    data = read_bytes(path)
    if data is not None and len(data) > most:
        raise ConfigProblem(f"{path} has {len(data):,} bytes, more than {most:,}. Make it shorter.")
    return data


STARTER_PROMPT = """\
You answer a question from passages of the user's documents, and from nothing else.
Give one to three findings. `quote` is one sentence of a passage, copied letter for letter. `claim` says
in one short sentence what the quote answers.
"""
STARTER_DEFINITION = """\
# The agent {slug}: "@{slug} QUESTION" in a message runs it, and so does `--route {slug}`.
# `handrail agents validate {slug}` checks this file; docs/agents.md explains every key.
name = "{name}"
description = "Answers a question from the documents here, with a quote for every claim"
needs = ["workspace"]

# The limit of one run. A request that could pass it is not sent; what was done is kept.
[budget]
tokens = 50_000
# usd = 0.50

# Stages run one after the other. `code` is a built-in step: gather, cite or write_file.
[[stages]]
name = "gather"
kind = "code"
step = "gather"
options = {{ files = ["*.md", "*.txt"], most = 6, characters = 6_000 }}
# A gate checks the output. fails = "end" ends the run, "repair" repeats the repair unit around the stage.
gates = [{{ check = "found", field = "passages", fails = "end" }}]

# `ask` is one question to a model, with a prompt of its own. (`work` would be the tool loop in the session.)
[[stages]]
name = "answer"
kind = "ask"
prompt = "prompts/answer.md"
model = "main"          # or "fast", or a model by name: "CONNECTION/NAME"
# effort = "high"       # how much it thinks: "low", "medium" or "high"
takes = ["gather"]      # stages whose outputs it gets
gates = [
    {{ check = "not_empty", field = "findings", fails = "repair" }},
    {{ check = "quotes_match", field = "findings.quote", passages = "gather.passages", fails = "repair" }},
]

# The JSON Schema of the answer.
[stages.output]
type = "object"
required = ["findings"]

[stages.output.properties.findings]
type = "array"
maxItems = 3

[stages.output.properties.findings.items]
type = "object"
required = ["quote", "claim"]
properties.quote = {{ type = "string" }}
properties.claim = {{ type = "string" }}

[[stages]]
name = "cite"
kind = "code"
step = "cite"
options = {{ findings = "answer.findings", passages = "gather.passages" }}

# Stages that are repeated with what was wrong, at most so many times.
[[repairs]]
first = "answer"
last = "answer"
times = 2

# The run stops here and asks you; leaving it is always the last choice.
# [[pauses]]
# after = "gather"
# text = "This is what I found."
# options = [{{ text = "Go on" }}, {{ text = "Look again", then = "again" }}]

# Values for the next run; a stage gets them by takes = ["kept"].
# [[keeps]]
# name = "sources"
# stage = "cite"
# field = "sources"

# What is shown at the end: "list", "json", or "text" (a field of a stage).
[result]
format = "text"
stage = "cite"
field = "report"
"""


def starter_files(slug: str) -> dict[str, str]:
    """The files of a new agent, by their names in its folder."""
    name = slug.replace("-", " ").capitalize()
    return {AGENT_FILE: STARTER_DEFINITION.format(slug=slug, name=name), "prompts/answer.md": STARTER_PROMPT}
