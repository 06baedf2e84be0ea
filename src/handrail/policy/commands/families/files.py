"""Rules for looking at files and folders, and making new ones."""

from functools import partial

from handrail.policy.commands.command_rule import Rule
from handrail.policy.commands.git_hardening import DIFF_EXCLUDES

reads = partial(Rule, arguments="PATH...", reads_only=True)

RULES = (
    reads(
        "ls",
        options="""
            -a|--all -A|--almost-all -b|--escape -B|--ignore-backups -c -C -d|--directory -f -F
            --classify[=WORD] -g -G|--no-group -h|--human-readable -H -i|--inode -k -l -L -m
            -n|--numeric-uid-gid -N -o -p -q -Q -r|--reverse -R|--recursive -s|--size -S -t -u -U -v -x -X -Z
            -1 --si --full-time --group-directories-first --color[=WORD] --sort=WORD --time=WORD
            --time-style=TEXT --file-type --help --version --ignore=TEXT --hide=TEXT --width=NUMBER
            --indicator-style=WORD
        """,
        milder="-L=-H",
        auto="ls, ls -la src, ls -1 --color=never, ls -- src, ls -- -la",
        ask="ls --unheard-of, ls --col",
    ),
    Rule(
        "pwd", options="-L|--logical -P|--physical", reads_only=True, auto="pwd, pwd -P", ask="pwd x, pwd -x"
    ),
    reads(
        "cat",
        options="""
            -A|--show-all -b|--number-nonblank -e -E|--show-ends -n|--number -s|--squeeze-blank -t
            -T|--show-tabs -u -v|--show-nonprinting --help --version
        """,
        auto="cat README.md, cat -n a b, cat",
        ask="cat --from=x, cat -z a",
    ),
    reads(
        "head",
        options="-# -n|--lines=NUMBER -c|--bytes=NUMBER -q|--quiet|--silent -v|--verbose -z --help",
        auto="head, head -20, head -n 5 a, head --lines=3 a",
        ask="head -x a, head --li=3 a",
    ),
    reads(
        "tail",
        options="-# -n|--lines=NUMBER -c|--bytes=NUMBER -q|--quiet|--silent -v|--verbose -z --help",
        auto="tail -n 50 build.log, tail -5 a, tail -n +3 a",
        ask="tail -f app.log, tail -F a, tail --follow=name a, tail --pid=1 a, tail -5f a",
    ),
    reads(
        "wc",
        options="-c|--bytes -m|--chars -l|--lines -L|--max-line-length -w|--words --total=WORD",
        auto="wc -l a.py, wc",
        ask="wc --files0-from=x, wc -x",
    ),
    reads(
        "sort",
        options="""
            -b -d -f -g -h -i -M -n -r -R -s -u -V -z -c --reverse --unique --numeric-sort --version-sort
            -k|--key=TEXT -t|--field-separator=TEXT
        """,
        auto="sort -u a, sort -k 2 -t : a, sort -rn",
        ask="""
            sort -o a a, sort -uoa a, sort --output=a a, sort --compress-program=x a, sort -T /tmp a,
            sort --files0-from=x
        """,
    ),
    reads(
        "uniq",
        options="-c|--count -d|--repeated -u|--unique -i|--ignore-case -f=NUMBER -s=NUMBER -w=NUMBER",
        arguments="PATH?",
        auto="uniq -c, uniq a",
        ask="uniq a b, uniq --group a b",
    ),
    reads(
        "cut",
        options="-b|--bytes=TEXT -c|--characters=TEXT -d|--delimiter=ANY -f|--fields=TEXT -s --complement",
        auto="cut -d: -f1 a, cut -c 1-5",
        ask="cut --output=x a",
    ),
    reads(
        "diff",
        options="""
            -u|--unified[=NUMBER] -U=NUMBER -q|--brief -r|--recursive -w -b -B -i -y|--side-by-side -N -a -s
            --color[=WORD] -x|--exclude=TEXT --strip-trailing-cr
        """,
        arguments="PATH PATH",
        adds="--no-dereference",
        ends=DIFF_EXCLUDES,
        auto="diff a b, diff -ru a b, diff --color=never a b",
        ask="diff a, diff --from-file=x a, diff -l a b",
    ),
    reads(
        "stat",
        options="-L|--dereference -c|--format=TEXT -t|--terse",
        auto="stat a, stat -c %s a",
        ask="stat -x a",
    ),
    reads(
        "file",
        options="-b|--brief -i|--mime -h -0",
        auto="file a b, file --mime a",
        ask="file -f names, file -m magic a, file -C -m magic, file -z a, file -c a",
    ),
    reads(
        "du",
        options="-h -s -a -c -k -m -b -d|--max-depth=NUMBER --summarize --human-readable --apparent-size",
        auto="du -sh src, du -d 1",
        ask="du --files0-from=x, du -X x",
    ),
    reads(
        "which",
        options="-a",
        arguments="WORD...",
        auto="which python, which -a node",
        ask="which --read-alias, which /x",
    ),
    Rule("true", reads_only=True, auto="true", ask="true x"),
    reads(
        "basename, dirname",
        options="-a -z -s=TEXT",
        arguments="TEXT...",
        auto="basename a/b.py, dirname a/b.py",
        ask="basename --x a",
    ),
    reads("echo", arguments="ANY...", auto="echo hi, echo -n a - b, echo, echo --help /etc"),
    Rule(
        "mkdir",
        options="-p|--parents -v|--verbose --help",
        arguments="FILE FILE...",
        makes=True,
        auto="mkdir -p a/b, mkdir a b, mkdir -pv a",
        ask="mkdir, mkdir -m 777 a, mkdir -Z a",
    ),
    Rule(
        "touch",
        options="-a -c|--no-create -m --help",
        arguments="FILE FILE...",
        makes=True,
        auto="touch a, touch a b",
        ask="touch, touch -r /etc/passwd a, touch -t 199901010000 a",
    ),
)
