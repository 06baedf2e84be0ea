"""Read shfmt's syntax tree: simple commands, every program called, files written.

`read_script` accepts only nodes and fields that it knows; a command with any other is asked about. Calls and
written files are found anywhere in the tree, as far as their words are literal.
"""

import posixpath
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any, get_args

from handrail.policy.commands.denied import calls_shell
from handrail.policy.commands.script import PATTERN, UNKNOWN, Join, Script, SimpleCommand, Word, WriteTarget

Node = Mapping[str, Any]

POSITION_FIELDS = {"Pos", "End", "Position", "ValuePos", "ValueEnd", "Left", "Right", "OpPos", "Semicolon"}
JOIN_OPERATORS = ("&&", "||", "|")
HARMLESS_REDIRECTS = {
    ("2", ">&", "1"): "2>&1",
    ("", ">&", "2"): ">&2",
    ("1", ">&", "2"): ">&2",
    ("", ">", "/dev/null"): ">/dev/null",
    ("1", ">", "/dev/null"): ">/dev/null",
    ("2", ">", "/dev/null"): "2>/dev/null",
}
SYNTAX_NAMES = {"Subshell": "a subshell", "Block": "a group of commands", "FuncDecl": "a function"}
SYNTAX_NAMES |= {"IfClause": "an `if`", "CaseClause": "a `case`", "TimeClause": "`time`", "Negated": "a `!`"}
SYNTAX_NAMES |= {"TestClause": "a `[[` test", "TestDecl": "a test declaration", "DeclClause": "a declaration"}
SYNTAX_NAMES |= {"CmdSubst": "a command substitution", "ProcSubst": "a process substitution"}
SYNTAX_NAMES |= {"ParamExp": "a variable", "Assigns": "a variable set for the command"}
SYNTAX_NAMES |= {"ExtGlob": "an extended pattern", "BraceExp": "a brace expansion"}
SYNTAX_NAMES |= {"Hdoc": "a here-document", "Dollar": "a `$` before quotes"}
SYNTAX_NAMES |= dict.fromkeys(("WhileClause", "ForClause"), "a loop")
SYNTAX_NAMES |= dict.fromkeys(("ArithmCmd", "ArithmExp", "LetClause"), "arithmetic")
SYNTAX_NAMES |= dict.fromkeys(("CoprocClause", "Coprocess"), "a coprocess")
SYNTAX_NAMES |= dict.fromkeys(("Background", "Disown"), "a command in the background")


class UnsupportedSyntax(Exception):
    """Raised with the syntax, such as a loop, that makes a command more than simple literal commands."""


def read_script(text: str, tree: Node) -> Script:
    """The simple commands of a tree, or the syntax that makes it more than that."""
    try:
        require_known_fields(tree, ("Type", "Stmts", "Last"))
        commands = tuple(command for node in tree.get("Stmts", ()) for command in read_statement(node, ";"))
    except UnsupportedSyntax as syntax:
        return Script(text, problem=f"the command has {syntax}")
    return Script(text, commands, problem="" if commands else "the command is empty")


def read_statement(node: Node, join: Join) -> Iterator[SimpleCommand]:
    """The simple commands of a statement, in the order of the text."""
    require_known_fields(node, ("Comments", "Cmd", "Redirs"))
    command = node.get("Cmd")
    if command is None:
        raise UnsupportedSyntax("a redirection without a command")
    if command["Type"] == "BinaryCmd":
        require_known_fields(command, ("Type", "Op", "X", "Y"))
        if command["Op"] not in JOIN_OPERATORS or node.get("Redirs"):
            raise UnsupportedSyntax(f"`{command['Op']}`")
        yield from read_statement(command["X"], join)
        yield from read_statement(command["Y"], next(op for op in get_args(Join) if op == command["Op"]))
        return
    if command["Type"] != "CallExpr":
        raise _unsupported(command["Type"])
    require_known_fields(command, ("Type", "Args"))
    words = tuple(read_word(each) for each in command["Args"])
    if words[0].pattern:
        raise UnsupportedSyntax("a pattern where its program stands")
    yield SimpleCommand(words, tuple(read_redirect(each) for each in node.get("Redirs", ())), join)


def _unsupported(kind: str) -> UnsupportedSyntax:
    return UnsupportedSyntax(SYNTAX_NAMES.get(kind, f"a {kind}"))


