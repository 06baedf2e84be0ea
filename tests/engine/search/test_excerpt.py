"""What is shown of a file that is too long for a small model."""

from hypothesis import given
from hypothesis import strategies as st

from handrail.engine.search.excerpt import excerpt
from handrail.engine.search.source import find_functions

CACHE = '''\
import time

LIMIT = 3
OTHER = 4


def parse(text):
    """A key."""
    return text.strip().lower().partition(":")[0]


class Cache:
    """Keeps entries."""

    def __init__(self, seconds):
        self.seconds = seconds
        self.entries = {}

    def is_old(self, key):
        return time.time() - self.entries[key] > self.seconds

    def report(self):
        """Lines for people."""
        lines = []
        for key, at in sorted(self.entries.items()):
            lines.append(f"{key}: {at}")
        return lines

    def purge(self):
        """Drop old entries, LIMIT of them at the most."""
        pass
'''


def shown(room: int, words: str = "") -> str:
    purge = next(each for each in find_functions("cache.py", CACHE) if each.name == "purge")
    return excerpt("cache.py", CACHE, purge.first, purge.last, words=words, room=room)


def test_the_fields_of_the_class_and_what_its_functions_are_called_are_shown_with_a_stub() -> None:
    text = shown(400)
    assert "class Cache:" in text
    assert "self.entries = {}" in text
    assert "def is_old(self, key):" in text
    assert "lines.append" not in text
    assert "LIMIT = 3" in text
    assert "OTHER" not in text


def test_functions_that_the_task_names_come_before_others() -> None:
    assert ".partition(" not in shown(420)
    assert ".partition(" in shown(420, "Use parse for the keys.")


def test_functions_of_the_class_are_shown_whole_where_there_is_room() -> None:
    text = shown(len(CACHE))
    assert "lines.append" in text
    assert "OTHER" not in text


@given(st.integers(1, 33), st.integers(0, 5), st.integers(0, 900))
def test_the_part_itself_is_always_shown_and_lines_keep_their_order(first: int, more: int, room: int) -> None:
    lines = CACHE.splitlines()
    last = min(len(lines), first + more)
    found = excerpt("cache.py", CACHE, first, last, words="", room=room).splitlines()
    assert "\n".join(lines[first - 1 : last]) in "\n".join(found)
    rest = iter(lines)
    assert all(line in rest for line in found if line.strip() and line.strip() != "...")
