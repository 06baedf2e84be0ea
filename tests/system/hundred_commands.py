"""A small repository, and a hundred commands as a large model writes them."""
# ruff: noqa: E501 - a command is one line

import os
import stat
import subprocess
from pathlib import Path
from typing import NamedTuple

FILES = {
    "README.md": "# Shop\n\nA small shop.\n",
    "pyproject.toml": '[project]\nname = "shop"\nversion = "0.1.0"\n',
    "package.json": '{\n  "name": "shop",\n  "version": "0.1.0",\n  "scripts": {"test": "node web/test.js"}\n}\n',
    ".gitignore": "*.log\n__pycache__/\nbuild/\n.venv/\nlocal.db\nnode_modules/\n",
    "src/shop/__init__.py": "",
    "src/shop/cart.py": (
        "class Cart:\n    def __init__(self):\n        self.items = []\n\n    def add(self, name, price):\n"
        "        self.items.append((name, price))\n\n    def total(self):\n"
        "        return sum(price for _, price in self.items)\n"
    ),
    "src/shop/tax.py": "RATE = 0.19\n\n\ndef with_tax(amount):\n    return amount * (1 + RATE)\n",
    "src/shop/old.py": "# to be removed\nTODO = 1\n",
    "tests/test_cart.py": (
        "import unittest\n\nfrom shop.cart import Cart\n\n\nclass CartTest(unittest.TestCase):\n"
        "    def test_total(self):\n        cart = Cart()\n        cart.add('tea', 3)\n"
        "        self.assertEqual(cart.total(), 3)\n"
    ),
    "web/app.js": "export function greet(name) {\n  return `Hello ${name}`;\n}\n",
    "web/test.js": "console.log('ok');\n",
    "data/prices.csv": "name,price\ntea,3\nmilk,2\nbread,4\n",
    "data/crlf.txt": "one\r\ntwo\r\n",
    "scripts/build.sh": "#!/bin/sh\nmkdir -p build && cp src/shop/*.py build/\n",
}
IGNORED = {
    "server.log": "started\n",
    "build/old.txt": "an earlier build\n",
    "local.db": "rows of a local database\n",
    ".venv/lib/site.py": "installed = True\n",
    "node_modules/left-pad/index.js": "module.exports = 1;\n",
    "src/shop/__pycache__/stale.pyc": "stale\n",
}


class Step(NamedTuple):
    command: str
    fails: bool = False


def make_repository(root: Path) -> None:
    """Three commits, ignored files, links, an empty folder, and work that is not committed."""
    for path, text in {**FILES, **IGNORED}.items():
        file = root / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(text.encode())
    (root / "scripts/build.sh").chmod(0o755)
    (root / "data/binary.bin").write_bytes(bytes(range(256)) * 40)
    (root / "current").symlink_to("src/shop")
    (root / "docs").mkdir()
    (root / "docs/index.md").symlink_to("../README.md")
    (root / "broken").symlink_to("nowhere")
    (root / "empty/inner").mkdir(parents=True)
    (root / "private").mkdir(mode=0o700)
    (root / "private/notes.txt").write_text("mine\n")
    for words in (("init", "-q", "-b", "main"), ("add", "-A"), ("commit", "-q", "-m", "Start")):
        _git(root, *words)
    for number, text in enumerate(("RATE = 0.20\n", "RATE = 0.21\n")):
        with (root / "src/shop/tax.py").open("a") as tax:
            tax.write(f"# {text}")
        _git(root, "commit", "-qam", f"Change {number}")
    (root / "src/shop/tax.py").write_text(FILES["src/shop/tax.py"] + "# not committed\n")
    (root / "untracked.txt").write_text("not in git\n")
    os.link(root / "untracked.txt", root / "same.txt")


def _git(root: Path, *words: str) -> None:
    identity = ["-c", "user.name=a", "-c", "user.email=a@example.org"]
    subprocess.run(["git", *identity, *words], cwd=root, check=True, capture_output=True)


