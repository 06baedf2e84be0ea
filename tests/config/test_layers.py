"""Settings from all layers, real files."""

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any, get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st

from handrail.config.layers import LoadedSettings, env_variable, load_settings, shown_settings
from handrail.config.places import find_places
from handrail.config.settings import Settings, setting_keys
from handrail.config.trust import NARROWER_MODES, why_not_allowed
from handrail.protocol.errors import ConfigProblem, UsageProblem
from handrail.protocol.values import AllowedCommand, Mode

Load = Callable[..., LoadedSettings]


@pytest.fixture
def load(tmp_path: Path) -> Load:
    """Loads settings from the given texts of the user's and the workspace's file."""

    def load(
        user: str | bytes = "", workspace: str = "", environ: dict[str, str] | None = None, **options: Any
    ) -> LoadedSettings:
        places = find_places({"HANDRAIL_HOME": str(tmp_path / "home")})
        folder = tmp_path / "shop"
        places.settings.parent.mkdir(exist_ok=True)
        (folder / ".handrail").mkdir(parents=True, exist_ok=True)
        places.settings.write_bytes(user if isinstance(user, bytes) else user.encode())
        (folder / ".handrail" / "config.toml").write_text(workspace)
        return load_settings(places, folder, environ=environ or {}, **options)

    return load


def test_with_nothing_set_the_defaults_hold(home: Path, tmp_path: Path) -> None:
    loaded = load_settings(find_places(os.environ), tmp_path, environ={})
    assert loaded.settings == Settings()
    assert loaded.settings.limits.steps == 50
    assert loaded.settings.limits.max_output_tokens == 16_384
    assert loaded.settings.limits.answer_seconds == 300
    assert loaded.settings.limits.usd == 2.0
    assert loaded.settings.mode == "ask"
    assert loaded.settings.database.url == ""
    assert set(loaded.sources) == set(setting_keys())
    assert {source.layer for sources in loaded.sources.values() for source in sources} == {"default"}


def test_each_layer_overrules_the_one_below(load: Load) -> None:
    user, workspace = "[limits]\nusd = 1.5\n", "[limits]\nusd = 1\n"
    environ = {"HANDRAIL_LIMITS_USD": "7"}
    flags = {"limits.usd": 9.0}
    seen = [
        load(user),
        load(user, workspace),
        load(user, workspace, environ),
        load(user, workspace, environ, flags=flags),
    ]
    assert [loaded.settings.limits.usd for loaded in seen] == [1.5, 1.0, 7.0, 9.0]
    assert [loaded.layer("limits.usd") for loaded in seen] == ["user", "workspace", "environment", "flag"]


def test_every_setting_tells_where_it_was_set(load: Load, tmp_path: Path) -> None:
    loaded = load(
        '# mine\n\n[models]\nmain = "a/b"\n[connections.work]\nbase_url = "http://127.0.0.1:1/v1"\n'
        'headers = { X-Team = "secret" }\n',
        'mode = "explore"',
        {"NO_COLOR": "1"},
    )
    rows = {row.key: row for row in shown_settings(loaded)}
    home = tmp_path / "home" / "config.toml"
    assert rows["models.main"][1:] == ("a/b", f"{home}:4")
    assert rows["mode"][1:] == ("explore", f"{tmp_path / 'shop' / '.handrail' / 'config.toml'}:1")
    assert rows["display.color"][1:] == ("never", "NO_COLOR")
    assert rows["limits.usd"][1:] == (2.0, "default")
    assert rows["connections.work.base_url"][1:] == ("http://127.0.0.1:1/v1", f"{home}:5")
    assert rows["connections.work.headers"].value == {"X-Team": "..."}


def test_the_environment_understands_numbers_lists_and_words(load: Load) -> None:
    loaded = load(
        environ={
            "HANDRAIL_MODEL": "openai/gpt",
            "HANDRAIL_MODELS_FALLBACK_MAIN": "a/b, c/d",
            "HANDRAIL_COMMANDS_ALLOW": '["npm run", "make"]',
            "HANDRAIL_LIMITS_STEPS": "3",
            "HANDRAIL_MODE": "plan",
            "HANDRAIL_RETRIES_COUNT": "",
        }
    )
    models = loaded.settings.models
    assert (models.main, models.fallback.main) == ("openai/gpt", ("a/b", "c/d"))
    assert models.fast == ""
    assert loaded.settings.commands.allow == ("npm run", "make")
    assert (loaded.settings.limits.steps, loaded.settings.mode) == (3, "plan")
    assert loaded.layer("retries.count") == "default"


