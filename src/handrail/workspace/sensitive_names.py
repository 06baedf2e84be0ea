"""File names that belong to git or Handrail, or are likely to hold secrets.

Names are compared as any file system might read them: case, invisible characters, trailing dots and blanks,
alternate streams and short names of Windows make no difference.
"""

import re
from collections.abc import Iterable
from unicodedata import category, normalize

from handrail.protocol.globs import name_regex

GIT = ".git"
STATE_FOLDERS = (".handrail", ".orchestration")
STATE_FILES = (".intentignore",)
SHORT_NAMES = {"git": GIT, "handra": ".handrail", "orches": ".orchestration", "intent": ".intentignore"}
"""How Windows shortens our names, up to the `~` and a number."""

SECRET_NAMES = (
    *(".env*", "*.env", "*.pem", "*.key", "*.p12", "*.pfx", "*.p8", "*.ppk", "*.jks", "*.keystore", "*.kdbx"),
    *("*.tfstate", "*.tfvars", "id_rsa", "id_dsa", "id_ecdsa", "id_ed25519", "id_ecdsa_sk", "id_ed25519_sk"),
    *(".netrc", "_netrc", ".npmrc", ".pgpass", ".my.cnf", ".pypirc", ".htpasswd", ".dockercfg"),
    *(".git-credentials", ".vault-token", ".secrets", ".boto", ".s3cfg", "kubeconfig"),
    *("credentials", "credentials.json", "credentials.toml", "credentials.yml", "credentials.yaml"),
    *("secrets.json", "secrets.toml", "secrets.yml", "secrets.yaml"),
    *("service-account*.json", "service_account*.json", "client_secret*.json"),
)
SECRET_FOLDERS = (".ssh", ".gnupg", ".aws", ".azure", ".kube", ".docker", ".gcloud", ".password-store")
EXAMPLE_ENDINGS = (".example", ".sample", ".template", ".tmpl", ".dist", ".defaults")
"""Files that are made to be shared."""
SECRET_PATTERN = re.compile("|".join(map(name_regex, SECRET_NAMES)))


def normalize_name(name: str) -> str:
    """The name as the most tolerant file system reads it."""
    visible = "".join(each for each in normalize("NFKC", name) if category(each) != "Cf")
    plain = visible.partition(":")[0].rstrip(" .").casefold()
    short = re.fullmatch(r"([a-z]+)~\d+", plain)
    return SHORT_NAMES.get(short[1], plain) if short else plain


def normalized_parts(path: str) -> list[str]:
    """The normalized names of a path, which may be written for Windows."""
    return [normalize_name(name) for name in re.split(r"[/\\]", path) if name]


def leads_to_state(names: Iterable[str]) -> bool:
    return any(name in STATE_FOLDERS + STATE_FILES for name in names)


def is_protected_name(name: str) -> bool:
    """Whether a file or folder of this name belongs to git or Handrail."""
    return normalize_name(name) in (GIT, *STATE_FOLDERS, *STATE_FILES)


def is_secret_name(name: str) -> bool:
    lower = name.lower()
    return not lower.endswith(EXAMPLE_ENDINGS) and SECRET_PATTERN.fullmatch(lower) is not None


def leads_to_secret(names: list[str]) -> bool:
    return bool(names) and (is_secret_name(names[-1]) or any(name in SECRET_FOLDERS for name in names))
