"""Texts of a JSON object as they come, for showing alone: nothing is decided by what is read here."""

import re
from typing import NamedTuple

ESCAPES = {"n": "\n", "t": "\t", "r": "\r", "b": "\b", "f": "\f", '"': '"', "\\": "\\", "/": "/"}
PLAIN = re.compile(r'[^"\\]+')
SKIPPED = re.compile(r"[^\"{}\[\],:]+")
DEEPEST = 40
Path = tuple[str | int, ...]


class Words(NamedTuple):
    """Characters of the string at a path; `begun`: they are its first."""

    path: Path
    text: str
    begun: bool


class StreamedJson:
    """Takes pieces of one object, and gives the strings of it, each character once."""

    def __init__(self) -> None:
        self._held = ""
        self._path: list[str | int] = []
        """Where the value stands that comes next; of an object that waits for a key, an empty name."""
        self._in_string = self._is_key = False
        self._begun = False
        self._key: list[str] = []
        self._high = ""
        self.over = False

    def feed(self, piece: str) -> list[Words]:
        """What the piece adds."""
        text, self._held = self._held + piece, ""
        found: list[Words] = []
        at = 0
        while at < len(text) and not self.over:
            at = self._string(text, at, found) if self._in_string else self._structure(text, at)
            if at < 0:
                break
        return found

    def _structure(self, text: str, at: int) -> int:
        if skipped := SKIPPED.match(text, at):
            return skipped.end()
        match text[at]:
            case '"':
                self._in_string, self._begun = True, True
                self._is_key = bool(self._path) and self._path[-1] == ""
                self._key = []
            case "{":
                self._path.append("")
            case "[":
                self._path.append(0)
            case "}" | "]":
                self._path.pop() if self._path else None
                self.over = not self._path
            case ",":
                last = self._path[-1] if self._path else ""
                if self._path:
                    self._path[-1] = last + 1 if isinstance(last, int) else ""
        self.over = self.over or len(self._path) > DEEPEST
        return at + 1

    def _string(self, text: str, at: int, found: list[Words]) -> int:
        if text[at] == '"':
            self._in_string = False
            if self._is_key and self._path:
                self._path[-1] = "".join(self._key) or "-"
            return at + 1
        if text[at] != "\\":
            plain = PLAIN.match(text, at)
            end = plain.end() if plain else at + 1
            self._take(text[at:end], found)
            return end
        length = 6 if text[at + 1 : at + 2] == "u" else 2
        if len(text) - at < length:
            self._held = text[at:]
            return -1
        self._take(self._escaped(text[at + 1 : at + length]), found)
        return at + length

    def _escaped(self, code: str) -> str:
        if code[0] != "u":
            return ESCAPES.get(code, f"\\{code}")
        try:
            number = int(code[1:], 16)
        except ValueError:
            return f"\\{code}"
        if 0xD800 <= number <= 0xDBFF:
            self._high = chr(number)
            return ""
        if 0xDC00 <= number <= 0xDFFF:
            high, self._high = self._high, ""
            pair = (high + chr(number)).encode("utf-16", "surrogatepass").decode("utf-16", "ignore")
            return pair if high else ""
        return chr(number)

    def _take(self, text: str, found: list[Words]) -> None:
        if self._is_key:
            self._key.append(text)
        elif text:
            found.append(Words(tuple(self._path), text, self._begun))
            self._begun = False