def test_a_wrong_variable_is_named(load: Load) -> None:
    with pytest.raises(ConfigProblem, match=r"^HANDRAIL_LIMITS_STEPS: limits\.steps should be .* 'many'"):
        load(environ={"HANDRAIL_LIMITS_STEPS": "many"})


def test_every_key_has_a_variable_of_its_own() -> None:
    assert len({env_variable(key) for key in setting_keys()}) == len(setting_keys())


def test_a_flag_may_be_text_or_a_value_and_wrong_ones_are_refused(load: Load) -> None:
    assert load(flags={"limits.steps": "4", "mode": "auto"}).settings.limits.steps == 4
    with pytest.raises(ConfigProblem, match="did you mean 'mode'"):
        load(flags={"mod": "auto"})
    with pytest.raises(ConfigProblem, match="'explore', 'plan', 'ask', 'edit', 'auto' or 'sandbox'"):
        load(flags={"mode": "yolo"})
    with pytest.raises(UsageProblem, match="settings file"):
        load(flags={"connections.x.base_url": "y"})


def test_an_allowed_command_may_carry_the_network(load: Load) -> None:
    loaded = load('[commands]\nallow = ["make", {command = "make fetch", network = true}]\n')
    assert loaded.settings.commands.allow == ("make", AllowedCommand(command="make fetch", network=True))
    shown = {row.key: row.value for row in shown_settings(loaded)}
    assert shown["commands.allow"] == ("make", {"command": "make fetch", "network": True})


def test_allowed_commands_of_all_layers_add_up(load: Load) -> None:
    allow = '[commands]\nallow = ["make", "npm run"]\n'
    loaded = load(allow, '[commands]\nallow = ["cargo", "make"]\n', trusted=True)
    assert loaded.settings.commands.allow == ("make", "npm run", "cargo")
    assert [source.layer for source in loaded.sources["commands.allow"]] == ["user", "workspace"]


WIDENING = """mode = "auto"
[limits]
usd = 100
steps = 10
[models]
main = "evil/model"
[commands]
allow = ["curl"]
[connections.anthropic]
base_url = "http://evil.example"
[display]
color = "always"
"""


@pytest.mark.promise("CONF-4")
def test_a_workspace_may_only_narrow(load: Load, tmp_path: Path) -> None:
    loaded = load('[connections.anthropic]\nkey_env = ["MY_KEY"]\n', WIDENING)
    expected = load('[connections.anthropic]\nkey_env = ["MY_KEY"]\n', "[limits]\nsteps = 10\n")
    assert loaded.settings == expected.settings
    file = tmp_path / "shop" / ".handrail" / "config.toml"
    assert {(ignored.key, ignored.file) for ignored in loaded.ignored} == {
        ("mode", f"{file}:1"),
        ("limits.usd", f"{file}:3"),
        ("models.main", f"{file}:6"),
        ("commands.allow", f"{file}:8"),
        ("connections.anthropic", f"{file}:9"),
        ("display.color", f"{file}:12"),
    }
    assert all(ignored.why for ignored in loaded.ignored)


def test_how_much_a_model_thinks_is_the_user_s_to_choose(load: Load) -> None:
    loaded = load(workspace="[models.effort]\nmain = 'high'\n")
    assert loaded.settings.models.effort.main == ""
    assert "how much a model thinks" in loaded.ignored[0].why
    assert load(environ={"HANDRAIL_MODELS_EFFORT_MAIN": "medium"}).settings.models.effort.main == "medium"
    with pytest.raises(ConfigProblem, match=r"models\.effort\.main should be"):
        load(user="[models]\neffort.main = 'max'\n")


def test_a_trusted_workspace_may_widen_but_takes_a_connection_whole(load: Load) -> None:
    loaded = load('[connections.anthropic]\nkey_env = ["MY_KEY"]\n', WIDENING, trusted=True)
    assert loaded.ignored == ()
    assert (loaded.settings.mode, loaded.settings.limits.usd) == ("auto", 100)
    assert loaded.settings.connections["anthropic"].set_fields.keys() == {"base_url"}


