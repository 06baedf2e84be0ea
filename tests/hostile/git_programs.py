"""Ways in which a repository makes git run a program, each with the plain git commands that run it."""

import os
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

Way = Callable[[Path, str], None]
IDENTITY = ("-c", "user.name=x", "-c", "user.email=x@example.com")
PLAIN = (
    ("status",),
    ("diff",),
    ("log", "-p"),
    ("show",),
    ("blame", "a.txt"),
    ("add", "a.txt"),
    (*IDENTITY, "commit", "-qm", "second", "a.txt"),
)
"""What a user would run, for a proof that a way works."""


def git(folder: Path, *words: str, stdin: str = "", check: bool = True) -> str:
    done = subprocess.run(
        ["git", *IDENTITY, *words],
        cwd=folder,
        check=check,
        timeout=60,
        capture_output=True,
        input=stdin,
        text=True,
    )
    return done.stdout.strip()


def start(folder: Path) -> None:
    """A repository with two commits of `a.txt`, which has changed since, and of `b.txt`."""
    git(folder, "init", "-q", "-b", "main")
    for text in ("zero\n", "one\n"):
        (folder / "a.txt").write_text(text)
        (folder / "b.txt").write_text(text)
        git(folder, "add", ".")
        git(folder, "commit", "-qm", text)
    (folder / "a.txt").write_text("two\n")


def setting(name: str, value: str = "{evil}") -> Way:
    return lambda folder, evil: append(folder / ".git" / "config", name, value.replace("{evil}", evil))


def append(file: Path, name: str, value: str) -> None:
    section, _, rest = name.partition(".")
    group, _, key = rest.rpartition(".")
    with file.open("a") as config:
        config.write(f'[{section} "{group}"]\n' if group else f"[{section}]\n")
        config.write(f'\t{key} = "{value}"\n')


def attributes(text: str, place: str = ".gitattributes") -> Way:
    return lambda folder, _: _put(folder / place, text)


def _put(file: Path, text: str) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text)


def all_of(*ways: Way) -> Way:
    def way(folder: Path, evil: str) -> None:
        for each in ways:
            each(folder, evil)

    return way


CLEAN = setting("filter.evil.clean")
FILTERED = attributes("*.txt filter=evil\n")


def staged_attributes(folder: Path, evil: str) -> None:
    """Attributes that only the index has."""
    (folder / ".gitattributes").write_text("*.txt filter=evil\n")
    git(folder, "add", ".gitattributes")
    (folder / ".gitattributes").unlink()
    CLEAN(folder, evil)


def committed_attributes(folder: Path, evil: str) -> None:
    """Attributes that only the last commit has: plain git ignores them, our own tree does not."""
    (folder / ".gitattributes").write_text("*.txt filter=evil\n")
    git(folder, "add", ".gitattributes")
    git(folder, "commit", "-qm", "attributes")
    git(folder, "rm", "-q", ".gitattributes")
    CLEAN(folder, evil)


def junk_first(folder: Path, evil: str) -> None:
    """More settings than anybody reads, before the one that counts."""
    with (folder / ".git" / "config").open("a") as config:
        config.write("[junk]\n" + "\tx = " + "y" * 1000 + "\n")
        config.write(("\tx = " + "y" * 1000 + "\n") * 17_000)
    all_of(CLEAN, FILTERED)(folder, evil)


def many_filters(folder: Path, evil: str) -> None:
    """More than 4 MB of names of filters."""
    with (folder / ".git" / "config").open("a") as config:
        for number in range(9_000):
            config.write(f'[filter "{"x" * 500}{number}"]\n\tclean = {evil}\n')
    all_of(CLEAN, FILTERED)(folder, evil)


def included(condition: str) -> Way:
    def way(folder: Path, evil: str) -> None:
        append(folder / "more", "filter.evil.clean", evil)
        append(folder / "more", "core.fsmonitor", evil)
        append(folder / ".git" / "config", "remote.origin.url", "https://example.org/x")
        append(folder / ".git" / "config", condition, str(folder / "more"))
        FILTERED(folder, evil)

    return way


def worktree_settings(folder: Path, evil: str) -> None:
    append(folder / ".git" / "config", "core.repositoryformatversion", "1")
    append(folder / ".git" / "config", "extensions.worktreeConfig", "true")
    append(folder / ".git" / "config.worktree", "core.fsmonitor", evil)
    append(folder / ".git" / "config.worktree", "filter.evil.clean", evil)
    FILTERED(folder, evil)


def hooks(folder: Path, evil: str) -> None:
    for name in ("pre-commit", "post-index-change", "reference-transaction", "post-commit"):
        _program(folder / ".git" / "hooks" / name, evil)


def hooks_elsewhere(folder: Path, evil: str) -> None:
    for name in ("pre-commit", "post-index-change", "reference-transaction", "post-commit"):
        _program(folder / "hooks" / name, evil)
    append(folder / ".git" / "config", "core.hooksPath", str(folder / "hooks"))


