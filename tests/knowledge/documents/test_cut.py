import re
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from handrail.knowledge.documents.cut import LARGE, cut
from handrail.knowledge.documents.parsed import Parsed
from handrail.knowledge.documents.plain import parse_code, parse_markdown, parse_text
from handrail.storage.knowledge.rows import NewDocument

LINES = st.sampled_from(
    [
        *(
            "# One",
            "## Two *x*",
            "text of a line.",
            "- item",
            "",
            "```",
            "    code",
            "Title",
            "=====",
            "| a | b |",
        ),
        *(
            "def f(x):",
            "class A:",
            "1.2 Scope",
            "SCOPE",
            "word " * 90,
            "A sentence. " * 200,
            "x" * 3_000,
            "---",
        ),
    ]
)


def cut_it(parsed: Parsed) -> NewDocument:
    return cut(parsed, name="n", source="/n", tier="standard", sha256="", size=0)


@pytest.mark.promise("KB-8")
@pytest.mark.parametrize("parse", [parse_markdown, parse_text, parse_code])
@given(lines=st.lists(LINES, max_size=40), ending=st.sampled_from(["\n", "\r\n"]))
def test_every_paragraph_is_the_exact_text_at_its_place_and_nothing_is_lost(
    parse: Callable[[str], Parsed], lines: list[str], ending: str
) -> None:
    text = ending.join(lines)
    parsed = parse(text)
    paragraphs = cut_it(parsed).paragraphs
    seen = bytearray(len(text))
    for each in paragraphs:
        end = each.start + len(each.text)
        assert text[each.start : end] == each.text
        assert len(each.text) <= LARGE
        assert each.line == text.count("\n", 0, each.start) + 1
        assert not any(seen[each.start : end]), "paragraphs overlap"
        seen[each.start : end] = b"\1" * len(each.text)
    for block in parsed.blocks:
        if block.level:
            seen[block.start : block.end] = b"\1" * (block.end - block.start)
    skipped = re.match(r"---\r?\n(?:.*\r?\n)*?(?:---|\.\.\.)", text) if parse is parse_markdown else None
    for index, character in enumerate(text):
        assert seen[index] or character.isspace() or (skipped and index < skipped.end()), text[index:][:40]
    assert len({each.key for each in paragraphs}) == len(paragraphs)


def test_keys_depend_on_the_text_alone() -> None:
    before = cut_it(parse_markdown("# A\n\nfirst " + "x" * 300 + "\n\nsecond " + "y" * 300 + "\n"))
    after = cut_it(parse_markdown("# B\n\nnew " + "z" * 300 + "\n\nsecond " + "y" * 300 + "\n"))
    assert before.paragraphs[-1].key == after.paragraphs[-1].key
    assert before.id == after.id


def test_headings_make_the_path() -> None:
    text = "# Book\n\n## Sails\n\n### Flax\n\nSewn by hand.\n\n## Empty\n\n## Keel\n\nOf oak.\n"
    found = {each.text: each.heading for each in cut_it(parse_markdown(text)).paragraphs}
    assert found["Sewn by hand."] == "Book > Sails > Flax"
    assert found["Of oak."] == "Book > Keel"
    assert "## Empty" in found


def test_a_line_of_two_megabytes_is_cut_in_linear_time() -> None:
    paragraphs = cut_it(parse_text("word " * 400_000)).paragraphs
    assert sum(len(each.text.split()) for each in paragraphs) == 400_000
