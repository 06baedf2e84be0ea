"""What a message means to a paused run: a decision table, then a small model.

| state            | message                                       | decision                                |
| ---------------- | --------------------------------------------- | --------------------------------------- |
| breakout pending | denies                                        | `Resume`: no longer pending, it goes on |
| breakout pending | confirms                                      | `Leave`: what asked first is answered   |
| breakout pending | anything else                                 | `Leave`: this message is answered       |
| paused           | the exit number alone, or a leaving phrase    | `Confirm`: 1 leave, 2 stay              |
| paused           | another number of the menu, alone             | `Resume` with that choice               |
| paused           | only labels that the question shows           | `Resume` with these words               |
| paused           | sent by another route than that of the run    | `Confirm`: 1 leave, 2 stay              |
| paused           | no phrase matches                             | `Unclear`: a small model is asked       |
"""

import re
from collections.abc import Collection
from typing import NamedTuple

from handrail.engine.breakout.words import (
    FILLERS,
    FORBIDS_LEAVING,
    LEAVING_PHRASE,
    MAX_CHARACTERS_READ,
    NO,
    NO_ALONE,
    POLITE_START,
    WANTS_TO_LEAVE,
    WANTS_TO_STAY,
    YES,
    clauses,
    last_clauses,
    plain_words,
    says_only,
    unnegated_matches,
)
from handrail.engine.router.word_rules import match_rules, menu_number
from handrail.protocol.values import AUTO_ROUTE
from handrail.sessions.run_state import RunState

YES_OR_NO = {"yes", "y", "no", "n"}
LEAVE, STAY = 1, 2  # the numbers of the question whether to leave
CONFIRM = f"Leave this run? What it has found is kept.\n{LEAVE}. Leave\n{STAY}. Stay, and go on with it"


class Resume(NamedTuple):
    feedback: str = ""
    again: bool = False
    choice: str = ""  # the line of the menu that was chosen


class Leave(NamedTuple):
    message: str  # the message to answer now; empty: the user only wants to leave
    first: bool  # it is the message that first asked to leave, or starts with it


class Confirm(NamedTuple):
    why: str = ""  # for the user: why they are asked, if their message does not show it


class Unclear(NamedTuple):
    """Rules cannot tell; a model is asked."""


BreakoutDecision = Resume | Leave | Confirm | Unclear


def decide_breakout(run: RunState, message: str, route: str = "") -> BreakoutDecision:
    """What happens to the run; `route` is the route that the user chose for the message."""
    elsewhere = route if route not in (AUTO_ROUTE, run.pipeline) else ""
    return _pending(run, message, elsewhere) if run.leaving else _paused(run, message, elsewhere)


def is_answer(run: RunState, message: str) -> bool:
    """Whether the message can only be an answer to the run's question."""
    return bool(menu_number(message)) or (run.leaving is not None and plain_words(message) in YES_OR_NO)


def _pending(run: RunState, message: str, elsewhere: str) -> BreakoutDecision:
    number = menu_number(message)
    if number == STAY or denies(message):  # before the other: "yes, keep going" holds both
        return Resume("" if number else _after_denial(message))
    asked = run.leaving.message if run.leaving else ""
    first = "" if _is_bare(run, asked) else _remaining_request(asked)
    if number == LEAVE or _only_leaves(message):
        return Leave(first, first=True)
    if elsewhere:
        return Leave(message, first=False)
    if confirms(message):
        return Leave(f"{first}\n\n{message}".strip(), first=True)
    return Leave(message, first=False)


def _paused(run: RunState, message: str, elsewhere: str) -> BreakoutDecision:
    if _is_exit(run, message) or leaves(message):
        return Confirm()
    choices = run.pause.choices if run.pause else ()
    number = menu_number(message)
    if number and number <= len(choices):
        chosen = choices[number - 1]
        return Resume(again=chosen.then == "again", choice=chosen.text)
    if run.pause and picked(message, run.pause.picks):
        return Resume(message)
    if elsewhere:
        return Confirm(f"A run of {run.pipeline} is paused here, and your message is for {elsewhere}.")
    return Unclear()


def picked(message: str, labels: Collection[str]) -> tuple[str, ...]:
    """The labels that the message names; none where it says anything else."""
    words = re.findall(r"[^\s,;.()]+", message.lower())
    named = [word for word in words if word not in ("and", "only", "just")]
    return tuple(dict.fromkeys(named)) if named and set(named) <= set(labels) else ()


def leaves(message: str) -> bool:
    """Whether the message contains a leaving phrase in whole words that is not negated."""
    joined = " | ".join(clause.words for clause in clauses(last_clauses(message)))
    return any(unnegated_matches(LEAVING_PHRASE, joined))


def denies(message: str) -> bool:
    """Whether the message says no to leaving: it asks to go on, or says only no."""
    text = last_clauses(message)
    parts = [clause.words for clause in clauses(text)]
    wish = match_rules(text).wish
    asks_other = wish in ("ask", "work", "tasks")
    if any(_wants_to_stay(words, asks_other=asks_other) for words in parts):
        return True
    if not parts or any(_wants_to_leave(words) for words in parts):
        return False
    first = next((words for words in parts if _content(words)), parts[0])
    return says_only(first, NO_ALONE) or (wish != "ask" and NO.match(first) is not None)


def _wants_to_stay(words: str, *, asks_other: bool) -> bool:
    """Whether the clause asks to go on; inside another request such words mean something else."""
    found = next(unnegated_matches(WANTS_TO_STAY, words), None)
    if found is None or not asks_other:
        return found is not None
    return bool(FORBIDS_LEAVING.search(words) or POLITE_START.fullmatch(words, 0, found.start()))


def _wants_to_leave(words: str) -> bool:
    return any(unnegated_matches(WANTS_TO_LEAVE, words))


def confirms(message: str) -> bool:
    """Whether the message, or its first clause, only says yes."""
    first = next((clause.words for clause in clauses(last_clauses(message))), "")
    return says_only(first, YES) or _only_leaves(message)


def _only_leaves(message: str) -> bool:
    """Whether all of the message says yes to leaving, whatever a no in it refers to."""
    parts = [clause.words for clause in clauses(message[:MAX_CHARACTERS_READ])]
    leaving = [words for words in parts if says_only(words, YES) or _wants_to_leave(words)]
    rest = [words for words in parts if words not in leaving and not says_only(words, NO)]
    return bool(leaving) and not any(map(_content, rest)) and len(message) <= MAX_CHARACTERS_READ


def _after_denial(message: str) -> str:
    """What the message says to the run after its no, if anything."""
    start = 0
    for words, end in clauses(message[:MAX_CHARACTERS_READ]):
        whole = end < MAX_CHARACTERS_READ or len(message) == end
        if not whole or (_content(words) and not says_only(words, WANTS_TO_STAY, NO_ALONE, YES)):
            break
        start = end
    return message[start:].strip()


def _is_exit(run: RunState, message: str) -> bool:
    return bool(run.pause) and menu_number(message) == (run.pause.exit if run.pause else 0)


def _remaining_request(message: str) -> str:
    start = 0
    for words, end in clauses(message[:MAX_CHARACTERS_READ]):
        if end == MAX_CHARACTERS_READ or not says_only(words, LEAVING_PHRASE):
            break
        start = end
    return message[start:].strip()


def _is_bare(run: RunState, message: str) -> bool:
    return _is_exit(run, message) or (
        len(message) <= MAX_CHARACTERS_READ and says_only(plain_words(message), LEAVING_PHRASE)
    )


def _content(words: str) -> str:
    return FILLERS.sub(" ", words).strip(" '")
