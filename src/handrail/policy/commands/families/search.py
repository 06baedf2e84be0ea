"""Rules for find, grep and rg."""

from handrail.policy.commands.command_rule import Rule
from handrail.policy.commands.git_hardening import GREP_EXCLUDES, RG_EXCLUDES

RULES = (
    Rule(
        "find",
        style="single",
        options="""
            -name=TEXT -iname=TEXT -path=TEXT -ipath=TEXT -wholename=TEXT -iwholename=TEXT -regex=TEXT
            -iregex=TEXT -regextype=WORD -lname=TEXT -ilname=TEXT -type=WORD -xtype=WORD -size=NUMBER
            -mtime=NUMBER -mmin=NUMBER -atime=NUMBER -amin=NUMBER -ctime=NUMBER -cmin=NUMBER -newer=PATH
            -anewer=PATH -cnewer=PATH -newermt=TEXT -samefile=PATH -maxdepth=NUMBER -mindepth=NUMBER
            -links=NUMBER -perm=MODE -user=WORD -group=WORD -print -print0 -printf=TEXT -ls -not -a -o -and
            -or -prune -empty -depth -mount -xdev -readable -writable -executable -true -false -quit -noleaf
            -daystart -nouser -nogroup --help --version
        """,
        arguments="PATH...",
        reads_only=True,
        auto="""
            find . -name x.py, find src -type f -size +10k -mtime -7,
            find . ( -name a -o -name b ) -not -path ./x -print, find . ! -name a
        """,
        ask="""
            find . -exec rm {} ;, find . -delete, find . -ok x ;, find . -execdir x ;, find . -fprint a,
            find . -fprintf a b, find . -fls a, find . -files0-from x, find . -name -delete, find -L .
        """,
    ),
    Rule(
        "grep",
        options="""
            -# -r|--recursive -R|--dereference-recursive -n|--line-number -i|--ignore-case
            -l|--files-with-matches -L|--files-without-match -c|--count -v|--invert-match -w|--word-regexp
            -x|--line-regexp -o|--only-matching -h|--no-filename -H|--with-filename -E|--extended-regexp
            -F|--fixed-strings -G|--basic-regexp -P|--perl-regexp -s|--no-messages -q|--quiet|--silent
            -z|--null-data -Z|--null -a|--text -I -U|--binary -b|--byte-offset -T|--initial-tab
            -A|--after-context=NUMBER -B|--before-context=NUMBER -C|--context=NUMBER -m|--max-count=NUMBER
            --include=GLOB --exclude=TEXT --exclude-dir=TEXT --color[=WORD] --colour[=WORD] --line-buffered
            --no-ignore-case --label=TEXT -d|--directories=WORD --binary-files=WORD -e|--regexp=SOUGHT
            -f|--file=PATH --help -V|--version
        """,
        arguments="TEXT PATH...",
        instead="-e --regexp -f --file",
        reads_only=True,
        ends=f"{GREP_EXCLUDES} --exclude-dir=.git",
        milder="-R=-r --dereference-recursive=--recursive",
        auto="""
            grep -rn x src, grep x a b, grep -e x a, grep -A3 x a, grep --include=*.py -r x, grep -- -v a,
            grep -e -v a
        """,
        ask="""
            grep, grep -r /etc -e root, grep -rn ../x --regexp=y, grep --exclude-from=x -r y,
            grep --unheard-of x a, grep -D read x a, grep -e -- a
        """,
    ),
    Rule(
        "rg",
        options="""
            -n|--line-number -N|--no-line-number -i|--ignore-case -s|--case-sensitive -S|--smart-case -l
            --files-with-matches --files-without-match -c|--count --count-matches -v|--invert-match
            -w|--word-regexp -x|--line-regexp -o|--only-matching -F|--fixed-strings -P|--pcre2 -U|--multiline
            -a|--text -q|--quiet --hidden --no-heading --heading --no-filename --with-filename -H -I --column
            --vimgrep --json --stats --files --trim -A|--after-context=NUMBER -B|--before-context=NUMBER
            -C|--context=NUMBER -m|--max-count=NUMBER -g|--glob=GLOB --iglob=GLOB -t|--type=WORD
            -T|--type-not=WORD -d|--max-depth=NUMBER --color=WORD --sort=WORD -e|--regexp=SOUGHT --type-list
            --help --version
        """,
        arguments="TEXT PATH...",
        instead="-e --regexp --files --type-list",
        reads_only=True,
        adds="--no-config",
        ends=RG_EXCLUDES,
        auto="rg x, rg -n -t py x src, rg --files src, rg -g *.py x",
        ask="rg --pre cat x, rg --pre=cat x, rg --hostname-bin=x y, rg -z x, rg --search-zip x, rg -f x",
    ),
)
