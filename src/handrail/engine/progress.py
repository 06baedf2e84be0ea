"""How far a slow model is before its first word, for a person."""

from handrail.models.base import Progress

MEGABYTE = 1_000_000


def words_of(progress: Progress, model: str) -> str:
    """What is going on, first in one word, and how far it is where that is known."""
    name = model.rpartition("/")[2]
    match progress.what:
        case "reading" if progress.done >= progress.total:
            return "answering"
        case "reading":
            return f"reading the prompt  {progress.done}/{progress.total} tokens"
        case "checking":
            done, total = progress.done // MEGABYTE, progress.total // MEGABYTE
            return f"checking {name}  {done}/{total} MB"
        case "loading":
            return f"loading {name}"
        case "writing":
            return f"writing code  {progress.done} tokens"