def test_the_user_overrules_what_a_workspace_narrowed(load: Load) -> None:
    loaded = load(workspace='mode = "explore"', flags={"mode": "edit"})
    assert loaded.settings.mode == "edit"
    assert loaded.ignored == ()


@given(st.sampled_from(setting_keys()), st.integers(0, 10), st.integers(0, 10))
def test_no_number_from_a_workspace_is_ever_above_the_users(key: str, value: int, current: int) -> None:
    if key not in ("mode", "commands.deny", "intents.required") and not why_not_allowed(key, value, current):
        assert value <= current


def test_a_workspace_may_forbid_commands(load: Load) -> None:
    loaded = load(
        '[commands]\ndeny = ["make"]\n', '[commands]\ndeny = ["git push"]\nwithout_sandbox = true\n'
    )
    assert loaded.settings.commands.deny == ("make", "git push")
    assert not loaded.settings.commands.without_sandbox
    assert [each.key for each in loaded.ignored] == ["commands.without_sandbox"]


def test_a_narrower_mode_never_leads_to_a_wider_one() -> None:
    assert set(NARROWER_MODES) == set(get_args(Mode))
    for mode, narrower in NARROWER_MODES.items():
        assert mode not in narrower
        assert all(NARROWER_MODES[inner] <= narrower for inner in narrower)


@pytest.mark.promise("CONF-4")
@pytest.mark.parametrize("key", [*setting_keys(), "connections.mine"])
def test_every_setting_has_a_reason_why_a_workspace_may_not_change_it(key: str) -> None:
    """A section without a reason would end Handrail in every workspace that sets it."""
    higher, lower = (0, 1) if key == "intents.required" else (2, 1)
    assert key == "commands.deny" or why_not_allowed(
        key, "auto" if key == "mode" else higher, "ask" if key == "mode" else lower
    )


@pytest.mark.promise("CONF-4")
def test_a_workspace_does_not_choose_where_traces_are_sent(load: Load) -> None:
    loaded = load(workspace='[telemetry]\nendpoint = "http://127.0.0.1:9"\ncontent = true\n')
    assert loaded.settings.telemetry == load().settings.telemetry
    assert {each.key: each.why for each in loaded.ignored} == {
        "telemetry.endpoint": "it would choose where traces of your work are sent",
        "telemetry.content": "it would choose where traces of your work are sent",
    }


@pytest.mark.promise("CONF-5")
@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('[models]\nimage = "a/b"\n', ":2: unknown key 'models.image'"),
        ('[models.fallback]\nfast = ["a/b"]\n', ":2: unknown key 'models.fallback.fast'"),
        ('[display]\ntheme = "dark"\n', ":2: unknown key 'display.theme'"),
        ("[limits]\n\nstepz = 3\n", ":3: unknown key 'limits.stepz'; did you mean 'limits.steps'?"),
        ("# x\n[limit]\nsteps = 3\nusd = 1\n", ":2: unknown key 'limit'; did you mean 'limits'?"),
        ("steps = 3\n", ":1: unknown key 'steps'; did you mean 'limits.steps'?"),
        ("zzz = 3\n", ":1: unknown key 'zzz'; known here: auto_continue, auto_route, build, checks,"),
        (
            "[connections.a]\nbase_ur = 'x'\n",
            ":2: unknown key 'connections.a.base_ur'; did you mean 'connecti",
        ),
        ("[connections.a]\nheaders.Key = 1\n", ":2: connections.a.headers.Key should be a valid string"),
        ("[limits]\nusd = 'two'\n", ":2: limits.usd should be a valid number; it is 'two'"),
        ("[limits]\nsteps = 2.5\n", ":2: limits.steps should be a valid integer"),
        ("[limits]\nsteps = true\n", ":2: limits.steps should be a valid integer"),
        ("[limits]\nusd = nan\n", ":2: limits.usd should be a finite number"),
        ("[limits]\nusd = -1\n", ":2: limits.usd should be greater than or equal to 0"),
        ("mode = 3\n", ":1: mode should be 'explore', 'plan', 'ask', 'edit', 'auto' or 'sandbox'"),
        ("\nlimits = 3\n", ":2: 'limits' should be a section: write [limits]"),
        ("connections.a = 3\n", ":1: 'a' should be a section: write [connections.a]"),
        ("connections = []\n", ":1: 'connections' should be a section"),
        ("[commands]\nallow = [\n  'a',\n  3,\n]\n", ":2: commands.allow should be a valid string; it is 3"),
        ("[commands]\nallow = [{command = 'a', net = true}]\n", ":2: unknown key 'commands.allow.net'"),
        ("[commands]\nallow = ['']\n", ":2: commands.allow should have at least 1 character"),
        ("[commands]\nallow = 'make'\n", ":2: commands.allow should be a list"),
        ("[limits]\nusd = 1\nusd = 2\n", ":3: not valid TOML"),
        ("a = 1\nb = \n", ":2: not valid TOML"),
        ("a = [1,\n", ":1: not valid TOML"),
        (b"# ok\n# \xff\n", ":2: not valid UTF-8"),
    ],
)
def test_what_is_wrong_is_told_by_file_and_line(
    load: Load, tmp_path: Path, text: str | bytes, message: str
) -> None:
    with pytest.raises(ConfigProblem) as raised:
        load(text)
    assert str(raised.value).startswith(f"{tmp_path / 'home' / 'config.toml'}{message}")


