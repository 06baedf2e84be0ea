import pytest

from cells import Table, parse_row, write_row


def test_plain_cells():
    assert parse_row("a,b,,c") == ["a", "b", "", "c"]


def test_quoted_cells():
    assert parse_row('1,"a,b","say ""hi"""') == ["1", "a,b", 'say "hi"']
    assert parse_row('"12"" pipe",x') == ['12" pipe', "x"]


def test_open_quote():
    with pytest.raises(ValueError):
        parse_row('"a,b')


def test_write_row():
    assert write_row(["a", "b,c", 'd"e']) == 'a,"b,c","d""e"'


def test_column():
    table = Table.parse("name,age\n\nAnn,30\nBob,4\n")
    assert table.column("age") == ["30", "4"]


def test_numeric_sort():
    table = Table.parse("name,age\nAnn,30\nBob,4\nCid,100")
    assert table.sorted_by("age", numeric=True).column("name") == ["Bob", "Ann", "Cid"]
    assert table.sorted_by("age").column("name") == ["Cid", "Ann", "Bob"]


def test_drop():
    table = Table.parse("a,b,c\n1,2,3").drop("b")
    assert (table.header, table.rows) == (["a", "c"], [["1", "3"]])


def test_render():
    assert Table.parse("id,name\n100,x\n2,long").render() == "id   name\n100  x\n2    long"
