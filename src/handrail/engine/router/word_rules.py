"""Routing by rules: what the words of a message say about its route. English only.

Without its polite beginning, the first word of a sentence shows what it wants. Where it does not, nothing is
guessed.
"""

import re
from functools import cached_property
from typing import Literal, NamedTuple

Wish = Literal["greet", "ask", "work", "tasks", ""]
UNDECIDED = "its words do not say what is wanted"


class Pattern:
    """A regular expression that is compiled when it is needed: to compile all takes 7 ms of each start."""

    def __init__(self, text: str, flags: int = 0) -> None:
        self._text, self._flags = text, flags

    @cached_property
    def compiled(self) -> re.Pattern[str]:
        return re.compile(self._text, self._flags)


class RuleMatch(NamedTuple):
    """What the words of a message suggest; `sure`: no model needs to be asked."""

    wish: Wish
    sure: bool
    why: str
    leans: bool = False  # sure only after earlier messages that it can refer to


def match_rules(message: str) -> RuleMatch:
    text = plain_words(message)
    matches = [_match_sentence(sentence) for sentence in _sentences(text)]
    works = any(each.wish == "work" and each.sure for each in matches)
    if FORBIDS_CHANGES.compiled.search(text) or (not works and FORBIDS_SOME_CHANGES.compiled.search(text)):
        return RuleMatch("ask", sure=True, why="it says that nothing is to be changed")
    for wish in ("tasks", "work", "ask"):
        if found := [each for each in matches if each.wish == wish]:
            best = max(found, key=lambda each: each.sure)
            return best._replace(sure=best.sure or (best.leans and bool(TROUBLE_WORD.compiled.search(text))))
    if matches and all(each.wish == "greet" for each in matches):
        return matches[0]
    if trouble := TROUBLE_WORD.compiled.search(text):
        return RuleMatch("work", sure=False, why=f"it reports a problem ({trouble[0]})")
    return RuleMatch("", sure=False, why=UNDECIDED)


def match_task_rules(message: str) -> RuleMatch:
    """The same for a message to the task assistant: what names no code is about the list."""
    found = match_rules(message)
    if found.wish in ("tasks", "greet"):
        return found
    if CODE_MARK.compiled.search(plain_words(message)):
        return found._replace(sure=False, leans=False)
    return RuleMatch("tasks", sure=bool(found.wish), why="it is said to the task assistant", leans=True)


def is_question(message: str) -> bool:
    """Whether the message, or its last sentence, is a question and not a request."""
    sentences = _sentences(plain_words(message))
    return bool(sentences) and _match_sentence(sentences[-1]).wish == "ask"


def refers_back(message: str) -> bool:
    """Whether the message has a word for something that was named before, outside of quotes."""
    return bool(REFERRING_WORD.compiled.search(QUOTED.compiled.sub(" ", message).lower()))


def plain_words(message: str) -> str:
    """The user's own words, without code, quotes and mentions, in small letters."""
    if len(message) > MAX_CHARACTERS_READ:
        message = f"{message[: MAX_CHARACTERS_READ // 2]}\n{message[-MAX_CHARACTERS_READ // 2 :]}"
    text = QUOTED.compiled.sub(" it ", FENCED.compiled.sub(" `code` ", message))
    return text.replace("\N{RIGHT SINGLE QUOTATION MARK}", "'").lower().strip()


def _sentences(text: str) -> list[str]:
    parts = re.findall(r"[^\n.!?;]+(?:[.!?;](?=\S)[^\n.!?;]*)*[.!?;]*", text)
    return [part.strip(" -*\t") for part in parts if re.search(r"\w", part)]


