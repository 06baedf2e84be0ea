"""Definitions of agents: what is wrong is told by file and line, and nothing hostile is read or walked."""

import os
from pathlib import Path

import pytest

from handrail.config.places import find_places
from handrail.pipelines.agent_folder import FoundAgent, slug_problem, starter_files
from handrail.pipelines.load import AgentFolders
from handrail.protocol.errors import ConfigProblem
from tests.pipelines.agents import SMALL, agent

GATE = 'gates = [{ check = "at_most", field = "topics", count = 3, fails = "repair" }]\n'
STAGE = '\n[[stages]]\nname = "more"\nkind = "code"\n'
WRITE = STAGE.replace("more", "other") + 'step = "write_file"\n'
IN_TOPICS = 'passages = "ask.topics"'
REPAIR = '\n[[repairs]]\nfirst = "ask"\nlast = "ask"\n'
GATHER = 'step = "gather"\noptions = { files = ["*.md"], questions = "ask.topics" }\n'
ASKS = 'prompt = "prompts/ask.md"'


@pytest.fixture
def folders(tmp_path: Path, home: Path) -> AgentFolders:
    return AgentFolders(find_places(os.environ), tmp_path)


def problems(folders: AgentFolders, slug: str = "small") -> list[str]:
    found = folders.find(slug)
    assert found
    with pytest.raises(ConfigProblem) as caught:
        folders.load(found)
    return str(caught.value).splitlines()


@pytest.mark.promise("AGENT-2")
@pytest.mark.parametrize(
    ("old", "new", "line", "told"),
    [
        ("tokens = 20_000", "", 4, "tokens is missing"),
        ("[budget]\ntokens = 20_000", "", 1, "write [budget] and below it tokens"),
        ("20_000", "999_999_999", 5, "tokens should be less than or equal to 5000000"),
        ("20_000", "-1", 5, "tokens should be greater"),
        ("20_000", '"many"', 5, "tokens should be a valid integer"),
        ("20_000", "20_000\nusd = inf", 6, "usd should be"),
        ('kind = "ask"', 'kind = "magic"', 8, "kind should be 'ask', 'work' or 'code'"),
        ('kind = "ask"', 'kind = "ask"\ntemprature = 1', 9, "unknown key 'temprature'"),
        ('kind = "ask"', 'kind = "ask"\nmodle = "fast"', 9, "did you mean 'model'?"),
        (
            'kind = "ask"',
            'kind = "ask"\nmodel = "gpt-9"',
            9,
            "model should be 'main', 'fast', or a model by name",
        ),
        ('kind = "ask"', 'kind = "ask"\nmodel = "lab/"', 9, "as 'CONNECTION/NAME'"),
        ('kind = "ask"', 'kind = "ask"\nmodel = "lab/m\\u202e"', 9, "as 'CONNECTION/NAME'"),
        ('kind = "ask"', 'kind = "ask"\nmodel = "scripted//etc/passwd"', 9, "scripts need --model"),
        ('kind = "ask"', 'kind = "ask"\neffort = "max"', 9, "effort should be 'low', 'medium' or 'high'"),
        (
            'kind = "ask"',
            'kind = "work"\nmodel = "lab/m"',
            9,
            "model does not belong to a stage of the kind work",
        ),
        (
            'kind = "ask"',
            'kind = "ask"\ntools = ["read"]',
            9,
            "tools does not belong to a stage of the kind ask",
        ),
        (
            '[budget]\ntokens = 20_000\n[[stages]]\nname = "ask"\nkind = "ask"',
            'tools = ["read"]\n[budget]\ntokens = 9_000\n[[stages]]\nname = "a"\nkind = "work"\n'
            'tools = ["read", "run"]\n[[stages]]\nname = "ask"\nkind = "ask"',
            10,
            "run is not one of the agent's tools; add it there",
        ),
        (
            'kind = "ask"',
            'kind = "ask"\nstep = "gather"',
            9,
            "step does not belong to a stage of the kind ask",
        ),
        ('kind = "ask"', 'kind = "ask"\ntakes = ["ask"]', 9, "ask takes itself"),
        ('kind = "ask"', 'kind = "ask"\ntakes = ["asks"]', 9, "there is no stage 'asks'"),
        ('kind = "ask"', f'kind = "ask"\n{GATE}', 9, "nothing repairs ask"),
        (
            'kind = "ask"',
            'kind = "ask"\ngates = [{ check = "not_emty", field = "topics" }]',
            9,
            "'not_empty'?",
        ),
        ('kind = "ask"', 'kind = "ask"\ngates = [{ check = "not_empty", field = "x" }]', 9, "and no x"),
        (
            'kind = "ask"',
            'kind = "ask"\ngates = [{ check = "at_most", field = "topics" }]',
            9,
            "count is missing",
        ),
        ('name = "ask"', 'name = "kept"', 7, "give the stage another name"),
        ('name = "ask"', 'name = "../ask"', 7, "name has characters that are not allowed"),
        (ASKS, 'prompt = "prompts/../../secret.md"', 9, "should be a file of the folder"),
        (ASKS, 'prompt = "/etc/passwd"', 9, "should be a file of the folder"),
        (ASKS, 'prompt = "prompts/none.md"', 9, "does not exist; write it"),
        (ASKS, "", 6, "ask has no prompt"),
        ('type = "object"', 'type = "array"', 11, 'output.type should be "object"'),
        ('type = "string"', 'type = "text"', 12, "type should be one of: object"),
        ('type = "string"', 'type = "string", pattern = "x"', 12, "pattern unknown; the known keys are"),
        (
            'type = "object"',
            'type = "object"\nrequired = ["tropics"]',
            12,
            "'tropics' is not one of the properties",
        ),
        ("[budget]", "needs = ['the internet']\n[budget]", 4, "needs has characters that are not allowed"),
        ('name = "Small"', 'name = "Small\\u0000"', 2, "name has characters that are not allowed"),
        ("name = ", "name == ", 2, "not valid TOML"),
    ],
)
def test_what_is_wrong_is_told_by_file_and_line(
    folders: AgentFolders, tmp_path: Path, *, old: str, new: str, line: int, told: str
) -> None:
    assert old in SMALL
    file = agent(tmp_path, text=SMALL.replace(old, new, 1)) / "agent.toml"
    found = problems(folders)
    assert any(each.startswith(f"{file}:{line}: ") and told in each for each in found), found


