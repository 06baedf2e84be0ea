"""Branches of a line, as a model weighs them."""

import json

from handrail.engine.search.answers import read_weights, weighed_beginnings
from handrail.engine.search.places import without_body
from handrail.engine.search.policy import Line

TEXT = """def count(cells):
    \"\"\"How many there are.\"\"\"
    at = 0
    while at < len(cells):
        skip(cells[at])
    return at
"""
LINE = Line("a.py", 5)


def branches(*weighed: tuple[str, str]) -> list[tuple[str, bool]]:
    answer = json.dumps([(beginning, [(token, 0.5)]) for beginning, token in weighed])
    return [(each.prefix, each.after) for each in read_weights(LINE, TEXT, answer)]


def test_the_place_after_the_last_line_of_a_block_is_weighed_too() -> None:
    assert weighed_beginnings(TEXT, 5)[-1] == "        skip(cells[at])\n       "
    assert not any("\n" in each for each in weighed_beginnings(TEXT, 3))


def test_a_line_after_the_block_is_no_part_of_it() -> None:
    place = weighed_beginnings(TEXT, 5)[-1]
    assert branches((place, " at")) == [("        at", True)]
    assert branches((place, "return")) == []


def test_other_blanks_and_quotes_are_no_other_way_to_write_a_line() -> None:
    assert branches(("        skip", " (cells"), ("        skip(", "cells [")) == []
    assert branches(("        skip(", "cell")) == []
    assert branches(("        skip(", "rows")) == [("        skip(rows", False)]


def test_a_function_is_hidden_but_for_its_header_and_documentation() -> None:
    hidden = without_body("a.py", TEXT, TEXT, "count")
    assert hidden == "".join(f"{line}\n" for line in [*TEXT.splitlines()[:2], "    ..."])