def read_redirect(node: Node) -> str:
    """The redirection, if it is one of the few that write no file."""
    require_known_fields(node, ("Op", "N", "Word"))
    parts = node.get("Word", {}).get("Parts", ())
    target = parts[0].get("Value", "") if len(parts) == 1 and parts[0]["Type"] == "Lit" else ""
    found = HARMLESS_REDIRECTS.get((node.get("N", {}).get("Value", ""), node["Op"], target))
    if found is None:
        raise UnsupportedSyntax("a redirection")
    return found


def read_word(node: Node) -> Word:
    """The word without its quotes."""
    require_known_fields(node, ("Parts",))
    text, bare = "", ""
    for part in node["Parts"]:
        match part["Type"]:
            case "Lit":
                require_known_fields(part, ("Type", "Value"))
                added, marks = read_unquoted(part["Value"])
            case "SglQuoted":
                require_known_fields(part, ("Type", "Value"))
                added = part.get("Value", "")
                marks = "\0" * len(added)
            case "DblQuoted":
                require_known_fields(part, ("Type", "Parts"))
                added = "".join(read_double_quoted(inner) for inner in part.get("Parts", ()))
                marks = "\0" * len(added)
            case other:
                raise _unsupported(other)
        text, bare = text + added, bare + marks
    return Word(text, pattern=is_pattern(text, bare))


def read_unquoted(value: str) -> tuple[str, str]:
    """Unquoted text without its backslashes, and the same with a NUL for each escaped character."""
    text, bare = "", ""
    characters = iter(value)
    for character in characters:
        if character != "\\":
            text, bare = text + character, bare + character
            continue
        quoted = next(characters, None)
        if quoted is None:
            raise UnsupportedSyntax("a backslash at its end")
        if quoted != "\n":
            text, bare = text + quoted, bare + "\0"
    return text, bare


def read_double_quoted(part: Node) -> str:
    if part["Type"] != "Lit":
        raise _unsupported(part["Type"])
    require_known_fields(part, ("Type", "Value"))
    return unescaped(part["Value"])


def unescaped(value: str) -> str:
    """Text in double quotes without its backslashes."""
    text = ""
    characters = iter(value)
    for character in characters:
        if character != "\\":
            text += character
            continue
        quoted = next(characters, "")
        text += quoted if quoted and quoted in '$`"\\' else "" if quoted == "\n" else "\\" + quoted
    return text


def is_pattern(text: str, bare: str) -> bool:
    """Whether the shell replaces the word by file names; raises for other expansions."""
    if bare.startswith("~") or "=~" in bare or ":~" in bare:
        raise UnsupportedSyntax("a `~` that stands for a home folder")
    inside = bare.partition("{")[2].rpartition("}")[0]
    if "," in inside or ".." in inside:
        raise UnsupportedSyntax("a brace expansion")
    if not set("*?[") & set(bare):
        return False
    if text != bare or not PATTERN.fullmatch(text):
        raise UnsupportedSyntax("a pattern with quotes or odd characters in it")
    return True


def child_nodes(node: Node) -> Iterator[Any]:
    """The children of a node, without positions, which are most of a tree."""
    return (each for name, each in node.items() if name not in POSITION_FIELDS)


def all_nodes(node: Any) -> Iterator[Node]:
    """A node, or the nodes of a list, with everything below, in the order of the text."""
    if isinstance(node, dict):
        yield node
    for each in child_nodes(node) if isinstance(node, dict) else node if isinstance(node, list) else ():
        yield from all_nodes(each)


def require_known_fields(node: Node, known: Collection[str]) -> None:
    """Raises UnsupportedSyntax for a node with any other field."""
    for field in node:
        if field not in known and field not in POSITION_FIELDS:
            raise UnsupportedSyntax(SYNTAX_NAMES.get(field, f"a {node.get('Type', 'part')} with {field}"))


PRINTERS = frozenset({"echo", "printf"})
ESCAPED = re.compile(r"\\(.?)", re.DOTALL)


def called_programs(tree: Node) -> tuple[tuple[str, ...], ...]:
    """The words of each command anywhere in the tree, as far as they are known without running anything."""
    found = (_call_words(node) for node in all_nodes(tree) if node.get("Type") == "CallExpr")
    return tuple(dict.fromkeys(words for words in found if words))


