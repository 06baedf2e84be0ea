"""Whether a message asks in so many words for a verified build of a task that it states itself.

A build runs the project's code and sees nothing of the conversation, so only a closed set of forms counts.
"Build X and verify it" is not among them: it may mean the project's own build command.
"""

import re

from handrail.engine.router.word_rules import plain_words

AT_THE_START = re.compile(
    r"^(?:please\s)?(?:(?:do|make|run|start|build)\s(?:this|it|the\sfollowing)\s)?as\sa\sverified\sbuild(?:,\splease)?\s?[:,]\s*(.+)"
    r"|^(?:please\s)?(?:a\s)?verified\sbuild\s?:\s*(.+)"
    r"|^(?:please\s)?build\s(?:this|it|the\sfollowing)\sand\sverify\s(?:it|this|the\sresult)\s?[:,]\s*(.+)",
    re.DOTALL,
)
AT_THE_END = re.compile(
    r"^(?:please\s)?([a-z]+\s.+?),?\s(?:do\s(?:it|this|that)\s)?as\sa\sverified\sbuild(?:,?\splease)?\s*[.!]?$",
    re.DOTALL,
)
NOT_WANTED = re.compile(
    r"\b(?:not|never|don't|dont|instead\sof|rather\sthan|without)\b[^.:\n]{0,40}\bverified?\b"
)
QUESTION = re.compile(
    r"^(?:what|why|how|where|which|who|when|is|are|does|do\syou|did|can|could|should|would|explain|describe|tell"
    r"|show|compare|summari[sz]e)\b"
)
MIN_WORDS = 2
"""Of the task: `as a verified build: it` says nothing."""


def asks_for_build(message: str) -> bool:
    text = plain_words(message)
    if text.endswith("?") or QUESTION.match(text) or NOT_WANTED.search(text):
        return False
    found = AT_THE_START.match(text) or AT_THE_END.match(text)
    task = next((group for group in found.groups() if group), "") if found else ""
    return len(re.findall(r"\w+", task)) >= MIN_WORDS and not QUESTION.match(task)
