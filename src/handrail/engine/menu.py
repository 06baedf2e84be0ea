"""Numbers of a menu that was printed."""

import re

NUMBER = re.compile(r"\(?(\d{1,3})[.)]?")


def whole_number(message: str) -> int:
    """A number that is the whole message; 0 where it is not."""
    found = NUMBER.fullmatch(message.strip())
    return int(found[1]) if found else 0
