"""Rules for paths: the table of what may be read and written, unfit names, autorun files."""

import re
from collections.abc import Callable, Sequence
from typing import Literal, NamedTuple
from unicodedata import category, name, normalize

from handrail.policy.call_facts import ALLOW, Ask, Decision, Facts, PathFacts, deny
from handrail.protocol.errors import RefusalReason
from handrail.protocol.globs import covers

MAX_NAME_BYTES = 255
BLANK_LETTERS = frozenset("\u034f\u115f\u1160\u17b4\u17b5\u2800\u3164\uffa0")
"""Letters, marks and symbols that show nothing."""
SLASHES = frozenset("\u2044\u2215\u29f8\u29f5\u2216")
"""Characters that look like a slash or backslash, and that no normalisation turns into one."""
INVISIBLE_CATEGORIES = ("Cc", "Cf", "Cs", "Co", "Zl", "Zp")
WINDOWS_FORBIDDEN = frozenset('<>:"|?*')
DEVICES = re.compile(r"(con|prn|aux|nul|com[0-9¹²³]|lpt[0-9¹²³]|conin\$|conout\$)", re.IGNORECASE)
BRACE_LIST = re.compile(r"\{[^{}]*,[^{}]*\}")
PERCENT_ENCODED = re.compile(r"%(2e|2f|5c|00|25)", re.IGNORECASE)
VARIABLE = re.compile(r"~[\w.-]*|\$[A-Z_]{2,}|\$\{.*\}|%[A-Z_]{2,}%")
"""What a shell would replace; `$id.tsx` is a name of its own."""
EDITOR_FILES = """
    **/.vscode/** **/.idea/** **/*.code-workspace **/.devcontainer/** **/.devcontainer.json **/.mcp.json
    **/.cursor/** **/.claude/** **/.codex/** **/.gemini/** **/.zed/** **/.exrc **/.nvimrc **/.nvim.lua
    **/.dir-locals.el
"""
GIT_FILES = """
    **/.gitmodules **/.gitattributes **/.gitconfig **/.lfsconfig **/.husky/** **/.githooks/**
    **/.pre-commit-config.yaml **/lefthook.y*ml **/.lefthook.y*ml
"""
CI_FILES = """
    .github/workflows/** .github/actions/** .gitlab-ci.yml .circleci/** .buildkite/** .travis.yml
    azure-pipelines.yml Jenkinsfile
"""
TOOL_FILES = """
    **/.cargo/config **/.cargo/config.toml **/.bazelrc **/.yarnrc **/.yarnrc.yml **/.yarn/releases/**
    **/.yarn/plugins/** **/.pnpmfile.cjs **/.pnp.cjs **/node_modules/.bin/** **/sitecustomize.py
    **/usercustomize.py **/*.pth **/.venv/** **/venv/bin/** **/.mvn/** **/gradle/wrapper/**
"""
"""What allowed commands read before they do anything else."""
SHELL_FILES = """
    **/.bashrc **/.bash_profile **/.bash_login **/.bash_logout **/.profile **/.zshrc **/.zshenv **/.zprofile
    **/.config/fish/** **/.config/autostart/** **/.config/systemd/**
"""
AUTORUN_FILES = tuple((EDITOR_FILES + GIT_FILES + CI_FILES + TOOL_FILES + SHELL_FILES).split())
"""Files that make other programs run something. Editors' files include those of other agents."""
Verdict = Literal["allow", "ask", "deny"]
KIND_LABELS = {"folder": "a folder", "other": "not a regular file"}


def bad_path_reason(given: str) -> str:
    """Why a file is never written at a path spelled like this; empty if it may be."""
    if not given.strip():
        return "it is empty"
    if "\\" in given:
        return "it has a backslash: separate folders with /"
    if given.endswith(("/", "/.", "/..")):
        return "it ends like a folder: name a file"
    return next(filter(None, map(_bad_name_reason, given.split("/"))), "")


def bad_new_name_reason(names: Sequence[str]) -> str:
    """Why no new file or folder may get one of these names; empty if it may."""
    return next(filter(None, (_bad_new_part_reason(each, first=not at) for at, each in enumerate(names))), "")