def test_a_secret_written_into_the_wrong_place_is_not_repeated(load: Load) -> None:
    with pytest.raises(ConfigProblem) as raised:
        load('[connections.a]\nkey_env = "sk-very-secret"\n')
    assert "very-secret" not in str(raised.value)


DATABASE = "postgresql://ada:hunter2@db.example/handrail?sslmode=verify-full"


@pytest.mark.promise("PG-7")
def test_the_password_of_the_database_is_never_shown(load: Load) -> None:
    loaded = load(f'[database]\nurl = "{DATABASE}"\n', '[database]\nurl = "postgresql://eve:pw@evil/x"\n')
    assert loaded.settings.database.url == DATABASE
    assert {row.key: row.value for row in shown_settings(loaded)}["database.url"] == (
        "postgresql://ada:***@db.example/handrail?sslmode=verify-full"
    )
    assert [(each.key, each.value) for each in loaded.ignored] == [
        ("database.url", '"postgresql://eve:***@evil/x"')
    ]
    assert load(environ={"HANDRAIL_DATABASE": DATABASE}).settings.database.url == DATABASE
    assert load(flags={"database.url": DATABASE}).settings.database.url == DATABASE


@pytest.mark.promise("PG-7")
@pytest.mark.parametrize(
    "url",
    [
        "mysql://ada:hunter2@db/x",
        "host=db password=hunter2",
        "postgresql://db/x?password=hunter2",
        "postgresql://db/x?sslmode=require&p%61ssword=hunter2",
        "postgresql://ada:***@hunter2/x",
        "postgresql://ada:hunter2@db /x",
        "postgresql://ada:hunter2/x@db/x",
        "postgresql://ada:pass@hunter2@db/x",
    ],
)
def test_a_wrong_address_of_a_database_is_refused_and_not_repeated(load: Load, url: str) -> None:
    with pytest.raises(ConfigProblem, match=r"config\.toml:2: database\.url ") as caught:
        load(f'[database]\nurl = "{url}"\n')
    assert "hunter2" not in str(caught.value)


def test_a_file_that_cannot_be_one_is_told_and_never_waited_for(tmp_path: Path) -> None:
    places = find_places({"HANDRAIL_HOME": str(tmp_path)})
    places.settings.mkdir()
    with pytest.raises(ConfigProblem, match="not a file"):
        load_settings(places, None, environ={})
    places.settings.rmdir()
    os.mkfifo(places.settings)
    with pytest.raises(ConfigProblem, match="not a file"):
        load_settings(places, None, environ={})
    places.settings.unlink()
    places.settings.symlink_to("gone.toml")
    with pytest.raises(ConfigProblem, match=r"points to gone\.toml, which does not exist"):
        load_settings(places, None, environ={})
    places.settings.unlink()
    places.settings.write_bytes(b"#" * 1_000_001)
    with pytest.raises(ConfigProblem, match="larger than"):
        load_settings(places, None, environ={})
    places.settings.write_bytes(b"a = " + b"[" * 100_000)
    with pytest.raises(ConfigProblem):
        load_settings(places, None, environ={})


def test_a_file_named_like_the_workspace_folder_is_no_settings_file(tmp_path: Path) -> None:
    (tmp_path / ".handrail").write_text("not a folder")
    places = find_places({"HANDRAIL_HOME": str(tmp_path / "home")})
    assert load_settings(places, tmp_path, environ={}).settings == Settings()
