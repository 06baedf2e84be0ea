"""A parsed command: simple commands, words, joins; and which commands only let git write `.git`."""

import re
import unicodedata
from typing import Literal

from handrail.protocol.values import Value

Join = Literal["&&", "||", "|", ";"]
PLAIN = re.compile(r"[A-Za-z0-9_@%+=:,./-]+")
PATTERN = re.compile(r"[A-Za-z0-9_@%+=:,./*?!\[\]^-]+")
"""Characters of a file pattern that need no quotes beside `*`, `?` and `[`."""
UNKNOWN = "\0"
"""Stands in a call's words for what only a shell can know, such as the value of a variable."""
MAX_CHARS = 16_000
INVISIBLE_LETTERS = frozenset("\u034f\u115f\u1160\u17b4\u17b5\u180b\u180c\u180d\u180f\u2800\u3164\uffa0")
INVISIBLE_CATEGORIES = ("Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp", "Zs")
GIT_READS = ("status", "diff", "log", "show", "rev-parse", "describe", "blame")
GIT_WRITES = (
    *("add", "rm", "mv", "commit", "restore", "reset", "stash", "switch", "checkout", "branch", "tag"),
    *("merge", "rebase", "cherry-pick", "revert", "am", "notes", "fetch", "pull", "push"),
)


class Word(Value):
    """A word after its quotes are removed."""

    text: str
    pattern: bool = False
    """It has unquoted `*`, `?` or `[`. It is replaced by file names before the command is judged."""
    exists: bool = False
    """It is a path of something that exists; looked up only for git."""

    @property
    def written(self) -> str:
        """The word quoted so that every shell reads it back."""
        if PLAIN.fullmatch(self.text):
            return self.text
        return "'" + self.text.replace("'", "'\"'\"'") + "'"


class SimpleCommand(Value):
    """One program with its words, and where its output goes."""

    words: tuple[Word, ...]
    redirects: tuple[str, ...] = ()
    join: Join = ";"
    """The operator before it; meaningless for the first command."""
    given: tuple[str, ...] = ()
    """Its words as the model wrote them, if they had patterns that were replaced by names."""

    @property
    def texts(self) -> tuple[str, ...]:
        return tuple(word.text for word in self.words)


class WriteTarget(Value):
    text: str
    pattern: bool = False
    names: tuple[str, ...] = ()
    """If the path is a folder: what is written in it."""


class Script(Value):
    """A whole command; `problem` says what in it is more than simple commands."""

    text: str
    commands: tuple[SimpleCommand, ...] = ()
    problem: str = ""
    writes: tuple[WriteTarget, ...] = ()
    """What it is known to write, even if it has a problem."""
    calls: tuple[tuple[str, ...], ...] = ()
    """The words of every command in it, also in text that a shell in it runs, even if it has a problem."""
    parsed: bool = True
    """False: nothing is known about it."""


def commands_text(commands: tuple[SimpleCommand, ...]) -> str:
    """The commands as shell text, every word quoted as needed."""
    parts: list[str] = []
    for command in commands:
        if parts:
            parts.append(command.join)
        parts += [*(word.written for word in command.words), *command.redirects]
    return " ".join(parts)


def why_unreadable(text: str) -> str:
    """Why a command is not parsed at all; empty if it is."""
    if len(text) > MAX_CHARS:
        return f"the command has more than {MAX_CHARS:,} characters"
    for character in text:
        if character.isascii():
            if (character < " " and character not in "\n\t") or character == "\x7f":
                return f"the command has the control character U+{ord(character):04X}"
        elif character in INVISIBLE_LETTERS or unicodedata.category(character) in INVISIBLE_CATEGORIES:
            return f"the command has the invisible character U+{ord(character):04X}"
    return ""


def writes_git(script: Script) -> bool:
    """Whether every part is a plain `git VERB`, and at least one writes `.git`."""
    if script.problem or not script.commands:
        return False
    if any(command.texts[0] != "git" or command.redirects for command in script.commands):
        return False
    words = [word for command in script.commands for word in command.texts]
    # Options before the verb, such as -c and --git-dir, would let git run or write something else.
    verbs = [command.texts[1] if len(command.texts) > 1 else "" for command in script.commands]
    known = all(verb in GIT_READS + GIT_WRITES for verb in verbs)
    runs_programs = any(word.startswith(("-x", "--ex", "--up", "--rec", "--ed")) for word in words)
    return known and not runs_programs and any(verb in GIT_WRITES for verb in verbs)