def _program(path: Path, evil: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    shutil.copy(evil, path)


def signed_commit(folder: Path, evil: str) -> None:
    """A last commit with a signature, which is checked by a program when it is shown."""
    text = git(folder, "cat-file", "commit", "HEAD")
    head, _, message = text.partition("\n\n")
    signature = "gpgsig -----BEGIN PGP SIGNATURE-----\n \n x\n -----END PGP SIGNATURE-----"
    signed = git(
        folder, "hash-object", "-t", "commit", "-w", "--stdin", stdin=f"{head}\n{signature}\n\n{message}\n"
    )
    git(folder, "update-ref", "HEAD", signed)
    all_of(setting("log.showSignature", "true"), setting("gpg.program"))(folder, evil)


def submodule(folder: Path) -> Path:
    """A submodule at another commit than the one that is recorded, and with a changed file."""
    inner = folder / "inner"
    inner.mkdir()
    start(inner)
    git(folder, "add", "inner")
    git(folder, "commit", "-qm", "submodule", "inner")
    (inner / "a.txt").write_text("three\n")
    git(inner, "commit", "-qam", "three")
    (inner / "a.txt").write_text("four\n")
    os.utime(inner / "b.txt", (1, 1))
    return inner


def submodule_diff(folder: Path, evil: str) -> None:
    append(submodule(folder) / ".git" / "config", "diff.external", evil)
    append(folder / ".git" / "config", "diff.submodule", "diff")


def submodule_summary(folder: Path, evil: str) -> None:
    append(submodule(folder) / ".git" / "config", "core.fsmonitor", evil)
    append(folder / ".git" / "config", "status.submoduleSummary", "true")
    append(folder / ".git" / "config", "diff.ignoreSubmodules", "none")


def submodule_filter(folder: Path, evil: str) -> None:
    inner = submodule(folder)
    append(inner / ".git" / "config", "filter.evil.clean", evil)
    (inner / ".gitattributes").write_text("*.txt filter=evil\n")
    (folder / ".gitmodules").write_text('[submodule "inner"]\n\tpath = inner\n\turl = x\n\tignore = none\n')


def missing_object(folder: Path, evil: str) -> None:
    """A file of the last commit that only a remote has, which a program would fetch."""
    blob = git(folder, "rev-parse", "HEAD:a.txt")
    (folder / ".git" / "objects" / blob[:2] / blob[2:]).unlink()
    for name, value in {
        "core.repositoryformatversion": "1",
        "extensions.partialClone": "origin",
        "remote.origin.url": "ssh://host/x",
        "remote.origin.promisor": "true",
        "core.sshCommand": evil,
    }.items():
        append(folder / ".git" / "config", name, value)


def other_common_folder(folder: Path, evil: str) -> None:
    """Settings and hooks from where `commondir` says."""
    shutil.copytree(folder / ".git", folder / "common")
    append(folder / "common" / "config", "core.fsmonitor", evil)
    (folder / ".git" / "commondir").write_text("../common\n")


def other_git_folder(folder: Path, evil: str) -> None:
    """A `.git` that is a file."""
    append(folder / ".git" / "config", "core.fsmonitor", evil)
    (folder / ".git").rename(folder / "elsewhere")
    (folder / ".git").write_text("gitdir: elsewhere\n")


WAYS: dict[str, Way] = {
    "monitor": setting("core.fsmonitor"),
    "filter, attributes in the folder": all_of(CLEAN, FILTERED),
    "filter as a process": all_of(setting("filter.evil.process"), FILTERED),
    "required filter": all_of(CLEAN, setting("filter.evil.required", "true"), FILTERED),
    "filter, attributes in info": all_of(CLEAN, attributes("*.txt filter=evil\n", ".git/info/attributes")),
    "filter, attributes named by the settings": all_of(
        CLEAN, attributes("*.txt filter=evil\n", "named"), setting("core.attributesFile", "named")
    ),
    "filter, attributes only staged": staged_attributes,
    "filter after 16 MB of junk": junk_first,
    "4 MB of filters": many_filters,
    "included settings": included("include.path"),
    "settings included for the folder": included("includeIf.gitdir:**.path"),
    "settings included for the branch": included("includeIf.onbranch:main.path"),
    "settings of the worktree": worktree_settings,
    "external diff": setting("diff.external"),
    "diff driver": all_of(setting("diff.evil.command"), attributes("*.txt diff=evil\n")),
    "text conversion": all_of(setting("diff.evil.textconv"), attributes("*.txt diff=evil\n")),
    "hooks": hooks,
    "hooks elsewhere": hooks_elsewhere,
    "signature shown": signed_commit,
    "signature made": all_of(setting("commit.gpgSign", "true"), setting("gpg.program")),
    "signature by ssh": all_of(
        setting("commit.gpgSign", "true"),
        setting("gpg.format", "ssh"),
        setting("gpg.ssh.program"),
        setting("user.signingKey", "key::x"),
    ),
    "diff of a submodule": submodule_diff,
    "summary of a submodule": submodule_summary,
    "filter in a submodule": submodule_filter,
    "missing object": missing_object,
    "other common folder": other_common_folder,
    "git folder elsewhere": other_git_folder,
}
UNUSABLE = ("filter after 16 MB of junk", "4 MB of filters", "other common folder")
"""Those in which git is not used at all."""