def _match_sentence(sentence: str) -> RuleMatch:
    wanted, polite = _without_polite_start(sentence)
    first = re.match(r"[a-z']+", wanted)
    word = first[0] if first else ""
    asks = sentence.endswith("?")
    if task := _match_task(wanted, word):
        return task
    if verb := _would_you_mind_verb(sentence):
        return RuleMatch("work", sure=True, why=f"it asks to {verb}")
    if (also := SECOND_REQUEST.compiled.match(wanted)) and word in TELL_VERBS and also[1] in WORK_VERBS:
        return RuleMatch("work", sure=False, why=f"it asks to {word}, and to {also[1]}")
    if word in QUESTION_WORDS or (asks and word not in WORK_VERBS) or (asks and not polite):
        return _match_question(wanted, word)
    if word in WORK_VERBS:
        work = _match_work(wanted, word)
        return work._replace(sure=False) if CAN_WE.compiled.match(sentence) else work
    if also := next((verb for verb in SECOND_WORK_VERB.compiled.findall(wanted) if verb in WORK_VERBS), None):
        return RuleMatch("work", sure=word in LOOK_VERBS, why=f"it asks to {also}")
    if word in LOOK_VERBS:
        sure = bool(TELL_PHRASE.compiled.search(wanted))
        return RuleMatch("ask", sure=sure, why=f"it wants to see something ({word})")
    if re.split(r"\W", sentence)[0] in GREETINGS and len(sentence.split()) <= MAX_GREETING_WORDS:
        return RuleMatch("greet", sure=True, why="it is a greeting or thanks")
    return RuleMatch("", sure=False, why=UNDECIDED)


def _would_you_mind_verb(sentence: str) -> str:
    """The verb of `would you mind adding ...`; empty where there is none that wants something done."""
    found = WOULD_YOU_MIND.compiled.match(sentence)
    forms = (found[1], f"{found[1]}e", found[1][:-1]) if found else ()
    return next((form for form in forms if form in WORK_VERBS), "")


def _without_polite_start(sentence: str) -> tuple[str, bool]:
    """The sentence from its verb on, and whether it starts like a request."""
    wanted, polite = sentence, False
    while (found := POLITE_START.compiled.match(wanted)) and found.end() < len(wanted):
        polite = polite or not found[0].startswith(("so", "and", "but", "now", "then", "well", "hey", "hi"))
        wanted = wanted[found.end() :]
    return wanted.removeprefix("to "), polite


def _match_task(wanted: str, word: str) -> RuleMatch | None:
    """Whether the sentence is about the user's task list, and not about code."""
    named, done = TASK_WORD.compiled.search(wanted), TASK_VERB.compiled.search(wanted)
    if not (named or done):
        return None
    coded = bool(CODE_MARK.compiled.search(wanted))
    mine = bool(re.search(r"\bmy\b|\bi\b|\bme\b", wanted)) or bool(DAY_WORD.compiled.search(wanted))
    if coded and not (done and mine):
        return None
    why = f"it is about the task list ({(done or named)[0]})"  # type: ignore[index]
    sure = bool(done) or mine or word in WORK_VERBS | QUESTION_WORDS | LOOK_VERBS
    return RuleMatch("tasks", sure=sure, why=why)


def _match_question(wanted: str, word: str) -> RuleMatch:
    return RuleMatch("ask", sure=True, why=f"it is a question ({word or wanted.split(maxsplit=1)[0]})")


def _match_work(wanted: str, word: str) -> RuleMatch:
    """A verb with an object is sure; a bare verb, or one with `it`, refers to earlier messages."""
    if TELL_PHRASE.compiled.search(wanted):
        return _match_question(wanted, word)
    if NOUN_USE.compiled.match(wanted):
        wish: Wish = "ask" if LATE_QUESTION.compiled.search(wanted) else ""
        return RuleMatch(wish, sure=False, why=f"it names a thing ({word})")
    if LATE_QUESTION.compiled.search(wanted):
        return RuleMatch("work", sure=False, why=f"it asks to {word}, and something else")
    rest = set(re.findall(r"[\w'/-]+", wanted)[1:]) - VAGUE_WORDS
    return RuleMatch("work", sure=bool(rest), why=f"it asks to {word}", leans=not rest)


MENU_NUMBER = Pattern(r"\(?(\d{1,3})[.)]?")


def menu_number(message: str) -> int:
    """The number of a menu that is the whole message; 0 where it is not one."""
    found = MENU_NUMBER.compiled.fullmatch(message.strip())
    return int(found[1]) if found else 0


# The words by which a message shows what it wants


def _word_set(words: str) -> frozenset[str]:
    return frozenset(words.split())