def shell_inputs(tree: Node) -> Iterator[str]:
    """The texts that shells in the tree are given to run: by a here-document, here-string or pipe."""
    for node in all_nodes(tree):
        if node.get("Type") == "BinaryCmd" and node["Op"] in ("|", "|&"):
            if any(map(calls_shell, called_programs(node["Y"]))):
                yield from _printed_texts(node["X"])
        elif calls_shell(_call_words(node.get("Cmd") or {})):
            yield from _printed_texts(node)


def _printed_texts(node: Node) -> Iterator[str]:
    for each in all_nodes(node):
        if each.get("Type") == "CallExpr" and (words := _call_words(each)) and words[0] in PRINTERS:
            yield " ".join(words[1:])
        for redirect in each.get("Redirs", ()):
            if "Hdoc" in redirect:
                parts = redirect["Hdoc"].get("Parts", ())
                yield "".join(part["Value"] if part["Type"] == "Lit" else UNKNOWN for part in parts)
            elif redirect["Op"] == "<<<":
                yield _known_text(redirect["Word"])


def _call_words(node: Node) -> tuple[str, ...]:
    return tuple(_known_text(word) for word in node.get("Args", ()))


def _known_text(node: Node) -> str:
    """The word without its quotes, with UNKNOWN for every part that only a shell can know."""
    text = ""
    for part in node.get("Parts", ()):
        match part["Type"]:
            case "Lit":
                text += ESCAPED.sub(lambda found: found[1].strip("\n"), part["Value"])
            case "SglQuoted" if not part.get("Dollar") or "\\" not in part.get("Value", ""):
                text += part.get("Value", "")
            case "DblQuoted":
                inner = part.get("Parts", ())
                text += "".join(
                    unescaped(each["Value"]) if each["Type"] == "Lit" else UNKNOWN for each in inner
                )
            case _:
                text += UNKNOWN
    return text


WRITE_REDIRECTS = frozenset({">", ">>", ">|", "&>", "&>>", "<>", ">&"})
DEVICES = ("/dev/null", "/dev/stdout", "/dev/stderr", "/dev/tty", "/dev/fd/")
WRITE_PREFIXES = frozenset({"command", "env", "nohup", "sudo", "time"})
WRITES_ALL = frozenset({"mkdir", "mkfifo", "rm", "rmdir", "shred", "tee", "touch", "truncate", "unlink"})
WRITES_ALL_BUT_FIRST = frozenset({"chgrp", "chmod", "chown"})
WRITES_LAST = frozenset({"cp", "install", "ln", "mv", "rsync"})  # the last operand, or a file in it
OPTIONS_WITH_VALUE = {
    "cp": ("-S", "--suffix", "-t", "--target-directory"),
    "git restore": ("-s", "--source"),
    "install": ("-m", "-o", "-g", "-S", "-t", "--target-directory"),
    "ln": ("-S", "-t", "--target-directory"),
    "mkdir": ("-m",),
    "mv": ("-S", "-t", "--target-directory"),
    "sed": ("-e", "-f", "-l"),
    "shred": ("-n", "-s"),
    "touch": ("-r", "-d", "-t"),
    "truncate": ("-s", "-r"),
}
TARGET_OPTIONS = ("-t", "--target-directory")
STAGED, WORKTREE = frozenset({"-S", "--staged"}), frozenset({"-W", "--worktree", "-SW", "-WS"})
OUTPUT_OPTIONS = {"curl": ("-o", "--output"), "sort": ("-o", "--output"), "wget": ("-O", "--output-document")}


def written_paths(tree: Node) -> tuple[WriteTarget, ...]:
    """The files that a tree's commands are known to write, relative to where the first command runs."""
    return tuple(_WriteFinder().targets(tree))


