"""The rule of one command: its harmless options, and what its arguments are.

Options are listed as a user writes them, with `|` between spellings: `-q|--quiet` has no value,
`-n|--lines=NUMBER` takes one, `--color[=WORD]` may have one after `=`, `-#` is a number with a dash.
Arguments are kinds in order: `TEXT PATH...`; `?` marks an optional last one.
"""

import re
from collections.abc import Iterator, Sequence
from typing import Literal, NamedTuple

from msgspec.structs import replace

from handrail.policy.commands.git_hardening import as_commits
from handrail.policy.commands.kinds import KINDS
from handrail.policy.commands.script import Word
from handrail.protocol.values import Value

OPTION = re.compile(r"(?P<names>-[^=\[\]]+?)(?P<value>=(?P<must>[A-Z_]+)|\[=(?P<may>[A-Z_]+)\])?")
COUNT = re.compile(r"-[0-9]+")
SPECIAL = frozenset("*?[\\")
Style = Literal["gnu", "single"]
"""`gnu`: short options can be combined, a value follows `=` or is the next word.
`single`: one or two dashes and a whole name, as in `find` and `go`."""


class Option(NamedTuple):
    kind: str = ""
    must: bool = False
    """The value may be the next word."""


class NamedPath(Value):
    text: str
    made: bool = False
    """The command creates or changes it."""


Paths = tuple[NamedPath, ...]


class RuleResult(NamedTuple):
    """What a rule finds in the words after its command."""

    problem: str = ""
    paths: Paths = ()
    seen: frozenset[str] = frozenset()


class UnknownWord(Exception):
    """The rule does not know this word to be harmless."""


