"""Rules for git commands that only read."""

from functools import partial

from handrail.policy.commands.command_rule import Rule
from handrail.policy.commands.git_hardening import DIFF_OPTIONS, GIT_EXCLUDES

DIFF = """
    --stat[=WORD] --numstat --shortstat --summary --dirstat[=WORD] --compact-summary --name-only --name-status
    --raw -p|-u|--patch -s|--no-patch --patch-with-stat --patch-with-raw -U|--unified[=NUMBER]
    -W|--function-context --inter-hunk-context=NUMBER --minimal --patience --histogram --anchored=TEXT
    --diff-algorithm=WORD --word-diff[=WORD] --word-diff-regex=TEXT --color-words[=TEXT] --color[=WORD]
    --no-color --color-moved[=WORD] --no-color-moved --no-renames -M|--find-renames[=TEXT]
    -C|--find-copies[=TEXT] --find-copies-harder -w|--ignore-all-space -b|--ignore-space-change
    --ignore-space-at-eol --ignore-cr-at-eol --ignore-blank-lines -I|--ignore-matching-lines=TEXT
    --diff-filter=WORD -S=TEXT -G=TEXT --pickaxe-regex --pickaxe-all -R -a|--text --relative
    --exit-code --quiet --check --no-ext-diff --no-textconv --no-prefix --src-prefix=TEXT --dst-prefix=TEXT
    --default-prefix --abbrev[=NUMBER] --full-index --binary -z --indent-heuristic --no-indent-heuristic
"""
LOG = (
    DIFF
    + """
    --oneline -# -n|--max-count=NUMBER --skip=NUMBER --since|--after|--until|--before=TEXT
    --author|--committer=TEXT --grep=TEXT -i|--regexp-ignore-case -E|--extended-regexp -F|--fixed-strings
    -P|--perl-regexp --all-match --invert-grep --graph --decorate[=WORD] --no-decorate --decorate-refs=TEXT
    --all --branches[=TEXT] --tags[=TEXT] --remotes[=TEXT] --merges --no-merges --first-parent --reverse
    --follow --format[=FORMAT] --pretty[=FORMAT] --date=TEXT --relative-date --abbrev-commit
    --no-abbrev-commit --left-right --left-only --right-only --cherry --cherry-pick --cherry-mark --topo-order
    --date-order --author-date-order --full-history --dense --sparse --simplify-merges
    --simplify-by-decoration --ancestry-path --boundary --source --no-notes --notes[=WORD] -g|--walk-reflogs
    --no-walk --parents --children -m -c --cc --show-pulls --no-mailmap --use-mailmap --count
    --exclude=TEXT --not
"""
)
"""Not `-L`, which shows lines of files under their earlier names, where secrets are not left out."""
SHOW = (
    DIFF
    + """
    --oneline --decorate[=WORD] --no-decorate --decorate-refs=TEXT --format[=FORMAT] --pretty[=FORMAT]
    --date=TEXT --relative-date --abbrev-commit --no-abbrev-commit --no-walk --parents --children -m -c --cc
    --no-notes --notes[=WORD] --no-mailmap --use-mailmap --first-parent -# -n|--max-count=NUMBER --reverse
"""
)
"""Not `--all` and the like: references can point to files."""
reads_revisions = partial(Rule, arguments="REV...", after="PATHSPEC", reads_only=True)
reads = partial(Rule, reads_only=True)

