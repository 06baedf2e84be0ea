"""`handrail intents`: making, changing and checking them from the shell."""

import json
import sys
from pathlib import Path

import pytest

from tests.interfaces.cli.program import run

FILE = ".orchestration/active_intents.yaml"
ONE = "intents:\n  # ours\n  - id: INT-1\n    name: 'Totals: right'\n    owned_scope: [src/**]\n"


def intents(folder: Path, *arguments: str, status: int = 0, **environment: str) -> str:
    done = run("intents", *arguments, cwd=folder, **environment)
    assert done.returncode == status, done.stderr
    return done.stdout if status < 2 else done.stderr


@pytest.fixture
def begun(tmp_path: Path) -> Path:
    (tmp_path / ".orchestration").mkdir()
    (tmp_path / FILE).write_text(ONE)
    return tmp_path


def test_a_workspace_without_intents_says_how_to_begin_and_init_writes_an_example_once(
    tmp_path: Path,
) -> None:
    assert "handrail intents init" in intents(tmp_path, "list", status=2)
    assert not (tmp_path / ".orchestration").exists()
    intents(tmp_path, "init")
    text = (tmp_path / FILE).read_text()
    assert "#  - id: INT-1" in text
    assert "already exists" in intents(tmp_path, "init", status=2)
    assert (tmp_path / FILE).read_text() == text


def test_a_new_intent_comes_from_a_template_and_is_listed(begun: Path) -> None:
    intents(begun, "new", "INT-2", "--template", "bugfix", "--scope", "docs/**", "--criterion", "it works")
    assert intents(begun) == "INT-1  active  Totals: right  [src/**]\nINT-2  active  [docs/**]\n"
    told = json.loads(intents(begun, "list", "--json").splitlines()[1])
    assert told["owned_scope"] == ["docs/**"]
    assert told["acceptance_criteria"][0] == "A test fails without the change and passes with it"
    assert told["acceptance_criteria"][-1] == "it works"


@pytest.mark.parametrize(
    "options", [("--scope", "src/{a,b}/**", "--scope", "docs/"), ("--set", "owned_scope=src/{a,b}/**, docs/")]
)
def test_a_pattern_with_a_comma_in_braces_stays_one_pattern(begun: Path, options: tuple[str, ...]) -> None:
    intents(begun, "edit", "INT-1", *options)
    assert intents(begun) == "INT-1  active  Totals: right  [src/{a,b}/**, docs/]\n"


@pytest.mark.parametrize("option", ["--scope", "--add-scope"])
def test_what_can_mean_no_path_does_not_get_into_a_scope(begun: Path, option: str) -> None:
    assert "'../x' is not a path or pattern" in intents(begun, "edit", "INT-1", option, "../x", status=2)
    assert (begun / FILE).read_text() == ONE


@pytest.mark.promise("INTENT-10")
def test_each_edit_is_kept_with_the_text_before_it_also_one_by_hand(begun: Path) -> None:
    intents(begun, "edit", "INT-1", "--add-scope", "docs/x.md", "--set", "ticket=42")
    path = begun / FILE
    path.write_text(path.read_text().replace("Totals: right", "Totals by hand"))
    intents(begun, "done", "INT-1")
    told = json.loads(intents(begun, "show", "INT-1", "--versions", "--json"))
    assert told["done"]
    olds = [version["old"] for version in told["versions"]]
    whys = [version["why"] for version in told["versions"]]
    assert whys == ["first seen", "", "", "edited in the file", "done"]
    assert (olds[0], "ticket" in olds[1], "docs/x.md" in olds[2]) == ("", False, False)
    assert "Totals: right" in olds[3]
    assert "Totals by hand" in olds[4]


