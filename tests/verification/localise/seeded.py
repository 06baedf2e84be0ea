"""One-line bugs: small programs with their tests, and for each bug the right line and the wrong one."""

from typing import NamedTuple


class Bug(NamedTuple):
    module: str
    right: str
    wrong: str


CART = '''\
"""A shopping cart."""

FREE_SHIPPING_FROM = 50
SHIPPING = 5
RATES = {"de": 19, "ch": 8}


class Cart:
    def __init__(self, country="de"):
        self.country = country
        self.items = {}

    def add(self, name, price, count=1):
        if count < 1:
            raise ValueError("count")
        known = self.items.get(name)
        if known:
            price, count = known[0], known[1] + count
        self.items[name] = (price, count)

    def remove(self, name):
        if name not in self.items:
            return False
        del self.items[name]
        return True

    def net(self):
        total = 0
        for price, count in self.items.values():
            total += price * count
        return total

    def shipping(self):
        net = self.net()
        if not self.items or net >= FREE_SHIPPING_FROM:
            return 0
        return SHIPPING

    def tax(self):
        rate = RATES.get(self.country, 0)
        return round(self.net() * rate / 100, 2)

    def total(self):
        return self.net() + self.shipping() + self.tax()
'''

CART_TESTS = """\
import pytest


def filled(*items, country="de"):
    cart = Cart(country)
    for item in items:
        cart.add(*item)
    return cart


def test_an_empty_cart_costs_nothing():
    assert filled().total() == 0


def test_net_multiplies():
    assert filled(("pen", 2, 3)).net() == 6


def test_net_of_several():
    assert filled(("pen", 2), ("ink", 3)).net() == 5


def test_adding_twice_adds_up():
    cart = filled(("pen", 2), ("pen", 2, 4))
    assert cart.items == {"pen": (2, 5)}


def test_shipping_of_little():
    assert filled(("pen", 2)).shipping() == 5


def test_shipping_at_the_limit():
    assert filled(("bag", 50)).shipping() == 0


def test_shipping_above():
    assert filled(("bag", 80)).shipping() == 0


def test_tax_at_home():
    assert filled(("bag", 100)).tax() == 19


def test_tax_abroad():
    assert filled(("bag", 100), country="us").tax() == 0


def test_tax_of_another():
    assert filled(("bag", 100), country="ch").tax() == 8


def test_remove():
    cart = filled(("pen", 2))
    assert cart.remove("pen")
    assert not cart.items


def test_remove_what_is_not_there():
    assert filled(("pen", 2)).remove("ink") is False


def test_no_count():
    with pytest.raises(ValueError):
        filled(("pen", 2, 0))
"""

SPANS = '''\
"""Spans of whole numbers, each a pair of start and end; the end is not in it."""


def merge(spans):
    """Overlapping and touching spans joined, in order."""
    merged = []
    for start, end in sorted(spans):
        if start >= end:
            continue
        if merged and start <= merged[-1][1]:
            last = merged.pop()
            start, end = last[0], max(last[1], end)
        merged.append((start, end))
    return merged


def gaps(spans):
    """What lies between the merged spans."""
    merged = merge(spans)
    found = []
    for before, after in zip(merged, merged[1:]):
        found.append((before[1], after[0]))
    return found


def length(spans):
    return sum(end - start for start, end in merge(spans))


def cut(span, cutter):
    """What is left of a span when another is taken out."""
    start, end = span
    left = (start, min(end, cutter[0]))
    right = (max(start, cutter[1]), end)
    return [part for part in (left, right) if part[0] < part[1]]


def holds(spans, number):
    low, high = 0, len(spans)
    while low < high:
        middle = (low + high) // 2
        start, end = spans[middle]
        if number < start:
            high = middle
        elif number >= end:
            low = middle + 1
        else:
            return True
    return False
'''

SPANS_TESTS = """\
def test_merge_apart():
    assert merge([(5, 6), (1, 2)]) == [(1, 2), (5, 6)]


def test_merge_overlapping():
    assert merge([(1, 4), (3, 6)]) == [(1, 6)]


def test_merge_inside():
    assert merge([(1, 9), (3, 6)]) == [(1, 9)]


def test_merge_touching():
    assert merge([(1, 3), (3, 6)]) == [(1, 6)]


def test_merge_empty_ones():
    assert merge([(3, 3)]) == []


def test_gaps():
    assert gaps([(1, 3), (7, 9)]) == [(3, 7)]


def test_no_gaps():
    assert gaps([(1, 3)]) == []


def test_length():
    assert length([(1, 3), (2, 6)]) == 5


def test_cut_middle():
    assert cut((0, 10), (3, 5)) == [(0, 3), (5, 10)]


def test_cut_all():
    assert cut((3, 5), (0, 10)) == []


def test_cut_nothing():
    assert cut((0, 2), (5, 6)) == [(0, 2)]


def test_holds():
    assert holds([(1, 3), (5, 7), (9, 12)], 9)
    assert holds([(1, 3), (5, 7), (9, 12)], 2)


def test_holds_not():
    assert not holds([(1, 3), (5, 7), (9, 12)], 7)


def test_holds_none():
    assert not holds([], 7)
"""

