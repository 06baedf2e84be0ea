"""Judge a command: is every part on the allowlist and known to be harmless?"""

import shlex
from collections.abc import Sequence
from functools import lru_cache

from msgspec.structs import replace

from handrail.policy.commands.command_rule import NamedPath, Rule
from handrail.policy.commands.denied import WRAPPERS, find_denied
from handrail.policy.commands.git_hardening import HARDENED_GIT
from handrail.policy.commands.kinds import KINDS
from handrail.policy.commands.script import Script, SimpleCommand, Word, commands_text, writes_git
from handrail.protocol.values import AllowedCommand, CommandEntry, Value

Words = tuple[str, ...]

DEFAULT_ALLOWED: tuple[Words, ...] = tuple(
    tuple(entry.split())
    for line in (
        "git status, git diff, git log, git show, git blame, git branch, git ls-files, git rev-parse",
        "ls, pwd, cat, head, tail, wc, sort, uniq, cut, diff, stat, file, du, which",
        "find, grep, rg, echo, true, mkdir, touch, basename, dirname",
        "python, python3, pip install, pytest, ruff, mypy",
        "npm install, npm ci, npm run, npm test, npm ls, tsc",
        "yarn install, yarn test, yarn build, pnpm install, pnpm test, pnpm build",
        "cargo build, cargo run, cargo test, cargo check, go build, go run, go test, go vet",
    )
    for entry in line.split(", ")
)
WITH_SUBCOMMANDS = frozenset("git npm yarn pnpm pip cargo go ruff docker uv".split())
INTERPRETERS = frozenset(
    "node deno bun perl ruby php lua python python3 pypy3 sh bash dash zsh fish ksh".split()
)
"""Programs that run a file, or else code from an option or from their input."""
RUNNERS = WRAPPERS | frozenset("source . hash enable awk gawk mawk sed".split())
"""Programs that run what their arguments say: an entry for one covers only exactly the same words."""
MAX_RULE_WORDS = 4
DASHES = "\u2010\u2011\u2012\u2013\u2014\u2015\u2212\uff0d\ufe58\ufe63"
"""What text editors turn a hyphen into."""


@lru_cache(maxsize=1)
def all_rules() -> dict[Words, Rule]:
    from handrail.policy.commands.families import compiled, files, git, node, python, search

    families = (git, files, search, python, node, compiled)
    return {words: rule for family in families for rule in family.RULES for words in rule.words}


def rule_for(words: Words) -> tuple[int, Rule] | None:
    """The most specific rule for a command, with the number of words it matches; its examples are checked."""
    known = all_rules()
    for length in range(min(len(words), MAX_RULE_WORDS), 0, -1):
        if words[:length] in known:
            check_examples(known[words[:length]])
            return length, known[words[:length]]
    return None


@lru_cache(maxsize=1_000)
def check_examples(rule: Rule) -> None:
    """Raises ValueError if a rule gives one of its own examples the wrong verdict."""
    for text, wanted in (*((each, True) for each in rule.auto), *((each, False) for each in rule.ask)):
        words = tuple(text.split())
        begins = next((each for each in rule.words if words[: len(each)] == each), None)
        if begins is None:
            raise ValueError(f"{text!r} is not an example of {rule.name}")
        read = rule.read([Word(word) for word in words[len(begins) :]])
        leaves = any(path.text.startswith("/") or ".." in path.text.split("/") for path in read.paths)
        if (not read.problem and not leaves) is not wanted:
            raise ValueError(
                f"{text!r} should {'run' if wanted else 'be asked about'} ({read.problem or 'no problem'})"
            )


class CommandLists(Value):
    """Entries as words: what may run unasked in mode auto, and what never runs."""

    allowed: frozenset[Words] = frozenset(DEFAULT_ALLOWED)
    denied: frozenset[Words] = frozenset()
    own: frozenset[Words] = frozenset()
    """Allowed entries that the user wrote."""
    network: frozenset[Words] = frozenset()
    """Allowed entries that include the network."""


@lru_cache(maxsize=16)
def command_lists(allow: tuple[CommandEntry, ...], deny: tuple[str, ...] = ()) -> CommandLists:
    """The default list and the user's entries."""
    own = parse_entries([each if isinstance(each, str) else each.command for each in allow])
    network = parse_entries(
        [each.command for each in allow if isinstance(each, AllowedCommand) and each.network]
    )
    return CommandLists(frozenset(DEFAULT_ALLOWED) | own, parse_entries(deny), own, network)


