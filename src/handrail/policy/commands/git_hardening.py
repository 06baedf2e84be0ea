"""Options that keep git and searches from running programs or showing secrets."""

import re
from collections.abc import Collection, Iterator

HARDENED_GIT = "handrail_git"
"""The shell function that runs git without the repository's settings; `tools/safe_git.py` defines it."""
DIFF_OPTIONS = "--no-ext-diff --no-textconv --ignore-submodules=dirty --relative"
"""`--relative`: of a repository around the workspace, only the workspace is shown."""

EXAMPLE_NAMES = tuple(f".{each}" for each in "example sample template tmpl dist defaults".split())
"""Endings of `.env` files that are made to be shared."""


def all_but(start: str, kept: Collection[str]) -> Iterator[str]:
    """Patterns for all names that begin so, except those that go on with one of the kept endings."""
    for part in sorted({each[:length] for each in kept for length in range(len(each) + 1)}):
        following = {each[len(part)] for each in kept if each.startswith(part) and each != part}
        if part not in kept:
            yield start + part
        yield f"{start}{part}[!{''.join(sorted(following))}]*" if following else f"{start}{part}?*"


SECRET_GLOBS = (
    *all_but(".env", EXAMPLE_NAMES),
    *"""
    ?*.env *.pem *.key *.p12 *.pfx *.p8 *.ppk *.jks *.keystore *.kdbx
    *.tfstate *.tfvars id_rsa id_dsa id_ecdsa* id_ed25519* .netrc _netrc .npmrc .pgpass .my.cnf .pypirc
    .htpasswd .dockercfg .git-credentials .vault-token .secrets .boto .s3cfg credentials credentials.[jty]*
    secrets.[jty]* service[-_]account*.json client_secret*.json kubeconfig
    """.split(),
)
"""Names that may hold secrets, in patterns that git, grep, rg and diff all understand; not `.env.example`."""
SECRET_FOLDERS = (".ssh", ".gnupg", ".aws", ".azure", ".kube", ".docker", ".gcloud", ".password-store")
GREP_EXCLUDES = " ".join(
    (*(f"--exclude={each}" for each in SECRET_GLOBS), *(f"--exclude-dir={each}" for each in SECRET_FOLDERS))
)
RG_EXCLUDES = " ".join(f"--iglob=!{each}" for each in (*SECRET_GLOBS, *SECRET_FOLDERS))
DIFF_EXCLUDES = " ".join(f"--exclude={each}" for each in (*SECRET_GLOBS, *SECRET_FOLDERS))
GIT_EXCLUDES = " ".join(
    (
        *(f":(top,exclude,glob,icase)**/{each}" for each in SECRET_GLOBS),
        *(f":(top,exclude,glob,icase)**/{each}/**" for each in SECRET_FOLDERS),
    )
)
"""What searches and diffs of whole folders leave out when nobody was asked; it comes last, so it wins."""


def as_commits(text: str) -> str:
    """The revision such that it names commits only: `a..b` becomes `a^{commit}..b^{commit}`.

    A path in a commit is the one that was judged: git would look for it from the top of the repository, which
    may lie above the workspace. Git itself finds nothing else behind `^!`, `^@` and `^-`.
    """
    before, dots, after = text.partition("..")
    if dots and after.startswith("."):
        dots, after = "...", after[1:]
    if dots:
        return as_commits(before) + dots + as_commits(after)
    if (at := _colon(text)) >= 0:
        at += 2 if text[1:3] in STAGES and not at else 0
        path = text[at + 1 :]
        return text if path.startswith(OTHER_PATHS) or text.startswith(":/") else f"{text[: at + 1]}./{path}"
    if not text or text == "^" or PARENTS.search(text):
        return text
    return text + "^{commit}"


STAGES = ("0:", "1:", "2:", "3:")
OTHER_PATHS = ("./", "../", "/")
PARENTS = re.compile(r"\^(!|@|-[0-9]*)$")


def _colon(revision: str) -> int:
    """Where the colon before a path is, one that is not in braces, as git reads it; -1 without one."""
    depth = 0
    for at, character in enumerate(revision):
        if character == ":" and not depth:
            return at
        depth += (character == "{") - (character == "}" and depth > 0)
    return -1
