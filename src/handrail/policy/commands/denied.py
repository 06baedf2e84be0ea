"""Find denied commands in the calls of a script, also behind `sudo`, `find -exec` or `sh -c`.

This guards against accidents: who wants to hide a program's name from it can, for example in a variable.
"""

import posixpath
import re
from collections.abc import Collection, Iterator

from handrail.policy.commands.script import UNKNOWN

Words = tuple[str, ...]

WRAPPERS = frozenset(
    """
    busybox toybox env xargs parallel sudo doas su runuser pkexec gosu setpriv nohup nice ionice chrt taskset
    timeout time watch entr script strace ltrace gdb setsid stdbuf unbuffer chroot unshare nsenter bwrap
    firejail fakeroot xvfb-run systemd-run flock eval exec command builtin coproc trap alias ssh npx bunx uvx
    pipx
    """.split()
)
"""Programs that run what their arguments say. Which argument is the program's name depends on their options,
so a denied command is found at any of them."""
SHELLS = frozenset("sh bash dash zsh ksh mksh ash fish source .".split())
EXEC_OPTIONS = frozenset("-exec -execdir -ok -okdir --exec --exec-batch".split())
RUNS_TEXT = re.compile(r"[-+][A-Za-z]*c[A-Za-z]*|--command\b.*")
IS_TEXT = re.compile(r"[\s;&|<>()`$]")
OPTION_NAME = re.compile(r"^(--[\w-]+=|-[A-Za-z]|\w+=)")
WITHOUT_VALUE = frozenset("-- -p -P --paginate --bare".split())
SEPARATORS = re.compile(r"[\s;&|()<>{}`'\"$=]+")


def find_denied(calls: Collection[Words], denied: Collection[Words]) -> Words | None:
    """The denied entry that one of the calls runs."""
    if not denied:
        return None
    starts = ((words, at) for words in calls for at in program_positions(words))
    return next((entry for words, at in starts for entry in denied if _is_at(entry, words, at)), None)


def unparsed_call(text: str) -> Words:
    """A text that could not be parsed, as a call in which a denied command is found at any word."""
    return ("eval", *SEPARATORS.split(text.replace("\\\n", "").replace("\\", "")))


def embedded_texts(words: Words) -> Iterator[str]:
    """Shell text in a call's words, which a shell or another program in it would run."""
    for at in program_positions(words):
        name, rest = posixpath.basename(words[at]), words[at + 1 :]
        if name == "eval":
            yield " ".join(rest)
            return
        if name in WRAPPERS or _runs_text(words, at):
            texts = [word for word in rest if IS_TEXT.search(word)]
            has_name = name == "alias"
            yield from (OPTION_NAME.sub("", each) if has_name or each[0] == "-" else each for each in texts)
            return


def calls_shell(words: Words) -> bool:
    """Whether a shell may be called that runs its input."""
    return any(posixpath.basename(words[at]) in SHELLS for at in program_positions(words))


def program_positions(words: Words) -> Iterator[int]:
    """Where in a call's words the name of a program may stand that is run."""
    anywhere, first = False, True
    for at, word in enumerate(words):
        if anywhere or first or words[at - 1] in EXEC_OPTIONS:
            yield at
            first = first and UNKNOWN in word  # a variable may be empty
            anywhere = anywhere or posixpath.basename(word) in WRAPPERS or _runs_text(words, at)


def _runs_text(words: Words, at: int) -> bool:
    return posixpath.basename(words[at]) in SHELLS and any(map(RUNS_TEXT.fullmatch, words[at + 1 :]))


def _is_at(entry: Words, words: Words, at: int) -> bool:
    """Whether the entry's words stand there, with options and their values between them."""
    if entry[0] not in (words[at], posixpath.basename(words[at])):
        return False
    places = {at + 1}
    for wanted in entry[1:]:
        places = {place + 1 for place in _after_options(words, places) if words[place] == wanted}
    return bool(places)


def _after_options(words: Words, places: Collection[int]) -> set[int]:
    """The places, and those that are reached by leaving out options, each with or without a value."""
    reached: set[int] = set()
    left = [place for place in places if place < len(words)]
    while left:
        place = left.pop()
        if place in reached or place >= len(words):
            continue
        reached.add(place)
        word = words[place]
        if word.startswith("-") or UNKNOWN in word:
            left.append(place + 1)
            if not ("=" in word or word.startswith("--no-") or word in WITHOUT_VALUE):
                left.append(place + 2)
    return reached