def mixes_alphabets(names: Sequence[str]) -> bool:
    """Whether a word mixes Latin and Cyrillic or Greek letters, which look the same."""
    words = (word for each in names for word in re.findall(r"[^\W\d_]+", each))
    scripts = ({name(letter, "").partition(" ")[0] for letter in word} for word in words)
    return any("LATIN" in each and not each.isdisjoint({"CYRILLIC", "GREEK"}) for each in scripts)


def _bad_name_reason(part: str) -> str:
    if part in ("", ".", ".."):
        return ""
    if part != part.strip() or not part.strip("."):
        return f"{part!r} begins or ends with a blank, or consists of dots"
    if hidden := next(filter(_is_invisible, part), ""):
        return f"it has an invisible character (U+{ord(hidden):04X})"
    plain = normalize("NFKC", part)
    becomes_special = plain != part and (not plain.strip(". ") or "/" in plain or "\\" in plain)
    if becomes_special or SLASHES & set(part):
        return f"{part!r} imitates dots or a slash"
    if len(part.encode(errors="surrogateescape")) > MAX_NAME_BYTES:
        return f"a name may have at most {MAX_NAME_BYTES} bytes"
    return ""


def _bad_new_part_reason(part: str, *, first: bool) -> str:
    if PERCENT_ENCODED.search(part):
        return f"{part!r} is percent-encoded: write the path itself"
    if first and VARIABLE.fullmatch(part):
        return f"{part!r} is not expanded: write the path itself"
    if bad := sorted(WINDOWS_FORBIDDEN & set(part)):
        return f"{part!r} has {bad[0]}, which Windows forbids or which stands for several files"
    if BRACE_LIST.search(part):
        return f"{part!r} stands for several files: write the path of one"
    if part.endswith("."):
        return f"{part!r} ends with a dot, which Windows drops"
    if DEVICES.fullmatch(part.split(".", maxsplit=1)[0].rstrip()):
        return f"{part!r} is a device on Windows"
    if part.startswith("-") or "`" in part or "$(" in part:
        return f"{part!r} would be taken for an option or a command"
    return ""


def _is_invisible(character: str) -> bool:
    odd_blank = character != " " and character.isspace()
    return odd_blank or character in BLANK_LETTERS or category(character) in INVISIBLE_CATEGORIES


def is_autorun_file(path: PathFacts) -> bool:
    """Whether the file is an autorun file by its real path or by the path as written."""
    return any(map(matches_autorun, {path.path, path.written}))


def matches_autorun(path: str) -> bool:
    """Whether a file at this path, relative to the workspace, is an autorun file; case does not matter."""
    lower = path.lower()
    likely = [pattern for part in {"", *lower.split("/")} for pattern in AUTORUN_BY_NAME.get(part, ())]
    return any(covers(pattern, lower) for pattern in likely)


def _autorun_by_name() -> dict[str, list[str]]:
    """Patterns by one literal name in them, to find candidates quickly; by "" if they have none."""
    found: dict[str, list[str]] = {}
    for pattern in AUTORUN_FILES:
        name = next((part for part in pattern.lower().split("/") if "*" not in part), "")
        found.setdefault(name, []).append(pattern.lower())
    return found


AUTORUN_BY_NAME = _autorun_by_name()


class Row(NamedTuple):
    """A kind of path, the verdicts on reading and on changing it, and the reason."""

    name: str
    what: str
    """For the documentation."""
    holds: Callable[[PathFacts], bool]
    change: Verdict
    why: Callable[[PathFacts], str]
    """Follows the path in the message: for the user who is asked, or the model that is refused."""
    next_step: str = ""
    reason: RefusalReason = "protected_path"
    look: Verdict = "allow"


