"""What a file's name says about how its text is to be read."""

PROSE = (".md", ".markdown", ".mdx", ".rst", ".txt", ".adoc", ".asciidoc", ".org", ".tex", ".textile")
PROSE_NAMES = ("readme", "license", "licence", "changelog", "changes", "notice", "authors", "copying", "todo")
CODE = (
    *(".py", ".pyi", ".js", ".mjs", ".cjs", ".jsx", ".ts", ".tsx", ".go", ".rs", ".c", ".h", ".cc", ".cpp"),
    *(".hpp", ".java", ".kt", ".cs", ".rb", ".php", ".swift", ".scala", ".lua", ".dart", ".zig", ".sql"),
)
BACKSLASHED = (".tex", ".sty", ".cls", ".ltx", ".bib", ".rtf", ".bat", ".cmd", ".reg")


def is_prose(path: str) -> bool:
    """Text for people, which may talk about anything."""
    name = path.rpartition("/")[2].lower()
    return name.endswith(PROSE) or name in PROSE_NAMES


def is_code(path: str) -> bool:
    """A language in which a backslash outside of quotes and comments means nothing."""
    return path.lower().endswith(CODE)


def has_backslashes(path: str) -> bool:
    """Text in which a backslash before a letter is everyday."""
    return path.lower().endswith(BACKSLASHED)
