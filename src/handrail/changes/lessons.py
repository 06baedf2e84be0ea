"""Lessons in the file that agents read first: entries are added at its end, and nothing is rewritten."""

import re
import unicodedata

HEADING = "## Lessons"
AGAIN = "again:"
LONGEST = 300
WORDS_OF_AGAIN = 60
MARKS = "#>-*+=|~`_ \t"
"""What makes a line of Markdown something else than a sentence, where it begins with it."""


def with_lesson(text: str, lesson: str, context: str, day: str) -> str:
    """The text with one entry more; of a lesson that it has, only the day is added."""
    said, where = one_line(lesson), one_line(context)
    known = re.compile(rf"- [\d-]+: {re.escape(said)}( \(.*\))?")
    if any(known.fullmatch(line.rstrip()) for line in text.splitlines()):
        entry = f"- {AGAIN} {day} ({said[:WORDS_OF_AGAIN].rstrip()})"
    else:
        entry = f"- {day}: {said}{f' ({where})' if where else ''}"
    headings = [line.strip() for line in text.splitlines() if line.startswith("#")]
    begun = text if not text or text.endswith("\n") else f"{text}\n"
    if headings[-1:] != [HEADING]:
        begun = f"{begun}\n{HEADING}\n\n" if begun else f"{HEADING}\n\n"
    return f"{begun}{entry}\n"


def one_line(text: str) -> str:
    """Words as one plain sentence: no control characters, no tags, nothing that begins a block of its own."""
    plain = "".join(" " if unicodedata.category(each)[0] in "CZ" else each for each in text)
    plain = plain.replace("```", "'").replace("<", "&lt;").replace("](", "] (")
    return " ".join(plain.split()).lstrip(MARKS)
