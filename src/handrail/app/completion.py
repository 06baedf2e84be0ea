"""Names that a shell completes: sessions, routes, intents. Nothing is created or repaired for it."""

from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

from handrail.config.layers import load_settings
from handrail.config.places import Places, find_places, workspace_folder
from handrail.pipelines.load import AgentFolders
from handrail.protocol.errors import HandrailError
from handrail.sessions.session_list import list_sessions
from handrail.storage.event_log import Log
from handrail.storage.log_repair import open_log
from handrail.workspace.files import Workspace
from handrail.workspace.intents_file import IntentFile

MAX_SESSIONS = 200
ROUTES = {
    "auto": "rules and models decide",
    "agent": "works on files",
    "chat": "answers in one structured answer",
}


class Name(NamedTuple):
    text: str
    help: str = ""


def session_names(folder: Path, environ: Mapping[str, str]) -> list[Name]:
    """The sessions of a workspace, last used first."""
    try:
        places = find_places(environ)
        log_folder = workspace_folder(places, folder)
        database = load_settings(places, folder, environ=environ).settings.database
        if not database.url and not (log_folder / "log.db").is_file():
            return []
        log = open_log(log_folder, database, folder) if database.url else Log(log_folder)
        try:
            return [Name(each.id, each.title) for each in list_sessions(log)[:MAX_SESSIONS]]
        finally:
            log.close()
    except HandrailError:
        return []


def route_names(folder: Path, environ: Mapping[str, str]) -> list[Name]:
    """The routes of messages, agents in folders included."""
    return [*(Name(*each) for each in ROUTES.items()), *agent_names(folder, environ)]


def agent_names(folder: Path, environ: Mapping[str, str]) -> list[Name]:
    try:
        agents = AgentFolders(find_places(environ), folder, lambda _: "")
        return [Name(name) for name in agents.names()]
    except HandrailError:
        return []


def intent_names(folder: Path, environ: Mapping[str, str]) -> list[Name]:
    """The intents of a workspace."""
    try:
        places: Places = find_places(environ)
        workspace = Workspace(folder, state_folders=(places.data, places.settings.parent))
        found = IntentFile(workspace).now()
    except HandrailError:
        return []
    return [Name(each.id, each.name) for each in found.intents] if found else []
