import pytest

from handrail.tools.commands.parse import parse_command


@pytest.mark.parametrize(
    ("command", "expected"),
    [
        ("echo x > docs/a.md", ["docs/a.md"]),
        ("cat <<EOF >> out.txt\nhi\nEOF\n", ["out.txt"]),
        ("make &> log", ["log"]),
        ("echo hi >&2 2>/dev/null", []),
        ("cd docs && touch a.md", ["docs/a.md"]),
        ("(cd x; rm y) && touch z", ["x/y", "z"]),
        ('cd "$HERE" && touch a', []),
        ("rm -rf src 'b c'", ["src", "b c"]),
        ("rm -- -x", ["-x"]),
        ("X=1 sudo rm q", ["q"]),
        ("/bin/rm q", ["q"]),
        ("mv a b", ["a", "b"]),
        ("cp -r a b c", ["c"]),
        ("cp -t docs a b", ["docs"]),
        ("mv --target-directory=docs a", ["a", "docs"]),
        ("pushd docs && touch a", ["docs/a"]),
        ("pushd docs && popd && touch a", []),
        ("sed -i 's/a/b/' x.py y.py", ["x.py", "y.py"]),
        ("sed -i -e 's/a/b/' x.py", ["x.py"]),
        ("sed -n p x.py", []),
        ("truncate -s 0 a", ["a"]),
        ("chmod +x run.sh", ["run.sh"]),
        ("dd if=a of=b", ["b"]),
        ("sort -o b a", ["b"]),
        ("git rm -r old", ["old"]),
        ("git checkout HEAD -- src/a", ["src/a"]),
        ("git restore -s HEAD~1 src/a", ["src/a"]),
        ("git restore --staged src/a", []),
        ("if true; then echo x | tee a; fi", ["a"]),
        ("for f in *.py; do rm $f; done", []),
        ("pytest -q", []),
        ("x=$(touch a) y=`rm b`", ["a", "b"]),
        ("touch $\\\n(rm a) b", []),
        ('touch "$\\\n(rm a)" b', ["$(rm a)", "b", "a"]),
    ],
)
def test_what_a_command_is_known_to_write(command: str, expected: list[str]) -> None:
    assert [target.text for target in parse_command(command).writes] == expected
