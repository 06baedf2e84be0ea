"""Looking at files and folders, making new ones, and saying things."""

from handrail.policy.commands.hardening import NOT_IN_DIFF
from handrail.policy.commands.rule import rule

RULES = (
    rule(
        "ls",
        options="""
            -a|--all -A|--almost-all -b|--escape -B|--ignore-backups -c -C -d|--directory -f -F
            --classify[=WORD] -g -G|--no-group -h|--human-readable -H -i|--inode -k -l -L -m
            -n|--numeric-uid-gid -N -o -p -q -Q -r|--reverse -R|--recursive -s|--size -S -t -u -U -v -x -X
            -Z -1 --si --full-time --group-directories-first --color[=WORD] --sort=WORD --time=WORD
            --time-style=TEXT --file-type --help --version --ignore=TEXT --hide=TEXT --width=NUMBER
            --indicator-style=WORD
        """,
        arguments="PATH...",
        reads_only=True,
        auto=("ls", "ls -la src", "ls -1 --color=never", "ls -- src", "ls -- -la"),
        ask=("ls --unheard-of", "ls --col"),
    ),
    rule(
        "pwd",
        options="-L|--logical -P|--physical",
        reads_only=True,
        auto=("pwd", "pwd -P"),
        ask=("pwd x", "pwd -x"),
    ),
    rule(
        "cat",
        options="""
            -A|--show-all -b|--number-nonblank -e -E|--show-ends -n|--number -s|--squeeze-blank -t
            -T|--show-tabs -u -v|--show-nonprinting --help --version
        """,
        arguments="PATH...",
        reads_only=True,
        auto=("cat README.md", "cat -n a b", "cat"),
        ask=("cat --from=x", "cat -z a"),
    ),
    rule(
        "head",
        options="-# -n|--lines=NUMBER -c|--bytes=NUMBER -q|--quiet|--silent -v|--verbose -z --help",
        arguments="PATH...",
        reads_only=True,
        auto=("head", "head -20", "head -n 5 a", "head --lines=3 a"),
        ask=("head -x a", "head --li=3 a"),
    ),
    rule(
        "tail",
        options="-# -n|--lines=NUMBER -c|--bytes=NUMBER -q|--quiet|--silent -v|--verbose -z --help",
        arguments="PATH...",
        reads_only=True,
        auto=("tail -n 50 build.log", "tail -5 a", "tail -n +3 a"),
        ask=("tail -f app.log", "tail -F a", "tail --follow=name a", "tail --pid=1 a", "tail -5f a"),
    ),
    rule(
        "wc",
        options="-c|--bytes -m|--chars -l|--lines -L|--max-line-length -w|--words --total=WORD",
        arguments="PATH...",
        reads_only=True,
        auto=("wc -l a.py", "wc"),
        ask=("wc --files0-from=x", "wc -x"),
    ),
    rule(
        "sort",
        options="""
            -b -d -f -g -h -i -M -n -r -R -s -u -V -z -c --reverse --unique --numeric-sort --version-sort
            -k|--key=TEXT -t|--field-separator=TEXT
        """,
        arguments="PATH...",
        reads_only=True,
        auto=("sort -u a", "sort -k 2 -t , a", "sort -rn"),
        ask=(
            "sort -o a a",
            "sort -uoa a",
            "sort --output=a a",
            "sort --compress-program=x a",
            "sort -T /tmp a",
            "sort --files0-from=x",
        ),
    ),
    rule(
        "uniq",
        options="-c|--count -d|--repeated -u|--unique -i|--ignore-case -f=NUMBER -s=NUMBER -w=NUMBER",
        arguments="PATH?",
        reads_only=True,
        auto=("uniq -c", "uniq a"),
        ask=("uniq a b", "uniq --group a b"),
    ),
    rule(
        "cut",
        options="-b|--bytes=TEXT -c|--characters=TEXT -d|--delimiter=ANY -f|--fields=TEXT -s --complement",
        arguments="PATH...",
        reads_only=True,
        auto=("cut -d: -f1 a", "cut -c 1-5"),
        ask=("cut --output=x a",),
    ),
    rule(
        "diff",
        options="""
            -u|--unified[=NUMBER] -U=NUMBER -q|--brief -r|--recursive -w -b -B -i -y|--side-by-side -N -a -s
            --color[=WORD] -x|--exclude=TEXT --strip-trailing-cr
        """,
        arguments="PATH PATH",
        reads_only=True,
        adds="--no-dereference",
        ends=NOT_IN_DIFF,
        auto=("diff a b", "diff -ru a b", "diff --color=never a b"),
        ask=("diff a", "diff --from-file=x a", "diff -l a b"),
    ),
    rule(
        "stat",
        options="-L|--dereference -c|--format=TEXT -t|--terse",
        arguments="PATH...",
        reads_only=True,
        auto=("stat a", "stat -c %s a"),
        ask=("stat -x a",),
    ),
    rule(
        "file",
        options="-b|--brief -i|--mime -h -0",
        arguments="PATH...",
        reads_only=True,
        auto=("file a b", "file --mime a"),
        ask=("file -f names", "file -m magic a", "file -C -m magic", "file -z a", "file -c a"),
    ),
    rule(
        "du",
        options="-h -s -a -c -k -m -b -d|--max-depth=NUMBER --summarize --human-readable --apparent-size",
        arguments="PATH...",
        reads_only=True,
        auto=("du -sh src", "du -d 1"),
        ask=("du --files0-from=x", "du -X x"),
    ),
    rule(
        "which",
        options="-a",
        arguments="WORD...",
        reads_only=True,
        auto=("which python", "which -a node"),
        ask=("which --read-alias", "which /x"),
    ),
    rule("true", reads_only=True, auto=("true",), ask=("true x",)),
    rule(
        "basename",
        "dirname",
        options="-a -z -s=TEXT",
        arguments="TEXT...",
        reads_only=True,
        auto=("basename a/b.py", "dirname a/b.py"),
        ask=("basename --x a",),
    ),
    rule(
        "echo",
        arguments="ANY...",
        reads_only=True,
        auto=("echo hi", "echo -n a - b", "echo", "echo --help /etc"),
    ),
    rule(
        "mkdir",
        options="-p|--parents -v|--verbose --help",
        arguments="FILE FILE...",
        makes=True,
        auto=("mkdir -p a/b", "mkdir a b", "mkdir -pv a"),
        ask=("mkdir", "mkdir -m 777 a", "mkdir -Z a"),
    ),
    rule(
        "touch",
        options="-a -c|--no-create -m --help",
        arguments="FILE FILE...",
        makes=True,
        auto=("touch a", "touch a b"),
        ask=("touch", "touch -r /etc/passwd a", "touch -t 199901010000 a"),
    ),
)