RULES = (
    reads(
        "git status",
        options="""
            -s|--short -b|--branch --show-stash --porcelain[=WORD] --long -u|--untracked-files[=WORD]
            --ignored[=WORD] -z --ahead-behind --no-ahead-behind --renames --no-renames --find-renames[=TEXT]
            --column[=WORD] --no-column
        """,
        arguments="PATH...",
        after="PATHSPEC",
        adds="--ignore-submodules=dirty",
        auto="git status, git status -sb, git status --porcelain=v2 -uno, git status -- src",
        ask="git status -v, git status --por, git status --config x",
    ),
    reads_revisions(
        "git diff",
        options=f"{DIFF} --cached --staged --merge-base --base --ours --theirs",
        adds=DIFF_OPTIONS,
        ends=GIT_EXCLUDES,
        commits="",
        auto="git diff, git diff --stat HEAD~1, git diff HEAD^ -- a.py, git diff -U5 --cached",
        ask="git diff --output=a.py, git diff --output a.py, git diff --ext-diff, git diff --no-index a b",
    ),
    reads_revisions(
        "git log",
        options=LOG,
        adds=DIFF_OPTIONS,
        ends=GIT_EXCLUDES,
        ends_with=f"{DIFF} -m -c --cc",
        ends_clash="--follow",
        auto="git log -5, git log --oneline -n 3, git log --format=%h, git log -Sx -- a.py, git log a..b",
        ask="""
            git log --output=x, git log --format=%G?, git log --show-signature, git log --ext-diff -p,
            git log --follow -p -- a.py, git log -L 1:a.py""",
    ),
    reads_revisions(
        "git show",
        options=SHOW,
        adds=f"{DIFF_OPTIONS} --full-history --sparse",
        ends=GIT_EXCLUDES,
        commits="HEAD",
        auto="git show, git show HEAD:src/a.py, git show --stat abc123",
        ask="git show --textconv HEAD:a, git show --output=x, git show --show-signature, git show --all",
    ),
    reads_revisions(
        "git blame",
        options="""
            -b --root --show-stats -L=TEXT -l -t -s -f|--show-name -n|--show-number -e|--show-email -w -p
            --porcelain --line-porcelain -M[=NUMBER] --date=TEXT --since=TEXT --abbrev=NUMBER
        """,
        adds="--no-textconv",
        auto="git blame a.py, git blame -L 1,5 -- a.py, git blame HEAD~2 -- a.py",
        ask="git blame --contents /etc/passwd a.py, git blame --textconv a.py, git blame -C a.py",
    ),
    reads(
        "git branch",
        options="""
            -a|--all -r|--remotes -v|--verbose --show-current --no-color --color[=WORD] --sort=TEXT
            --format=FORMAT --merged[=REV] --no-merged[=REV] --contains=REV --no-contains=REV --points-at=REV
            -i|--ignore-case --abbrev[=NUMBER] --no-abbrev --column[=WORD] --no-column
        """,
        auto="""
            git branch, git branch -a, git branch -vv, git branch --show-current,
            git branch --sort=-committerdate --format=%(refname:short), git branch -r --merged
        """,
        ask="""
            git branch new, git branch -d x, git branch -M main, git branch --ed, git branch -u o/m,
            git branch --format=%(signature), git branch -a --merged main
        """,
    ),
    reads(
        """
            git branch --list, git branch -l, git branch -a --list, git branch --all --list,
            git branch -r --list, git branch --remotes --list
        """,
        options="-a|--all -r|--remotes -v|--verbose --sort=TEXT --no-color",
        arguments="TEXT...",
        auto="git branch --list, git branch --list feature/x, git branch --list -a",
        ask="git branch --list -D x, git branch --list --edit-description",
    ),
    reads(
        "git branch --merged, git branch --no-merged, git branch --contains",
        options="-a|--all -r|--remotes -v|--verbose --no-color",
        arguments="REV?",
        auto="git branch --merged, git branch --no-merged main, git branch --contains abc123 -a",
        ask="git branch --merged -d x, git branch --merged main other",
    ),
    reads(
        "git ls-files",
        options="""
            -c|--cached -d|--deleted -m|--modified -o|--others -i|--ignored -z -t -v --exclude-standard
            --directory --no-empty-directory --error-unmatch --full-name -x|--exclude=TEXT
        """,
        arguments="PATH...",
        after="PATHSPEC",
        auto="git ls-files, git ls-files -o --exclude-standard src",
        ask="git ls-files -X /etc/passwd, git ls-files --with-tree=x, git ls-files -s",
    ),
    reads(
        "git rev-parse",
        options="""
            --abbrev-ref[=WORD] --short[=NUMBER] --verify -q|--quiet --show-toplevel --show-prefix --symbolic
            --symbolic-full-name --is-inside-work-tree --show-cdup --all --branches --tags
        """,
        arguments="REV...",
        auto="git rev-parse HEAD, git rev-parse --abbrev-ref HEAD, git rev-parse --show-toplevel",
        ask="git rev-parse --parseopt, git rev-parse --sq-quote x, git rev-parse --resolve-git-dir /x",
    ),
)