WORDS = '''\
"""Texts: slugs, durations, wrapped lines."""

import re

UNITS = {"s": 1, "m": 60, "h": 3600, "d": 86400}


def slug(title, most=20):
    words = re.findall(r"[a-z0-9]+", title.lower())
    text = ""
    for word in words:
        longer = f"{text}-{word}" if text else word
        if len(longer) > most:
            break
        text = longer
    return text


def seconds(duration):
    """Of a text such as 1h30m."""
    total = 0
    number = ""
    for letter in duration.strip():
        if letter.isdigit():
            number += letter
        elif letter in UNITS and number:
            total += int(number) * UNITS[letter]
            number = ""
        else:
            raise ValueError(f"not a duration: {duration}")
    if number:
        total += int(number)
    return total


def wrap(text, width):
    lines, line = [], ""
    for word in text.split():
        if not line:
            line = word
        elif len(line) + 1 + len(word) <= width:
            line += " " + word
        else:
            lines.append(line)
            line = word
    if line:
        lines.append(line)
    return lines


def count(text):
    """How often each word is there, the most frequent first."""
    found = {}
    for word in text.lower().split():
        word = word.strip(".,;!?")
        if word:
            found[word] = found.get(word, 0) + 1
    return sorted(found.items(), key=lambda pair: (-pair[1], pair[0]))
'''

WORDS_TESTS = """\
import pytest


def test_slug():
    assert slug("Hello, World!") == "hello-world"


def test_slug_is_cut_at_a_word():
    assert slug("one two three four", most=9) == "one-two"


def test_slug_that_fits():
    assert slug("one two", most=7) == "one-two"


def test_slug_of_nothing():
    assert slug("...") == ""


def test_seconds():
    assert seconds("90s") == 90


def test_minutes():
    assert seconds("2m") == 120


def test_hours_and_minutes():
    assert seconds("1h30m") == 5400


def test_days():
    assert seconds("1d") == 86400


def test_plain_number():
    assert seconds("45") == 45


def test_unit_then_number():
    assert seconds("1m5") == 65


def test_no_duration():
    with pytest.raises(ValueError):
        seconds("soon")


def test_wrap():
    assert wrap("aa bb cc", 5) == ["aa bb", "cc"]


def test_wrap_long_word():
    assert wrap("a bbbbbbb", 3) == ["a", "bbbbbbb"]


def test_wrap_nothing():
    assert wrap("", 5) == []


def test_count():
    assert count("a b a") == [("a", 2), ("b", 1)]


def test_count_without_marks():
    assert count("Yes, yes! - no.") == [("yes", 2), ("-", 1), ("no", 1)]


def test_count_in_order():
    assert count("b a") == [("a", 1), ("b", 1)]
"""

CACHE = '''\
"""A cache that forgets what was not used for long, with a limit for age."""


class Cache:
    def __init__(self, size=3, seconds=10):
        self.size = size
        self.seconds = seconds
        self.hits = self.misses = 0
        self._entries = {}

    def put(self, key, value, now=0):
        self._entries.pop(key, None)
        self._entries[key] = (value, now)
        while len(self._entries) > self.size:
            oldest = next(iter(self._entries))
            del self._entries[oldest]

    def get(self, key, now=0, default=None):
        entry = self._entries.get(key)
        if entry is None:
            self.misses += 1
            return default
        value, since = entry
        if now - since >= self.seconds:
            del self._entries[key]
            self.misses += 1
            return default
        self._entries[key] = self._entries.pop(key)
        self.hits += 1
        return value

    def keys(self):
        return list(self._entries)

    def rate(self):
        asked = self.hits + self.misses
        return self.hits / asked if asked else 0.0

    def drop_old(self, now):
        old = [key for key, (_, since) in self._entries.items() if now - since >= self.seconds]
        for key in old:
            del self._entries[key]
        return len(old)
'''

