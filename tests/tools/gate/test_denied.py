"""`commands.deny` finds a command wherever it stands in a text."""

from collections.abc import Callable
from pathlib import Path

import pytest

from handrail.policy.commands.judge import command_lists
from handrail.tools.gate.command_facts import command_facts
from handrail.workspace.files import Workspace
from tests.tools.calls import Bench

MakeBench = Callable[..., Bench]
DENIED = ("rm", "git push", "docker rm", "npm run deploy", "./wipe.sh")

PROGRAMS = r"""
rm x
/bin/rm x
./rm x
\rm x
'r'm x
r"m" x
$'rm' x
A=b rm x
rm
$X rm y
"""
SYNTAX = r"""
x=$(rm x)
x=`rm x`
export X=$(rm x)
local X=$(rm x)
a=(1 $(rm x))
a[$(rm x)]=1
x+=$(rm x)
A=$(rm x) ls
echo $(rm x)
echo "a $(rm x) b"
echo ${a:-$(rm x)}
echo $((1 + $(rm x)))
(( a = $(rm x) ))
[[ -n $(rm x) ]]
[[ $(rm x) == a ]] && ls
case $(rm x) in a) ls;; esac
case a in $(rm x)) ls;; esac
case a in a) rm x;; esac
for x in $(rm x); do ls; done
for ((i = $(rm x); i < 2; i++)); do ls; done
while rm x; do ls; done
until rm x; do ls; done
if rm x; then ls; fi
if ls; then :; else rm x; fi
select x in $(rm x); do ls; done
{ rm x; }
( rm x )
! rm x
rm x &
time rm x
coproc rm x
coproc NAME { rm x; }
f() { rm x; }; f
function f { rm x; }
ls | rm x
ls |& rm x
ls || rm x
ls > $(rm x)
ls < <(rm x)
cat <(rm x)
ls > >(rm x)
let a=$(rm x)
declare -a x=($(rm x))
echo a; echo b; rm x
"""
WRAPPED = r"""
sudo rm x
sudo -u root rm x
sudo -u root -- rm x
sudo -E -u root /bin/rm x
sudo A=b rm x
doas -u root rm x
timeout 5 rm x
timeout -k 1 -s KILL 5 rm x
env rm x
env A=b rm x
env -i -u ls rm x
env -S 'rm x'
env '-Srm x'
env --split-string='rm x'
env -C cat rm x
nice -n 5 rm x
nohup rm x
ionice -c 3 rm x
setsid -w rm x
stdbuf -o L rm x
flock /tmp/lock rm x
flock lock -c 'rm x'
strace -f -o out rm x
busybox rm x
command rm x
command -p rm x
builtin command rm x
exec rm x
exec -a name rm x
watch -n 1 rm x
watch 'rm x'
xargs rm
ls | xargs -n 1 -0 rm
ls | xargs -I{} rm {}
parallel rm ::: a
parallel 'rm {}' ::: a
chroot / rm x
unshare -r rm x
su root -c 'rm x'
ssh host rm x
ssh host 'cd a; rm x'
sudo env timeout 5 nice rm x
sudo "$FLAGS" rm x
npx rm x
find . -exec rm {} ;
find . -name a -execdir rm {} +
find . -ok rm {} ;
find . -exec env rm {} ;
find . -exec sh -c 'rm "$1"' _ {} ;
script -c 'rm x' out
trap 'rm x' EXIT
trap rm EXIT
alias ll='rm x'
systemd-run --user rm x
"""
SHELLS = r"""
sh -c 'rm x'
sh -c rm
bash -c "rm x"
bash -lc 'rm x'
bash -cx 'rm x'
bash +ec 'rm x'
bash -ec 'cd a && rm x'
bash -o pipefail -c 'rm x'
bash --norc -c 'rm x'
bash -c -- 'rm x'
bash -c "rm $x"
bash -c "cd $d; rm x"
bash -c 'x=$(rm x)'
bash -c 'bash -c "rm x"'
bash -c 'sudo rm x'
sudo bash -c 'rm x'
env -i bash -c 'ls; rm x'
eval rm x
eval 'rm x'
eval "rm $x"
eval "$x rm y"
eval 'ls;' 'rm x'
eval eval eval rm x
bash <<< 'rm x'
bash <<< "rm $x"
sh -s <<< 'rm x'
echo 'rm x' | sh
echo rm x | bash
printf 'rm x' | sudo bash
echo 'rm x' | tee a | sh
bash <(echo rm x)
source <(echo rm x)
source /dev/stdin <<< 'rm x'
sh -c 'unfinished ( rm x'
unfinished ( ; rm x
"""
SUBCOMMANDS = r"""
git push
git -C . push
git -c a=b push
git -C . -c a=b push
git --git-dir=.git --work-tree=. push
git --git-dir .git push origin
git --no-pager push
git --no-pager -C a push
git -p push
git "$X" push
git -C "$X" push
sudo git -C . push
bash -c 'git -C . push'
x=$(git -C . push)
xargs git -C . push
docker --context x rm y
docker --host=x rm y
docker -H x -D rm y
npm run deploy
npm --prefix a run deploy
npm run --silent deploy
npm run -w a deploy
npm -s --prefix=a run -s deploy
./wipe.sh now
sudo ./wipe.sh
"""
LINES = (
    "$\\\n(rm x)",
    "echo $\\\n(rm x)",
    'echo "$\\\n(rm x)"',
    "x=$\\\n(rm x)",
    "r\\\nm x",
    "rm\\\n x",
    "ls &\\\n& rm x",
    "ls |\\\n| rm x",
    "ls \\\n; rm x",
    "cat <\\\n(rm x)",
    "echo $\\\n{a:-$(rm x)}",
    "git \\\n push",
    "git -C . \\\n  push",
    "su\\\ndo rm x",
    "cat <<E\n$(rm x)\nE",
    "cat <<E\n`rm x`\nE",
    "bash <<E\nrm x\nE",
    "bash <<'E'\nls\nrm x\nE",
    "sudo bash -s <<E\ncd $a\nrm x\nE",
    "cat <<E | sh\nrm $x\nE",
    "cat <<'E' | sudo bash\nrm x\nE",
    "ls\nrm x",
    "rm x\n)",
    "rm x\n'",
    "rm x\x07",
    "rm x; echo " + "y" * 20_000,
    "bash -c 'rm x' " + "y" * 20_000,
    "echo " + "$(" * 3_000 + "rm x" + ")" * 3_000,
    "; ".join(f"bash -c 'echo {number}'" for number in range(30)) + "; bash -c 'rm x'",
)
FINE = r"""
echo rm
echo rm x
echo 'rm x'
echo git push
grep rm file
grep -rn 'git push' .
git log -- push
git log push
git --no-pager log -- push
git --no-pager diff push
git -C . log push
git -c a=b diff -- push
git stash push
git status push
git commit -m 'rm x'
git rm x
git remote rm origin
docker ps
docker run rm
npm run build
npm run build deploy
npm rm x
ls rm
cat rm.txt
rmdir x
./rm.sh
find . -name rm
find . -name rm -exec cat {} +
bash build.sh rm
python rm
bash -c 'echo rm'
sh -c "grep rm file"
echo "$(echo rm)"
x=rm
x=$(grep rm file)
case rm in rm) ls;; esac
for x in rm push; do ls; done
[[ $x == rm ]]
cat <<< 'rm x'
echo 'rm x' | cat
echo 'rm x' > notes
sudo ls
timeout 5 pytest -q
wipe.sh
"""


