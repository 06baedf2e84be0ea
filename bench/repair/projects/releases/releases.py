"""Numbers of releases, as described in RELEASES.md."""


def parse(text: str) -> tuple[int, int, int, str]:
    """The three numbers and the word."""
    numbers, dash, word = text.partition("-")
    parts = numbers.split(".")
    if len(parts) != 3 or not all(part.isdigit() for part in parts) or (dash and not word):
        raise ValueError(f"not a release: {text}")
    return int(parts[0]), int(parts[1]), int(parts[2]), word


def newest(releases: list[str]) -> str | None:
    """The newest release."""
    return max(releases, key=_key, default=None)


def bump(text: str, part: str) -> str:
    """The next release."""
    major, minor, patch, _ = parse(text)
    if part == "major":
        return f"{major + 1}.0.0"
    if part == "minor":
        return f"{major}.{minor + 1}.0"
    if part == "patch":
        return f"{major}.{minor}.{patch + 1}"
    raise ValueError(f"not a part: {part}")


def _key(text: str) -> tuple[int, int, int, bool, str]:
    major, minor, patch, word = parse(text)
    return major, minor, patch, not word, word