CACHE_TESTS = """\
def test_get_what_was_put():
    cache = Cache()
    cache.put("a", 1)
    assert cache.get("a") == 1


def test_missing():
    assert Cache().get("a", default=7) == 7


def test_size():
    cache = Cache(size=2)
    for key in "abc":
        cache.put(key, key)
    assert cache.keys() == ["b", "c"]


def test_put_again_is_newest():
    cache = Cache(size=2)
    for key in "aba":
        cache.put(key, key)
    assert cache.keys() == ["b", "a"]


def test_used_is_kept():
    cache = Cache(size=2)
    cache.put("a", 1)
    cache.put("b", 2)
    cache.get("a")
    cache.put("c", 3)
    assert cache.keys() == ["a", "c"]


def test_old_is_gone():
    cache = Cache(seconds=5)
    cache.put("a", 1, now=0)
    assert cache.get("a", now=5) is None
    assert cache.keys() == []


def test_not_yet_old():
    cache = Cache(seconds=5)
    cache.put("a", 1, now=0)
    assert cache.get("a", now=4) == 1


def test_rate():
    cache = Cache()
    cache.put("a", 1)
    cache.get("a")
    cache.get("b")
    assert cache.rate() == 0.5


def test_rate_of_nothing():
    assert Cache().rate() == 0.0


def test_drop_old():
    cache = Cache(seconds=5)
    cache.put("a", 1, now=0)
    cache.put("b", 1, now=3)
    assert cache.drop_old(now=6) == 1
    assert cache.keys() == ["b"]
"""

DATES = '''\
"""Dates as triples of year, month and day."""

DAYS = (31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31)
NAMES = ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")


def is_leap(year):
    if year % 400 == 0:
        return True
    if year % 100 == 0:
        return False
    return year % 4 == 0


def days_in(year, month):
    if month == 2 and is_leap(year):
        return 29
    return DAYS[month - 1]


def next_day(date):
    year, month, day = date
    if day < days_in(year, month):
        return year, month, day + 1
    if month < 12:
        return year, month + 1, 1
    return year + 1, 1, 1


def day_of_year(date):
    year, month, day = date
    return sum(days_in(year, each) for each in range(1, month)) + day


def add_months(date, number):
    year, month, day = date
    months = year * 12 + month - 1 + number
    year, month = months // 12, months % 12 + 1
    return year, month, min(day, days_in(year, month))


def weekday(date):
    year, month, day = date
    before = year - 1
    days = before * 365 + before // 4 - before // 100 + before // 400
    days += day_of_year(date) - 1
    return NAMES[days % 7]


def parse(text):
    parts = text.split("-")
    if len(parts) != 3:
        raise ValueError(text)
    year, month, day = (int(part) for part in parts)
    if not 1 <= month <= 12 or not 1 <= day <= days_in(year, month):
        raise ValueError(text)
    return year, month, day
'''

DATES_TESTS = """\
import pytest


@pytest.mark.parametrize("year", [2000, 2024, 1996])
def test_leap(year):
    assert is_leap(year)


@pytest.mark.parametrize("year", [1900, 2023, 2100])
def test_not_leap(year):
    assert not is_leap(year)


def test_days_in():
    assert [days_in(2023, month) for month in (1, 2, 4, 12)] == [31, 28, 30, 31]


def test_days_in_a_leap_year():
    assert days_in(2024, 2) == 29


def test_next_day():
    assert next_day((2023, 5, 5)) == (2023, 5, 6)


def test_next_month():
    assert next_day((2023, 4, 30)) == (2023, 5, 1)


def test_next_year():
    assert next_day((2023, 12, 31)) == (2024, 1, 1)


def test_day_of_year():
    assert day_of_year((2023, 3, 1)) == 60


def test_first_day_of_year():
    assert day_of_year((2023, 1, 1)) == 1


def test_add_months():
    assert add_months((2023, 1, 15), 1) == (2023, 2, 15)


def test_add_months_is_cut():
    assert add_months((2023, 1, 31), 1) == (2023, 2, 28)


def test_add_months_over_a_year():
    assert add_months((2023, 11, 5), 3) == (2024, 2, 5)


def test_weekday():
    assert weekday((2024, 3, 1)) == "Fri"


def test_weekday_of_the_first():
    assert weekday((1, 1, 1)) == "Mon"


def test_parse():
    assert parse("2024-02-29") == (2024, 2, 29)


@pytest.mark.parametrize("text", ["2024-02", "2024-13-01", "2023-02-29", "2023-01-00"])
def test_parse_refuses(text):
    with pytest.raises(ValueError):
        parse(text)
"""

GRAPH = '''\
"""Graphs: a mapping of each node to its neighbours with their distances."""

import heapq


def shortest(graph, start, goal):
    """The distance and the path; None if there is none."""
    best = {start: 0}
    before = {}
    queue = [(0, start)]
    while queue:
        distance, node = heapq.heappop(queue)
        if node == goal:
            return distance, _path(before, start, goal)
        if distance > best[node]:
            continue
        for neighbour, step in graph.get(node, {}).items():
            total = distance + step
            if neighbour not in best or total < best[neighbour]:
                best[neighbour] = total
                before[neighbour] = node
                heapq.heappush(queue, (total, neighbour))
    return None


def _path(before, start, goal):
    path = [goal]
    while path[-1] != start:
        path.append(before[path[-1]])
    path.reverse()
    return path


def ordered(needs):
    """Names so that each comes after those it needs; raises ValueError for a circle."""
    done, doing, order = set(), set(), []

    def visit(name):
        if name in done:
            return
        if name in doing:
            raise ValueError(f"circle at {name}")
        doing.add(name)
        for each in needs.get(name, ()):
            visit(each)
        doing.discard(name)
        done.add(name)
        order.append(name)

    for name in sorted(needs):
        visit(name)
    return order


def groups(graph):
    """The connected parts, largest first."""
    left = set(graph)
    found = []
    while left:
        group, waiting = set(), [left.pop()]
        while waiting:
            node = waiting.pop()
            group.add(node)
            waiting += [each for each in graph[node] if each not in group]
        left -= group
        found.append(group)
    return sorted(found, key=len, reverse=True)
'''

