"""Phrases that leave a paused run, stay in it, or confirm. English only, whole words.

They are looked for clause by clause, in small letters with one space between words and no punctuation.
"""

import re
from collections.abc import Iterator
from typing import NamedTuple

MAX_CHARACTERS_READ = 4_000  # characters of a message that are checked: its start and its end
CHARACTERS_BEFORE = 60  # characters before a phrase in which a word can negate it

CLAUSE_MARK = re.compile(r"[,.;:!?\n]|\s[-\u2013\u2014]\s")
WORD = re.compile(r"[\w']+")
VERBS = r"(?:stop|exit|quit|cancel|leave|abort)"
RUN = r"(?:(?:this|the|that)\s)?(?:run|pipeline|agent|process|report|here|this|it)"
NOT = (
    r"(?:don't|dont|do\snot|not|never(?!\s?mind)|no\sneed\sto|without"
    r"|(?:cannot|can't|won't|shouldn't|didn't|mustn't)(?!\s(?:i|we|you|it)\b))"
)
NEGATED = re.compile(rf"\b{NOT}\s(?:\w+\s){{0,3}}$")
LEAVING_PHRASE = re.compile(
    rf"""
    \b(?:{VERBS}\s{RUN}|get\sout\sof\s{RUN}|break\sout|never\s?mind|forget\s(?:it|this|that|about\s(?:it|this|that))
        |something\s(?:else|different|completely\sdifferent)|(?:new|another|different|unrelated)\s(?:question|topic)
        |change\sthe\s(?:subject|topic)|i(?:'m|\sam)\sdone\swith\s(?:this|it)
        |i\s(?:want|would\slike|need)\sto\s{VERBS})\b
    | ^(?:(?:please|ok|okay|just|let's)\s(?:\|\s)?)*{VERBS}(?:\s(?:\|\s)?please)?$
    """,
    re.VERBOSE,
)
"""Searched in all clauses joined by a bar."""
GO_ON = (
    r"(?:keep\s(?:going|on|working|at\sit|it)|go\son|carry\son|continue|resume|proceed|stay(?:ing)?|remain"
    r"|keep\sme|(?:a|by)\smistake"
    r"|(?:(?:go|get)\s)?back\sto\s(?:it|work|the\srun)|go\sback|return\sto\s(?:it|work|the\srun))"
)
NOT_SOMETHING_ELSE = (
    r"(?!\s(?:(?:with|to|on|and)\s)?(?:do\s)?(?:an?\s|the\s)?"
    r"(?:something|new|another|different|other|else|leaving|leave|exit|exiting)\b)"
)
WANTS_TO_STAY = re.compile(
    rf"""\b(?:{NOT}\s(?:\w+\s){{0,4}}?(?:{VERBS}|leaving|stopping|quitting|exiting)(?:\s{RUN})?
        |cancel\sleaving
        |{GO_ON}{NOT_SOMETHING_ELSE})\b""",
    re.VERBOSE,
)
POLITE_START = re.compile(
    r"""(?:(?:please|ok|okay|well|oh|actually|sorry|hm+|and|but|so|then|now|just|also|rather|better|maybe
        |no|nope|nah|yes|yep|yeah|sure|wait|let's|let\sus|to|do|i\sthink|i\swill|i'll|we'll
        |(?:i|we)\s(?:want|need|prefer|would\slike|would\srather|would\sprefer|should|must|can|could)(?:\sto)?
        |i'd\s(?:like|rather|prefer)(?:\sto)?|(?:can|could|may|shall|should|would|will)\s(?:you|we|i|it)
        |(?:you|it|the\srun)\s(?:can|could|may|must|should))\s)*""",
    re.VERBOSE,
)
"""What may come before `WANTS_TO_STAY` in its clause."""
WANTS_TO_LEAVE = re.compile(
    rf"""(?:\b(?:i|we)(?:'d|\swould|\sdo|\sreally|\sjust|\sstill)*\s(?:want|like|need|wish|prefer)\sto\s{VERBS}
        |^{POLITE_START.pattern}{VERBS}\s(?:(?:this|the|that)\s)?(?:run|pipeline|agent|process)
        |\blet\sme\s(?:out|go|leave)|\b{NOT}\s(?:\w+\s){{0,3}}?{GO_ON})
        (?:\s(?:with|{RUN}|now|please|anyway|already|any\smore|anymore|longer))*$""",
    re.VERBOSE,
)
"""Says that the user wants to leave, whatever comes before it."""
FORBIDS_LEAVING = re.compile(
    rf"(?:^|\b(?:and|but|so|please)\s)(?:please\s)?(?:don't|dont|do\snot|never)\s{VERBS}\b"
)
NO = re.compile(
    r"(?:(?:hell\s)?no(?:\sway)?|nope|nah|n|not\s(?:yet|now|really|at\sall)|(?:of\scourse|absolutely|certainly|rather)\snot)\b"
)
"""Says no, at the start of a clause."""
NO_ALONE = re.compile(
    rf"\b(?:{NO.pattern}|(?:option\s|number\s)?2|don't|dont|do\snot|never|negative|hold\son|wait)"
)
"""Says no, as the whole clause."""
YES = re.compile(
    rf"""\b(?:(?:option\s|number\s)?1|yes|yep|yeah|y|sure|confirm(?:ed)?|correct|right|do\sit|go\sahead|okay|ok|fine|never\s?mind|{VERBS}(?:\s{RUN})?)\b""",
    re.VERBOSE,
)
FILLERS = re.compile(
    r"\b(?:please|oops|thanks|thank|you|ok|okay|just|i(?:'d|'m|'ll)?|want|would|like|rather|prefer|to|let(?:'s)?|us|we|can"
    r"|could|should|the|it|this|that|in|here|with|run|pipeline|actually|sorry|and|then|now|do|so|oh|well|again|wait"
    r"|my\sanswer\sis)\b"
)


class Clause(NamedTuple):
    """A part of a message up to a punctuation mark: its words, and where it ends."""

    words: str
    end: int


def last_clauses(message: str) -> str:
    """The part of a message that is checked: of a long one its end, from a whole clause on."""
    if len(message) <= MAX_CHARACTERS_READ:
        return message
    end = message[-MAX_CHARACTERS_READ // 2 :]
    mark = CLAUSE_MARK.search(end)
    return f"{message[: MAX_CHARACTERS_READ // 2]}\n{end[mark.end() :] if mark else ''}"


def clauses(text: str) -> Iterator[Clause]:
    begun = 0
    for end in (*(mark.end() for mark in CLAUSE_MARK.finditer(text)), len(text)):
        if words := plain_words(text[begun:end]):
            yield Clause(words, end)
        begun = end


def plain_words(text: str) -> str:
    return " ".join(WORD.findall(text.lower().replace("\u2019", "'")))


def unnegated_matches(phrases: re.Pattern[str], words: str) -> Iterator[re.Match[str]]:
    for found in phrases.finditer(words):
        if not NEGATED.search(words, max(0, found.start() - CHARACTERS_BEFORE), found.start()):
            yield found


def says_only(words: str, *phrases: re.Pattern[str]) -> bool:
    """Whether the words are one of the phrases and fillers only."""
    rest = words
    for each in phrases:
        rest = each.sub(" ", rest)
    return rest != words and not FILLERS.sub(" ", rest).strip(" '")
