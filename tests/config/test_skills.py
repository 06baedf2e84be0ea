"""Skills in folders: what is read, what is wrong and where, and when one of a workspace can be used."""

import os
from pathlib import Path

import pytest

from handrail.config.places import Places, find_places
from handrail.config.skills import MAX_BYTES, SKILL_FILE, SkillFolders, plain_line, starter
from handrail.config.trust import revoke, trust_skills
from handrail.protocol.errors import ConfigProblem, UsageProblem


@pytest.fixture
def places() -> Places:
    return find_places(os.environ)


def text(name: str = "notes", description: str = "Writes release notes.", body: str = "Do it.") -> str:
    return f"---\nname: {name}\ndescription: {description}\n---\n{body}\n"


def here(workspace: Path, content: str | bytes = "", name: str = "notes") -> Path:
    """A skill of the workspace."""
    return put(workspace / ".agents" / "skills", content or text(name), name)


def put(skills: Path, content: str | bytes, name: str = "notes") -> Path:
    folder = skills / name
    folder.mkdir(parents=True)
    data = content.encode() if isinstance(content, str) else content
    (folder / SKILL_FILE).write_bytes(data)
    return folder


def own(places: Places, content: str | bytes = "", name: str = "notes") -> Path:
    return put(places.settings.parent / "skills", content or text(name), name)


def trust_all(places: Places, workspace: Path) -> None:
    waiting, _ = SkillFolders(places, workspace).untrusted()
    trust_skills(places, workspace, {skill.name: skill.sha256 for skill, _ in waiting})


@pytest.mark.promise("SKILL-1")
def test_a_skill_of_the_workspace_is_inert_until_its_exact_bytes_are_trusted(
    tmp_path: Path, places: Places
) -> None:
    folder = here(tmp_path)
    (folder / "steps.md").write_text("one")
    skills = SkillFolders(places, tmp_path)
    assert skills.usable() == []
    with pytest.raises(UsageProblem, match="is not trusted"):
        skills.find_usable("notes")
    trust_all(places, tmp_path)
    assert [each.name for each in skills.usable()] == ["notes"]
    (folder / "steps.md").write_text("two")
    assert skills.usable() == []
    with pytest.raises(UsageProblem, match="has changed since"):
        skills.find_usable("notes")
    (folder / "steps.md").write_text("one")
    assert skills.usable()
    assert revoke(places, tmp_path)
    assert skills.usable() == []
    assert SkillFolders(places, tmp_path, trusted=True).usable()


@pytest.mark.promise("SKILL-2")
def test_of_two_skills_with_one_name_the_users_is_used_and_a_clash_changes_nothing(
    tmp_path: Path, places: Places
) -> None:
    own(places, text(body="Mine."))
    here(tmp_path, text(body="Theirs."))
    put(tmp_path / ".claude" / "skills", text(body="Hidden."))
    skills = SkillFolders(places, tmp_path, trusted=True)
    assert [each.where for each in skills.all()] == ["yours", "workspace", "workspace"]
    assert skills.find_usable("notes").body == "Mine."
    assert [skill.body for skill in skills.usable()] == ["Mine."]
    assert skills.untrusted() == ([], {})


@pytest.mark.promise("SKILL-3")
@pytest.mark.parametrize(
    ("content", "problem"),
    [
        ("no front matter", ":1: the front matter is missing"),
        ("---\nname: notes\n", ":1: the front matter does not end"),
        ("---\nname: notes\n---\nx", ":1: `description` is missing"),
        ("---\ndescription: d\nname: other\n---\nx", ":3: the name 'other' is not its folder's"),
        ("---\nname: notes\ndescription: Use when: asked\n---\nx", ":3: this is not YAML"),
        ("---\nname: notes\ndescription: [a, b]\n---\nx", ":3: `description` should be text"),
        ("---\nname: notes\nname: notes\ndescription: d\n---\nx", ":3: `name` is there twice"),
        ("---\nname: &a notes\ndescription: *a\n---\nx", ":2: anchors, aliases and tags"),
        ("---\nname: !!python/name:os.system notes\ndescription: d\n---\nx", ":2: anchors, aliases and tags"),
        ("---\n- a\n---\nx", ":2: the front matter should have lines"),
        ("---\njust text\n---\nx", ":2: the front matter should have lines"),
        (text(description="x" * 1_025), ":3: the description has 1,025"),
        (text(body=""), ":6: there are no instructions"),
        (b"---\nname: notes\ndescription: \xff\n---\nx", ":3: this is not valid UTF-8"),
    ],
)
def test_what_is_wrong_is_told_with_its_line(
    tmp_path: Path, places: Places, content: str | bytes, problem: str
) -> None:
    folder = here(tmp_path, content)
    skills = SkillFolders(places, tmp_path, trusted=True)
    with pytest.raises(ConfigProblem) as caught:
        skills.load(skills.named("notes"))
    assert str(caught.value).startswith(f"{folder / SKILL_FILE}{problem}"), caught.value
    assert skills.usable() == []


