"""What a terminal inserts when a file is dropped on it: the path alone, quoted in one way or another."""

import re
from pathlib import Path
from urllib.parse import unquote, urlsplit

QUOTED = re.compile(r"'([^'\n]+)'|\"([^\"\n]+)\"")
LONGEST = 4_096


def dropped_file(text: str) -> Path | None:
    """The file that the pasted text names and nothing else; None for every other text."""
    word = text.strip()
    if len(word) > LONGEST or "\n" in word:
        return None
    if quoted := QUOTED.fullmatch(word):
        word = quoted[1] or quoted[2]
    elif word.startswith("file://"):
        word = unquote(urlsplit(word).path)
    else:
        if re.search(r"(?<!\\)\s", word):
            return None
        word = re.sub(r"\\(.)", r"\1", word)
    path = Path(word)
    try:
        return path if path.is_absolute() and path.is_file() else None
    except (OSError, ValueError):
        return None
