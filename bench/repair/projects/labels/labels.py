"""Labels for things on a screen, as described in LABELS.md."""


def short(text: str, width: int) -> str:
    """The text, cut to the width."""
    if width < 3:
        raise ValueError("too narrow")
    return text if len(text) <= width else text[: width - 3] + "..."


def slug(text: str) -> str:
    """The text for an address."""
    kept = "".join(character if character.isascii() and character.isalnum() else " " for character in text.lower())
    return "-".join(kept.split())


def initials(name: str) -> str:
    """The first letters of the words."""
    words = name.split()
    large = [word for word in words if not word.islower()] or words
    return "".join(word[0].upper() for word in large)


def unique(name: str, taken: set[str]) -> str:
    """The name, with a number where it is taken."""
    number, found = 1, name
    while found in taken:
        number += 1
        found = f"{name} ({number})"
    return found
