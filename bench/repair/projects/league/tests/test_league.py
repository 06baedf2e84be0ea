import pytest

from league import League


def league():
    made = League("Reds", "Blues", "Greens")
    made.play("Reds", "Blues", "2:1")
    made.play("Blues", "Greens", "0:0")
    made.play("Greens", "Reds", "0:3")
    return made


def test_points():
    teams = league().teams
    assert [teams[name].points for name in ("Reds", "Blues", "Greens")] == [6, 1, 1]


def test_goals():
    assert (league().teams["Reds"].scored, league().teams["Reds"].conceded) == (5, 1)
    assert (league().teams["Blues"].scored, league().teams["Blues"].conceded) == (1, 2)


def test_table():
    assert [team.name for team in league().table()] == ["Reds", "Blues", "Greens"]


def test_ranks_with_ties():
    made = League("a", "b", "c", "d")
    made.play("a", "b", "1:1")
    made.play("c", "d", "0:2")
    assert made.ranks() == {"d": 1, "a": 2, "b": 2, "c": 4}


def test_wrong_result():
    with pytest.raises(ValueError):
        league().play("Reds", "Blues", "two")


def test_form():
    made = league()
    made.play("Reds", "Greens", "0:1")
    assert made.form("Reds") == "LWW"
    assert made.form("Reds", 1) == "L"


def test_longest_run():
    assert league().longest_run("Reds") == 2
    assert league().longest_run("Blues") == 0


def test_text():
    assert league().text().splitlines()[0] == " 1. Reds    6  +4"
