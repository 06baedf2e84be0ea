"""What a message means to a paused run: a table, looked at from top to bottom.

| state            | message                                       | decision                                |
| ---------------- | --------------------------------------------- | --------------------------------------- |
| breakout pending | denies                                        | `Resume`: no longer pending, it goes on |
| breakout pending | confirms                                      | `Leave`: what asked first is answered   |
| breakout pending | anything else                                 | `Leave`: this message is answered       |
| paused           | the exit number alone, or a leaving phrase    | `Confirm`: 1 leave, 2 stay              |
| paused           | another number of the menu, alone             | `Resume` with that choice               |
| paused           | no phrase matches                             | `Unsaid`: a small model is asked        |
"""

import re
from typing import NamedTuple

from handrail.engine.menu import whole_number
from handrail.sessions.run_state import RunState

LEAVE, STAY = 1, 2
"""The numbers of the question whether to leave."""
CONFIRM = f"Leave this run? What it has found is kept.\n{LEAVE}. Leave\n{STAY}. Stay, and go on with it"


class Resume(NamedTuple):
    feedback: str = ""
    again: bool = False


class Leave(NamedTuple):
    message: str
    """What is answered now; empty: there is nothing but the wish to leave."""
    first: bool
    """It is the message that first asked to leave, or begins with it."""


class Confirm(NamedTuple):
    why: str = ""
    """For the user, where it is not their words alone."""


class Unsaid(NamedTuple):
    """Code cannot tell."""


Decision = Resume | Leave | Confirm | Unsaid

CLAUSE = re.compile(r"[,.;:!?\n]|\s[-\u2013\u2014]\s")
WORD = re.compile(r"[\w']+")
VERBS = r"(?:stop|exit|quit|cancel|leave|abort)"
RUN = r"(?:(?:this|the|that)\s)?(?:run|pipeline|agent|process|report|here|this|it)"
NOT = r"(?:don't|dont|do\snot|not|never|no\sneed\sto|without|cannot|can't|won't|shouldn't|didn't|mustn't)"
LEAVES = re.compile(
    rf"""
    \b(?:{VERBS}\s{RUN}|get\sout\sof\s{RUN}|break\sout|never\s?mind|forget\s(?:it|this|that|about\s(?:it|this|that))
        |something\s(?:else|different|completely\sdifferent)|(?:new|another|different|unrelated)\s(?:question|topic)
        |change\sthe\s(?:subject|topic)|i(?:'m|\sam)\sdone\swith\s(?:this|it)
        |i\s(?:want|would\slike|need)\sto\s{VERBS})\b
    | ^(?:please\s|ok\s|okay\s|just\s|let's\s)*{VERBS}(?:\splease)?$
    """,
    re.VERBOSE,
)
"""Looked for in words alone: no punctuation, one space between them."""
NEGATED = re.compile(rf"\b{NOT}\s(?:\w+\s){{0,2}}$")
DENIALS = re.compile(
    rf"""\b(?:{NOT}\s(?:\w+\s)?{VERBS}(?:\s{RUN})?|no|nope|nah|not\syet|keep\s(?:going|on|working|it)|go\son|carry\son
        |continue|resume|proceed|stay|back\sto\s(?:it|work))\b""",
    re.VERBOSE,
)
CONFIRMATIONS = re.compile(
    rf"""\b(?:yes|yep|yeah|y|sure|confirm(?:ed)?|correct|right|do\sit|never\s?mind|{VERBS}(?:\s{RUN})?)\b""",
    re.VERBOSE,
)
FILLERS = re.compile(
    r"\b(?:please|thanks|thank|you|ok|okay|just|i|i'd|i'm|want|would|like|to|let's|let|us|the|it|this|that|with|run"
    r"|pipeline|actually|sorry|and|then|now|do|so|oh|well|again)\b"
)


def decide(run: RunState, message: str) -> Decision:
    """What happens to the run."""
    return _pending(run, message) if run.leaving else _paused(run, message)


def _pending(run: RunState, message: str) -> Decision:
    number = whole_number(message)
    if number == STAY or denies(message):  # before the other: "no, don't exit" holds both
        return Resume("" if number or _only(message, DENIALS) else message)
    asked = run.leaving.message if run.leaving else ""
    first = "" if _bare(run, asked) else asked
    if number == LEAVE or _only(message, CONFIRMATIONS):
        return Leave(first, first=True)
    if confirms(message):
        return Leave(f"{first}\n\n{message}".strip(), first=True)
    return Leave(message, first=False)


def _paused(run: RunState, message: str) -> Decision:
    if _is_exit(run, message) or leaves(message):
        return Confirm()
    choices = run.pause.choices if run.pause else ()
    number = whole_number(message)
    if number and number <= len(choices):
        chosen = choices[number - 1]
        return Resume(chosen.text, again=chosen.then == "again")
    return Unsaid()


def leaves(message: str) -> bool:
    """Whether a phrase says so that stands there in whole words, and is not negated."""
    words = _words(message)
    return any(not NEGATED.search(words[: found.start()]) for found in LEAVES.finditer(words))


def denies(message: str) -> bool:
    """Whether the message, or its beginning up to a comma or stop, says no to leaving and nothing else."""
    return _only(message, DENIALS) or _only(CLAUSE.split(message.strip(), maxsplit=1)[0], DENIALS)


def confirms(message: str) -> bool:
    """The same for yes."""
    return _only(message, CONFIRMATIONS) or _only(CLAUSE.split(message.strip(), maxsplit=1)[0], CONFIRMATIONS)


def _is_exit(run: RunState, message: str) -> bool:
    return bool(run.pause) and whole_number(message) == (run.pause.exit if run.pause else 0)


def _bare(run: RunState, message: str) -> bool:
    """Whether there is nothing to answer in it."""
    words = _words(message)
    rest = LEAVES.sub(" ", words)
    return _is_exit(run, message) or (rest != words and not _content(rest))


def _only(text: str, phrases: re.Pattern[str]) -> bool:
    words = _words(text)
    rest = phrases.sub(" ", words)
    return rest != words and not _content(rest)


def _content(words: str) -> str:
    return FILLERS.sub(" ", words).strip(" '")


def _words(text: str) -> str:
    return " ".join(WORD.findall(text.lower().replace("\u2019", "'")))
