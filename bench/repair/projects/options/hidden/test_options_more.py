import pytest

from options import Settings, SettingsError, parse, strip_comment


@pytest.mark.parametrize(
    ("line", "left"),
    [("", ""), ("# all", ""), ("a = b", "a = b"), ('a = "x#y"#z', 'a = "x#y"'), ("a = 1  #", "a = 1"), ('"#"#"#"', '"#"')],
)
def test_comments(line, left):
    assert strip_comment(line) == left


def test_a_section_may_come_twice():
    assert parse("[s]\na = 1\n[t]\n[ s ]\nB = 2\n") == {"": {}, "s": {"a": "1", "b": "2"}, "t": {}}


def test_values():
    assert parse('a = "\nb = ""\nc = " x "\nd =')[""] == {"a": '"', "b": "", "c": " x ", "d": ""}


@pytest.mark.parametrize("text", ["\n\n= 1", "x\n", "[s\n", "[s]\n y z"])
def test_wrong_lines(text):
    with pytest.raises(SettingsError):
        parse(text)


@pytest.mark.parametrize(("value", "meant"), [("ON", True), ("1", True), ("off", False), ("False", False), ("no", False), ("TRUE", True)])
def test_booleans(value, meant):
    assert Settings.read(f"[x]\nkey = {value}").get_bool("x.key", default=not meant) is meant


def test_wrong_types():
    settings = Settings.read("n = many\nb = maybe")
    with pytest.raises(SettingsError):
        settings.get_int("n")
    with pytest.raises(SettingsError):
        settings.get_bool("b")
    assert settings.get_int("none", 7) == 7
    assert settings.get_list("none") == []


def test_sections_with_dots_and_case():
    settings = Settings.read("[a.b]\nKey = 1")
    assert settings.get("a.b.KEY") == "1"
    assert settings.get_int("a.b.key") == 1


def test_merging_leaves_both_alone():
    one, two = Settings.read("a = 1\n[s]\nb = 2"), Settings.read("[s]\nb = 9\nc = 3\n[new]\nd = 4")
    both = one.merged(two)
    both.sections["s"]["c"] = "changed"
    assert one.sections == {"": {"a": "1"}, "s": {"b": "2"}}
    assert two.get("s.c") == "3"
    assert (both.get("s.b"), both.get("new.d")) == ("9", "4")


@pytest.mark.parametrize("text", ["", "a = 1\n", '[s]\nk = " x"\n', 'x = "#"\n\n[t]\ny = 2\n\n[u]\nz = 3\n'])
def test_round_trip(text):
    assert Settings.read(text).write() == text
