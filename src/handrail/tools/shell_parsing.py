"""Commands are read by shfmt, whose grammar is bash's; what it cannot read is a problem, never a guess."""

import json
import os
import shutil
import subprocess
import sys
from functools import lru_cache
from pathlib import Path
from typing import Any

from handrail.policy.commands.script import Script, unreadable
from handrail.tools.shell_tree import read_tree

SECONDS = 2.0
# The dialect as an option also keeps shfmt from looking for an .editorconfig, which is the workspace's.
OPTIONS = ("--to-json", "--language-dialect=bash")
QUICKER = {"GOMAXPROCS": "1", "GOGC": "off"}
"""It is a Go program that ends before its second thread or its collector would be of use."""
MOST_KEPT = 256


def parse(text: str) -> Script:
    """The command read by a shell grammar; its `problem` says why it could not be."""
    if problem := unreadable(text):
        return Script(text, problem=problem)
    program = find_shfmt()
    if program is None:
        return Script(text, problem="shfmt is missing, so that no command can be read (install shfmt-py)")
    try:
        return _parse(text, program)
    except subprocess.TimeoutExpired:
        return Script(text, problem="the command takes too long to read")
    except (OSError, ValueError, RecursionError) as error:
        return Script(text, problem=f"the command cannot be read ({type(error).__name__})")


def find_shfmt() -> str | None:
    """The program that came with us, else the first on the PATH."""
    ours = Path(sys.executable).with_name("shfmt")
    return str(ours) if os.access(ours, os.X_OK) else shutil.which("shfmt")


@lru_cache(maxsize=MOST_KEPT)
def _parse(text: str, program: str) -> Script:
    """What shfmt says of the text; the same text is asked about again and again."""
    done = subprocess.run(
        [program, *OPTIONS],
        input=text.encode(),
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        timeout=SECONDS,
        check=False,
        cwd="/",
        env=QUICKER,
    )
    if done.returncode:
        return Script(text, problem="the command is not complete or not valid bash")
    tree: dict[str, Any] = json.loads(done.stdout)
    return read_tree(text, tree)
