"""Commands that an answer suggests."""

import pytest

from handrail.tools.commands.parse import MAX_COMMANDS, has_shell_block, suggested_commands


def block(script: str, language: str = "sh") -> str:
    return f"Do this:\n\n```{language}\n{script}\n```\n\nThat is all."


@pytest.mark.parametrize("language", ["sh", "bash", "shell", "zsh", "BASH"])
def test_every_command_of_a_shell_block_is_one_of_its_own(language: str) -> None:
    script = "npm install  # once\n\n# then\nnpm test && npm run lint; echo done"
    commands = ("npm install", "npm test && npm run lint", "echo done")
    assert suggested_commands(block(script, language)) == commands


@pytest.mark.parametrize("language", ["", "python", "json", "text", "output", "diff"])
def test_other_blocks_suggest_nothing(language: str) -> None:
    answer = block("rm -rf build", language)
    assert not has_shell_block(answer)
    assert suggested_commands(answer) == ()


@pytest.mark.parametrize(
    "construct",
    [
        "for file in *.py; do\n  wc -l $file\ndone",
        "cat <<'END' > notes.txt\nrm -rf /  # only words\nEND",
        "cat <<END | wc -l\none\nEND",
        "if [ -e x ]; then\n  cat x\nfi",
        "git commit -m 'one\n\ntwo'",
        "docker run \\\n  --rm \\\n  image",
        "{ echo a; echo b; }",
    ],
)
def test_what_spans_lines_stays_one_command(construct: str) -> None:
    assert suggested_commands(block(f"true\n{construct}\nfalse")) == ("true", construct, "false")


def test_here_documents_of_one_line_stay_together() -> None:
    script = "cat <<A; cat <<B\na\nA\nb\nB"
    assert suggested_commands(block(script)) == (script,)


def test_a_screen_gives_its_input_and_not_its_output() -> None:
    screen = "$ ls -a\n.git\nrm -rf .\n$ echo one \\\n> two\none two"
    assert suggested_commands(block(screen, "console")) == ("ls -a", "echo one \\\ntwo")
    assert suggested_commands(block("rm -rf .\ntotal 0", "console")) == ()
    assert suggested_commands(block("$ ls", "sh")) == ("ls",)


def test_what_changes_the_shell_goes_with_what_follows_it_in_the_block() -> None:
    script = "cd web\nexport A=1\nnpm install\nnpm test"
    assert suggested_commands(block(script)) == (
        "cd web && export A=1 && npm install",
        "cd web && export A=1 && npm test",
    )
    assert suggested_commands(block("cd web") + block("ls")) == ("cd web", "ls")


def test_a_block_inside_of_another_is_only_shown() -> None:
    assert suggested_commands("````markdown\n```sh\nrm -rf build\n```\n````\n") == ()
    assert suggested_commands("~~~\n```sh\nrm -rf build\n```\n~~~\n") == ()


def test_a_block_that_breaks_off_suggests_nothing() -> None:
    assert suggested_commands("```sh\nrm -rf /tmp/build") == ()


def test_blocks_in_lists_are_read_without_their_indent() -> None:
    assert suggested_commands("1. First\n   ```sh\n   make all\n   make test\n   ```\n") == (
        "make all",
        "make test",
    )


@pytest.mark.parametrize("script", ["if then fi fi", "echo 'open", "touch a\u202eb", "echo a\x1b[2Jb"])
def test_what_the_grammar_does_not_read_is_one_command_as_it_stands(script: str) -> None:
    assert suggested_commands(block(script)) == (script,)


def test_the_same_command_is_listed_once_and_the_list_has_an_end() -> None:
    assert suggested_commands(block("ls\nls") + block("ls")) == ("ls",)
    assert len(suggested_commands(block("\n".join(f"echo {n}" for n in range(200))))) == MAX_COMMANDS