@pytest.mark.parametrize(
    ("more", "line", "told"),
    [
        (f"{STAGE}{GATHER}{STAGE}{GATHER}", 21, "two stages are called more"),
        (f'{STAGE}step = "rm -rf"\n', 17, "there is no step 'rm -rf'"),
        (f'{STAGE}step = "gather"\noptions = {{ files = ["/etc/*"] }}\n', 18, "files has characters"),
        (f'{STAGE}step = "gather"\noptions = {{ files = ["*"], questions = "ask.x" }}\n', 18, "and no x"),
        (f'{STAGE}step = "gather"\noptions = {{ files = ["*"], questions = "no.x" }}\n', 18, "'no'"),
        (
            f'{STAGE}step = "write_file"\noptions = {{ path = "../out.md", text = "ask.topics" }}\n',
            18,
            "should be a path below the workspace",
        ),
        (
            f'{STAGE}{GATHER}takes = ["later"]\n\n[[stages]]\nname = "later"\nkind = "work"\n',
            19,
            "comes after",
        ),
        (
            f'{STAGE}step = "cite"\noptions = {{ findings = "ask.topics", passages = "ask.topics" }}\n',
            18,
            "ask.topics has to be items with the texts claim and quote, and each there is of the type string",
        ),
        (
            f'{STAGE}{GATHER}{WRITE}options = {{ path = "a.md", text = "more.passages" }}\n',
            24,
            "more.passages has to be texts, and each there is of the type object with id, path, lines, text",
        ),
        (
            f'{STAGE}{GATHER}gates = [{{ check = "is_true", field = "missing" }}]\n',
            19,
            "more.missing has to be true or false",
        ),
        (
            f'{STAGE}{GATHER}gates = [{{ check = "quotes_match", field = "passages.quote", {IN_TOPICS} }}]',
            19,
            "more.passages gives id, path, lines, text, and no quote",
        ),
        (
            f'{STAGE}{GATHER}gates = [{{ check = "claims_rest", field = "passages", {IN_TOPICS} }}]',
            19,
            "more.passages has to be items with the texts claim and quote",
        ),
        (
            f'{STAGE}step = "gather"\noptions = {{ files = ["*"], questions = "kept.seen" }}\n',
            18,
            "kept gives nothing, and no seen",
        ),
        (f"{REPAIR}times = 99\n", 17, "times should be less than or equal to 10"),
        (REPAIR.replace('last = "ask"', 'last = "none"'), 14, "there is no stage 'none'"),
        (f'\n[[pauses]]\nafter = "nowhere"\n{REPAIR}', 15, "there is no stage 'nowhere'"),
        ('\n[[keeps]]\nname = "seen"\nstage = "ask"\nfield = "x"\n', 17, "ask gives topics, and no x"),
        ('\n[result]\nformat = "text"\nfield = "x"\n', 14, "text needs a field of ask: topics"),
    ],
)
def test_parts_that_do_not_agree_are_told(
    folders: AgentFolders, tmp_path: Path, more: str, line: int, told: str
) -> None:
    file = agent(tmp_path, text=SMALL + more) / "agent.toml"
    found = problems(folders)
    assert any(each.startswith(f"{file}:{line}: ") and told in each for each in found), found


