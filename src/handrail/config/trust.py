"""What a workspace may set: it can only narrow permissions until the user trusts its exact files."""

import hashlib
import json
import os
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from handrail.config.files import write_atomically
from handrail.config.open_file import read_file
from handrail.config.places import WORKSPACE_SETTINGS, Places, make_private, workspace_path
from handrail.config.settings import hook_files
from handrail.config.toml_file import MAX_BYTES, read_bytes
from handrail.protocol.errors import ConfigProblem
from handrail.protocol.values import Mode

NARROWER_MODES: dict[Mode, frozenset[Mode]] = {
    "explore": frozenset(),
    "plan": frozenset({"explore"}),
    "ask": frozenset({"explore"}),
    "edit": frozenset({"explore", "plan", "ask"}),
    "auto": frozenset({"explore", "plan", "ask", "edit"}),
    "sandbox": frozenset({"explore", "plan", "ask", "edit"}),
}
"""`plan` is not narrower than `ask`: an approved plan continues in mode `edit`. `auto` is not narrower than
`sandbox`: commands that it allows may read more, and use the network."""

LIMIT_SECTIONS = ("limits", "retries", "context")

REFUSAL_REASONS = {
    "models.effort": "only you choose how much a model thinks and costs",
    "models": "it would choose which model sees your files",
    "connections": "it would change where requests and keys are sent",
    "commands": "it would allow commands without asking",
    "commands.readable_secrets": "it would let commands read your secrets",
    "hooks": "it would run programs on your machine, outside the sandbox",
    "checks": "it would choose which programs check your code",
    "git": "it would commit to your repository",
    "lessons": "it would choose the file that lessons are written to",
    "database": "it would choose who can read your sessions",
    "splits": "it would choose which machines get to read your files",
    "storage": "only you choose how much of your work is kept",
    "auto_continue": "only you choose whether a request continues by itself",
    "auto_route": "only you choose where your messages go",
    "router": "only you choose where your messages go",
    "tasks": "only you choose the time zone of your tasks",
    "knowledge": "it would choose where your documents and web searches are sent",
    "display": "only you choose how Handrail looks",
    "telemetry": "it would choose where traces of your work are sent",
    "build": "only you choose where unverified code is tried, and how much it may cost",
}
MAX_HOOK_FILES = 100
TRUST_FILE = "trust.json"
AGENTS_FILE = "trusted-agents.json"
COMMANDS_FILE = "trusted-commands.json"
SKILLS_FILE = "trusted-skills.json"
SOURCES_FILE = "trusted-sources.json"


def why_not_allowed(key: str, value: Any, current: Any) -> str:
    """For the user: why an untrusted workspace may not set this; empty if it may."""
    section = key.partition(".")[0]
    if section == "hooks":
        return REFUSAL_REASONS[section] if value else ""
    if value == current:
        return ""
    if key == "mode":
        widens = value not in NARROWER_MODES[current]
        return f"it would change the mode from {current} to {value}, which allows more" if widens else ""
    if key == "commands.deny":
        return ""
    if key == "commands.output_to_model":
        return "it would show the model the output of your commands" if value else ""
    if section == "intents":
        return "" if value else "it would let the agent work without an intent"
    if section in LIMIT_SECTIONS:
        return f"it would raise the limit from {current} to {value}" if value > current else ""
    return next(
        REFUSAL_REASONS[each] for each in (key, key.rpartition(".")[0], section) if each in REFUSAL_REASONS
    )


class WorkspaceFile(NamedTuple):
    """A file of the workspace with the bytes that were read; only these bytes are used."""

    name: str
    data: bytes

    @property
    def sha256(self) -> str:
        return hashlib.sha256(self.data).hexdigest()


