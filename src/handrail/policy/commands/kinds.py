"""What an argument or option value may be, and which parts of it are paths."""

import re
from collections.abc import Callable

from handrail.protocol.values import Value

PathsIn = Callable[[str], tuple[str, ...]]
MAGIC = re.compile(r":(\([^)]*\)|[/!^]*:?)")
"""What may precede the path in a git pathspec."""


class Kind(Value):
    pattern: re.Pattern[str]
    paths: PathsIn
    what: str
    """For the user: what it has to be."""


def whole_text(text: str) -> tuple[str, ...]:
    return (text,)


def around_sign(sign: str) -> PathsIn:
    """The whole text, and the parts before and after the first sign."""

    def paths(text: str) -> tuple[str, ...]:
        before, found, after = text.partition(sign)
        return tuple(part for part in ((text, before, after) if found else (text,)) if part)

    return paths


def in_pathspec(text: str) -> tuple[str, ...]:
    plain = MAGIC.sub("", text, count=1) if text.startswith(":") else text
    return tuple(dict.fromkeys(part for part in (text, plain) if part))


def after_colons(text: str) -> tuple[str, ...]:
    """What follows any colon: `HEAD:a`, `:0:a` and `:function:a` all name the file `a`."""
    return tuple(text[at + 1 :] for at, sign in enumerate(text[:-1]) if sign == ":")


def in_revision(text: str) -> tuple[str, ...]:
    """Every part that may be a path in a git revision, a file of one, or a pathspec."""
    found = (*in_pathspec(text), text.partition(":")[0], *after_colons(text))
    return tuple(dict.fromkeys(part for part in found if part))


def kind(pattern: str, what: str, paths: PathsIn = lambda _: ()) -> Kind:
    return Kind(re.compile(pattern, re.DOTALL), paths, what)


KINDS = {
    "TEXT": kind(r"(?!-).*", "text that is not an option"),
    "ANY": kind(r".*", "any text"),
    "WORD": kind(r"[A-Za-z0-9][A-Za-z0-9_.,:+-]*", "a word"),
    "NUMBER": kind(r"[+-]?[0-9]+(\.[0-9]+)?([bcwkKmMgG]B?)?", "a number"),
    "MODE": kind(r"[-/]?[0-9A-Za-z+=,]+", "a file mode"),
    # Several programs read `@file` as a file of further options, and fetch what looks like a URL.
    "PATH": kind(r"(?![-@]|.*://).*|-", "a path", whole_text),
    "FILE": kind(r"(?![-@]|.*://).+", "a path", whole_text),
    # Which files are searched: the names are checked like paths.
    "GLOB": kind(r"(?!-).*", "a pattern of names", lambda text: whole_text(text.lstrip("!"))),
    "TEST": kind(r"(?![-@]|.*://).+", "a path of tests", around_sign("::")),
    "REV": kind(r"(?!-)[^&]+", "a revision or path", in_revision),
    "PATHSPEC": kind(r"(?![-@]|.*://).*", "a path", in_pathspec),
    # The search term of an option that always takes the next word, whatever it looks like.
    "SOUGHT": kind(r".*", "any text"),
    # The first two check signatures with a program; the third shows a file that a reference points to.
    "FORMAT": kind(r"(?!.*(%G|%\(signature|%\(\*?raw)).*", "a format without signatures and raw objects"),
    "ARGUMENT": kind(r"(?!-).*", "an argument that is not an option", around_sign("=")),
    # Arguments for a program that runs anyway: any option, but no path that leads out of the workspace.
    "REST": kind(r".*", "an argument", around_sign("=")),
    "SCRIPT": kind(r"(?!env$)[A-Za-z0-9_][A-Za-z0-9:_./-]*", "the name of a script"),
    "PACKAGE": kind(
        r"(?!.*\.(tgz|tar|gz)$)(@[a-z0-9][a-z0-9._-]*/)?[A-Za-z0-9][A-Za-z0-9._-]*(@[A-Za-z0-9.^~<>=*+ -]+)?",
        "a package from the registry",
    ),
    "REQUIREMENT": kind(
        r"(?!.*\.(whl|zip|tar|tgz|gz|bz2|xz)$)"
        r"([A-Za-z0-9][A-Za-z0-9._-]*(\[[A-Za-z0-9._, -]*\])?( *(==|>=|<=|~=|!=|<|>) *[A-Za-z0-9.*+!-]+,?)*"
        r"|\.(/[^@]*)?(\[[A-Za-z0-9._, -]*\])?)",
        "a package from the index or a folder",
        lambda text: whole_text(text.partition("[")[0]) if text.startswith(".") else (),
    ),
    "PLUGIN_OFF": kind(r"no:[A-Za-z0-9_.-]+", "`no:` and a plugin"),
    # A category with a dot would be imported.
    "WARNING": kind(
        r"(error|ignore|default|always|module|once)(::[A-Z][A-Za-z]*Warning)?", "what to do with warnings"
    ),
    "TRIPLE": kind(r"[a-z0-9_]+(-[a-z0-9_]+)+", "a target by its name"),
    "BINARIES": kind(r":(all|none):|[A-Za-z0-9][A-Za-z0-9_.,-]*", "packages, or :all:"),
    "INTERPRETER": kind(r"(dev|utf8|importtime|faulthandler)(=[01])?", "a harmless setting"),
    # A package with a version would be fetched from elsewhere.
    "GO_PACKAGE": kind(r"(?!-|.*://)[^@]+", "a package of the module", whole_text),
    "ARTEFACT": kind(r"(?!-)[A-Za-z0-9_./-]+\.(out|cov|prof)", "a coverage or profile file", whole_text),
    "REPORT": kind(r"(term|term-missing|no)?(:skip-covered)?", "a report for the terminal"),
}
