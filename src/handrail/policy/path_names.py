"""Names that no file should get: they look like another, mean another elsewhere, or were never meant."""

import re
from collections.abc import Sequence
from unicodedata import category, name, normalize

LONGEST_NAME = 255
"""Bytes."""
BLANK_LETTERS = frozenset("\u034f\u115f\u1160\u17b4\u17b5\u2800\u3164\uffa0")
"""Shown as nothing, though they count as letters, marks or symbols."""
SLASHES = frozenset("\u2044\u2215\u29f8\u29f5\u2216")
"""Look like a slash or a backslash, and are none in any normal form."""
UNSEEN = ("Cc", "Cf", "Cs", "Co", "Zl", "Zp")
FORBIDDEN_ELSEWHERE = frozenset('<>:"|?*')
DEVICES = re.compile(r"(con|prn|aux|nul|com[0-9¹²³]|lpt[0-9¹²³]|conin\$|conout\$)", re.IGNORECASE)
SEVERAL = re.compile(r"\{[^{}]*,[^{}]*\}")
ENCODED = re.compile(r"%(2e|2f|5c|00|25)", re.IGNORECASE)
VARIABLE = re.compile(r"~[\w.-]*|\$[A-Z_]{2,}|\$\{.*\}|%[A-Z_]{2,}%")
"""What a shell would put something in place of; `$id.tsx` is a name of its own."""


def unfit(given: str) -> str:
    """Why a path, as it was written, is never written to; empty where it may be."""
    if not given.strip():
        return "it is empty"
    if "\\" in given:
        return "it has a backslash: separate folders with /"
    if given.endswith(("/", "/.", "/..")):
        return "it ends like a folder, and a file is needed"
    return next(filter(None, map(_unfit_name, given.split("/"))), "")


def unfit_anew(names: Sequence[str]) -> str:
    """Why names that nothing has yet are not given to anything; empty where they may be."""
    return next(filter(None, (_unfit_anew(each, first=not at) for at, each in enumerate(names))), "")


def looks_foreign(names: Sequence[str]) -> bool:
    """Whether a word mixes Latin and Cyrillic or Greek letters, which look the same."""
    return any(_is_mixed(word) for each in names for word in re.findall(r"[^\W\d_]+", each))


def _unfit_name(part: str) -> str:
    if part in ("", ".", ".."):
        return ""
    if part != part.strip() or not part.strip("."):
        return f"{part!r} begins or ends with a blank, or is only dots"
    if hidden := next(filter(_is_unseen, part), ""):
        return f"it has a character that cannot be seen (U+{ord(hidden):04X})"
    plain = normalize("NFKC", part)
    if SLASHES & set(part):
        return f"{part!r} imitates dots or a slash"
    if plain != part and (not plain.strip(". ") or "/" in plain or "\\" in plain):
        return f"{part!r} imitates dots or a slash"
    if len(part.encode(errors="surrogateescape")) > LONGEST_NAME:
        return f"a name has at most {LONGEST_NAME} bytes"
    return ""


def _unfit_anew(part: str, *, first: bool) -> str:
    if ENCODED.search(part):
        return f"{part!r} is percent-encoded: write the path itself"
    if first and VARIABLE.fullmatch(part):
        return f"{part!r} is not replaced by anything: write the path itself"
    if bad := sorted(FORBIDDEN_ELSEWHERE & set(part)):
        return f"{part!r} has {bad[0]}, which Windows forbids, or which means several files"
    if SEVERAL.search(part):
        return f"{part!r} means several files: write the path of one"
    if part.endswith("."):
        return f"{part!r} ends with a dot, which Windows leaves out"
    if DEVICES.fullmatch(part.split(".", maxsplit=1)[0].rstrip()):
        return f"{part!r} is a device on Windows"
    if part.startswith("-") or "`" in part or "$(" in part:
        return f"{part!r} would be taken for an option or a command"
    return ""


def _is_unseen(character: str) -> bool:
    odd_blank = character != " " and character.isspace()
    return odd_blank or character in BLANK_LETTERS or category(character) in UNSEEN


def _is_mixed(word: str) -> bool:
    scripts = {name(each, "").partition(" ")[0] for each in word}
    return "LATIN" in scripts and bool(scripts & {"CYRILLIC", "GREEK"})
