"""Files that make an editor, git, a shell, a test runner or a build service run something by itself."""

from handrail.policy.facts import PathFacts
from handrail.policy.scope import covers

RUNNING_FILES = (
    # editors and other agents
    "**/.vscode/**",
    "**/.idea/**",
    "**/*.code-workspace",
    "**/.devcontainer/**",
    "**/.devcontainer.json",
    "**/.mcp.json",
    "**/.cursor/**",
    "**/.claude/**",
    "**/.codex/**",
    "**/.gemini/**",
    "**/.zed/**",
    "**/.exrc",
    "**/.nvimrc",
    "**/.nvim.lua",
    "**/.dir-locals.el",
    # git and its hooks
    "**/.gitmodules",
    "**/.gitattributes",
    "**/.gitconfig",
    "**/.lfsconfig",
    "**/.husky/**",
    "**/.githooks/**",
    "**/.pre-commit-config.yaml",
    "**/lefthook.y*ml",
    "**/.lefthook.y*ml",
    # build services
    ".github/workflows/**",
    ".github/actions/**",
    ".gitlab-ci.yml",
    ".circleci/**",
    ".buildkite/**",
    ".travis.yml",
    "azure-pipelines.yml",
    "Jenkinsfile",
    # what allowed commands read before they do anything else
    "**/.cargo/config",
    "**/.cargo/config.toml",
    "**/.bazelrc",
    "**/.yarnrc",
    "**/.yarnrc.yml",
    "**/.yarn/releases/**",
    "**/.yarn/plugins/**",
    "**/.pnpmfile.cjs",
    "**/.pnp.cjs",
    "**/node_modules/.bin/**",
    "**/sitecustomize.py",
    "**/usercustomize.py",
    "**/*.pth",
    "**/.venv/**",
    "**/venv/bin/**",
    "**/.mvn/**",
    "**/gradle/wrapper/**",
    # shells
    "**/.bashrc",
    "**/.bash_profile",
    "**/.bash_login",
    "**/.bash_logout",
    "**/.profile",
    "**/.zshrc",
    "**/.zshenv",
    "**/.zprofile",
    "**/.config/fish/**",
    "**/.config/autostart/**",
    "**/.config/systemd/**",
)


def is_running_file(path: PathFacts) -> bool:
    """Whether what lies there, or the name it was given, is one of them."""
    return any(map(runs_something, {path.path, path.written}))


def runs_something(path: str) -> bool:
    """Whether a file at this path, relative to the workspace, is one of them, in any case of its letters."""
    lower = path.lower()
    likely = [pattern for part in {"", *lower.split("/")} for pattern in BY_NAME.get(part, ())]
    return any(covers(pattern, lower) for pattern in likely)


def _by_name() -> dict[str, list[str]]:
    """The patterns by a name that their paths have; by none where they have no such name."""
    found: dict[str, list[str]] = {}
    for pattern in RUNNING_FILES:
        name = next((part for part in pattern.lower().split("/") if "*" not in part), "")
        found.setdefault(name, []).append(pattern.lower())
    return found


BY_NAME = _by_name()