def lines(text: str) -> list[str]:
    return [line for line in text.split("\n") if line]


def is_denied(text: str, root: Path, denied: tuple[str, ...] = DENIED) -> bool:
    return bool(command_facts(text, command_lists(("rm", "git push"), denied), Workspace(root)).judged.denied)


@pytest.mark.promise("CMD-14")
@pytest.mark.parametrize(
    "text",
    [*lines(PROGRAMS), *lines(SYNTAX), *lines(WRAPPED), *lines(SHELLS), *lines(SUBCOMMANDS), *LINES],
    ids=lambda text: text[:40],
)
def test_what_is_denied_is_found_in_every_spelling(tmp_path: Path, text: str) -> None:
    assert is_denied(text, tmp_path)


@pytest.mark.promise("CMD-14")
@pytest.mark.parametrize(
    "text", [*lines(FINE), "cat <<E\nrm x\nE", "cat > a.md <<'E'\nit's\nrm x\nE\nsh build.sh"]
)
def test_words_that_are_not_run_are_not_denied(tmp_path: Path, text: str) -> None:
    assert not is_denied(text, tmp_path)


@pytest.mark.promise("CMD-14")
def test_a_pattern_that_stands_for_a_denied_word_is_denied(tmp_path: Path) -> None:
    (tmp_path / "push").touch()
    assert is_denied("git pu*", tmp_path)
    assert is_denied("env [^x]ush", tmp_path, ("push",))


@pytest.mark.anyio
@pytest.mark.promise("CMD-14")
@pytest.mark.parametrize("mode", ["explore", "ask", "auto"])
async def test_nobody_is_asked_about_what_is_denied(make_bench: MakeBench, mode: str) -> None:
    bench = make_bench(mode, deny=DENIED, allow=("rm", "sudo rm x"))
    (bench.root / "x").touch()
    for text in ("x=$(rm x)", "timeout 5 rm x", "sudo rm x", "sh -c 'rm x'", "echo $\\\n(rm x)", "rm x\n)"):
        finished = await bench.call("run", command=text)
        assert finished.error is not None
        assert finished.error.reason == "command_not_allowed"
    assert bench.user.asked == []
    assert (bench.root / "x").exists()


def test_a_line_continuation_that_splits_a_token_is_asked_about(tmp_path: Path) -> None:
    lists = command_lists(())
    for text in ('echo "$\\\n(touch x)"', "echo $\\\n{HOME}", "echo 'a\\\nb'", "ls &\\\n& ls"):
        assert command_facts(text, lists, Workspace(tmp_path)).judged.problem, text
    for text in ("ls \\\n  -la", "ls \\\n && ls", 'echo "a\\\nb"', "l\\\ns -la"):
        assert command_facts(text, lists, Workspace(tmp_path)).judged.problem == "", text
