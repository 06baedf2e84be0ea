"""What an argument or the value of an option may be, and which part of it is a path."""

import re
from collections.abc import Callable

from handrail.protocol.record import Record

PathsIn = Callable[[str], tuple[str, ...]]


class Kind(Record):
    """A pattern that the text must match as a whole, and the paths that stand in it."""

    pattern: re.Pattern[str]
    paths: PathsIn
    what: str
    """For the user: what it has to be."""


def no_paths(_text: str) -> tuple[str, ...]:
    return ()


def itself(text: str) -> tuple[str, ...]:
    return (text,)


def around(sign: str) -> PathsIn:
    """The whole text, and what stands before and behind the first sign."""

    def paths(text: str) -> tuple[str, ...]:
        before, found, behind = text.partition(sign)
        return tuple(part for part in ((text, before, behind) if found else (text,)) if part)

    return paths


MAGIC = re.compile(r":(\([^)]*\)|[/!^]*:?)")
"""What may stand before the path in a pathspec of git's."""


def in_pathspec(text: str) -> tuple[str, ...]:
    """The text, and the path in it."""
    plain = MAGIC.sub("", text, count=1) if text.startswith(":") else text
    return tuple(dict.fromkeys(part for part in (text, plain) if part))


def behind_colons(text: str) -> tuple[str, ...]:
    """What stands behind any colon: `HEAD:a`, `:0:a` and `:function:a` all name the file `a`."""
    behind = (text[at + 1 :] for at, sign in enumerate(text) if sign == ":")
    return tuple(part for part in behind if part)


def in_revision(text: str) -> tuple[str, ...]:
    """All that may be a path in what git takes for a revision, a file of one, or a pathspec."""
    found = (*in_pathspec(text), text.partition(":")[0], *behind_colons(text))
    return tuple(dict.fromkeys(part for part in found if part))


def kind(pattern: str, what: str, paths: PathsIn = no_paths) -> Kind:
    return Kind(re.compile(pattern, re.DOTALL), paths, what)


KINDS = {
    "TEXT": kind(r"(?!-).*", "text that is no option"),
    "ANY": kind(r".*", "any text"),
    "WORD": kind(r"[A-Za-z0-9][A-Za-z0-9_.,:+-]*", "a word"),
    "NUMBER": kind(r"[+-]?[0-9]+(\.[0-9]+)?([bcwkKmMgG]B?)?", "a number"),
    "MODE": kind(r"[-/]?[0-9A-Za-z+=,]+", "a file mode"),
    # Several programs read `@file` as a file of further options, and fetch what looks like a URL.
    "PATH": kind(r"(?![-@]|.*://).*|-", "a path", itself),
    "FILE": kind(r"(?![-@]|.*://).+", "a path", itself),
    # Which files are searched: the names are looked at as if they were paths.
    "GLOB": kind(r"(?!-).*", "a pattern of names", lambda text: itself(text.lstrip("!"))),
    "TEST": kind(r"(?![-@]|.*://).+", "a path of tests", around("::")),
    "REV": kind(r"(?!-)[^&]+", "a revision or path", in_revision),
    "PATHSPEC": kind(r"(?![-@]|.*://).*", "a path", in_pathspec),
    "LINES": kind(r"(?!-).+", "lines of a file", behind_colons),
    # What is looked for, where the option always takes the next word, whatever it looks like.
    "SOUGHT": kind(r".*", "any text"),
    # Both check signatures, by a program that the repository may name.
    "FORMAT": kind(r"(?!.*(%G|%\(signature)).*", "a format without signatures"),
    "ARGUMENT": kind(r"(?!-).*", "an argument that is no option", around("=")),
    # What a program gets that runs anyway: any option of its own, but no path that leads away.
    "REST": kind(r".*", "an argument", around("=")),
    "SCRIPT": kind(r"(?!env$)[A-Za-z0-9_][A-Za-z0-9:_./-]*", "the name of a script"),
    "PACKAGE": kind(
        r"(?!.*\.(tgz|tar|gz)$)(@[a-z0-9][a-z0-9._-]*/)?[A-Za-z0-9][A-Za-z0-9._-]*(@[A-Za-z0-9.^~<>=*+ -]+)?",
        "a package of the registry",
    ),
    "REQUIREMENT": kind(
        r"(?!.*\.(whl|zip|tar|tgz|gz|bz2|xz)$)"
        r"([A-Za-z0-9][A-Za-z0-9._-]*(\[[A-Za-z0-9._, -]*\])?( *(==|>=|<=|~=|!=|<|>) *[A-Za-z0-9.*+!-]+,?)*"
        r"|\.(/[^@]*)?(\[[A-Za-z0-9._, -]*\])?)",
        "a package of the index or a folder",
        lambda text: itself(text.partition("[")[0]) if text.startswith(".") else (),
    ),
    "PLUGIN_OFF": kind(r"no:[A-Za-z0-9_.-]+", "`no:` and a plugin"),
    # A category with a dot in it would be imported.
    "WARNING": kind(
        r"(error|ignore|default|always|module|once)(::[A-Z][A-Za-z]*Warning)?", "what to do with warnings"
    ),
    "TRIPLE": kind(r"[a-z0-9_]+(-[a-z0-9_]+)+", "a target by its name"),
    "BINARIES": kind(r":(all|none):|[A-Za-z0-9][A-Za-z0-9_.,-]*", "packages, or :all:"),
    "INTERPRETER": kind(r"(dev|utf8|importtime|faulthandler)(=[01])?", "a harmless setting"),
    # A package with a version would be fetched from elsewhere.
    "GO_PACKAGE": kind(r"(?!-|.*://)[^@]+", "a package of the module", itself),
    "ARTEFACT": kind(r"(?!-)[A-Za-z0-9_./-]+\.(out|cov|prof)", "a coverage or profile file", itself),
    "REPORT": kind(r"(term|term-missing|no)?(:skip-covered)?", "a report for the terminal"),
}