WORK_VERBS = _word_set("""
    add adjust annotate apply bump change clean comment commit configure convert copy correct create cut
    debug decouple dedupe delete deprecate document downgrade drop enable disable encapsulate ensure expose
    extend extract factor finish fix format generate handle harden implement improve increase initialise
    initialize inline insert install integrate introduce lint localise localize lower make merge migrate
    mock modernise modernize modify move normalise normalize optimise optimize organise organize parametrise
    parametrize patch pin polish port prevent publish put redo reduce refactor regenerate reimplement
    release remove rename reorder reorganise reorganize repair replace resolve restore restructure revert
    rewrite rework round run scaffold set setup shorten simplify sort speed split squash stop strip stub
    swap switch translate trim turn type undo unify untangle update upgrade use validate vectorise vectorize
    wire wrap write
""")
QUESTION_WORDS = _word_set("""
    what what's whats why why's how how's where where's which who who's whose when is isn't are aren't was
    wasn't were does doesn't did didn't has hasn't should shouldn't am explain describe tell summarise
    summarize compare outline clarify define elaborate walk recap
""")
"""Words that begin a sentence which wants an answer."""
TELL_VERBS = _word_set("explain describe summarise summarize outline compare walk recap")
LOOK_VERBS = _word_set("""
    show list find look check see review analyse analyze inspect search read give count
""")
"""Verbs that ask to see something, sometimes more."""
GREETINGS = _word_set("""
    hi hello hey yo hiya howdy greetings morning evening afternoon thanks thank thx ty cheers bye goodbye ok
    okay cool great nice perfect awesome lol wow good welcome sorry
""")

