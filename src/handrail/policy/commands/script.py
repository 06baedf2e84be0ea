"""A command as a shell grammar reads it: simple commands with literal words, and what joins them."""

import re
import unicodedata
from typing import Literal

from handrail.protocol.record import Record

Join = Literal["&&", "||", "|", ";"]
PLAIN = re.compile(r"[A-Za-z0-9_@%+=:,./-]+")
PATTERN = re.compile(r"[A-Za-z0-9_@%+=:,./*?\[\]^-]+")
"""Characters of a file pattern that need no quotes beside `*`, `?` and `[`."""
LONGEST = 16_000
UNSEEN = frozenset("\u034f\u115f\u1160\u17b4\u17b5\u180b\u180c\u180d\u180f\u2800\u3164\uffa0")
"""Letters and marks that show nothing."""
HIDDEN = ("Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp")


class Word(Record):
    """A word after its quotes are removed."""

    text: str
    pattern: bool = False
    """It has unquoted `*`, `?` or `[`, so that the shell puts the names of files in its place."""

    @property
    def written(self) -> str:
        """The word as every shell reads it again."""
        if self.pattern or PLAIN.fullmatch(self.text):
            return self.text
        return "'" + self.text.replace("'", "'\"'\"'") + "'"


class Simple(Record):
    """One program with its words, and where its output goes."""

    words: tuple[Word, ...]
    redirects: tuple[str, ...] = ()
    join: Join = ";"
    """What stands before it; of the first one, nothing does."""

    @property
    def texts(self) -> tuple[str, ...]:
        return tuple(word.text for word in self.words)


class Target(Record):
    """A path that a command is known to write."""

    text: str
    pattern: bool = False
    names: tuple[str, ...] = ()
    """Where the path is a folder, what is written in it."""


class Script(Record):
    """A whole command; `problem` says what in it is more than simple commands."""

    text: str
    commands: tuple[Simple, ...] = ()
    problem: str = ""
    writes: tuple[Target, ...] = ()
    """What it is known to write, whatever else there is to it."""
    calls: tuple[tuple[str, ...], ...] = ()
    """The words of every command in it, whatever else there is to it."""


def written(commands: tuple[Simple, ...]) -> str:
    """The commands as text that means these words and nothing else."""
    parts: list[str] = []
    for command in commands:
        if parts:
            parts.append(command.join)
        parts += [*(word.written for word in command.words), *command.redirects]
    return " ".join(parts)


def unreadable(text: str) -> str:
    """Why a command is not even given to the grammar; empty where it is."""
    if len(text) > LONGEST:
        return f"the command has more than {LONGEST:,} characters"
    for character in text:
        if character.isascii():
            if (character < " " and character not in "\n\t") or character == "\x7f":
                return f"the command has the control character U+{ord(character):04X}"
        elif is_hidden(character):
            return f"the command has the character U+{ord(character):04X}, which cannot be seen"
    return ""


def is_hidden(character: str) -> bool:
    """Whether a character that is not ASCII looks like nothing, or like a space and is none."""
    return unicodedata.category(character) in (*HIDDEN, "Zs") or character in UNSEEN