TABLE: tuple[Row, ...] = (
    Row(
        "outside",
        "outside the workspace, by whatever link or `..`; `/proc`, `/dev`, `/sys`",
        lambda path: not path.inside,
        "deny",
        lambda path: "is outside the workspace",
        "Only files of the workspace can be written.",
        "outside_workspace",
        look="ask",
    ),
    Row(
        "git",
        "`.git`, file or folder, at any depth and in any spelling; bare repositories",
        lambda path: path.in_git,
        "deny",
        lambda path: "belongs to git",
        "Only git commands change it.",
    ),
    Row(
        "state",
        "`.handrail`, `.orchestration`, `.intentignore`, Handrail's data and the user's settings",
        lambda path: path.in_state,
        "deny",
        lambda path: "belongs to Handrail",
        "Only the user changes it.",
    ),
    Row(
        "program",
        "the files of the Handrail that is running, if they are in the workspace",
        lambda path: path.in_program,
        "deny",
        lambda path: "is part of the Handrail that is running",
        "To work on Handrail itself, open this folder with a Handrail that is installed elsewhere.",
    ),
    Row(
        "secret",
        "likely secrets: `.env*`, keys, `.npmrc`, `.netrc`, `.ssh`, credentials; not `.env.example`",
        lambda path: path.secret,
        "deny",
        lambda path: "may hold a secret, which the model would be shown",
        "Only the user writes it: say what to put there.",
        look="ask",
    ),
    Row(
        "unfit name",
        "names with invisible characters, that imitate others, or that are too long",
        lambda path: bool(_bad_path(path)),
        "deny",
        lambda path: f"is not a usable file name: {_bad_path(path)}",
        "Write the path of one file as it is listed.",
        "invalid_path",
    ),
    Row(
        "no file",
        "folders, pipes, sockets, devices; a path that goes through a file",
        lambda path: path.found in ("folder", "other") or path.through_file,
        "deny",
        lambda path: "goes through a file" if path.through_file else f"is {KIND_LABELS[path.found]}",
        "Name a file.",
        "invalid_path",
    ),
    Row(
        "unfit new name",
        "new names that Windows forbids, or that shells and encodings would replace",
        lambda path: bool(bad_new_name_reason(path.missing)),
        "deny",
        lambda path: f"is not a usable name for a new file: {bad_new_name_reason(path.missing)}",
        "Choose a plain name.",
        "invalid_path",
    ),
    Row(
        "double",
        "a new name that differs from an existing one only in how its letters are encoded",
        lambda path: path.twin_by == "encoding",
        "deny",
        lambda path: f"would be a second file that looks like {path.twin}",
        "Use the existing name.",
        "invalid_path",
    ),
    Row(
        "other case",
        "a new name that differs only in case from an existing one that stays",
        lambda path: path.twin_by == "case",
        "deny",
        lambda path: f"differs from {path.twin} only in case: on some systems they are the same file",
        "Use the existing name, or move that file.",
        "invalid_path",
    ),
    Row(
        "two alphabets",
        "a new name that mixes alphabets, or looks like an existing one in another alphabet",
        lambda path: path.twin_by == "letters" or mixes_alphabets(path.missing),
        "ask",
        lambda path: (
            f"looks like {path.twin}, but has letters of another alphabet"
            if path.twin_by == "letters"
            else "mixes letters of two alphabets that look alike"
        ),
    ),
    Row(
        "running file",
        "files that make editors, git, shells or build services run something (policy/paths.py)",
        is_autorun_file,
        "ask",
        lambda path: "can make other programs run something",
    ),
    Row(
        "hard link",
        "a file with several names",
        lambda path: path.links > 1,
        "ask",
        lambda path: f"has {path.links} names (hard links), and only this one would be changed",
    ),
)


def check_denied(facts: Facts) -> Decision:
    row = first_row(facts, "deny")
    if row is None or facts.path is None:
        return ALLOW
    path = facts.path
    why = row.why(path).partition(", which the model")[0]
    return deny(facts.tool, row.reason, f"{path.path} {why}. {row.next_step}", path.path)


def check_asked(facts: Facts) -> Decision:
    row = first_row(facts, "ask")
    return Ask(f"{facts.path.path} {row.why(facts.path)}") if row and facts.path else ALLOW


def first_row(facts: Facts, verdict: Verdict) -> Row | None:
    """The first row of the table that gives the call this verdict."""
    path = facts.path
    if path is None:
        return None
    for row in TABLE:
        if verdict == (row.change if facts.action == "write" else row.look) and row.holds(path):
            return row
    return None


def _bad_path(path: PathFacts) -> str:
    # A link may lead to an unfit name. The workspace's own name is not checked.
    return bad_path_reason(path.written) or (
        bad_path_reason(path.path) if path.inside and path.path != "." else ""
    )