class Rule:
    """What may follow a command's words, as it is written in its family's file.

    `auto` and `ask` are examples that must hold: what runs unasked, and what is asked about.
    Several commands or examples are separated by a comma and a blank.
    """

    def __init__(
        self,
        commands: str,
        *,
        options: str = "",
        arguments: str = "",
        style: Style = "gnu",
        after: str = "",
        instead: str = "",
        needs: str = "",
        reads_only: bool = False,
        makes: bool = False,
        runs_code: bool = False,
        adds: str = "",
        ends: str = "",
        ends_with: str = "",
        ends_clash: str = "",
        commits: str | None = None,
        milder: str = "",
        auto: str = "",
        ask: str = "",
    ) -> None:
        kinds = arguments.split()
        self.words = tuple(tuple(each.split()) for each in _listed(commands))
        """The command, and others with the same meaning."""
        self.name = " ".join(self.words[0])
        self.options = dict(_options(options))
        self.arguments = tuple(each.rstrip("?.") for each in kinds)
        self.min_arguments = sum(not each.endswith(("?", "...")) for each in kinds)
        self.repeats = bool(kinds) and kinds[-1].endswith("...")
        self.style = style
        self.after = after
        """The kind of all that follows `--`; empty: like other arguments."""
        self.instead = frozenset(instead.split())
        """Options that replace the first argument."""
        self.needs = frozenset(needs.split())
        """One of these options must be given: without them the command writes."""
        self.reads_only = reads_only
        self.makes = makes
        """The command creates or changes the files it names."""
        self.runs_code = runs_code
        self.adds = tuple(adds.split())
        """Words inserted after the command when it runs unasked."""
        self.ends = tuple(ends.split())
        """Words appended when it runs unasked: options before a `--`, other words last."""
        self.ends_with = frozenset(name for name, _ in _options(ends_with))
        """`ends` is appended only with one of these options; empty: always."""
        self.ends_clash = frozenset(ends_clash.split())
        """Options with which `ends` has no effect: asked about where it would be appended."""
        self.commits = commits
        """Revisions run such that they name only commits, or a path in one; without any, this one is used."""
        self.milder = {name: other for name, _, other in (each.partition("=") for each in milder.split())}
        """Options that are replaced by a safer one when it runs unasked."""
        self.auto = _listed(auto)
        self.ask = _listed(ask)

    def read(self, words: Sequence[Word], *, whole: bool = True) -> RuleResult:
        """The paths in the words after the command, or why they are not known to be harmless."""
        seen: set[str] = set()
        try:
            paths, count = self._words(words, seen, shift=0)
            if shift := int(bool(self.instead & seen)):
                # Known only now: an option that replaces the first argument may come after the others.
                paths, count = self._words(words, seen, shift=shift)
        except UnknownWord as unknown:
            return RuleResult(str(unknown))
        if self.ends_with & seen and (clash := self.ends_clash & seen):
            return RuleResult(f"`{self.name}` with `{min(clash)}`, which may show files with secrets")
        if whole and count < self.min_arguments:
            return RuleResult(f"`{self.name}` without {KINDS[self.arguments[count]].what}")
        if whole and self.needs and not self.needs & seen:
            return RuleResult(f"`{self.name}` without {' or '.join(sorted(self.needs))}")
        return RuleResult("", paths, frozenset(seen))

    def hardened(self, words: Sequence[Word], seen: frozenset[str]) -> tuple[Word, ...]:
        """The words after the command as they run unasked: `ends` appended, risky words replaced."""
        split = next((at for at, word in enumerate(words) if word.text == "--"), len(words))
        before, after = words[:split], words[split:]
        if self.commits is not None:
            before, after = self._with_commits(before, after)
        elif seen & self.milder.keys():
            before = [word for each in self._milder(before) for word in each]
        if self.ends_with and not self.ends_with & seen:
            return (*before, *after)
        options = [Word(each) for each in self.ends if each.startswith("-")]
        others = [Word(each) for each in self.ends if not each.startswith("-")]
        return (*before, *options, *after, *others)

    def _with_commits(self, before: Sequence[Word], after: Sequence[Word]) -> tuple[list[Word], list[Word]]:
        """Options and commits, then `--` and paths: git would also take a path for the name of an object."""
        groups = list(self._milder(before))
        arguments = [words[0] for words in groups if not is_option(words[0])]
        paths = [] if after else [word for word in arguments if is_git_path(word)]
        revisions = [as_commits(word.text) for word in arguments if word not in paths]
        if not revisions and self.commits:
            revisions = [as_commits(self.commits)]
        options = [word for words in groups if is_option(words[0]) for word in words]
        return [*options, *map(Word, revisions)], [Word("--"), *paths, *after[1:]]

    def _milder(self, words: Sequence[Word]) -> Iterator[tuple[Word, ...]]:
        """Each argument, and each option with its value, risky options replaced."""
        rest = iter(words)
        for word in rest:
            if not is_option(word):
                yield (word,)
                continue
            text, takes_next = self._milder_option(word.text)
            yield (replace(word, text=text), *([next(rest)] if takes_next else []))

    def _milder_option(self, text: str) -> tuple[str, bool]:
        """The word with its options replaced, and whether the next word is a value."""
        if text.startswith("--"):
            name, sign, _ = text.partition("=")
            return self.milder.get(name, name) + text[len(name) :], self.options[name].must and not sign
        letters = "-"
        for number, letter in enumerate(text[1:], start=2):
            option = self.options.get(f"-{letter}", Option())
            letters += self.milder.get(f"-{letter}", f"-{letter}")[1:]
            if option.kind:
                return letters + text[number:], option.must and not text[number:]
        return letters, False

    def _words(self, words: Sequence[Word], seen: set[str], *, shift: int) -> tuple[Paths, int]:
        """The paths and the number of arguments, `shift` of them given as options; adds options to `seen`."""
        paths: list[NamedPath] = []
        rest, number, closed = iter(words), shift, False
        for word in rest:
            kind = self._kind(number)
            if word.text == "--" and not closed:
                closed = True
            elif is_option(word) and not closed and kind not in ("REST", "ANY"):
                paths += self._option(word, rest, seen)
            else:
                named = number + 1 < len(self.arguments)
                kind = self.after if closed and self.after and not named else kind
                paths += self._closed(word, kind) if closed else self._argument(word, kind)
                number += 1
        return tuple(paths), number

    def _kind(self, number: int) -> str:
        """The kind of the argument with this number; empty if there may be none."""
        if number < len(self.arguments):
            return self.arguments[number]
        return self.arguments[-1] if self.repeats else ""

    def _argument(self, word: Word, kind: str) -> Paths:
        if not kind:
            raise UnknownWord(f"`{self.name}` with the argument `{word.text}`")
        return self._value(word.text, kind, word.text)

    def _closed(self, word: Word, kind: str) -> Paths:
        """An argument after `--`, where a leading dash means nothing."""
        dashed = self.style == "gnu" and self.reads_only and word.text.startswith("-")
        if dashed and kind and KINDS[kind].pattern.fullmatch(word.text.lstrip("-")):
            return tuple(NamedPath(path) for path in KINDS[kind].paths(word.text))
        return self._argument(word, kind)

    def _value(self, text: str, kind: str, shown: str) -> Paths:
        known = KINDS[kind]
        if not known.pattern.fullmatch(text):
            raise UnknownWord(f"`{self.name}` with `{shown}`, which is not {known.what}")
        made = kind == "ARTEFACT" or (self.makes and kind == "FILE")
        return tuple(NamedPath(path, made=made) for path in known.paths(text))

    def _option(self, word: Word, rest: Iterator[Word], seen: set[str]) -> Paths:
        text = word.text
        if "-#" in self.options and COUNT.fullmatch(text):
            return ()
        if self.style == "gnu" and not text.startswith("--"):
            return self._combined(text, rest, seen)
        name, sign, value = text.partition("=")
        option = self._known(name, text)
        seen.add(name)
        if sign:
            if not option.kind:
                raise UnknownWord(f"`{self.name}` with `{text}`")
            if option.kind == "TEXT" and value.startswith("-"):
                return ()  # after the sign, it cannot be read as an option
            return self._value(value, option.kind, text)
        return self._next(text, option, rest) if option.must else ()

    def _combined(self, text: str, rest: Iterator[Word], seen: set[str]) -> Paths:
        """`-la`, `-n5`, `-xk expression`: letters up to the first that takes a value."""
        for number, letter in enumerate(text[1:], start=2):
            option = self._known(f"-{letter}", text)
            seen.add(f"-{letter}")
            if option.kind and text[number:]:
                return self._value(text[number:], option.kind, text)
            if option.must:
                return self._next(text, option, rest)
        return ()

    def _next(self, text: str, option: Option, rest: Iterator[Word]) -> Paths:
        word = next(rest, None)
        if word is None:
            raise UnknownWord(f"`{self.name}` with `{text}` and no value")
        # What looks like an option may be read as one, unless it is clearly a value.
        dashed = word.text.startswith("-") and option.kind not in ("NUMBER", "MODE", "SOUGHT")
        if dashed or word.text == "--":
            raise UnknownWord(f"`{self.name}` with `{text} {word.text}`")
        return self._value(word.text, option.kind, f"{text} {word.text}")

    def _known(self, name: str, shown: str) -> Option:
        option = self.options.get(name)
        if option is None:
            raise UnknownWord(f"`{self.name}` with `{shown}`, which is not known to be harmless")
        return option


def is_option(word: Word) -> bool:
    return len(word.text) > 1 and word.text.startswith("-")


def is_git_path(word: Word) -> bool:
    """Whether a word before which there is no `--` is a path or pathspec rather than a revision."""
    pattern = bool(SPECIAL & set(word.text)) and "{" not in word.text
    return word.exists or word.pattern or pattern or word.text.startswith((":(", ":/", ":!", ":^"))


def _listed(text: str) -> tuple[str, ...]:
    return tuple(" ".join(text.split()).split(", ")) if text else ()


def _options(text: str) -> Iterator[tuple[str, Option]]:
    for each in text.split():
        found = OPTION.fullmatch(each)
        if found is None:
            raise ValueError(f"{each!r} is not a valid way to list an option")
        option = Option(found["must"] or found["may"] or "", must=bool(found["must"]))
        for name in found["names"].split("|"):
            yield name, option
