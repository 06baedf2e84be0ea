"""`@name` at the start of a message: an agent in a folder is to take it, unless a file is called so."""

import re
from typing import NamedTuple

from handrail.engine.pipeline.definition import Catalogue
from handrail.protocol.commands import SendMessage
from handrail.protocol.errors import ConfigProblem, PathProblem, UsageProblem
from handrail.protocol.routing import AUTO
from handrail.workspace.files import Workspace

MENTION = re.compile(r"\s*@([a-z][a-z0-9-]*)(?=[\s,:]|\Z)[,:]?")


class Mentioned(NamedTuple):
    """The agent that takes the message, if one does, and what the user should know."""

    route: str = ""
    note: str = ""


def mentioned_agent(command: SendMessage, workspace: Workspace, catalogue: Catalogue) -> Mentioned:
    """Whom a message is for by its first word; raises where that agent is wrong or not trusted."""
    found = MENTION.match(command.text)
    if command.route not in ("", AUTO) or command.suggested or found is None:
        return Mentioned()
    name = found[1]
    if not _is_file(name, workspace):
        return Mentioned(name if catalogue.folders(name) else "")
    if not _is_agent(name, catalogue):
        return Mentioned()
    return Mentioned(note=f"{name}: the file is meant, not the agent; `/route {name}` runs the agent")


def named_agent(command: SendMessage, workspace: Workspace, catalogue: Catalogue) -> str:
    """The agent that the message begins with, also where it is wrong or not trusted."""
    found = None if command.suggested else MENTION.match(command.text)
    name = found[1] if found else ""
    return name if name and not _is_file(name, workspace) and _is_agent(name, catalogue) else ""


def question_of(text: str, route: str) -> str:
    """What is asked, without the name of whom it is asked."""
    found = MENTION.match(text)
    return text[found.end() :].strip() if found and found[1] == route else text


def _is_file(name: str, workspace: Workspace) -> bool:
    try:
        return workspace.exists(name)
    except PathProblem:
        return False


def _is_agent(name: str, catalogue: Catalogue) -> bool:
    try:
        return catalogue.folders(name) is not None
    except (ConfigProblem, UsageProblem):
        return True