def test_all_that_is_wrong_is_told_at_once(folders: AgentFolders, tmp_path: Path) -> None:
    agent(tmp_path, text=SMALL.replace("20_000", "1").replace('kind = "ask"', 'kind = "x"'))
    assert len(problems(folders)) == 2


@pytest.mark.promise("AGENT-2")
def test_hostile_folders_are_refused_with_a_word(folders: AgentFolders, tmp_path: Path) -> None:
    secret = tmp_path / "secret.md"
    secret.write_text("the key")
    here = agent(tmp_path)
    prompt = here / "prompts" / "ask.md"
    prompt.unlink()
    prompt.symlink_to(secret)
    assert "leads out of the agent's folder" in problems(folders)[0]
    prompt.unlink()
    os.mkfifo(prompt)
    assert "is not a file" in problems(folders)[0]
    prompt.unlink()
    prompt.write_bytes(b"x" * 40_000)
    assert "more than 32,000" in problems(folders)[0]
    prompt.write_bytes(b"\xff\xfe")
    assert "not valid UTF-8" in problems(folders)[0]
    prompt.write_text(" \n")
    assert "is empty" in problems(folders)[0]
    prompt.write_text("Name the topics.")
    file = here / "agent.toml"
    file.write_text(SMALL + "# " + "x" * 70_000)
    assert "more than 64,000" in problems(folders)[0]
    file.write_text("deep = " + "[" * 20_000 + "]" * 20_000)
    assert "nested too deeply" in problems(folders)[0]
    deep = '{ type = "object", properties = { a = ' * 8 + '{ type = "string" }' + "} }" * 8
    file.write_text(SMALL.replace("properties.topics", f"properties.deep = {deep}\nproperties.topics"))
    assert any("nested deeper than 6 levels" in each for each in problems(folders))
    wide = "\n".join(f'properties.a{number} = {{ type = "string" }}' for number in range(300))
    file.write_text(SMALL.replace('type = "object"', f'type = "object"\n{wide}'))
    assert any("more than 200 parts" in each for each in problems(folders))
    file.write_text(SMALL + 40 * f"{STAGE}{GATHER}")
    assert any("stages should have at most 30 items" in each for each in problems(folders))


def test_a_folder_that_is_a_link_is_no_agent_of_a_workspace(folders: AgentFolders, tmp_path: Path) -> None:
    elsewhere = agent(tmp_path / "elsewhere")
    (tmp_path / "agents").mkdir()
    (tmp_path / "agents" / "small").symlink_to(elsewhere)
    assert "is a link" in problems(folders)[0]


@pytest.mark.parametrize(
    "slug", ["", "Agent", "a b", "../x", "a--b", "-a", "1a", "x" * 41, "chat", "auto", "a\n"]
)
def test_a_name_with_tricks_is_no_name(folders: AgentFolders, tmp_path: Path, slug: str) -> None:
    assert slug_problem(slug)
    assert folders.find(slug) is None
    with pytest.raises(ConfigProblem):
        folders.load(FoundAgent(slug, tmp_path / "agents" / "x", "workspace"))


@pytest.mark.promise("AGENT-4")
def test_the_user_s_own_agent_goes_before_one_of_the_workspace(
    folders: AgentFolders, tmp_path: Path, home: Path
) -> None:
    agent(tmp_path)
    own = agent(find_places(os.environ).settings.parent, prompt="Mine.")
    found = folders.find("small")
    assert found
    assert (found.folder, found.where) == (own, "yours")
    assert folders.pipeline("small") is not None
    assert [each.where for each in folders.all()] == ["yours", "workspace", "built in"]


@pytest.mark.promise("AGENT-5")
def test_nothing_is_looked_at_before_an_agent_is_asked_for(
    folders: AgentFolders, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in range(3):
        agent(tmp_path, f"small-{number}")
    assert folders.find("none") is None
    assert not folders._loaded
    assert folders.find("small-1")
    assert not folders._loaded


def test_the_starter_has_nothing_wrong(folders: AgentFolders, tmp_path: Path) -> None:
    for file, text in starter_files("my-agent").items():
        path = tmp_path / "agents" / "my-agent" / file
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    found = folders.find("my-agent")
    assert found
    assert folders.load(found).definition.name == "My agent"


def test_of_very_many_problems_the_first_are_told(folders: AgentFolders, tmp_path: Path) -> None:
    """With a search for the likeliest key of each, this took minutes."""
    keys = "".join(f"k{number} = 1\n" for number in range(5_000))
    agent(tmp_path, text=keys + SMALL)
    found = problems(folders)
    assert len(found) == 20
    assert found[-1].endswith("There may be more; correct these first.")
    agent(tmp_path, text=SMALL.replace("[stages.output]", f"[stages.output]\n{keys}"))
    assert len(problems(folders)) == 20
    long = "k" * 50_000
    agent(tmp_path, text=f"{long} = 1\n{SMALL}")
    assert all(len(each) < 1_000 for each in problems(folders))
