"""Reading the syntax tree of shfmt: simple commands with literal words, or why it is more than that.

Every node is read by the fields it may have; one that is not known here makes the command one to ask about.
"""

from collections.abc import Collection, Iterator, Mapping
from typing import Any, get_args

from handrail.policy.commands.script import PATTERN, Join, Script, Simple, Word

Node = Mapping[str, Any]

POSITIONS = frozenset(
    ("Pos", "End", "Position", "ValuePos", "ValueEnd", "Left", "Right", "OpPos", "Semicolon")
)
NOT_READ = POSITIONS | {"Type", "Value", "Op"}
JOINS = ("&&", "||", "|")
REDIRECTS = {
    ("2", ">&", "1"): "2>&1",
    ("", ">&", "2"): ">&2",
    ("1", ">&", "2"): ">&2",
    ("", ">", "/dev/null"): ">/dev/null",
    ("1", ">", "/dev/null"): ">/dev/null",
    ("2", ">", "/dev/null"): "2>/dev/null",
}
WHAT = {
    "Subshell": "a subshell",
    "Block": "a group of commands",
    "IfClause": "an `if`",
    "WhileClause": "a loop",
    "ForClause": "a loop",
    "CaseClause": "a `case`",
    "FuncDecl": "a function",
    "ArithmCmd": "arithmetic",
    "TestClause": "a `[[` test",
    "DeclClause": "a declaration",
    "LetClause": "arithmetic",
    "TimeClause": "`time`",
    "CoprocClause": "a coprocess",
    "TestDecl": "a test declaration",
    "CmdSubst": "a command substitution",
    "ParamExp": "a variable",
    "ArithmExp": "arithmetic",
    "ProcSubst": "a process substitution",
    "ExtGlob": "an extended pattern",
    "BraceExp": "a brace expansion",
    "Background": "a command in the background",
    "Negated": "a `!`",
    "Coprocess": "a coprocess",
    "Disown": "a command in the background",
    "Assigns": "a variable set for the command",
    "Hdoc": "a here-document",
    "Dollar": "a `$` before quotes",
}


class Beyond(Exception):
    """The command has this, which is more than simple commands with literal words."""


def read_tree(text: str, tree: Node) -> Script:
    """The simple commands of a tree, or what else is in it."""
    try:
        only(tree, ("Type", "Stmts", "Last"))
        commands = tuple(command for node in tree.get("Stmts", ()) for command in statement(node, ";"))
    except Beyond as beyond:
        return Script(text, problem=f"the command has {beyond}")
    return Script(text, commands, problem="" if commands else "the command is empty")


def statement(node: Node, join: Join) -> Iterator[Simple]:
    """The simple commands of a statement in their order, which is that of the text."""
    only(node, ("Comments", "Cmd", "Redirs"))
    command = node.get("Cmd")
    if command is None:
        raise Beyond("a redirection without a command")
    if command["Type"] == "BinaryCmd":
        only(command, ("Type", "Op", "X", "Y"))
        if command["Op"] not in JOINS or node.get("Redirs"):
            raise Beyond(f"`{command['Op']}`")
        yield from statement(command["X"], join)
        yield from statement(command["Y"], next(each for each in get_args(Join) if each == command["Op"]))
        return
    if command["Type"] != "CallExpr":
        raise Beyond(WHAT.get(command["Type"], f"a {command['Type']}"))
    only(command, ("Type", "Args"))
    words = tuple(word(each) for each in command["Args"])
    if words[0].pattern:
        raise Beyond("a pattern where its program stands")
    yield Simple(words, tuple(redirect(each) for each in node.get("Redirs", ())), join)


def redirect(node: Node) -> str:
    """One of the few redirections that write nowhere."""
    only(node, ("Op", "N", "Word"))
    parts = node.get("Word", {}).get("Parts", ())
    target = parts[0].get("Value", "") if len(parts) == 1 and parts[0]["Type"] == "Lit" else ""
    found = REDIRECTS.get((node.get("N", {}).get("Value", ""), node["Op"], target))
    if found is None:
        raise Beyond("a redirection")
    return found


def word(node: Node) -> Word:
    """The word without its quotes."""
    only(node, ("Parts",))
    text, bare = "", ""
    for part in node["Parts"]:
        match part["Type"]:
            case "Lit":
                only(part, ("Type", "Value"))
                added, marks = unquoted(part["Value"])
            case "SglQuoted":
                only(part, ("Type", "Value"))
                added = part.get("Value", "")
                marks = "\0" * len(added)
            case "DblQuoted":
                only(part, ("Type", "Parts"))
                added = "".join(double_quoted(inner) for inner in part.get("Parts", ()))
                marks = "\0" * len(added)
            case other:
                raise Beyond(WHAT.get(other, f"a {other}"))
        text, bare = text + added, bare + marks
    return Word(text, pattern=is_pattern(text, bare))


def unquoted(value: str) -> tuple[str, str]:
    """Text that stood without quotes, and the same with a NUL wherever a backslash took the meaning away."""
    text, bare = "", ""
    characters = iter(value)
    for character in characters:
        if character != "\\":
            text, bare = text + character, bare + character
            continue
        quoted = next(characters, None)
        if quoted is None:
            raise Beyond("a backslash at its end")
        if quoted != "\n":
            text, bare = text + quoted, bare + "\0"
    return text, bare


def double_quoted(part: Node) -> str:
    if part["Type"] != "Lit":
        raise Beyond(WHAT.get(part["Type"], f"a {part['Type']}"))
    only(part, ("Type", "Value"))
    text = ""
    characters = iter(part["Value"])
    for character in characters:
        if character != "\\":
            text += character
            continue
        quoted = next(characters, "")
        text += quoted if quoted and quoted in '$`"\\' else "" if quoted == "\n" else "\\" + quoted
    return text


def is_pattern(text: str, bare: str) -> bool:
    """Whether the shell puts file names in the word's place; refuses what else it would expand."""
    if bare.startswith("~") or "=~" in bare or ":~" in bare:
        raise Beyond("a `~` that stands for a home folder")
    inside = bare.partition("{")[2].rpartition("}")[0]
    if "," in inside or ".." in inside:
        raise Beyond("a brace expansion")
    if not set("*?[") & set(bare):
        return False
    if text != bare or not PATTERN.fullmatch(text):
        raise Beyond("a pattern with quotes or odd characters in it")
    return True


def inner(node: Node) -> Iterator[Any]:
    """What is inside a node, without where it stands in the text, which is most of a tree."""
    return (each for name, each in node.items() if name not in NOT_READ)


def only(node: Node, known: Collection[str]) -> None:
    """Refuses a node that has more to it than is read here."""
    for field in node:
        if field not in known and field not in POSITIONS:
            raise Beyond(WHAT.get(field, f"a {node.get('Type', 'part')} with {field}"))