def test_the_whole_public_format_is_read_and_unknown_keys_are_warned_of(
    tmp_path: Path, places: Places
) -> None:
    content = (
        "---\r\nname: notes\r\ndescription: >\r\n  Two\r\n  lines.\r\nlicense: MIT\r\n"
        "metadata:\r\n  author: me\r\n  name: inner\r\nallowed-tools: Bash(rm:*)\r\n"
        "model: big\r\n---\r\n# Body\r\n"
    )
    own(places, content)
    skills = SkillFolders(places, tmp_path)
    skill = skills.find_usable("notes")
    assert (skill.description, skill.body) == ("Two lines.", "# Body")
    assert len(skill.warnings) == 1
    assert ":11: the key 'model' is not known" in skill.warnings[0]


@pytest.mark.promise("SKILL-4")
def test_no_file_outside_a_skill_is_reached_through_it(tmp_path: Path, places: Places) -> None:
    secret = tmp_path / "secret.txt"
    secret.write_text("secret")
    mine = own(places)
    (mine / "out.md").symlink_to(secret)
    (mine / "sub").mkdir()
    (mine / "sub" / "in.md").write_text("inside")
    (mine / "same.md").symlink_to("sub/in.md")
    skills = SkillFolders(places, tmp_path, trusted=True)
    skill = skills.find_usable("notes")
    assert skills.file(skill, "sub/../sub/in.md") == b"inside"
    assert skills.file(skill, "same.md") == b"inside"
    for name in ("out.md", "../notes/../../config.toml", str(secret), "sub", ".", "a\0b"[:1]):
        with pytest.raises(UsageProblem):
            skills.file(skill, name)
    theirs = here(tmp_path, text("theirs"), "theirs")
    (theirs / "in.md").write_text("inside")
    assert skills.file(skills.find_usable("theirs"), "./in.md") == b"inside"
    with pytest.raises(UsageProblem, match=r"Its files: in\.md"):
        skills.file(skills.find_usable("theirs"), "../../../secret.txt")
    (theirs / "out.md").symlink_to(secret)
    with pytest.raises(ConfigProblem, match="is a link"):
        skills.find_usable("theirs")


def test_links_in_place_of_folders_and_files_are_refused(tmp_path: Path, places: Places) -> None:
    outside = put(tmp_path / "elsewhere", text())
    workspace = tmp_path / "repo"
    (workspace / ".agents" / "skills").mkdir(parents=True)
    (workspace / ".agents" / "skills" / "notes").symlink_to(outside)
    real = put(workspace / ".claude" / "skills", text("linked"), "linked")
    (real / SKILL_FILE).unlink()
    (real / SKILL_FILE).symlink_to(outside / SKILL_FILE)
    skills = SkillFolders(places, workspace, trusted=True)
    _, wrong = skills.untrusted()
    assert set(wrong) == {"notes", "linked"}
    assert skills.usable() == []


@pytest.mark.parametrize("name", ["Notes", "-notes", "a--b", "a_b", "x" * 65, "a b", "é"])
def test_names_that_the_format_forbids_are_refused(tmp_path: Path, places: Places, name: str) -> None:
    here(tmp_path, text(name), name)
    skills = SkillFolders(places, tmp_path, trusted=True)
    with pytest.raises(ConfigProblem, match="cannot be a skill's name"):
        skills.load(skills.named(name))
    assert skills.usable() == []
    with pytest.raises(UsageProblem, match="cannot be a skill's name"):
        starter(name)


@pytest.mark.promise("SKILL-5")
def test_huge_skills_are_refused_without_being_read(tmp_path: Path, places: Places) -> None:
    folder = here(tmp_path)
    with (folder / "huge.bin").open("wb") as file:
        file.truncate(10_000_000_000)
    skills = SkillFolders(places, tmp_path, trusted=True)
    with pytest.raises(ConfigProblem, match="Make the skill smaller"):
        skills.find_usable("notes")
    (folder / "huge.bin").unlink()
    os.mkfifo(folder / "pipe")
    with pytest.raises(ConfigProblem, match="it is a pipe"):
        skills.find_usable("notes")
    (folder / "pipe").unlink()
    for number in range(201):
        (folder / f"{number}.md").touch()
    with pytest.raises(ConfigProblem, match="more than 200 files"):
        skills.find_usable("notes")
    own(places, text("long", body="x" * MAX_BYTES), "long")
    with pytest.raises(ConfigProblem, match="Make the skill smaller"):
        skills.find_usable("long")
    assert skills.usable() == []


def test_descriptions_are_one_plain_line() -> None:
    assert plain_line("a\n\x1b[31mb\u202e\t c", 100) == "a [31mb c"
    assert plain_line("x" * 20, 10) == "x" * 9 + "…"
