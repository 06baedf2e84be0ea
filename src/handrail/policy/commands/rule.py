"""The rule of one command: options that are known to be harmless, and what its arguments are.

Options are listed as they are written, other spellings behind `|`: `-q|--quiet` has no value,
`-n|--lines=NUMBER` takes one, `--color[=WORD]` may have one behind `=`, `-#` is a number with a dash.
Arguments are kinds in their order: `TEXT PATH...`; `?` behind the last one that need not be there.
"""

import re
from collections.abc import Iterator, Sequence
from typing import Literal, NamedTuple

from handrail.policy.commands.kinds import KINDS
from handrail.policy.commands.script import Word
from handrail.protocol.record import Record

OPTION = re.compile(r"(?P<names>-[^=\[\]]+?)(?P<value>=(?P<must>[A-Z_]+)|\[=(?P<may>[A-Z_]+)\])?")
COUNT = re.compile(r"-[0-9]+")
SPECIAL = frozenset("*?[\\")
Style = Literal["gnu", "single"]
"""`gnu`: short options can be run together, a value stands behind `=` or as the next word.
`single`: one dash or two and a whole name, as `find` and `go` have it."""


class Option(NamedTuple):
    kind: str = ""
    must: bool = False
    """The value may be the next word."""


class NamedPath(Record):
    """A path that stands in a command."""

    text: str
    pattern: bool = False
    made: bool = False
    """The command makes or changes what lies there."""


class Read(NamedTuple):
    """What a rule makes of the words behind its command."""

    problem: str = ""
    paths: tuple[NamedPath, ...] = ()
    seen: frozenset[str] = frozenset()
    """Options that stand there."""


class Unknown(Exception):
    """This word is not one that the rule knows to be harmless."""


