"""Who may open which door, as described in DOORS.md."""


def parse(rule: str) -> tuple[bool, str, str]:
    """Whether it allows, its group and its door."""
    sign, rest = rule[:1], rule[1:]
    group, colon, door = rest.partition(":")
    if sign not in ("+", "-") or not group or not colon or not door:
        raise ValueError(f"not a rule: {rule}")
    return sign == "+", group, door


def matches(pattern: str, door: str) -> bool:
    """Whether the pattern means this door."""
    if pattern.endswith("*"):
        return door.startswith(pattern[:-1])
    return door == pattern


def may_open(rules: list[str], groups: set[str], door: str) -> bool:
    """Whether somebody in these groups may open the door."""
    allowed = False
    for rule in rules:
        allows, group, pattern = parse(rule)
        if (group == "*" or group in groups) and matches(pattern, door):
            allowed = allows
    return allowed
