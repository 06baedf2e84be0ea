"""What is known of a command before it runs: is every part of it on the list, and known to be harmless?"""

import shlex
from collections.abc import Iterator, Sequence
from functools import lru_cache

from handrail.policy.commands.hardening import BEFORE, OPTIONS
from handrail.policy.commands.kinds import KINDS
from handrail.policy.commands.known import (
    DEFAULT,
    INTERPRETERS,
    RUNNERS,
    SAME,
    WITH_SUBCOMMANDS,
    Words,
    rule_for,
)
from handrail.policy.commands.rule import NamedPath, Rule
from handrail.policy.commands.script import Script, Simple, Word, written
from handrail.protocol.record import Record
from handrail.protocol.values import AllowedCommand, Entry

DASHES = "\u2010\u2011\u2012\u2013\u2014\u2015\u2212\uff0d\ufe58\ufe63"
"""What a text editor makes of a hyphen."""


class Lists(Record):
    """Entries by their words: what may run unasked in mode auto, and what never runs."""

    allowed: frozenset[Words] = frozenset(DEFAULT)
    denied: frozenset[Words] = frozenset()
    own: frozenset[Words] = frozenset()
    """Those of the allowed that the user wrote."""
    network: frozenset[Words] = frozenset()
    """Those of them that carry the network."""


def lists_of(allow: Sequence[Entry], deny: Sequence[str] = ()) -> Lists:
    """The default list with the user's entries, as they are written."""
    return _lists(tuple(allow), tuple(deny))


@lru_cache(maxsize=16)
def _lists(allow: tuple[Entry, ...], deny: tuple[str, ...]) -> Lists:
    own = entries([each if isinstance(each, str) else each.command for each in allow])
    network = entries([each.command for each in allow if isinstance(each, AllowedCommand) and each.network])
    return Lists(frozenset(DEFAULT) | own, entries(deny), own, network)


def entries(texts: Sequence[str]) -> frozenset[Words]:
    """Entries as they are written, by their words."""
    return frozenset(words for text in texts if (words := tuple(text.split())))


class Judged(Record):
    """A command with all that a decision about it needs, apart from where its paths lead."""

    text: str
    problem: str = ""
    """Why it is asked about; empty: every part of it is allowed."""
    decided: str = ""
    """The entries and rules that were in force, or the one that had the last word."""
    way: str = ""
    """What would change the verdict."""
    entry: str = ""
    """The entry that would allow the command, for a user who wants to be asked no more."""
    denied: str = ""
    """The entry that forbids it."""
    paths: tuple[NamedPath, ...] = ()
    reads_only: bool = False
    """All it does is known, and it changes nothing."""
    runs_code: bool = False
    """It runs programs that the model may have written."""
    network: bool = False
    """Its entries give every part of it the network."""
    named: bool = False
    """Every part of it is on the list by the user's own word."""
    git: bool = False
    """A part of it is git, which runs hardened."""
    runs: str = ""
    """The text that runs where nobody was asked: the very words that were judged, git hardened."""


class _One(Record):
    """What is known of one simple command."""

    problem: str = ""
    decided: str = ""
    way: str = ""
    entry: str = ""
    paths: tuple[NamedPath, ...] = ()
    rule: Rule | None = None
    words: tuple[Word, ...] = ()
    network: bool = False
    """The user's entry gives it the network."""


def judge(script: Script, lists: Lists) -> Judged:
    """The verdict about a command that a shell grammar has read."""
    for words in (*script.calls, *(command.texts for command in script.commands)):
        if denied := _entry(_same(words), lists.denied):
            return Judged(script.text, denied=" ".join(denied), decided=f"denied: {' '.join(denied)}")
    if script.problem:
        way = "A command of plain words, joined by &&, ||, ; or |, can be allowed."
        return Judged(script.text, problem=script.problem, decided="shell grammar", way=way)
    found = [_with_network(_one(command, lists), command, lists) for command in script.commands]
    if wrong := next((one for one in found if one.problem), None):
        return Judged(
            script.text,
            problem=wrong.problem,
            decided=wrong.decided,
            way=wrong.way,
            entry=wrong.entry if len(found) == 1 else "",
        )
    rules = [one.rule for one in found]
    return Judged(
        script.text,
        decided=", ".join(dict.fromkeys(one.decided for one in found)),
        paths=tuple(path for one in found for path in one.paths),
        reads_only=all(rule and rule.reads_only for rule in rules),
        runs_code=any(rule is None or rule.runs_code for rule in rules),
        network=all(one.network or (one.rule and one.rule.network) for one in found),
        named=all(_entry(_same(command.texts), lists.own) for command in script.commands),
        git=any(one.rule and one.words[0].text == "git" for one in found),
        runs=_runs(script.commands, found),
    )


def _with_network(one: _One, command: Simple, lists: Lists) -> _One:
    return one.changed(network=_entry(_words(command)[1], lists.allowed) in lists.network)


