"""What a command is known to write, move or delete: redirections, and the programs that are for just that.

Found anywhere in the shell's syntax tree, whatever else is in it; what has to be worked out is not known.
"""

import posixpath
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from handrail.policy.commands.script import Target, Word
from handrail.tools.shell_tree import Beyond, inner, word

Node = Mapping[str, Any]

INTO = frozenset({">", ">>", ">|", "&>", "&>>", "<>", ">&"})
DEVICES = ("/dev/null", "/dev/stdout", "/dev/stderr", "/dev/tty", "/dev/fd/")
BEFORE = frozenset({"command", "env", "nohup", "sudo", "time"})
ALL = frozenset({"mkdir", "mkfifo", "rm", "rmdir", "shred", "tee", "touch", "truncate", "unlink"})
"""Every operand is written."""
BUT_FIRST = frozenset({"chgrp", "chmod", "chown"})
INTO_LAST = frozenset({"cp", "install", "ln", "mv", "rsync"})
"""The last operand is written, or a file in it."""
VALUES = {
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
"""Options whose value is the next word."""
TARGETS = ("-t", "--target-directory")
STAGED, WORKTREE = frozenset({"-S", "--staged"}), frozenset({"-W", "--worktree", "-SW", "-WS"})
OUTPUTS = {"curl": ("-o", "--output"), "sort": ("-o", "--output"), "wget": ("-O", "--output-document")}


def written(tree: Node) -> tuple[Target, ...]:
    """What the commands of a tree are known to write, relative to where the first of them runs."""
    return tuple(_Walk().targets(tree))


class _Walk:
    def __init__(self) -> None:
        self._folder: str | None = ""
        """Where the commands run; None: not known."""

    def targets(self, node: Any) -> Iterator[Target]:
        if isinstance(node, list):
            for each in node:
                yield from self.targets(each)
        elif isinstance(node, dict):
            if node.get("Type") == "CallExpr":
                yield from self._call([_literal(each) for each in node.get("Args", ())])
            for redirect in node.get("Redirs", ()):
                yield from self._redirect(redirect)
            folder = self._folder
            for each in inner(node):
                yield from self.targets(each)
            self._folder = folder if node.get("Type") == "Subshell" else self._folder

    def _redirect(self, node: Node) -> Iterator[Target]:
        target = _literal(node.get("Word", {}))
        if node.get("Op") in INTO and target and not target.text.isdigit() and target.text != "-":
            yield from self._placed(target)

    def _call(self, words: Sequence[Word | None]) -> Iterator[Target]:
        while words and words[0] and (words[0].text in BEFORE or "=" in words[0].text):
            words = words[1:]
        if not words or words[0] is None:
            return
        program, rest = posixpath.basename(words[0].text), words[1:]
        if program in ("cd", "pushd", "popd"):
            self._go(rest[0] if rest else None)
            return
        if program == "git" and rest and rest[0]:
            program, rest = f"git {rest[0].text}", rest[1:]
        yield from self._written(program, rest)

    def _go(self, folder: Word | None) -> None:
        known = folder is not None and not folder.pattern and not folder.text.startswith("-")
        if known and folder is not None and self._folder is not None:
            self._folder = posixpath.join(self._folder, folder.text)
        else:
            self._folder = None

    def _written(self, program: str, words: Sequence[Word | None]) -> Iterator[Target]:
        operands = _operands(words, VALUES.get(program, ()))
        options = [each.text for each in words if each and each.text.startswith("-")]
        if program in ALL or program in ("git rm", "git mv"):
            yield from self._each(operands)
        elif program in BUT_FIRST:
            yield from self._each(operands[1:])
        elif program in INTO_LAST:
            if program != "rsync" and (folders := _values(words, TARGETS)):
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
        elif program in OUTPUTS:
            yield from self._each(_values(words, OUTPUTS[program]))

    def _each(self, words: Sequence[Word | None]) -> Iterator[Target]:
        for each in words:
            if each:
                yield from self._placed(each)

    def _into_last(self, operands: Sequence[Word | None], *, moves: bool) -> Iterator[Target]:
        if not operands:
            return
        *sources, last = operands if len(operands) > 1 else (*operands, Word("."))
        if moves:
            yield from self._each(sources)
        if last:
            names = tuple(posixpath.basename(each.text.rstrip("/")) for each in sources if each)
            yield from self._placed(last, names)

    def _placed(self, target: Word, names: tuple[str, ...] = ()) -> Iterator[Target]:
        if target.text.startswith(DEVICES):
            return
        if target.text.startswith("/"):
            yield Target(target.text, target.pattern, names)
        elif self._folder is not None:
            yield Target(posixpath.join(self._folder, target.text), target.pattern, names)


def _literal(node: Node) -> Word | None:
    """The word, if nothing in it has to be worked out."""
    try:
        return word(node)
    except (Beyond, KeyError):
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


def _values(words: Sequence[Word | None], options: Sequence[str]) -> list[Word | None]:
    found: list[Word | None] = []
    for number, each in enumerate(words):
        if each and each.text in options:
            found += words[number + 1 : number + 2]
        elif each and each.text.startswith(tuple(f"{name}=" for name in options)):
            found.append(Word(each.text.partition("=")[2]))
    return found


def _in_place(option: str) -> bool:
    return option.startswith("--in-place") or (not option.startswith("--") and "i" in option[1:])
