"""The cheap check of a message: what its words alone say about where it belongs. English only.

A sentence is looked at without its polite beginning; what comes first in it says what it wants. Where the
words do not say it, nothing is guessed.
"""

import re
from typing import Literal, NamedTuple

from handrail.engine.routing.words import (
    ALSO_DONE,
    ALSO_WORK,
    ASK,
    ASKED_LATER,
    CODE,
    DAY,
    FENCED,
    FEW_WORDS,
    GREET,
    HANDS_OFF,
    HANDS_OFF_SOMETHING,
    LEAD,
    LOOK,
    LOOKED_AT,
    MIND,
    NOUN,
    QUOTED,
    TASK_VERB,
    TASK_WORD,
    TELL,
    TOLD,
    TROUBLE,
    VAGUE,
    WHETHER,
    WORK,
)

Wish = Literal["greet", "ask", "work", "tasks", ""]


class Sign(NamedTuple):
    """Where the words of a message point; `sure`: they alone are enough."""

    wish: Wish
    sure: bool
    why: str
    leans: bool = False
    """It is sure where something was said before that it can be about."""


def sign_of(message: str) -> Sign:
    """What the words of a message want."""
    text = _words(message)
    signs = [_sign_of_sentence(sentence) for sentence in _sentences(text)]
    works = any(sign.wish == "work" and sign.sure for sign in signs)
    if HANDS_OFF.search(text) or (not works and HANDS_OFF_SOMETHING.search(text)):
        return Sign("ask", sure=True, why="it says that nothing is to be changed")
    for wish in ("tasks", "work", "ask"):
        if found := [sign for sign in signs if sign.wish == wish]:
            best = max(found, key=lambda sign: sign.sure)
            return best._replace(sure=best.sure or (best.leans and bool(TROUBLE.search(text))))
    if signs and all(sign.wish == "greet" for sign in signs):
        return signs[0]
    if trouble := TROUBLE.search(text):
        return Sign("work", sure=False, why=f"it tells of trouble ({trouble[0]})")
    return Sign("", sure=False, why="its words do not say what is wanted")


def is_question(message: str) -> bool:
    """Whether the message, or the last sentence of it, is put as a question and not as a request."""
    sentences = _sentences(_words(message))
    return bool(sentences) and _sign_of_sentence(sentences[-1]).wish == "ask"


def _words(message: str) -> str:
    """The user's own words, without code, quotes and mentions, in small letters."""
    text = (
        message if len(message) <= LOOKED_AT else f"{message[: LOOKED_AT // 2]}\n{message[-LOOKED_AT // 2 :]}"
    )
    text = (
        QUOTED.sub(" it ", FENCED.sub(" `code` ", text))
        .replace("\N{RIGHT SINGLE QUOTATION MARK}", "'")
        .lower()
    )
    return text.strip()


def _sentences(text: str) -> list[str]:
    """Each with the mark that ends it."""
    parts = re.findall(r"[^\n.!?;]+(?:[.!?;](?=\S)[^\n.!?;]*)*[.!?;]*", text)
    return [part.strip(" -*\t") for part in parts if re.search(r"\w", part)]


def _sign_of_sentence(sentence: str) -> Sign:
    wanted, polite = _without_lead(sentence)
    first = re.match(r"[a-z']+", wanted)
    word = first[0] if first else ""
    asks = sentence.endswith("?")
    if task := _task_sign(wanted, word):
        return task
    if verb := _minded(sentence):
        return Sign("work", sure=True, why=f"it asks to {verb}")
    if (also := ALSO_DONE.match(wanted)) and word in TELL and also[1] in WORK:
        return Sign("work", sure=False, why=f"it asks to {word}, and to {also[1]}")
    if word in ASK or (asks and word not in WORK) or (asks and not polite):
        return _asked(wanted, word)
    if word in WORK:
        sign = _work(wanted, word)
        return sign._replace(sure=False) if WHETHER.match(sentence) else sign
    if also := next((verb for verb in ALSO_WORK.findall(wanted) if verb in WORK), None):
        return Sign("work", sure=word in LOOK, why=f"it asks to {also}")
    if word in LOOK:
        return Sign("ask", sure=bool(TOLD.search(wanted)), why=f"it wants to see something ({word})")
    if re.split(r"\W", sentence)[0] in GREET and len(sentence.split()) <= FEW_WORDS:
        return Sign("greet", sure=True, why="it is a greeting or thanks")
    return Sign("", sure=False, why="its words do not say what is wanted")


def _minded(sentence: str) -> str:
    """The verb of `would you mind adding ...`; empty where there is none that wants something done."""
    found = MIND.match(sentence)
    forms = (found[1], f"{found[1]}e", found[1][:-1]) if found else ()
    return next((form for form in forms if form in WORK), "")


def _without_lead(sentence: str) -> tuple[str, bool]:
    """The sentence from its verb on, and whether it began as a request does."""
    wanted, polite = sentence, False
    while (found := LEAD.match(wanted)) and found.end() < len(wanted):
        polite = polite or not found[0].startswith(("so", "and", "but", "now", "then", "well", "hey", "hi"))
        wanted = wanted[found.end() :]
    return wanted.removeprefix("to "), polite


def _task_sign(wanted: str, word: str) -> Sign | None:
    """What belongs to the user's task list: named as such, or by what is done with one; code is not."""
    named, done = TASK_WORD.search(wanted), TASK_VERB.search(wanted)
    if not (named or done):
        return None
    coded = bool(CODE.search(wanted))
    mine = bool(re.search(r"\bmy\b|\bi\b|\bme\b", wanted)) or bool(DAY.search(wanted))
    if coded and not (done and mine):
        return None
    why = f"it is about the task list ({(done or named)[0]})"  # type: ignore[index]
    return Sign("tasks", sure=bool(done) or mine or word in WORK or word in ASK | LOOK, why=why)


def _asked(wanted: str, word: str) -> Sign:
    return Sign("ask", sure=True, why=f"it is a question ({word or wanted.split(maxsplit=1)[0]})")


def _work(wanted: str, word: str) -> Sign:
    """A verb with what it is done to; a bare verb, or one with `it` alone, leans on what was said before."""
    if TOLD.search(wanted):
        return _asked(wanted, word)
    if NOUN.match(wanted):
        wish: Wish = "ask" if ASKED_LATER.search(wanted) else ""
        return Sign(wish, sure=False, why=f"it names a thing ({word})")
    if ASKED_LATER.search(wanted):
        return Sign("work", sure=False, why=f"it asks to {word}, and something else")
    rest = set(re.findall(r"[\w'/-]+", wanted)[1:]) - VAGUE
    return Sign("work", sure=bool(rest), why=f"it asks to {word}", leans=not rest)