def manifest(root: Path) -> dict[str, tuple[int, bytes]]:
    """Everything in a folder: kind and permissions, and what a file or link holds."""
    found: dict[str, tuple[int, bytes]] = {}
    for folder, folders, files in os.walk(os.fsencode(root)):
        for name in (*folders, *files):
            path = os.path.join(folder, name)
            mode, data = os.lstat(path).st_mode, b""
            if stat.S_ISLNK(mode):
                data = os.readlink(path)
            elif stat.S_ISREG(mode):
                with open(path, "rb") as file:
                    data = file.read()
            found[os.fsdecode(os.path.relpath(path, os.fsencode(root)))] = (mode, data)
    # git refreshes its index whenever it looks.
    return {path: each for path, each in found.items() if path != ".git/index"}


HUNDRED = [
    # Looking around
    Step("ls -la && pwd"),
    Step("cd src && ls -R . | head -20"),
    Step("git log --oneline -5 && git status --short"),
    Step("git diff HEAD~1 -- src | head -40"),
    Step("git blame -L 1,3 src/shop/tax.py"),
    Step("git show HEAD~1:src/shop/tax.py | wc -l"),
    Step("git grep -n RATE -- '*.py' | cut -d: -f1 | sort | uniq -c"),
    Step("git ls-files | xargs wc -l | tail -1"),
    Step("find . -name '*.py' -not -path './.venv/*' -exec grep -l class {} +"),
    Step('for f in src/shop/*.py; do printf \'%s %s\\n\' "$(wc -l < "$f")" "$f"; done'),
    Step("cat README.md pyproject.toml 2>/dev/null | sed -n '1,5p'"),
    Step("head -c 16 data/binary.bin | od -An -tx1"),
    Step("grep -rn 'no such thing' src", fails=True),
    Step('echo "home=$HOME user=${USER:-nobody} n=$(ls | wc -l)"'),
    Step("git log -1 --format='%h %s' > last_commit.txt && cat last_commit.txt"),
    # Editing with the shell
    Step("sed -i 's/0.19/0.20/' src/shop/tax.py"),
    Step(
        "sed -i.bak -e '1i # tax' -e 's/amount/value/g' src/shop/tax.py && diff src/shop/tax.py{.bak,}",
        fails=True,
    ),
    Step("rm src/shop/tax.py.bak"),
    Step(
        "cat > src/shop/discount.py <<'EOF'\ndef discount(total, percent):\n    return total * (100 - percent) / 100\nEOF"
    ),
    Step(
        "cat >> src/shop/cart.py <<EOF\n\n    def count(self):  # $(date +%Y | wc -c)\n        return len(self.items)\nEOF"
    ),
    Step("printf 'from shop.cart import Cart\\n' >> src/shop/__init__.py"),
    Step("awk -F, 'NR>1 {s+=$2} END {print s}' data/prices.csv"),
    Step("awk -F, 'BEGIN{OFS=\",\"} {print $1,$2,NR}' data/prices.csv > data/t && mv data/t data/prices.csv"),
    Step("tr -d '\\r' < data/crlf.txt > data/lf.txt; mv data/lf.txt data/crlf.txt"),
    Step("perl -pi -e 's/Hello/Good day/' web/app.js 2>/dev/null || sed -i 's/Hello/Good day/' web/app.js"),
    Step(
        "ed -s README.md <<'E' 2>/dev/null || echo '- ed is not here' >> README.md\n$a\n- a line by ed\n.\nw\nE"
    ),
    Step(
        "python3 - <<'E'\nimport json, pathlib\np = pathlib.Path('package.json')\nd = json.loads(p.read_text())\nd['private'] = True\np.write_text(json.dumps(d, indent=2) + '\\n')\nE"
    ),
    Step("python3 -c \"open('src/shop/api.py','w').write('def handler():\\\\n    return 200\\\\n')\""),
    Step("tee notes/a.txt notes/b.txt <<< hello", fails=True),
    Step("mkdir -p notes/{one,two}/deep && tee notes/a.txt notes/b.txt <<< hello >/dev/null"),
    Step(
        ": > notes/empty.txt; truncate -s 3 notes/a.txt; dd if=/dev/zero of=notes/zero bs=1k count=2 2>/dev/null"
    ),
    Step("echo one >> untracked.txt; echo 'two' | tee -a untracked.txt >/dev/null"),
    Step("cp -r src/shop src/shop_copy && rm -rf src/shop_copy/__pycache__"),
    Step("mv src/shop_copy/tax.py src/shop_copy/vat.py && mv src/shop_copy src/market"),
    Step("git diff > work.patch; wc -c work.patch"),
    Step(
        "cat > fix.patch <<'P'\n--- a/web/test.js\n+++ b/web/test.js\n@@ -1 +1,2 @@\n console.log('ok');\n+console.log('twice');\nP\npatch -p1 < fix.patch || git apply fix.patch"
    ),
    Step("git apply -R fix.patch && git apply fix.patch"),
    Step("rm -f src/shop/old.py work.patch"),
    Step('for i in $(seq 1 20); do echo "item $i" > notes/one/f$i.txt; done; ls notes/one | wc -l'),
    Step("find notes -name '*.txt' -newer README.md -print0 | xargs -0 -n 5 sed -i 's/item/thing/'"),
    # Tests and builds
    Step("cd src && PYTHONPATH=. python3 -m unittest discover -s ../tests -q"),
    Step("PYTHONPATH=src PYTHONDONTWRITEBYTECODE=1 python3 -m unittest tests.test_cart 2>&1 | tail -3"),
    Step("PYTHONPATH=src python3 -m compileall -q src"),
    Step("sh scripts/build.sh && ls build"),
    Step("(cd build && python3 -c 'import cart; print(cart.Cart().total())')"),
    Step(
        "command -v node >/dev/null && node -e \"require('fs').writeFileSync('web/made.js','x')\" || echo x > web/made.js"
    ),
    Step("make -n all 2>&1 | head -2; printf 'all:\\n\\techo built > build/made\\n' > Makefile"),
    Step("make -s all 2>/dev/null || echo built > build/made"),
    Step("echo 'assert 1 == 2' > tests/test_bad.py; python3 tests/test_bad.py", fails=True),
    Step("rm tests/test_bad.py; python3 -m py_compile src/shop/cart.py && echo compiled"),
    Step("time (sleep 0.01; true) 2>&1"),
    Step("python3 -m venv --without-pip envdir && envdir/bin/python -c 'print(1)'"),
    Step("rm -rf envdir"),
    # Shell programming
    Step('set -euo pipefail; x=3; ((x++)); [[ $x -eq 4 ]] && echo "x is $x"'),
    Step('names=(tea milk bread); for n in "${names[@]}"; do echo "${n^^} ${#n}"; done'),
    Step("declare -A price=([tea]=3 [milk]=2); echo $(( price[tea] + price[milk] ))"),
    Step('greet() { local who=${1:-you}; echo "hi $who"; }; greet; greet me | tee notes/greet.txt'),
    Step('case "$(uname -s)" in Linux) echo linux;; *) echo other;; esac'),
    Step('while IFS=, read -r name price _; do echo "$name=$price"; done < data/prices.csv'),
    Step("diff <(sort data/prices.csv) <(sort -r data/prices.csv)", fails=True),
    Step("trap 'echo cleaned > notes/trap.txt' EXIT; echo working"),
    Step('tmp=$(mktemp -d) && echo x > "$tmp/f" && cp "$tmp/f" notes/from_tmp.txt && rm -r "$tmp"'),
    Step("exec 3> notes/fd3.txt; echo through a descriptor >&3; exec 3>&-"),
    Step("{ echo a; echo b >&2; } > notes/out.txt 2> notes/err.txt"),
    Step("false || echo recovered; ! false"),
    Step("exit 3", fails=True),
    Step("until [ -f notes/until ]; do touch notes/until; done; test -e notes/until"),
    Step("printf '%s\\0' a b c | xargs -0 -I{} sh -c 'echo {} > notes/x_{}'"),
    Step("echo $((RANDOM % 1)) | grep -q '^0$' && let y=5*5 && echo $y"),
    Step("s='path/to/file.tar.gz'; echo \"${s##*/} ${s%%.*} ${s/to/from}\""),
    Step("select_one() { printf '%s\\n' \"$@\" | sort | head -1; }; select_one c b a"),
    Step("eval \"echo evaluated > notes/eval.txt\"; bash -c 'echo $0 > notes/inner.txt' inner"),
    # In the background of a command
    Step("(sleep 0.05; echo late > notes/late.txt) & wait"),
    Step("for i in 1 2 3; do (echo $i > notes/par$i) & done; wait; cat notes/par?"),
    Step(
        "python3 - <<'E'\nimport subprocess\nsubprocess.run(['sh', '-c', 'echo sub > notes/sub.txt'], check=True)\nE"
    ),
    Step("timeout 5 sh -c 'echo in time > notes/timeout.txt'"),
    Step("yes | head -100 > notes/yes.txt; wc -l < notes/yes.txt"),
    # Trees
    Step("chmod +x web/test.js && chmod 600 data/prices.csv && chmod 755 private"),
    Step("ln -s ../data notes/link && ln -sfn web current && rm broken && ln -s elsewhere broken"),
    Step("rm docs/index.md && echo '# Docs' > docs/index.md"),
    Step("rm README.md && mkdir README.md && echo inside > README.md/file"),
    Step("rm -r empty && echo 'now a file' > empty"),
    Step("mv private secret_folder && mkdir private && touch private/new"),
    Step("mkdir -p a/b/c/d && rmdir a/b/c/d && touch a/b/c/.keep"),
    Step("tar czf notes/src.tgz src && mkdir un && tar xzf notes/src.tgz -C un && rm -r un/src/shop"),
    Step("python3 -m zipfile -c notes/src.zip src && python3 -m zipfile -l notes/src.zip | wc -l"),
    Step(
        "touch $'notes/new\\nline' 'notes/with \"quotes\"' \"notes/it's\" $'notes/not\\377utf8' 'notes/-dash' notes/ü"
    ),
    Step("mkdir $'notes/odd\\376' && echo x > $'notes/odd\\376/f'"),
    Step("mkfifo notes/pipe; (echo through > notes/pipe &) ; cat notes/pipe"),
    Step("ln same.txt notes/third.txt; echo linked >> notes/third.txt"),
    Step("dd if=/dev/urandom of=data/binary.bin bs=1k count=3 conv=notrunc 2>/dev/null"),
    Step("truncate -s 5M notes/sparse.bin; cp --sparse=always notes/sparse.bin notes/sparse2.bin"),
    # What git ignores
    Step("echo more >> server.log; rm -rf build; rm local.db; echo new > local.db"),
    Step("rm -rf .venv/lib && echo changed > node_modules/left-pad/index.js"),
    Step(
        "mkdir -p node_modules/made/lib && for i in {1..300}; do echo $i > node_modules/made/lib/$i.js; done"
    ),
    Step("git clean -ndx | wc -l; git check-ignore -v server.log"),
    Step("git stash list; git branch -a; git tag -l; git remote -v; git config user.name || true"),
    Step("cp data/prices.csv .env.example && cp .env.example .env && echo KEY=made-up >> .env && cat .env"),
    Step("sed -i 's/made-up/changed/' .env; grep -c KEY .env"),
    Step(
        "find . -type f -not -path './.git/*' | sort | xargs -d '\\n' sha256sum 2>/dev/null | tail -1 | cut -c1-8"
    ),
]
"""A step with `fails` exits with something else than 0, as a real one would."""
