import pytest

from options import Settings, SettingsError, parse, strip_comment

TEXT = """
# general
Name = demo
[server]
port = 8_080   # the usual
title = "a # b"
debug = Yes
hosts = a, b ,,c
[client]
"""


def test_comments():
    assert strip_comment('x = "#1" # one') == 'x = "#1"'


def test_parse():
    assert parse("a = 1\n[s]\nb = x=y") == {"": {"a": "1"}, "s": {"b": "x=y"}}


def test_wrong_line_is_named():
    with pytest.raises(SettingsError, match="line 2"):
        parse("a = 1\nb")


def test_get():
    settings = Settings.read(TEXT)
    assert settings.get("name") == "demo"
    assert settings.get("server.title") == "a # b"
    assert settings.get("server.none", "x") == "x"


def test_types():
    settings = Settings.read(TEXT)
    assert settings.get_int("server.port") == 8080
    assert settings.get_bool("server.debug") is True
    assert settings.get_bool("client.debug", default=True) is True
    assert settings.get_list("server.hosts") == ["a", "b", "c"]


def test_merged():
    base = Settings.read("[s]\na = 1\nb = 2")
    both = base.merged(Settings.read("[s]\nb = 3\n[t]\nc = 4"))
    assert both.sections == {"": {}, "s": {"a": "1", "b": "3"}, "t": {"c": "4"}}
    assert base.get("s.b") == "2"


def test_write():
    assert Settings.read("a=1\n[s]\nb=2\n[e]").write() == "a = 1\n\n[s]\nb = 2\n"