class Rule(Record):
    """What may follow the words of a command."""

    words: tuple[tuple[str, ...], ...]
    """The command, and others that mean the same."""
    options: dict[str, Option]
    arguments: tuple[str, ...]
    least: int
    repeats: bool
    style: Style
    after: str
    """The kind of all that follows `--`; empty: as other arguments."""
    instead: frozenset[str]
    """Options that stand for the first argument."""
    needs: frozenset[str]
    """Options of which one has to be there: without them the command writes."""
    reads_only: bool
    makes: bool
    """Its files are made or changed by it."""
    runs_code: bool
    network: bool
    adds: tuple[str, ...]
    """Words that are put behind the command when it runs unasked."""
    ends: tuple[str, ...]
    """Words that are put behind all others when it runs unasked: options before a `--`, other words last."""
    ends_with: frozenset[str]
    """Options of which one has to be there for that; none: they always are."""
    ends_without: frozenset[str]
    """Options with which they cannot be."""
    milder: dict[str, str]
    """Options in the place of which another stands when it runs unasked."""
    auto: tuple[str, ...]
    ask: tuple[str, ...]

    @property
    def name(self) -> str:
        return " ".join(self.words[0])

    def read(self, words: Sequence[Word], *, whole: bool = True) -> Read:
        """The paths in the words behind the command, or what in them is not known to be harmless."""
        seen: set[str] = set()
        try:
            paths, given = self._words(words, seen, shift=0)
            if shift := int(bool(self.instead & seen)):
                # Known only now: an option that stands for the first argument may come behind the others.
                paths, given = self._words(words, seen, shift=shift)
        except Unknown as unknown:
            return Read(str(unknown))
        if self.ends and self.ends_without & seen and any(SPECIAL & set(path.text) for path in paths):
            return Read(f"`{self.name}` with a pattern that may match what it does not leave out")
        if whole and given < self.least:
            return Read(f"`{self.name}` without {KINDS[self.arguments[given]].what}")
        if whole and self.needs and not self.needs & seen:
            return Read(f"`{self.name}` without {' or '.join(sorted(self.needs))}")
        return Read("", paths, frozenset(seen))

    def ended(self, words: Sequence[Word], seen: frozenset[str]) -> tuple[Word, ...]:
        """The words behind the command as they run unasked, with those that are to be last."""
        words = self._milder(words) if seen & self.milder.keys() else words
        if (self.ends_with and not self.ends_with & seen) or self.ends_without & seen:
            return tuple(words)
        split = next((at for at, word in enumerate(words) if word.text == "--"), len(words))
        options = [Word(each) for each in self.ends if each.startswith("-")]
        others = [Word(each) for each in self.ends if not each.startswith("-")]
        return (*words[:split], *options, *words[split:], *others)

    def _milder(self, words: Sequence[Word]) -> list[Word]:
        told: list[Word] = []
        left = iter(words)
        for word in left:
            if word.text == "--":
                return [*told, word, *left]
            if not is_option(word):
                told.append(word)
                continue
            text, takes_next = self._milder_option(word.text)
            told += [word.changed(text=text), *([next(left)] if takes_next else [])]
        return told

    def _milder_option(self, text: str) -> tuple[str, bool]:
        """The option or options of a word, and whether the next word is a value."""
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

    def _words(
        self, words: Sequence[Word], seen: set[str], *, shift: int
    ) -> tuple[tuple[NamedPath, ...], int]:
        """The paths, and how many arguments there are, `shift` of them by options; `seen` gets these."""
        paths: list[NamedPath] = []
        left, number, closed = iter(words), shift, False
        for word in left:
            kind = self._kind(number)
            if word.text == "--" and not closed:
                closed = True
            elif is_option(word) and not closed and kind not in ("REST", "ANY"):
                paths += self._option(word, left, seen)
            else:
                named = number + 1 < len(self.arguments)
                kind = self.after if closed and self.after and not named else kind
                paths += self._closed(word, kind) if closed else self._argument(word, kind)
                number += 1
        return tuple(paths), number

    def _kind(self, number: int) -> str:
        """What the argument of this number is; empty where there may be none."""
        if number < len(self.arguments):
            return self.arguments[number]
        return self.arguments[-1] if self.repeats else ""

    def _argument(self, word: Word, kind: str) -> tuple[NamedPath, ...]:
        if not kind:
            raise Unknown(f"`{self.name}` with the argument `{word.text}`")
        if not word.pattern:
            return self._value(word.text, kind, word.text)
        if not self.reads_only:
            raise Unknown(f"the pattern `{word.text}`, which file names take the place of")
        return (NamedPath(word.text, pattern=True),)

    def _closed(self, word: Word, kind: str) -> tuple[NamedPath, ...]:
        """An argument behind `--`, where a dash at its beginning means nothing."""
        dashed = self.style == "gnu" and self.reads_only and word.text.startswith("-") and not word.pattern
        if dashed and kind and KINDS[kind].pattern.fullmatch(word.text.lstrip("-")):
            return tuple(NamedPath(path) for path in KINDS[kind].paths(word.text))
        return self._argument(word, kind)

    def _value(self, text: str, kind: str, shown: str) -> tuple[NamedPath, ...]:
        known = KINDS[kind]
        if not known.pattern.fullmatch(text):
            raise Unknown(f"`{self.name}` with `{shown}`, which is not {known.what}")
        made = kind == "ARTEFACT" or (self.makes and kind == "FILE")
        return tuple(NamedPath(path, made=made) for path in known.paths(text))

    # Options

    def _option(self, word: Word, left: Iterator[Word], seen: set[str]) -> tuple[NamedPath, ...]:
        text = word.text
        if word.pattern and not self._is_same_option(text):
            raise Unknown(f"the pattern `{text}`, which file names take the place of")
        if "-#" in self.options and COUNT.fullmatch(text):
            return ()
        if self.style == "gnu" and not text.startswith("--"):
            return self._run_together(text, left, seen)
        name, sign, value = text.partition("=")
        option = self._known(name, text)
        seen.add(name)
        if sign:
            if not option.kind:
                raise Unknown(f"`{self.name}` with `{text}`")
            if option.kind == "TEXT" and value.startswith("-"):
                return ()  # behind the sign, it cannot be read as an option
            return self._value(value, option.kind, text)
        return self._next(text, option, left) if option.must else ()

    def _is_same_option(self, text: str) -> bool:
        """Whether every file name in the pattern's place is this option again, with some text as value."""
        name, sign, _ = text.partition("=")
        return bool(sign) and self.reads_only and self.options.get(name, Option()).kind in ("TEXT", "GLOB")

    def _run_together(self, text: str, left: Iterator[Word], seen: set[str]) -> tuple[NamedPath, ...]:
        """`-la`, `-n5`, `-xk expression`: letters up to the first that takes a value."""
        for number, letter in enumerate(text[1:], start=2):
            option = self._known(f"-{letter}", text)
            seen.add(f"-{letter}")
            if option.kind and text[number:]:
                return self._value(text[number:], option.kind, text)
            if option.must:
                return self._next(text, option, left)
        return ()

    def _next(self, text: str, option: Option, left: Iterator[Word]) -> tuple[NamedPath, ...]:
        word = next(left, None)
        if word is None:
            raise Unknown(f"`{self.name}` with `{text}` and no value")
        # What looks like an option may be read as one, unless it is plainly a value.
        dashed = word.text.startswith("-") and option.kind not in ("NUMBER", "MODE", "SOUGHT")
        if dashed or word.text == "--":
            raise Unknown(f"`{self.name}` with `{text} {word.text}`")
        if word.pattern:
            return self._argument(word, option.kind)
        return self._value(word.text, option.kind, f"{text} {word.text}")

    def _known(self, name: str, shown: str) -> Option:
        option = self.options.get(name)
        if option is None:
            raise Unknown(f"`{self.name}` with `{shown}`, which is not known to be harmless")
        return option