def test_one_intent_is_edited_in_the_users_editor(begun: Path) -> None:
    (begun / "editor.py").write_text(
        "import sys, pathlib\npath = pathlib.Path(sys.argv[1])\n"
        "path.write_text(path.read_text().replace('Totals', 'Sums'))\n"
    )
    editor = f"{sys.executable} {begun / 'editor.py'}"
    assert intents(begun, "edit", "INT-1", EDITOR=editor, VISUAL=editor) == "Changed INT-1.\n"
    assert (begun / FILE).read_text() == ONE.replace("Totals", "Sums")


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (("edit", "INT-9", "--set", "a=b"), "no intent 'INT-9'"),
        (("edit", "INT-1", "--set", "id=INT-2"), "An id cannot change"),
        (("new", "two words"), "is not an id"),
    ],
)
def test_what_cannot_be_done_is_said_and_changes_nothing(
    begun: Path, arguments: tuple[str, ...], told: str
) -> None:
    assert told in intents(begun, *arguments, status=2)
    assert (begun / FILE).read_text() == ONE


@pytest.mark.promise("INTENT-8")
def test_check_ends_with_what_it_found(begun: Path) -> None:
    assert intents(begun, "check") == "1 intent, nothing wrong.\n"
    (begun / FILE).write_text(f"{ONE}  - id: INT-2\n    owned_scope: [src/a*]\n")
    told = intents(begun, "check", status=1)
    assert told.startswith("INT-1 and INT-2 both own files such as src/a.\n")
    assert "handrail intents edit INT-2 --set depends_on=INT-1\n" in told
    assert "handrail intents check --accept INT-1 INT-2" in told
    (begun / FILE).write_text("- id: A\n- id: A\n")
    assert f"{FILE}, line 2: A is already in line 1." in intents(begun, "check", status=2)


def test_policy_explain_tells_what_an_intent_allows(begun: Path) -> None:
    asked = [
        {"path": "src/a.py"},
        {"path": "docs/a.md"},
        {"path": "docs/a.md", "op": "read"},
        {"cmd": "touch docs/a.md"},
        {"cmd": "touch src/a.py"},
    ]
    done = run(
        *("policy", "explain", "--jsonl", "-", "--mode", "auto", "--intent", "INT-1"),
        cwd=begun,
        stdin="\n".join(map(json.dumps, asked)),
    )
    told = [json.loads(line) for line in done.stdout.splitlines()]
    assert [each["verdict"] for each in told] == ["allow", "deny", "allow", "deny", "auto"]
    assert [each["rule"] for each in told if each["verdict"] == "deny"] == ["scope", "scope_violation"]


def test_a_proposal_and_a_headless_run_name_their_intent(begun: Path) -> None:
    change = {"form": "create", "path": "src/a.py", "text": "x = 1\n"}
    document = json.dumps({"changes": [change]})
    refused = run("edit", "--proposal", "-", cwd=begun, stdin=document)
    assert "Name it with --intent. There are: INT-1." in refused.stderr
    done = run("edit", "--proposal", "-", "--intent", "INT-1", cwd=begun, stdin=document)
    assert done.returncode == 0, done.stderr
    assert (begun / "src/a.py").read_text() == "x = 1\n"
    far = json.dumps({"changes": [change | {"path": "docs/a.md"}], "intent_id": "INT-1"})
    refused = run("edit", "--proposal", "-", cwd=begun, stdin=far)
    assert "`handrail intents edit INT-1 --add-scope PATTERN` lets it own more." in refused.stderr
    two = run("edit", "--proposal", "-", "--intent", "INT-2", cwd=begun, stdin=far)
    assert "The proposal is for intent 'INT-1', not for 'INT-2'." in two.stderr
    wanted = {"name": "write", "arguments": {"path": "src/b.py", "text": "y\n"}}
    (begun / "script.json").write_text(json.dumps([{"calls": [wanted]}, {"text": "ok"}]))
    words = ("run", "go", "--mode", "edit", "--model", f"scripted/{begun / 'script.json'}", "--intent")
    assert "Select one of: INT-1." in run(*words, "INT-9", cwd=begun).stderr
    done = run(*words, "INT-1", "--json", cwd=begun)
    assert done.returncode == 0, done.stderr
    events = [json.loads(line) for line in done.stdout.splitlines()]
    assert [each["intent_id"] for each in events if each["type"] == "change_prepared"] == ["INT-1"]
