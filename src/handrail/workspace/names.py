"""What the names on a path say: git's, Handrail's own, or likely to hold a secret.

Names count as file systems elsewhere would read them: case, invisible characters, trailing dots and blanks,
alternate streams and short names of Windows make no difference.
"""

import re
from collections.abc import Iterable
from fnmatch import translate
from unicodedata import category, normalize

GIT = ".git"
STATE_FOLDERS = (".handrail", ".orchestration")
STATE_FILES = (".intentignore",)
SHORT_NAMES = {"git": GIT, "handra": ".handrail", "orches": ".orchestration", "intent": ".intentignore"}
"""How Windows shortens our names, up to the `~` and a number."""

SECRET_NAMES = (
    ".env*",
    "*.env",
    "*.pem",
    "*.key",
    "*.p12",
    "*.pfx",
    "*.p8",
    "*.ppk",
    "*.jks",
    "*.keystore",
    "*.kdbx",
    "*.tfstate",
    "*.tfvars",
    "id_rsa",
    "id_dsa",
    "id_ecdsa",
    "id_ed25519",
    "id_ecdsa_sk",
    "id_ed25519_sk",
    ".netrc",
    "_netrc",
    ".npmrc",
    ".pgpass",
    ".my.cnf",
    ".pypirc",
    ".htpasswd",
    ".dockercfg",
    ".git-credentials",
    ".vault-token",
    ".secrets",
    ".boto",
    ".s3cfg",
    "credentials",
    "credentials.json",
    "credentials.toml",
    "credentials.yml",
    "credentials.yaml",
    "secrets.json",
    "secrets.toml",
    "secrets.yml",
    "secrets.yaml",
    "service-account*.json",
    "service_account*.json",
    "client_secret*.json",
    "kubeconfig",
)
SECRET_FOLDERS = (".ssh", ".gnupg", ".aws", ".azure", ".kube", ".docker", ".gcloud", ".password-store")
EXAMPLE_ENDINGS = (".example", ".sample", ".template", ".tmpl", ".dist", ".defaults")
"""Made to be shared: they look like secrets and are none."""


SECRET_NAME = re.compile("|".join(map(translate, SECRET_NAMES)))


def folded(name: str) -> str:
    """The name that the most forgiving of file systems would take it for."""
    seen = "".join(each for each in normalize("NFKC", name) if category(each) != "Cf")
    plain = seen.partition(":")[0].rstrip(" .").casefold()
    short = re.fullmatch(r"([a-z]+)~\d+", plain)
    return SHORT_NAMES.get(short[1], plain) if short else plain


def split(path: str) -> list[str]:
    """The names of a path, also of one that was written for Windows, each as `folded` has it."""
    return [folded(name) for name in re.split(r"[/\\]", path) if name]


def is_git(names: Iterable[str]) -> bool:
    """Whether folded names lead to git's own files."""
    return GIT in names


def is_state(names: Iterable[str]) -> bool:
    """Whether folded names lead to Handrail's own files."""
    return any(name in STATE_FOLDERS + STATE_FILES for name in names)


def is_secret(name: str) -> bool:
    """Whether a file of this name is likely to hold a secret."""
    lower = name.lower()
    return not lower.endswith(EXAMPLE_ENDINGS) and SECRET_NAME.match(lower) is not None


def holds_secret(names: list[str]) -> bool:
    """Whether folded names lead to what is likely to be a secret."""
    return bool(names) and (is_secret(names[-1]) or any(name in SECRET_FOLDERS for name in names))
