"""Hooks of real programs for tests: a few lines of Python each, beside the user's settings."""

import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from handrail.config.settings import Hook, HookSettings
from handrail.protocol.values import HookPoint

START = "import json, os, sys\nasked = json.load(sys.stdin)\ndef say(**said): print(json.dumps(said))\n"


def program(folder: Path, body: str, name: str = "hook.py") -> list[str]:
    """The words that run a hook whose body knows `asked`, and `say`."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / name).write_text(START + body)
    return [sys.executable, name]


def hook(
    folder: Path,
    on: HookPoint,
    body: str = "",
    *,
    run: Sequence[str] = (),
    match: tuple[str, ...] = (),
    seconds: float = 20.0,
    name: str = "hook.py",
) -> Hook:
    """A hook of the user's, as the settings give it."""
    words = tuple(run or program(folder, body, name))
    return Hook(HookSettings(on=on, run=words, match=match, seconds=seconds), folder, "config.toml:1", {})


def section(on: HookPoint, run: Sequence[str], **more: Any) -> str:
    """The same as text of a settings file."""
    lines = {"on": on, "run": list(run), **more}
    return "[[hooks]]\n" + "".join(f"{key} = {json.dumps(value)}\n" for key, value in lines.items())