GRAPH_TESTS = """\
import pytest

ROADS = {"a": {"b": 1, "c": 5}, "b": {"c": 2, "d": 9}, "c": {"d": 1}, "d": {}}


def test_direct():
    assert shortest(ROADS, "a", "b") == (1, ["a", "b"])


def test_round_about():
    assert shortest(ROADS, "a", "c") == (3, ["a", "b", "c"])


def test_far():
    assert shortest(ROADS, "a", "d") == (4, ["a", "b", "c", "d"])


def test_here():
    assert shortest(ROADS, "a", "a") == (0, ["a"])


def test_no_way():
    assert shortest(ROADS, "d", "a") is None


def test_ordered():
    assert ordered({"app": ["lib", "log"], "lib": ["base"], "log": ["base"], "base": []}) == [
        "base", "lib", "log", "app",
    ]


def test_ordered_alone():
    assert ordered({"b": [], "a": []}) == ["a", "b"]


def test_circle():
    with pytest.raises(ValueError):
        ordered({"a": ["b"], "b": ["a"]})


def test_groups():
    assert groups({1: [2], 2: [1], 3: []}) == [{1, 2}, {3}]


def test_one_group():
    assert groups({1: [2, 3], 2: [1], 3: [1]}) == [{1, 2, 3}]


def test_no_groups():
    assert groups({}) == []
"""

PYTHON = {
    "cart": (CART, CART_TESTS),
    "spans": (SPANS, SPANS_TESTS),
    "words": (WORDS, WORDS_TESTS),
    "cache": (CACHE, CACHE_TESTS),
    "dates": (DATES, DATES_TESTS),
    "graph": (GRAPH, GRAPH_TESTS),
}
PYTHON_BUGS = (
    Bug(
        "cart",
        "if not self.items or net >= FREE_SHIPPING_FROM:",
        "if not self.items or net > FREE_SHIPPING_FROM:",
    ),
    Bug("cart", "total += price * count", "total += price"),
    Bug("cart", 'RATES = {"de": 19, "ch": 8}', 'RATES = {"de": 16, "ch": 8}'),
    Bug("cart", "price, count = known[0], known[1] + count", "price, count = known[0], known[1]"),
    Bug("spans", "if merged and start <= merged[-1][1]:", "if merged and start < merged[-1][1]:"),
    Bug("spans", "start, end = last[0], max(last[1], end)", "start, end = last[0], end"),
    Bug("spans", "right = (max(start, cutter[1]), end)", "right = (max(start, cutter[0]), end)"),
    Bug("spans", "elif number >= end:", "elif number > end:"),
    Bug("words", "if len(longer) > most:", "if len(longer) >= most:"),
    Bug(
        "words",
        'UNITS = {"s": 1, "m": 60, "h": 3600, "d": 86400}',
        'UNITS = {"s": 1, "m": 60, "h": 360, "d": 86400}',
    ),
    Bug("words", 'word = word.strip(".,;!?")', 'word = word.strip(".,;")'),
    Bug("words", "elif len(line) + 1 + len(word) <= width:", "elif len(line) + 1 + len(word) < width:"),
    Bug("cache", "self._entries[key] = self._entries.pop(key)", "self._entries[key] = self._entries[key]"),
    Bug("cache", "asked = self.hits + self.misses", "asked = self.hits - self.misses"),
    Bug("dates", "if year % 100 == 0:", "if year % 100 == 1:"),
    Bug("dates", "if month < 12:", "if month <= 12:"),
    Bug("dates", "return year, month, min(day, days_in(year, month))", "return year, month, day"),
    Bug(
        "dates",
        "return sum(days_in(year, each) for each in range(1, month)) + day",
        "return sum(days_in(year, each) for each in range(month)) + day",
    ),
    Bug("graph", "if neighbour not in best or total < best[neighbour]:", "if neighbour not in best:"),
    Bug("graph", "path.reverse()", "path.sort(reverse=True)"),
    Bug("graph", "done.add(name)", "done.add(order)"),
    Bug("graph", "left -= group", "left |= set()"),
)