def parse_entries(texts: Sequence[str]) -> frozenset[Words]:
    return frozenset(words for text in texts if (words := tuple(text.split())))


class CommandVerdict(Value):
    """What a decision about a command needs, except where its paths lead."""

    text: str
    problem: str = ""
    """Why it is asked about; empty: every part is allowed."""
    decided: str = ""
    """The entries and rules that allow it, or the one that does not."""
    way: str = ""
    entry: str = ""
    """The entry that would allow the command from now on."""
    denied: str = ""
    paths: tuple[NamedPath, ...] = ()
    reads_only: bool = False
    """Everything it does is known, and it changes nothing."""
    runs_code: bool = False
    """It runs programs that the model may have written."""
    network: bool = False
    """The user's own entries allow the network to every part."""
    named: bool = False
    """Every part is on the list because the user put it there."""
    git: bool = False
    """Part of it is git, which runs hardened."""
    unread: bool = False
    """It could not be parsed, and there is a list of denied commands."""
    writes_git: bool = False
    """It only lets git write `.git`."""
    runs: str = ""
    """The text that runs unasked: exactly the words that were judged, git hardened."""


class _PartVerdict(Value):
    problem: str = ""
    decided: str = ""
    way: str = ""
    entry: str = ""
    paths: tuple[NamedPath, ...] = ()
    rule: Rule | None = None
    words: tuple[Word, ...] = ()


def judge(script: Script, lists: CommandLists) -> CommandVerdict:
    calls = (*script.calls, *(command.texts for command in script.commands))
    if denied := find_denied(calls, lists.denied):
        return CommandVerdict(script.text, denied=" ".join(denied), decided=f"denied: {' '.join(denied)}")
    if script.problem:
        way = "A command of plain words, joined by &&, ||, ; or |, can be allowed."
        unread = bool(lists.denied) and not script.parsed
        return CommandVerdict(
            script.text, problem=script.problem, decided="shell grammar", way=way, unread=unread
        )
    found = [_judge_part(command, lists) for command in script.commands]
    if wrong := next((one for one in found if one.problem), None):
        entry = wrong.entry if len(found) == 1 else ""
        return CommandVerdict(script.text, wrong.problem, wrong.decided, wrong.way, entry)
    rules = [one.rule for one in found]
    return CommandVerdict(
        script.text,
        decided=", ".join(dict.fromkeys(one.decided for one in found)),
        paths=tuple(path for one in found for path in one.paths),
        reads_only=all(rule and rule.reads_only for rule in rules),
        runs_code=any(rule is None or rule.runs_code for rule in rules),
        network=all(_own_entry(command, lists) in lists.network for command in script.commands),
        named=all(_own_entry(command, lists) for command in script.commands),
        git=any(one.words[0].text == HARDENED_GIT for one in found),
        writes_git=writes_git(script),
        runs=_hardened_text(script.commands, found),
    )


def _judge_part(command: SimpleCommand, lists: CommandLists) -> _PartVerdict:
    words, texts = _words(command)
    name = texts[0]
    if "=" in name:
        return _PartVerdict(f"`{name}` looks like a variable assignment", decided="shell grammar")
    if odd := next((text for text in texts if text[:1] in DASHES and text), ""):
        return _PartVerdict(
            f"`{odd}` begins with a dash that is not a hyphen", decided="shell grammar", way="Write a hyphen."
        )
    found = _judge_words(words, texts, lists)
    if not found.problem or not command.given:
        return found
    if command.given in lists.own:
        decided = f"allowlist: {' '.join(command.given)}"
        return _PartVerdict(decided=decided, paths=_paths(words[1:]), words=words)
    if found.entry == _as_entry(texts):
        # An entry with the names of today's files would be of no use tomorrow.
        return replace(found, way=_how_to_allow(command.given), entry=_as_entry(command.given))
    return found


def _own_entry(command: SimpleCommand, lists: CommandLists) -> Words | None:
    """The user's entry that covers the command."""
    return command.given if command.given in lists.own else _entry(_without_noise(command.texts), lists.own)