def is_option(word: Word) -> bool:
    return len(word.text) > 1 and word.text.startswith("-")


def rule(
    *commands: str,
    options: str = "",
    arguments: str = "",
    style: Style = "gnu",
    after: str = "",
    instead: str = "",
    needs: str = "",
    reads_only: bool = False,
    makes: bool = False,
    runs_code: bool = False,
    network: bool = False,
    adds: str = "",
    ends: str = "",
    ends_with: str = "",
    ends_without: str = "",
    milder: str = "",
    auto: Sequence[str] = (),
    ask: Sequence[str] = (),
) -> Rule:
    """A rule as it is written in its family's file; `auto` and `ask` are examples that have to hold."""
    kinds = arguments.split()
    repeats = bool(kinds) and kinds[-1].endswith("...")
    names = [each.rstrip("?.") for each in kinds]
    return Rule(
        words=tuple(tuple(each.split()) for each in commands),
        options=dict(_options(options)),
        arguments=tuple(names),
        least=sum(not each.endswith(("?", "...")) for each in kinds),
        repeats=repeats,
        style=style,
        after=after,
        instead=frozenset(instead.split()),
        needs=frozenset(needs.split()),
        reads_only=reads_only,
        makes=makes,
        runs_code=runs_code,
        network=network,
        adds=tuple(adds.split()),
        ends=tuple(ends.split()),
        ends_with=frozenset(name for name, _ in _options(ends_with)),
        ends_without=frozenset(ends_without.split()),
        milder={name: other for name, _, other in (each.partition("=") for each in milder.split())},
        auto=tuple(auto),
        ask=tuple(ask),
    )


def _options(text: str) -> Iterator[tuple[str, Option]]:
    for each in text.split():
        found = OPTION.fullmatch(each)
        if found is None:
            raise ValueError(f"{each!r} is not how an option is listed")
        option = Option(found["must"] or found["may"] or "", must=bool(found["must"]))
        for name in found["names"].split("|"):
            yield name, option
