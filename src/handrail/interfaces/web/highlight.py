"""Source code with syntax colours: each line as (class, text) pieces."""

from functools import lru_cache
from typing import TYPE_CHECKING, Any

from handrail.interfaces.web.html import Html, h, join

if TYPE_CHECKING:
    from pygments.lexer import Lexer  # type: ignore[import-untyped]

MAX_CHARS = 60_000
MAX_LINE = 2_000
"""Longer code stays without colours: some lexers are slow."""
Pieces = list[tuple[str, str]]
CLASSES = (
    ("Comment", "c"),
    ("Keyword", "k"),
    ("Literal.String", "s"),
    ("Literal.Number", "m"),
    ("Name.Function", "f"),
    ("Name.Class", "f"),
    ("Name.Tag", "k"),
    ("Name.Attribute", "f"),
    ("Name.Decorator", "d"),
    ("Name.Builtin", "b"),
    ("Name.Exception", "b"),
    ("Operator.Word", "k"),
    ("Generic.Inserted", "s"),
    ("Generic.Deleted", "d"),
    ("Generic.Heading", "f"),
)


def code_lines(code: str, language: str = "", path: str = "") -> list[Pieces]:
    """The lines of the code; without colours where the language is not known or the code is long."""
    lines = code.split("\n")
    lexer = None
    if len(code) <= MAX_CHARS and max(map(len, lines)) <= MAX_LINE:
        lexer = lexer_named(language) if language else lexer_of(path)
    if lexer is None:
        return [[("", line)] for line in lines]
    found: list[Pieces] = [[]]
    for kind, text in lexer.get_tokens(code):
        for number, part in enumerate(text.split("\n")):
            if number:
                found.append([])
            if part:
                _add(found[-1], _class_of(kind), part)
    if len(found) == len(lines) + 1 and not found[-1]:
        found.pop()
    return found if len(found) == len(lines) else [[("", line)] for line in lines]


def _add(pieces: Pieces, class_: str, text: str) -> None:
    """Append the text; to the last piece where that has the same colour."""
    if pieces and pieces[-1][0] == class_:
        text = pieces.pop()[1] + text
    pieces.append((class_, text))


def highlighted(code: str, language: str = "", path: str = "") -> Html:
    rows = [[piece(*each) for each in line] for line in code_lines(code, language, path)]
    return join(*[[row, "\n"] if number < len(rows) - 1 else row for number, row in enumerate(rows)])


def piece(class_: str, text: str) -> Html:
    return h("span", text, class_=f"hl-{class_}") if class_ else join(text)


@lru_cache(maxsize=64)
def lexer_named(name: str) -> "Lexer | None":
    from pygments.lexers import get_lexer_by_name  # type: ignore[import-untyped]
    from pygments.util import ClassNotFound  # type: ignore[import-untyped]

    try:
        return get_lexer_by_name(name, stripnl=False, ensurenl=False)
    except ClassNotFound:
        return None


@lru_cache(maxsize=64)
def _lexer_of_name(name: str) -> "Lexer | None":
    from pygments.lexers import get_lexer_for_filename
    from pygments.util import ClassNotFound

    try:
        return get_lexer_for_filename(name, stripnl=False, ensurenl=False)
    except ClassNotFound:
        return None


def lexer_of(path: str) -> "Lexer | None":
    base = path.rpartition("/")[2]
    _, dot, ending = base.rpartition(".")
    return _lexer_of_name(f"file.{ending}" if dot else base) if base else None


@lru_cache(maxsize=512)
def _class_of(kind: Any) -> str:
    name = str(kind).removeprefix("Token.")
    return next((short for start, short in CLASSES if name.startswith(start)), "")