POLITE_START = Pattern(
    r"""^(?:
        please | pls | kindly | hey | hi | hello | ok | okay | so | now | then | and | also | next | first
        | finally | well | great | thanks | but | just | simply | quickly | maybe | perhaps | again | actually
        | instead | in\s(?:short|brief|a\snutshell|plain\swords|one\s\w+)
        | put\s(?:simply|shortly|differently) | simply\sput
        | handrail | (?:can|could|would|will)\s(?:you|u|we)
        | i(?:'d|\swould)?\s(?:want|need|like|love)(?:\syou)?\sto
        | i'd\s(?:like|want)\s(?:you\s)?to | let's | let\sus | you\s(?:should|must|need\sto|have\sto|can)
        | we\s(?:should|must|need\sto|have\sto|could) | help\sme(?:\sto)? | help | go\sahead\sand | go\sand
        | feel\sfree\sto | try\sto | try\sand | it\swould\sbe\s(?:nice|great|good)\s(?:if\syou\scould|to)
        | i\sthink\s(?:you|we)\sshould | your\s(?:task|job)\sis\sto | use\syour\stools\sto
    )\b[,:]?\s*""",
    re.VERBOSE,
)
NOT_CHANGED = r"(?:do\snot|don't|dont|never|without)\s(?:yet\s)?(?:chang|edit|modify|touch|writ|apply|fix)\w*"
FORBIDS_CHANGES = Pattern(
    rf"\b{NOT_CHANGED}\s(?:anything|any\s(?:code|files?)|(?:the|my)\s(?:code|files)|yet)\b"
    r"(?!\s(?:else|but|except|other|outside|beyond|apart|that|which|in)\b)"
    r"|\b(?:just|only)\s(?:explain|tell|answer|asking|curious|wondering)\b"
)
FORBIDS_SOME_CHANGES = Pattern(
    rf"\b{NOT_CHANGED}(?:\s(?:it|them)\b|\s*(?:$|[.,;!]))"
    r"|\b(?:no|any)\s(?:code\s)?(?:changes|edits)\b(?=\s*(?:$|[.,;!]|yet|please))|\bread[- ]only\b"
)
"""The user forbids some changes; in a request for work that is only a limit."""
TASK_WORD = Pattern(
    r"\b(?:tasks?|to-?dos?|to-do\slist|backlog|reminders?|agenda|my\slist|chores?|errands?"
    r"|checklist|(?:over)?due(?!\sto))\b"
)
TASK_VERB = Pattern(
    r"^(?:remind\sme|reschedule|postpone|snooze|schedule|prioriti[sz]e|defer|push\sback)\b"
    r"|^(?:move|shift|push|bring)\b.*\bto\s(?:today|tomorrow|(?:next|this)\s(?:week|weekend|month|\w{3,6}day)"
    r"|(?:mon|tues|wednes|thurs|fri|satur|sun)day)\b(?![./]\w)"
    r"|\bmark\b.*\b(?:done|complete|completed|finished)\b|\b(?:to|on|from|off)\smy\s(?:list|agenda|backlog)\b"
)
DAY_WORD = Pattern(
    r"\b(?:today|tonight|tomorrow|yesterday|this\s(?:week|weekend|month|morning|evening)|next\s(?:week|month)"
    r"|(?:mon|tues|wednes|thurs|fri|satur|sun)days?|every\s(?:day|week|month|morning)|daily|weekly|monthly)\b"
)
CODE_MARK = Pattern(
    r"`|::|\w\(\)|\b[\w/-]+\.(?:py|js|ts|tsx|jsx|go|rs|java|c|h|cpp|rb|md|toml|json|ya?ml|html|css|sh|sql)\b"
    r"|\b(?:code|codebase|repo|repository|function|class|method|module|file|component|endpoint|api|app"
    r"|tests?|script|comments?|variable|import|bug|exception|error|cli|database|schema|parser|runner|queue|library"
    r"|package|docs?|readme|docstrings?|handler|button|page|server|branch|commit|type|types|table|column|field)\b"
)
TROUBLE_WORD = Pattern(
    r"\b(?:fails?|failed|failing|broken|breaks|crash\w*|bug|error|exception|traceback|regression"
    r"|wrong|incorrect|doesn't\swork|does\snot\swork|not\sworking|isn't\sworking|stopped\sworking|flaky|too\sslow|leaks?)\b"
)
TELL_PHRASE = Pattern(
    r"^(?:run|take|lead|guide|talk)\s(?:me|us)\s(?:quickly\s)?through\b|^make\ssense\sof\b"
    r"|^(?:give|show)\s(?:me|us)\s(?:an?|the|your)\s(?:\w+\s)?(?:overview|summary|explanation|idea|rundown|outline"
    r"|description|breakdown|opinion|introduction)\b"
    r"|\b(?:my|our)\sunderstanding\b|\b(?:me|us)\sto\sunderstand\b"
)
"""A work verb that asks for an explanation."""
NOUN_USE = Pattern(
    r"^\w+\s(?:of|vs\.?|versus|or|is|are|was|were|does|did|has|had|can|could|should|would|will|seems?|looks?"
    r"|between|history|histories|messages?|logs?|cases?|times?|points?|notes|numbers?|rates?|names?|annotations?"
    r"|on\swhat|access|frequency|order|conflicts?|statements?|semantics)\b"
    r"|^(?:comment|commit|copy|create|cut|document|drop|format|handle|lint|merge|mock|move|patch|pin|port|release"
    r"|round|set|sort|split|stop|switch|type|wrap)\s(?!(?:the|an?|this|that|these|those|it|all|each|every|any|my"
    r"|our|your|its|some|more|another|up|out)\b)[\w-]+(?:\s[\w-]+)?\s(?:of|in|for|we|here|there|between|or)\b"
)
"""The word is a noun: `type of`, `commit history`, `set vs list`."""
LATE_QUESTION = Pattern(
    r"[,:\u2013\u2014-]\s(?:and\s|but\s|so\s|or\s)?"
    r"(?:what|what's|why|how|is|isn't|are|does|doesn't|did|should|which\sone|explain)\b"
)
"""A question after a comma."""
WOULD_YOU_MIND = Pattern(r"^(?:would|do)\syou\smind\s([a-z]+?)ing\b")
SECOND_REQUEST = Pattern(
    r"^(?!.*\b(?:how|what|why|where|whether|if)\b).*(?:\band\b|\bthen\b|;)\s(?:then\s|also\s)*([a-z]+)\s\w"
)
"""An explanation and then work."""
CAN_WE = Pattern(r"^(?:can|could|would|will)\swe\b")  # a request, or the question whether it can be done
FENCED = Pattern(r"```.*?(?:```|\Z)|~~~.*?(?:~~~|\Z)", re.DOTALL)
QUOTED = Pattern(r"\"[^\"\n]{0,400}\"|“[^”\n]{0,400}”|^>.*$", re.MULTILINE)
SECOND_WORK_VERB = Pattern(r"(?:\band\b|\bthen\b|,)\s(?:then\s|also\s|please\s)*([a-z]+)\b")
REFERRING_WORD = Pattern(r"\b(?:it|them|they|those|these|that\sone|this\sone|the\ssame)\b")
MAX_GREETING_WORDS = 6
VAGUE_WORDS = _word_set("""
    it this that them these those up down better nicer cleaner faster again now please good a the
""")
MAX_CHARACTERS_READ = 4_000  # characters of a message that are checked: its start and its end
