"""For which commands a sandbox opens `.git`."""

import pytest

from handrail.policy.commands.script import writes_git
from handrail.tools.commands.parse import parse_command


@pytest.mark.parametrize(
    "command",
    [
        "git add .",
        'git commit -m "Fix the cart"',
        "git add -A && git commit -qm x",
        "git status; git add a b",
        "git rm --cached x",
        "git stash push -m wip",
    ],
)
def test_gits_own_work_is_known(command: str) -> None:
    assert writes_git(parse_command(command))


@pytest.mark.parametrize(
    "command",
    [
        "git status",
        "git diff",
        "git config core.hooksPath x",
        "git -c core.fsmonitor=x commit -m y",
        "git --git-dir=x add .",
        "GIT_DIR=x git add .",
        "git commit -m x && sh evil.sh",
        "git add . | tee .git/hooks/x",
        "git add . > .git/hooks/x",
        'git commit -m "$(evil)"',
        "git rebase -x evil main",
        "git rebase --exec=evil main",
        "git fetch --upload-pack=evil x",
        "git remote add x y",
        "git submodule add x",
        "git worktree add x",
        "git",
        "gitk add",
        "/tmp/git add .",
        "git add (",
    ],
)
def test_whatever_else_there_is_keeps_git_closed(command: str) -> None:
    assert not writes_git(parse_command(command))
