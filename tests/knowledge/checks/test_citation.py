import random

import pytest

from handrail.knowledge.checks.citation import check_citation, check_claim, find_quote

SOURCE = (
    "The Harbour Office of Velmora inspects every lantern boat before the first tide of spring. A boat that "
    "fails must not sail until its keel was repaired.\nInspectors keep the report for 30 days, and the "
    "master pays 12 copper marks."
)


@pytest.mark.promise("KB-10")
def test_no_quote_that_was_altered_by_a_word_passes() -> None:
    dice = random.Random(8)
    words = SOURCE.split()
    for _ in range(1_000):
        length = dice.randint(4, 12)
        start = dice.randrange(len(words) - length)
        quote = words[start : start + length]
        assert find_quote(" ".join(quote), SOURCE)
        at = dice.randrange(1, length - 1)
        altered = list(quote)
        match dice.randrange(4):
            case 0:
                altered[at] = dice.choice([word for word in words if word != quote[at]])
            case 1:
                altered.insert(at, "not")
            case 2:
                del altered[at]
            case _:
                altered[at] = altered[at][:-1] if len(altered[at]) > 1 else "x"
        if " ".join(altered) not in " ".join(words):
            assert not check_citation(" ".join(altered), SOURCE).ok


def test_quotes_are_whole_words_in_the_same_writing() -> None:
    assert find_quote("until its keel was repaired.  Inspectors keep", SOURCE)
    for wrong in (
        "the harbour office of velmora",
        "spects every lantern boat bef",
        "",
        "...",
        "boat",
        "30 days",
    ):
        assert find_quote(wrong, SOURCE) is None, wrong


@pytest.mark.promise("KB-10")
@pytest.mark.parametrize(
    ("claim", "supported"),
    [
        ("The Harbour Office of Velmora inspects lantern boats before the first tide.", True),
        ("A boat that fails must not sail until the keel is repaired.", True),
        ("Inspectors keep reports for thirty days.", True),
        ("The Harbour Office inspects lantern boats after the first tide.", False),
        ("A boat that fails must sail until its keel was repaired.", False),
        ("Inspectors do not keep the report for 30 days.", False),
        ("Inspectors keep the report for 14 days.", False),
        ("The master pays 12 silver crowns to the Harbour Office of Tarn.", False),
        ("Dragons eat the boats.", False),
        ("", False),
    ],
)
def test_claims_are_supported_only_by_a_text_that_says_them(claim: str, supported: bool) -> None:
    assert check_claim(claim, SOURCE).ok is supported


def test_the_problem_is_a_sentence() -> None:
    assert (
        check_claim("Inspectors keep the report for 14 days.", SOURCE).problem
        == "The source does not have 14."
    )
    assert (
        check_citation("boats fly over hills", SOURCE).problem
        == "The quote is not in the source, word for word."
    )
