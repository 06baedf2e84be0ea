"""Which commands an entry of the allow list covers."""

import re

from handrail.protocol.record import Record

PLAIN = re.compile(r"[A-Za-z0-9 _./=:@%+,-]+")
"""Characters that no shell gives a second meaning; all else makes a command one to ask about."""
ASSIGNMENT = re.compile(r"[A-Za-z_][A-Za-z0-9_]*\+?=")


class CommandFacts(Record):
    """What is known of a command before it runs."""

    text: str
    words: tuple[str, ...]
    """Empty unless the command is plain."""

    @property
    def plain(self) -> bool:
        return bool(self.words)


def read_command(text: str) -> CommandFacts:
    """The words of a command that means exactly what its words say, or no words."""
    words = tuple(text.split(" ")) if PLAIN.fullmatch(text) else ()
    words = tuple(word for word in words if word)
    if words and ASSIGNMENT.match(words[0]):
        words = ()
    return CommandFacts(text, words)


def is_allowed(command: CommandFacts, allowed: tuple[tuple[str, ...], ...]) -> bool:
    """Whether a plain command starts with the words of an entry: `npm run` covers `npm run build`."""
    return command.plain and any(entry and command.words[: len(entry)] == entry for entry in allowed)
