"""What keeps a repository from naming programs that git runs: settings of ours before its own."""

BEFORE = "GIT_OPTIONAL_LOCKS=0 GIT_NO_LAZY_FETCH=1 GIT_ALLOW_PROTOCOL=none"
OPTIONS = (
    "--no-pager -c core.fsmonitor=false -c core.hooksPath=/dev/null -c safe.bareRepository=explicit "
    "-c log.showSignature=false -c gpg.program=false -c gpg.ssh.program=false -c gpg.x509.program=false"
)
NO_PROGRAMS = "--no-ext-diff --no-textconv --ignore-submodules=dirty"
"""For commands that show differences."""
