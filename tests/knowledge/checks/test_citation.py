import random

import pytest

from handrail.knowledge.checks.citation import check_citation, check_claim, find_quote
from handrail.knowledge.checks.number_words import TENS, UNITS, with_digits
from handrail.knowledge.checks.wording import difference

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
        ("The harbour office of Velmora inspects each lantern boat before the first tide of spring.", False),
        ("Harbour offices of Velmora inspect every lantern boat before a first tide of spring", True),
        ("A boat that fails must not sail until its keel was repaired.", True),
        ("A boat that fails must not sail.", False),
        ("Inspectors keep reports for thirty days, and a master pays twelve copper marks.", True),
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


@pytest.mark.promise("KB-10")
@pytest.mark.parametrize(
    ("claim", "source", "supported"),
    [
        ("It carries up to 19 passengers.", "It carries up to nineteen passengers.", True),
        ("It carries up to nineteen passengers.", "It carries up to 19 passengers.", True),
        ("The fee is 2500 marks.", "The fee is two thousand five hundred marks.", True),
        ("The fee is 2 million marks.", "The fee is two million marks.", True),
        ("The boat has 105 seats.", "The boat has one hundred and five seats.", True),
        ("It has between 100 and 200 seats.", "It has between one hundred and two hundred seats.", True),
        ("The fee is 2,500 marks.", "The fee is two thousand five hundred marks.", True),
        ("The Seven Oaks Inn is not for twenty guests.", "The Seven Oaks Inn is not for 20 guests.", True),
        ("It carries up to 20 passengers.", "It carries up to twenty-five passengers.", False),
        ("It carries up to 5 passengers.", "It carries up to twenty-five passengers.", False),
        ("It carries up to 90 passengers.", "It carries up to nineteen passengers.", False),
        ("The fee is 500 marks.", "The fee is two thousand five hundred marks.", False),
        ("The fee is 65,000 marks.", "The fee is three hundred and sixty-five thousand marks.", False),
    ],
)
def test_numbers_written_as_words_are_the_same_numbers(claim: str, source: str, supported: bool) -> None:
    check = check_claim(claim, source)
    assert (check.ok, check.covered == 1.0) == (supported, supported)


@pytest.mark.promise("KB-10")
@pytest.mark.parametrize(
    ("claim", "problem"),
    [
        ("Day crossings cost double and need a green lantern.", "'Day' in the place of 'Night'"),
        ("Night crossings cost double and need a green candle.", "'candle' in the place of 'lantern'"),
        ("Night crossings need double and cost a green lantern.", "'need' in the place of 'cost'"),
        ("Night crossings often cost double and need a green lantern.", "'often' in the place of 'cost'"),
        ("Night crossings cost double and need a green lantern if it rains.", "goes on with 'if'"),
        ("Night crossings cost double.", "the source goes on with 'and'"),
        ("Do night crossings cost double and need a green lantern?", "'Do' in the place of 'Night'"),
        ("Night crossings cost double. They need a lantern.", "Check them one by one"),
        ("A night crossing costs double and need the green lanterns", ""),
    ],
)
def test_a_claim_has_the_words_of_a_sentence_in_their_order(claim: str, problem: str) -> None:
    """Catches: one wrong word among many right ones, and a condition that was left out."""
    check = check_claim(claim, "Night crossings cost double and need a green lantern.")
    assert check.ok is not bool(problem)
    assert problem in check.problem


def test_a_sentence_after_a_list_supports_a_claim_again() -> None:
    source = "It is forbidden to:\n\n- sell eels\n- sleep\n\nFerries carry goats."
    assert check_claim("Ferries carry goats.", source).ok
    assert check_claim("Ferries carry goats.", source.replace("\n", "\r\n")).ok


@pytest.mark.parametrize("mark", ["- ", "* ", "3. ", "2) ", "> ", "2.1 ", "2.1.4. "])
def test_the_mark_of_an_item_or_paragraph_is_no_word(mark: str) -> None:
    assert check_claim("Ferries carry goats.", f"{mark}Ferries carry goats.").ok


@pytest.mark.promise("KB-10")
@pytest.mark.parametrize(
    ("claim", "source"),
    [
        ("Ferries carry goats.", "Do ferries carry goats?"),
        ("Few boats sink.", "A few boats sink."),
        ("The lake has 5 degrees.", "The lake has -5 degrees."),
        ("A share of 5 is due.", "A share of 5% is due."),
        ("The guild owns most boats.", "The guild owns the most boats."),
        ("Boats sink.", "Boats, and boats, sink."),
        ("The.", "..."),
        ("5 boats sink.", "> 5 boats sink."),
        ("Boats sink.", "12 boats sink."),
        ("Sell eels on Sundays.", "It is forbidden to:\n\n- sell eels on Sundays\n- sleep"),
        ("Sleep at the oar.", "**Forbidden:**\n1. Sell eels. Buy reeds.\n2. Sleep at the oar."),
        ("Ferries carry horses.", "What is not true:\n\nBoats fly. Ferries carry horses.\n\nThe end."),
    ],
)
def test_what_a_sentence_does_not_assert_supports_no_claim(claim: str, source: str) -> None:
    assert not check_claim(claim, source).ok


def test_each_number_below_a_thousand_is_read_in_words_and_takes_their_place() -> None:
    below = [*UNITS, *(ten + (f"-{UNITS[one]}" if one else "") for ten in TENS for one in range(10))]
    for hundreds in range(10):
        for rest, small in enumerate(below):
            words = f"{UNITS[hundreds]} hundred" + (f" and {small}" if rest else "") if hundreds else small
            text = f"about {words}, not more"
            read = with_digits(text)
            assert read.split(",")[0].split() == ["about", str(100 * hundreds + rest)]
            assert len(read) == len(text)


def test_the_problem_is_a_sentence() -> None:
    assert (
        check_claim("Inspectors keep the report for 14 days.", SOURCE).problem
        == "The source does not have 14."
    )
    assert (
        check_citation("boats fly over hills", SOURCE).problem
        == "The quote is not in the source, word for word."
    )


@pytest.mark.promise("KB-10")
@pytest.mark.parametrize(
    ("claim", "sentence"),
    [
        ("The test is a == b.", "The test is a != b."),
        ("The dose is 5 mg.", "The dose is .5 mg."),
        ("Vitamin is toxic.", "Vitamin A is toxic."),
        ("Boats are checked.", "* * *"),
        ("Boats are checked.", "---"),
    ],
)
def test_signs_letters_and_lines_without_words_count(claim: str, sentence: str) -> None:
    assert difference(claim, sentence)
    assert not difference(claim, claim)
