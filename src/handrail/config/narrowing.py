"""The trust rule for settings that come with a folder: a workspace may only narrow."""

from typing import Any

from handrail.protocol.values import Mode

NARROWER: dict[Mode, frozenset[Mode]] = {
    "explore": frozenset(),
    "plan": frozenset({"explore"}),
    "ask": frozenset({"explore"}),
    "edit": frozenset({"explore", "plan", "ask"}),
    "auto": frozenset({"explore", "plan", "ask", "edit"}),
}
"""`plan` is not narrower than `ask`: an approved plan goes on in mode `edit`."""

DENIES = ("commands.deny",)
WITHHOLDS = ("commands.output_to_model",)
LOWER_IS_NARROWER = ("limits", "retries", "context")

REASONS = {
    "models.effort": "how much a model thinks, and what that costs, is yours to choose",
    "models": "it would choose which model sees your files",
    "connections": "it would change where requests and keys are sent",
    "commands": "it would allow commands without asking",
    "hooks": "it would run programs on your machine, outside the sandbox",
    "git": "it would commit to your repository",
    "storage": "how much is kept of your work is yours to choose",
    "auto_continue": "whether a request goes on by itself is yours to choose",
    "auto_route": "where your messages go is yours to choose",
    "router": "where your messages go is yours to choose",
    "display": "how Handrail looks is yours to choose",
}


def why_not(key: str, value: Any, current: Any) -> str:
    """Why a workspace that is not trusted may not set this, in words for the user; empty: it may."""
    section = key.partition(".")[0]
    if section == "hooks":
        return REASONS[section] if value else ""
    if value == current:
        return ""
    if key == "mode":
        widens = value not in NARROWER[current]
        return f"it would change the mode from {current} to {value}, which allows more" if widens else ""
    if key in DENIES or (key in WITHHOLDS and not value):
        return ""
    if key in WITHHOLDS:
        return "it would show the model what your commands write"
    if section == "intents":
        return "" if value else "it would let the agent work without an intent"
    if section in LOWER_IS_NARROWER:
        return f"it would raise the limit from {current} to {value}" if value > current else ""
    return REASONS.get(key.rpartition(".")[0]) or REASONS[section]
