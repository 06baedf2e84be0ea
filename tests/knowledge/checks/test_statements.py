from handrail.knowledge.checks.contradictions import find_contradictions
from handrail.knowledge.checks.entities import check_entities, entities_in
from handrail.knowledge.checks.relations import check_relation, check_relations

SOURCE = "The Harbour Office of Velmora inspects every lantern boat. Inspectors keep the report for 30 days."


def test_names_numbers_and_code_are_entities_but_first_words_are_not() -> None:
    assert entities_in("Boats use `kb add` as ISA 315 says. The Harbour Office agrees.") == [
        "kb add",
        "ISA 315",
        "Harbour Office",
    ]
    found = check_entities("The Harbour Office of Velmora has 30 boats in Tarn [S1].", [SOURCE])
    assert (found.missing, found.rate) == (("Tarn",), round(2 / 3, 4))
    assert check_entities("nothing named here", [SOURCE]).rate == 1.0


def test_relations_keep_their_direction_also_in_the_passive() -> None:
    kept = check_relations("Lantern boats are inspected by the Harbour Office.", [SOURCE])
    turned = check_relations("Lantern boats inspect the Harbour Office.", [SOURCE])
    denied = check_relations("Inspectors do not keep the report for 30 days.", [SOURCE])
    assert (kept.rate, turned.rate, denied.rate) == (1.0, 0.0, 0.0)
    assert turned.reasons == ("the source relates them in another direction",)
    assert check_relation("Harbour Office", "inspects", "lantern boat", [SOURCE]).ok
    assert check_relation("lantern boat", "inspects", "Harbour Office", [SOURCE]).problem
    assert not check_relation("Inspectors", "sell", "the report", [SOURCE]).ok


def test_contradictions_between_paragraphs_are_found() -> None:
    found = find_contradictions(
        [
            ("a", "Inspectors keep the report for 30 days."),
            ("b", "The report is kept by inspectors for 14 days. Boats sail at night."),
            ("c", "Inspectors do not keep the report."),
            ("d", "Boats sail at night, with a lantern."),
        ]
    )
    assert {(each.first, each.second) for each in found} == {("a", "b"), ("a", "c"), ("b", "c")}
    assert any("30 day against 14 day" in each.reason for each in found)
