"""Strings of a JSON object while it streams, for display only: nothing is decided by them."""

import re
from typing import NamedTuple

ESCAPES = {"n": "\n", "t": "\t", "r": "\r", "b": "\b", "f": "\f", '"': '"', "\\": "\\", "/": "/"}
PLAIN = re.compile(r'[^"\\]+')
SKIPPED = re.compile(r"[^\"{}\[\],:]+")
MAX_NESTING = 40


class StringPiece(NamedTuple):
    """Characters of the string at a path; `first`: the first ones."""

    path: tuple[str | int, ...]
    text: str
    first: bool


class StreamedJsonReader:
    """Reads pieces of one JSON object, and gives its strings as they stream."""

    def __init__(self) -> None:
        self._held = ""
        self._path: list[str | int] = []
        """The path of the next value; its last name is empty while a key is expected."""
        self._in_string = self._is_key = False
        self._first = False
        self._key: list[str] = []
        self._high = ""
        self.over = False

    def feed(self, piece: str) -> list[StringPiece]:
        text, self._held = self._held + piece, ""
        found: list[StringPiece] = []
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
                self._in_string, self._first = True, True
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
        self.over = self.over or len(self._path) > MAX_NESTING
        return at + 1

    def _string(self, text: str, at: int, found: list[StringPiece]) -> int:
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

    def _take(self, text: str, found: list[StringPiece]) -> None:
        if self._is_key:
            self._key.append(text)
        elif text:
            found.append(StringPiece(tuple(self._path), text, self._first))
            self._first = False