class _WriteFinder:
    def __init__(self) -> None:
        self._folder: str | None = ""  # the folder in which commands run; None if it is not known

    def targets(self, node: Any) -> Iterator[WriteTarget]:
        if isinstance(node, list):
            for each in node:
                yield from self.targets(each)
        elif isinstance(node, dict):
            if node.get("Type") == "CallExpr":
                yield from self._call([_literal(each) for each in node.get("Args", ())])
            for redirect in node.get("Redirs", ()):
                target = _literal(redirect.get("Word", {}))
                to_file = target and target.text != "-" and not target.text.isdigit()
                if target and to_file and redirect.get("Op") in WRITE_REDIRECTS:
                    yield from self._placed(target)
            folder = self._folder
            for each in child_nodes(node):
                yield from self.targets(each)
            self._folder = folder if node.get("Type") == "Subshell" else self._folder

    def _call(self, words: Sequence[Word | None]) -> Iterator[WriteTarget]:
        while words and words[0] and (words[0].text in WRITE_PREFIXES or "=" in words[0].text):
            words = words[1:]
        if not words or words[0] is None:
            return
        program, rest = posixpath.basename(words[0].text), words[1:]
        if program in ("cd", "pushd", "popd"):
            folder = rest[0] if rest else None
            if folder is None or folder.pattern or folder.text.startswith("-") or self._folder is None:
                self._folder = None
            else:
                self._folder = posixpath.join(self._folder, folder.text)
            return
        if program == "git" and rest and rest[0]:
            program, rest = f"git {rest[0].text}", rest[1:]
        yield from self._written(program, rest)

    def _written(self, program: str, words: Sequence[Word | None]) -> Iterator[WriteTarget]:
        operands = _operands(words, OPTIONS_WITH_VALUE.get(program, ()))
        options = [each.text for each in words if each and each.text.startswith("-")]
        if program in WRITES_ALL or program in ("git rm", "git mv"):
            yield from self._each(operands)
        elif program in WRITES_ALL_BUT_FIRST:
            yield from self._each(operands[1:])
        elif program in WRITES_LAST:
            if program != "rsync" and (folders := _option_values(words, TARGET_OPTIONS)):
                operands = [*operands, folders[-1]]
            yield from self._into_last(operands, moves=program == "mv")
        elif program == "sed" and any(_in_place(each) for each in options):
            scripts = any(each.startswith(("-e", "-f", "--expression", "--file")) for each in options)
            yield from self._each(operands if scripts else operands[1:])
        elif program == "git restore":
            index_alone = STAGED.intersection(options) and not WORKTREE.intersection(options)
            yield from self._each([] if index_alone else operands)
        elif program == "git checkout":
            dashes = [number for number, each in enumerate(words) if each and each.text == "--"]
            yield from self._each(list(words[dashes[0] + 1 :]) if dashes else [])
        elif program == "dd":
            outputs = [each.text[3:] for each in operands if each and each.text.startswith("of=")]
            yield from self._each([Word(each) for each in outputs])
        elif program in OUTPUT_OPTIONS:
            yield from self._each(_option_values(words, OUTPUT_OPTIONS[program]))

    def _each(self, words: Sequence[Word | None]) -> Iterator[WriteTarget]:
        for each in words:
            if each:
                yield from self._placed(each)

    def _into_last(self, operands: Sequence[Word | None], *, moves: bool) -> Iterator[WriteTarget]:
        if not operands:
            return
        *sources, last = operands if len(operands) > 1 else (*operands, Word("."))
        if moves:
            yield from self._each(sources)
        if last:
            names = tuple(posixpath.basename(each.text.rstrip("/")) for each in sources if each)
            yield from self._placed(last, names)

    def _placed(self, target: Word, names: tuple[str, ...] = ()) -> Iterator[WriteTarget]:
        is_known = self._folder is not None or target.text.startswith("/")
        if is_known and not target.text.startswith(DEVICES):
            yield WriteTarget(posixpath.join(self._folder or "", target.text), target.pattern, names)


def _literal(node: Node) -> Word | None:
    try:
        return read_word(node)
    except (UnsupportedSyntax, KeyError):
        return None


def _operands(words: Sequence[Word | None], values: Sequence[str]) -> list[Word | None]:
    found: list[Word | None] = []
    left = iter(words)
    for each in left:
        if each and each.text == "--":
            return [*found, *left]
        if each and each.text in values:
            next(left, None)
        elif each is None or not each.text.startswith("-") or each.text == "-":
            found.append(each)
    return found


def _option_values(words: Sequence[Word | None], options: Sequence[str]) -> list[Word | None]:
    found: list[Word | None] = []
    for number, each in enumerate(words):
        if each and each.text in options:
            found += words[number + 1 : number + 2]
        elif each and each.text.startswith(tuple(f"{name}=" for name in options)):
            found.append(Word(each.text.partition("=")[2]))
    return found


def _in_place(option: str) -> bool:
    return option.startswith("--in-place") or (not option.startswith("--") and "i" in option[1:])
