"""What a message means to a paused run: a table, looked at from top to bottom.

| state            | message                                       | decision                                |
| ---------------- | --------------------------------------------- | --------------------------------------- |
| breakout pending | denies                                        | `Resume`: no longer pending, it goes on |
| breakout pending | confirms                                      | `Leave`: what asked first is answered   |
| breakout pending | anything else                                 | `Leave`: this message is answered       |
| paused           | the exit number alone, or a leaving phrase    | `Confirm`: 1 leave, 2 stay              |
| paused           | another number of the menu, alone             | `Resume` with that choice               |
| paused           | sent by another route than that of the run    | `Confirm`: 1 leave, 2 stay              |
| paused           | no phrase matches                             | `Unsaid`: a small model is asked        |
"""

from typing import NamedTuple

from handrail.engine.breakout_words import (
    ALONE,
    FILLERS,
    FORBIDS,
    GOES,
    LEAD,
    LEAVES,
    LOOKED_AT,
    NO,
    STAYS,
    YES,
    clauses,
    looked_at,
    said_plainly,
    says_only,
    words_of,
)
from handrail.engine.menu import whole_number
from handrail.engine.routing.rules import sign_of
from handrail.protocol.routing import AUTO
from handrail.sessions.run_state import RunState

YES_OR_NO = {"yes", "y", "no", "n"}
LEAVE, STAY = 1, 2
"""The numbers of the question whether to leave."""
CONFIRM = f"Leave this run? What it has found is kept.\n{LEAVE}. Leave\n{STAY}. Stay, and go on with it"


class Resume(NamedTuple):
    feedback: str = ""
    again: bool = False
    choice: str = ""
    """The line of the menu that was chosen."""


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


def decide(run: RunState, message: str, route: str = "") -> Decision:
    """What happens to the run; `route` is where the message is to go by the user's word."""
    elsewhere = route if route not in (AUTO, run.pipeline) else ""
    return _pending(run, message, elsewhere) if run.leaving else _paused(run, message, elsewhere)


def is_answer(run: RunState, message: str) -> bool:
    """Whether the message can only be meant for what the run has asked."""
    return bool(whole_number(message)) or (run.leaving is not None and words_of(message) in YES_OR_NO)


def _pending(run: RunState, message: str, elsewhere: str) -> Decision:
    number = whole_number(message)
    if number == STAY or denies(message):  # before the other: "yes, keep going" holds both
        return Resume("" if number else _after_denial(message))
    asked = run.leaving.message if run.leaving else ""
    first = "" if _bare(run, asked) else _wanted(asked)
    if number == LEAVE or _only_leaves(message):
        return Leave(first, first=True)
    if elsewhere:
        return Leave(message, first=False)
    if confirms(message):
        return Leave(f"{first}\n\n{message}".strip(), first=True)
    return Leave(message, first=False)


def _paused(run: RunState, message: str, elsewhere: str) -> Decision:
    if _is_exit(run, message) or leaves(message):
        return Confirm()
    choices = run.pause.choices if run.pause else ()
    number = whole_number(message)
    if number and number <= len(choices):
        chosen = choices[number - 1]
        return Resume(again=chosen.then == "again", choice=chosen.text)
    if elsewhere:
        return Confirm(f"A run of {run.pipeline} is paused here, and this was to go to {elsewhere}.")
    return Unsaid()


def leaves(message: str) -> bool:
    """Whether a phrase says so that stands there in whole words, and is not negated."""
    return any(said_plainly(LEAVES, " | ".join(clause.words for clause in clauses(looked_at(message)))))


def denies(message: str) -> bool:
    """Whether the message says no to leaving: what to do instead, or no alone; not where it says both."""
    text = looked_at(message)
    parts = [clause.words for clause in clauses(text)]
    wish = sign_of(text).wish
    asks_other = wish in ("ask", "work", "tasks")
    if any(_stays(words, asks_other=asks_other) for words in parts):
        return True
    if not parts or any(_goes(words) for words in parts):
        return False
    first = next((words for words in parts if _content(words)), parts[0])
    return says_only(first, ALONE) or (wish != "ask" and NO.match(first) is not None)


def _stays(words: str, *, asks_other: bool) -> bool:
    """Whether the clause says to go on; in the middle of another request the words mean something else."""
    found = next(said_plainly(STAYS, words), None)
    if found is None or not asks_other:
        return found is not None
    return bool(FORBIDS.search(words) or LEAD.fullmatch(words, 0, found.start()))


def _goes(words: str) -> bool:
    return any(said_plainly(GOES, words))


def confirms(message: str) -> bool:
    """Whether the message, or its beginning up to a comma or stop, says yes and nothing else."""
    first = next((clause.words for clause in clauses(looked_at(message))), "")
    return says_only(first, YES) or _only_leaves(message)


def _only_leaves(message: str) -> bool:
    """Whether all of it says yes to leaving, or that they want to, whatever the no in it is about."""
    parts = [clause.words for clause in clauses(message[:LOOKED_AT])]
    said = [words for words in parts if says_only(words, YES) or _goes(words)]
    rest = [words for words in parts if words not in said and not says_only(words, NO)]
    return bool(said) and not any(_content(words) for words in rest) and len(message) <= LOOKED_AT


def _after_denial(message: str) -> str:
    """What is said to the run after the no, if anything is."""
    begun = 0
    for words, end in clauses(message[:LOOKED_AT]):
        whole = end < LOOKED_AT or len(message) == end
        if not whole or (_content(words) and not says_only(words, STAYS, ALONE, YES)):
            break
        begun = end
    return message[begun:].strip()


def _is_exit(run: RunState, message: str) -> bool:
    return bool(run.pause) and whole_number(message) == (run.pause.exit if run.pause else 0)


def _wanted(message: str) -> str:
    """What is to be answered of a message that asked to leave: not that it did."""
    begun = 0
    for words, end in clauses(message[:LOOKED_AT]):
        if end == LOOKED_AT or not says_only(words, LEAVES):
            break
        begun = end
    return message[begun:].strip()


def _bare(run: RunState, message: str) -> bool:
    """Whether there is nothing to answer in it."""
    return _is_exit(run, message) or (len(message) <= LOOKED_AT and says_only(words_of(message), LEAVES))


def _content(words: str) -> str:
    return FILLERS.sub(" ", words).strip(" '")
