"""All rules, found by their words, and the list of commands that is in force where nobody has another."""

from functools import lru_cache

from handrail.policy.commands.rule import NamedPath, Rule
from handrail.policy.commands.script import Word

Words = tuple[str, ...]

DEFAULT: tuple[Words, ...] = tuple(
    tuple(entry.split())
    for entry in (
        *(
            "git status",
            "git diff",
            "git log",
            "git show",
            "git blame",
            "git branch",
            "git ls-files",
            "git rev-parse",
        ),
        *(
            "ls",
            "pwd",
            "cat",
            "head",
            "tail",
            "wc",
            "sort",
            "uniq",
            "cut",
            "diff",
            "stat",
            "file",
            "du",
            "which",
        ),
        *("find", "grep", "rg", "echo", "true", "mkdir", "touch", "basename", "dirname"),
        *("python", "python3", "pip install", "pytest", "ruff", "mypy"),
        *("npm install", "npm ci", "npm run", "npm test", "npm ls", "tsc"),
        *("yarn install", "yarn test", "yarn build", "pnpm install", "pnpm test", "pnpm build"),
        *("cargo build", "cargo run", "cargo test", "cargo check", "go build", "go run", "go test", "go vet"),
    )
)
SAME = {("git", "--no-pager"): ("git",)}
"""Words that mean the same as others at the beginning of a command."""
WITH_SUBCOMMANDS = frozenset(("git", "npm", "yarn", "pnpm", "pip", "cargo", "go", "ruff", "docker", "uv"))
INTERPRETERS = frozenset(
    (
        *("node", "deno", "bun", "perl", "ruby", "php", "lua", "python", "python3", "pypy3"),
        *("sh", "bash", "dash", "zsh", "fish", "ksh"),
    )
)
"""Programs that run a file, or else what an option or their input says."""
RUNNERS = frozenset(
    (
        *("busybox", "env", "xargs", "parallel", "sudo", "doas"),
        *("su", "nohup", "nice", "ionice", "timeout", "time", "watch", "strace", "ltrace", "gdb", "setsid"),
        *("stdbuf", "chroot", "flock", "eval", "exec", "command", "builtin", "source", ".", "trap", "alias"),
        *("hash", "enable", "coproc", "awk", "gawk", "mawk", "sed", "ssh", "npx", "bunx", "uvx", "pipx"),
    )
)
"""Programs that run what their words say: an entry for one of them covers only the very same words."""
LONGEST = 4
"""Words of the longest command that has a rule."""


@lru_cache(maxsize=1)
def rules() -> dict[Words, Rule]:
    """Every rule by the words of its command."""
    from handrail.policy.commands.families import compiled, files, git, node, python, searching

    families = (git, files, searching, python, node, compiled)
    return {words: rule for family in families for rule in family.RULES for words in rule.words}


def rule_for(words: Words) -> tuple[int, Rule] | None:
    """The rule of the most words that a command begins with, and how many; it holds its own examples."""
    known = rules()
    for length in range(min(len(words), LONGEST), 0, -1):
        if words[:length] in known:
            return length, _checked(words[:length])
    return None


@lru_cache(maxsize=1_000)
def _checked(words: Words) -> Rule:
    check(rules()[words])
    return rules()[words]


def check(rule: Rule) -> None:
    """Raises ValueError where a rule does not say of its examples what they stand for."""
    for text, wanted in (*((each, True) for each in rule.auto), *((each, False) for each in rule.ask)):
        words = tuple(text.split())
        begins = next((each for each in rule.words if words[: len(each)] == each), None)
        if begins is None:
            raise ValueError(f"{text!r} is no example of {rule.name}")
        read = rule.read([Word(word) for word in words[len(begins) :]])
        if (not read.problem and not any(map(leads_away, read.paths))) is not wanted:
            raise ValueError(
                f"{text!r} should {'run' if wanted else 'be asked about'} ({read.problem or 'no problem'})"
            )


def leads_away(path: NamedPath) -> bool:
    """Whether a path is outside by the look of it; where it really leads is for the facts to say."""
    return path.text.startswith("/") or ".." in path.text.split("/")
