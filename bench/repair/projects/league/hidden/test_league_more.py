import pytest

from league import League


def played(*matches):
    made = League("a", "b", "c", "d")
    for home, away, result in matches:
        made.play(home, away, result)
    return made


def test_each_reason_for_the_order():
    assert [team.name for team in played(("a", "b", "0:1"), ("c", "d", "3:1")).table()] == ["c", "b", "a", "d"]
    assert [team.name for team in played(("a", "b", "1:1"), ("c", "d", "2:2")).table()] == ["c", "d", "a", "b"]
    assert [team.name for team in played().table()] == ["a", "b", "c", "d"]


def test_away_goals():
    teams = played(("a", "b", "2:5")).teams
    assert (teams["b"].won, teams["b"].scored, teams["b"].conceded, teams["b"].difference) == (1, 5, 2, 3)
    assert (teams["a"].lost, teams["a"].points) == (1, 0)


def test_ranks():
    assert played().ranks() == {"a": 1, "b": 1, "c": 1, "d": 1}
    assert played(("a", "b", "1:0")).ranks() == {"a": 1, "c": 2, "d": 2, "b": 4}
    assert played(("a", "b", "1:0"), ("c", "d", "1:0")).ranks() == {"a": 1, "c": 1, "b": 3, "d": 3}


def test_form():
    made = played(("a", "b", "1:0"), ("b", "a", "1:0"), ("a", "b", "2:2"), ("a", "c", "3:0"))
    assert made.form("a") == "WDL"
    assert made.form("a", 9) == "WDLW"
    assert made.form("d") == ""


def test_runs():
    made = played(("a", "b", "1:0"), ("a", "b", "0:1"), ("a", "b", "1:0"), ("a", "b", "2:0"), ("a", "b", "0:0"))
    assert made.longest_run("a") == 2
    assert made.longest_run("b", "L") == 2
    assert made.longest_run("a", "D") == 1
    assert made.longest_run("d") == 0


@pytest.mark.parametrize("result", ["", "1", "1:2:3", "a:1", "-1:2", "1:"])
def test_wrong_results(result):
    made = played()
    with pytest.raises(ValueError):
        made.play("a", "b", result)
    assert made.teams["a"].results == []


def test_text():
    made = played(("a", "b", "10:0"))
    assert made.text().splitlines() == [" 1. a  3 +10", " 2. c  0  +0", " 2. d  0  +0", " 4. b  0 -10"]
    with pytest.raises(ValueError):
        made.play("a", "a", "1:1")