def _one(command: Simple, lists: Lists) -> _One:
    words, texts = _words(command)
    name = texts[0]
    if "=" in name:
        return _One(f"`{name}` looks like a variable that is set", decided="shell grammar")
    if odd := next((text for text in texts if text[:1] in DASHES and text), ""):
        return _One(
            f"`{odd}` begins with a dash that is no hyphen", decided="shell grammar", way="Write a hyphen."
        )
    entry = _entry(texts, lists.allowed)
    known = rule_for(texts)
    if entry is None:
        wanted = texts[: known[0]] if known else _suggested(texts)
        named = " ".join(texts[:2]) if name in WITH_SUBCOMMANDS else name
        problem = f"`{named}` is not on the list of allowed commands"
        return _One(problem, "allowlist", _exactly(wanted), _as_entry(wanted))
    if known is None:
        return _listed(words, texts, entry)
    length, rule = known
    read = rule.read(words[length:])
    if not read.problem:
        return _One(
            decided=f"rule: {rule.name}",
            paths=read.paths,
            rule=rule,
            words=_run(words, length, rule, read.seen),
        )
    rest = rule.read(words[len(entry) :], whole=False)
    if len(entry) > length and not rest.problem:
        # The user named more than the rule knows: what they named is theirs, and what it does is not known.
        return _One(decided=f"allowlist: {' '.join(entry)}", paths=rest.paths, words=words)
    return _One(read.problem, f"rule: {rule.name}", _exactly(texts), _as_entry(texts))


def _listed(words: Sequence[Word], texts: Words, entry: Words) -> _One:
    """A command that the user put on the list and no rule is about: its options are the user's business."""
    decided, behind = f"allowlist: {' '.join(entry)}", words[len(entry) :]
    if texts[0] in RUNNERS and behind:
        problem = f"`{texts[0]}` runs what its words say, and these are not the words of the entry"
        return _One(problem, decided, _exactly(texts), _as_entry(texts))
    if texts[0] in INTERPRETERS and len(texts) == 1:
        return _One(f"`{texts[0]}` without a file runs what it is given as input", decided, "Name the file.")
    takes_options_first = texts[0] in WITH_SUBCOMMANDS or texts[0] in INTERPRETERS
    if takes_options_first and len(entry) == 1 and behind and behind[0].text.startswith("-"):
        problem = f"`{texts[0]}` with `{behind[0].text}` before its first argument"
        return _One(problem, decided, _exactly(texts), _as_entry(texts))
    if any(word.pattern for word in behind):
        return _One("a pattern, which file names take the place of", decided, "Name the files.")
    rest = KINDS["REST"]
    paths = tuple(NamedPath(path) for word in behind for path in rest.paths(word.text))
    return _One(decided=decided, paths=paths, words=tuple(words))


def _exactly(texts: Words) -> str:
    entry = _as_entry(texts)
    if not entry:
        return "No entry can stand for words with blanks in them: it is asked about each time."
    return f"`--allow {shlex.quote(entry)}` or the same entry in commands.allow would allow it."


def _as_entry(texts: Words) -> str:
    """The words as an entry is written; empty where they would be read as others."""
    text = " ".join(texts)
    return text if tuple(text.split()) == texts else ""


def _suggested(texts: Words) -> Words:
    """The words of an entry that would cover the command and few others."""
    has_subcommand = texts[0] in WITH_SUBCOMMANDS and len(texts) > 1 and not texts[1].startswith("-")
    return texts[:2] if has_subcommand else texts


def _entry(texts: Words, known: frozenset[Words]) -> Words | None:
    """The entry of the most words that the command begins with."""
    for length in range(min(len(texts), _longest(known)), 0, -1):
        if texts[:length] in known:
            return texts[:length]
    return None


@lru_cache(maxsize=16)
def _longest(known: frozenset[Words]) -> int:
    return max(map(len, known), default=0)


def _words(command: Simple) -> tuple[tuple[Word, ...], Words]:
    texts = command.texts
    same = _same(texts)
    return (*map(Word, same[:1]), *command.words[1 + len(texts) - len(same) :]), same


def _same(texts: Words) -> Words:
    """The words without what changes nothing, such as `--no-pager`."""
    for words, meant in SAME.items():
        if texts[: len(words)] == words:
            return (*meant, *texts[len(words) :])
    return texts


# What runs


def _run(words: Sequence[Word], length: int, rule: Rule, seen: frozenset[str]) -> tuple[Word, ...]:
    """The command with the words that keep its program from more than was judged."""
    first, *others = words[:length]
    before = map(Word, OPTIONS.split()) if first.text == "git" else ()
    return (first, *before, *others, *map(Word, rule.adds), *rule.ended(words[length:], seen))


def _runs(commands: Sequence[Simple], found: Sequence[_One]) -> str:
    return written(tuple(_as_run(commands, found)))


def _as_run(commands: Sequence[Simple], found: Sequence[_One]) -> Iterator[Simple]:
    for command, one in zip(commands, found, strict=True):
        words = one.words
        if words[0].text == "git" and one.rule:
            words = (*map(Word, BEFORE.split()), *words)
        yield command.changed(words=words)
