"""The words by which a message shows what it wants."""

import re


def _listed(words: str) -> frozenset[str]:
    return frozenset(words.split())


WORK = _listed("""
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
"""Verbs that want something done to the files."""
ASK = _listed("""
    what what's whats why why's how how's where where's which who who's whose when is isn't are aren't was
    wasn't were does doesn't did didn't has hasn't should shouldn't am explain describe tell summarise
    summarize compare outline clarify define elaborate walk recap
""")
"""Words that begin a sentence which wants an answer."""
TELL = _listed("explain describe summarise summarize outline compare walk recap")
"""Verbs of those that can be followed by another wish."""
LOOK = _listed("""
    show list find look check see review analyse analyze inspect search read give count
""")
"""Verbs that want to know something, and sometimes more than that."""
GREET = _listed("""
    hi hello hey yo hiya howdy greetings morning evening afternoon thanks thank thx ty cheers bye goodbye ok
    okay cool great nice perfect awesome lol wow good welcome sorry
""")

LEAD = re.compile(
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
"""What may come before the verb of a request."""
NOT_CHANGED = r"(?:do\snot|don't|dont|never|without)\s(?:yet\s)?(?:chang|edit|modify|touch|writ|apply|fix)\w*"
HANDS_OFF = re.compile(
    rf"\b{NOT_CHANGED}\s(?:anything|any\s(?:code|files?)|(?:the|my)\s(?:code|files)|yet)\b"
    r"(?!\s(?:else|but|except|other|outside|beyond|apart|that|which|in)\b)"
    r"|\b(?:just|only)\s(?:explain|tell|answer|asking|curious|wondering)\b"
)
"""The user wants words and nothing else."""
HANDS_OFF_SOMETHING = re.compile(
    rf"\b{NOT_CHANGED}(?:\s(?:it|them)\b|\s*(?:$|[.,;!]))"
    r"|\b(?:no|any)\s(?:code\s)?(?:changes|edits)\b(?=\s*(?:$|[.,;!]|yet|please))|\bread[- ]only\b"
)
"""The same, where nothing else is to be done: work may have its bounds."""
TASK_WORD = re.compile(
    r"\b(?:tasks?|to-?dos?|to-do\slist|backlog|reminders?|agenda|my\slist|chores?|errands?"
    r"|checklist|due(?!\sto))\b"
)
TASK_VERB = re.compile(
    r"^(?:remind\sme|reschedule|postpone|snooze|schedule|prioriti[sz]e|defer|push\sback)\b"
    r"|\bmark\b.*\b(?:done|complete|completed|finished)\b|\b(?:to|on|from|off)\smy\s(?:list|agenda|backlog)\b"
)
DAY = re.compile(
    r"\b(?:today|tonight|tomorrow|yesterday|this\s(?:week|weekend|month|morning|evening)|next\s(?:week|month)"
    r"|(?:mon|tues|wednes|thurs|fri|satur|sun)days?|every\s(?:day|week|month|morning)|daily|weekly|monthly)\b"
)
CODE = re.compile(
    r"`|::|\w\(\)|\b[\w/-]+\.(?:py|js|ts|tsx|jsx|go|rs|java|c|h|cpp|rb|md|toml|json|ya?ml|html|css|sh|sql)\b"
    r"|\b(?:code|codebase|repo|repository|function|class|method|module|file|component|endpoint|api|app"
    r"|tests?|script|comments?|variable|import|bug|exception|error|cli|database|schema|parser|runner|queue|library"
    r"|package|docs?|readme|docstrings?|handler|button|page|server|branch|commit|type|types|table|column|field)\b"
)
TROUBLE = re.compile(
    r"\b(?:fails?|failed|failing|broken|breaks|crash\w*|bug|error|exception|traceback|regression"
    r"|wrong|incorrect|doesn't\swork|does\snot\swork|not\sworking|isn't\sworking|stopped\sworking|flaky|too\sslow|leaks?)\b"
)
TOLD = re.compile(
    r"^(?:run|take|lead|guide|talk)\s(?:me|us)\s(?:quickly\s)?through\b|^make\ssense\sof\b"
    r"|^(?:give|show)\s(?:me|us)\s(?:an?|the|your)\s(?:\w+\s)?(?:overview|summary|explanation|idea|rundown|outline"
    r"|description|breakdown|opinion|introduction)\b"
    r"|\b(?:my|our)\sunderstanding\b|\b(?:me|us)\sto\sunderstand\b"
)
"""Wants to be told something, in the words of a verb that does something."""
NOUN = re.compile(
    r"^\w+\s(?:of|vs\.?|versus|or|is|are|was|were|does|did|has|had|can|could|should|would|will|seems?|looks?"
    r"|between|history|histories|messages?|logs?|cases?|times?|points?|notes|numbers?|rates?|names?|annotations?"
    r"|on\swhat|access|frequency|order|conflicts?|statements?|semantics)\b"
    r"|^(?:comment|commit|copy|create|cut|document|drop|format|handle|lint|merge|mock|move|patch|pin|port|release"
    r"|round|set|sort|split|stop|switch|type|wrap)\s(?!(?:the|an?|this|that|these|those|it|all|each|every|any|my"
    r"|our|your|its|some|more|another|up|out)\b)[\w-]+(?:\s[\w-]+)?\s(?:of|in|for|we|here|there|between|or)\b"
)
"""How a sentence goes on behind a word that may be no verb: `type of`, `commit history`, `set vs list`."""
ASKED_LATER = re.compile(
    r"[,:\u2013\u2014-]\s(?:and\s|but\s|so\s|or\s)?"
    r"(?:what|what's|why|how|is|isn't|are|does|doesn't|did|should|which\sone|explain)\b"
)
"""A question behind a comma."""
MIND = re.compile(r"^(?:would|do)\syou\smind\s([a-z]+?)ing\b")
"""`would you mind adding` asks to add."""
ALSO_DONE = re.compile(
    r"^(?!.*\b(?:how|what|why|where|whether|if)\b).*(?:\band\b|\bthen\b|;)\s(?:then\s|also\s)*([a-z]+)\s\w"
)
"""Something told, and then something done."""
WHETHER = re.compile(r"^(?:can|could|would|will)\swe\b")
"""A request, or the question whether it can be done."""
FENCED = re.compile(r"```.*?(?:```|\Z)|~~~.*?(?:~~~|\Z)", re.DOTALL)
QUOTED = re.compile(r"\"[^\"\n]{0,400}\"|“[^”\n]{0,400}”|^>.*$", re.MULTILINE)
ALSO_WORK = re.compile(r"(?:\band\b|\bthen\b|,)\s(?:then\s|also\s|please\s)*([a-z]+)\b")
FEW_WORDS = 6
VAGUE = _listed("""
    it this that them these those up down better nicer cleaner faster again now please good a the
""")
LOOKED_AT = 4_000
"""Characters of a message; what it wants is said at its beginning or its end."""
