import pytest

from cells import Table, parse_row, write_row


@pytest.mark.parametrize(
    ("line", "cells"),
    [("", [""]), (",", ["", ""]), ('""', [""]), ('"""",x', ['"', "x"]), ('a"b"c', ["abc"]), ('"x"",""y"', ['x","y'])],
)
def test_rows(line, cells):
    assert parse_row(line) == cells


@pytest.mark.parametrize("cells", [["a"], ["", ""], ['"', ","], ['x""y', "two words"], ["a,b", 'c"']])
def test_round_trip(cells):
    assert parse_row(write_row(cells)) == cells


def test_only_what_must_be_is_quoted():
    assert write_row(["two words", "it's", ""]) == "two words,it's,"
    assert write_row(["a\nb"]) == '"a\nb"'


def test_wrong_tables():
    with pytest.raises(ValueError):
        Table.parse("a,b\n1")
    with pytest.raises(ValueError):
        Table.parse(" \n")
    with pytest.raises(KeyError):
        Table.parse("a").column("b")


def test_sort_is_stable_and_leaves_the_table_alone():
    table = Table.parse("k,v\n2,a\n10,b\n2,c\n-1,d")
    assert table.sorted_by("k", numeric=True).column("v") == ["d", "a", "c", "b"]
    assert table.sorted_by("k", numeric=True, descending=True).column("v") == ["b", "a", "c", "d"]
    assert table.sorted_by("k").column("v") == ["d", "b", "a", "c"]
    assert table.column("v") == ["a", "b", "c", "d"]


@pytest.mark.parametrize(("name", "rows"), [("a", [["2", "3"]]), ("b", [["1", "3"]]), ("c", [["1", "2"]])])
def test_drop(name, rows):
    table = Table.parse("a,b,c\n1,2,3")
    assert table.drop(name).rows == rows
    assert table.header == ["a", "b", "c"]


def test_render_has_no_spaces_at_the_ends():
    assert Table.parse("wide header,x\na,\nb,cc").render() == "wide header  x\na\nb            cc"