def _judge_words(words: tuple[Word, ...], texts: Words, lists: CommandLists) -> _PartVerdict:
    name = texts[0]
    entry = _entry(texts, lists.allowed)
    known = rule_for(texts)
    if entry is None:
        named = texts[:2] if name in WITH_SUBCOMMANDS else texts[:1]
        is_subcommand = len(named) > 1 and not named[1].startswith("-")
        wanted = texts[: known[0]] if known else named if is_subcommand else texts
        problem = f"`{' '.join(named)}` is not on the list of allowed commands"
        return _PartVerdict(problem, "allowlist", _how_to_allow(wanted), _as_entry(wanted))
    if known is None:
        return _judge_listed(words, texts, entry)
    length, rule = known
    read = rule.read(words[length:])
    if not read.problem:
        hardened = _hardened(words, length, rule, read.seen)
        return _PartVerdict(decided=f"rule: {rule.name}", paths=read.paths, rule=rule, words=hardened)
    rest = rule.read(words[len(entry) :], whole=False)
    if len(entry) > length and not rest.problem:
        # The entry names more words than the rule knows. The user allowed them; what they do is not known.
        return _PartVerdict(decided=f"allowlist: {' '.join(entry)}", paths=rest.paths, words=words)
    return _PartVerdict(read.problem, f"rule: {rule.name}", _how_to_allow(texts), _as_entry(texts))


def _judge_listed(words: Sequence[Word], texts: Words, entry: Words) -> _PartVerdict:
    """The verdict on a listed command without a rule: its options are the user's choice."""
    decided, rest = f"allowlist: {' '.join(entry)}", words[len(entry) :]
    if texts[0] in RUNNERS and rest:
        problem = f"`{texts[0]}` runs what its arguments say, and these are not the entry's"
        return _PartVerdict(problem, decided, _how_to_allow(texts), _as_entry(texts))
    if texts[0] in INTERPRETERS and len(texts) == 1:
        return _PartVerdict(f"`{texts[0]}` without a file runs its input", decided, "Name the file.")
    takes_options_first = texts[0] in WITH_SUBCOMMANDS | INTERPRETERS
    if takes_options_first and len(entry) == 1 and rest and rest[0].text.startswith("-"):
        problem = f"`{texts[0]}` with `{rest[0].text}` before its first argument"
        return _PartVerdict(problem, decided, _how_to_allow(texts), _as_entry(texts))
    return _PartVerdict(decided=decided, paths=_paths(rest), words=tuple(words))


def _paths(words: Sequence[Word]) -> tuple[NamedPath, ...]:
    return tuple(NamedPath(path) for word in words for path in KINDS["REST"].paths(word.text))


def _how_to_allow(texts: Words) -> str:
    entry = _as_entry(texts)
    if not entry:
        return "No entry can cover words with blanks in them, so it is asked about each time."
    return f"`--allow {shlex.quote(entry)}` or the same entry in commands.allow would allow it."


def _as_entry(texts: Words) -> str:
    """The words as an entry; empty if it would be read back as other words."""
    text = " ".join(texts)
    return text if tuple(text.split()) == texts else ""


def _entry(texts: Words, known: frozenset[Words]) -> Words | None:
    """The longest entry that the command begins with."""
    longest = max(map(len, known), default=0)
    starts = (texts[:length] for length in range(min(len(texts), longest), 0, -1))
    return next((start for start in starts if start in known), None)


def _words(command: SimpleCommand) -> tuple[tuple[Word, ...], Words]:
    texts = _without_noise(command.texts)
    return (Word(texts[0]), *command.words[1 + len(command.words) - len(texts) :]), texts


def _without_noise(texts: Words) -> Words:
    """The words without `--no-pager`, which changes nothing."""
    return ("git", *texts[2:]) if texts[:2] == ("git", "--no-pager") else texts


def _hardened(words: Sequence[Word], length: int, rule: Rule, seen: frozenset[str]) -> tuple[Word, ...]:
    """The command with the options that keep its program from doing more than was judged."""
    first, *others = words[:length]
    program = Word(HARDENED_GIT) if first.text == "git" else first
    return (program, *others, *map(Word, rule.adds), *rule.hardened(words[length:], seen))


def _hardened_text(commands: Sequence[SimpleCommand], found: Sequence[_PartVerdict]) -> str:
    return commands_text(
        tuple(replace(command, words=one.words) for command, one in zip(commands, found, strict=True))
    )