def files_needing_trust(workspace: Path) -> tuple[WorkspaceFile, ...]:
    """The settings and the hooks' programs, each read once; raises ConfigProblem for what is not a file.

    Agents are trusted one by one, by the hash of all their files, when somebody wants to use one.
    """
    settings = workspace / WORKSPACE_SETTINGS
    if (data := read_bytes(settings)) is None:
        return ()
    found = [WorkspaceFile(WORKSPACE_SETTINGS.as_posix(), data)]
    programs = hook_files(data, settings.parent, workspace)
    if len(programs) > MAX_HOOK_FILES:
        many = f"its hooks name {len(programs):,} files of the workspace; {MAX_HOOK_FILES} are allowed"
        raise ConfigProblem(f"{settings}: {many}. Name fewer.")
    for file in programs:
        if (content := read_bytes(file)) is not None:
            name = file.relative_to(os.path.realpath(workspace)).as_posix()
            found.append(WorkspaceFile(name, content))
    return tuple(found)


def trusted_hashes(places: Places, workspace: Path) -> dict[str, str]:
    """{file that the user trusted: its hash}; an unreadable record counts as no trust."""
    return _load_hashes(_trust_path(places, workspace))


def trusted_agents(places: Places, workspace: Path) -> dict[str, str]:
    """{agent of the workspace that the user trusted: its hash}"""
    return _load_hashes(_trust_path(places, workspace, AGENTS_FILE))


def trusted_commands(places: Places, workspace: Path) -> dict[str, str]:
    """{command of the workspace that the user trusted: hash of its file}"""
    return _load_hashes(_trust_path(places, workspace, COMMANDS_FILE))


def trusted_skills(places: Places, workspace: Path) -> dict[str, str]:
    """{skill of the workspace that the user trusted: hash of all its files}"""
    return _load_hashes(_trust_path(places, workspace, SKILLS_FILE))


def trusted_sources(places: Places, workspace: Path) -> dict[str, str]:
    """{source of the workspace that the user trusted: hash of its definition and programs}"""
    return _load_hashes(_trust_path(places, workspace, SOURCES_FILE))


def trust(places: Places, workspace: Path, workspace_files: Iterable[WorkspaceFile]) -> None:
    """Record that the user trusts exactly these bytes of the workspace."""
    _save_hashes(_trust_path(places, workspace), {each.name: each.sha256 for each in workspace_files})


def trust_agents(places: Places, workspace: Path, hashes: Mapping[str, str]) -> None:
    """Record that the user trusts these agents too, as they are now."""
    _add_hashes(_trust_path(places, workspace, AGENTS_FILE), hashes)


def trust_commands(places: Places, workspace: Path, hashes: Mapping[str, str]) -> None:
    """Record that the user trusts these commands too, as they are now."""
    _add_hashes(_trust_path(places, workspace, COMMANDS_FILE), hashes)


def trust_skills(places: Places, workspace: Path, hashes: Mapping[str, str]) -> None:
    """Record that the user trusts these skills too, as they are now."""
    _add_hashes(_trust_path(places, workspace, SKILLS_FILE), hashes)


def trust_sources(places: Places, workspace: Path, hashes: Mapping[str, str]) -> None:
    """Record that the user trusts these sources too, as they are now."""
    _add_hashes(_trust_path(places, workspace, SOURCES_FILE), hashes)


def _add_hashes(file: Path, hashes: Mapping[str, str]) -> None:
    _save_hashes(file, {**_load_hashes(file), **hashes})


def _load_hashes(file: Path) -> dict[str, str]:
    try:
        hashes = json.loads(read_file(file, MAX_BYTES))
    except (OSError, ValueError, RecursionError):
        return {}
    known = hashes.items() if isinstance(hashes, dict) else ()
    return {name: value for name, value in known if isinstance(value, str)}


def _save_hashes(file: Path, hashes: Mapping[str, str]) -> None:
    make_private(file.parent)
    write_atomically(file, f"{json.dumps(hashes, indent=1)}\n".encode())


def revoke(places: Places, workspace: Path) -> bool:
    """Remove all trust in this workspace; True if there was any."""
    names = (TRUST_FILE, AGENTS_FILE, COMMANDS_FILE, SKILLS_FILE, SOURCES_FILE)
    files = [_trust_path(places, workspace, name) for name in names]
    found = [file for file in files if file.exists()]
    for file in found:
        file.unlink(missing_ok=True)
    return bool(found)


def _trust_path(places: Places, workspace: Path, name: str = TRUST_FILE) -> Path:
    return workspace_path(places, workspace) / name
