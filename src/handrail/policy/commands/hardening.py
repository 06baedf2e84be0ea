"""What keeps a repository from naming programs that git runs: settings of ours before its own."""

BEFORE = "GIT_OPTIONAL_LOCKS=0 GIT_NO_LAZY_FETCH=1 GIT_ALLOW_PROTOCOL=none"
OPTIONS = (
    "--no-pager -c core.fsmonitor=false -c core.hooksPath=/dev/null -c safe.bareRepository=explicit "
    "-c log.showSignature=false -c gpg.program=false -c gpg.ssh.program=false -c gpg.x509.program=false"
)
NO_PROGRAMS = "--no-ext-diff --no-textconv --ignore-submodules=dirty"
"""For commands that show differences."""

SECRET_GLOBS = (
    *(
        ".env",
        ".envrc",
        ".env.?",
        ".env.??",
        ".env.[!dest]*",
        ".env.d[!ei]*",
        ".env.de[!f]*",
        ".env.di[!s]*",
        ".env.e[!x]*",
    ),
    *(".env.s[!a]*", ".env.t[!em]*", ".env.te[!m]*", ".env[!.r]*", "?*.env"),
    *("*.pem", "*.key", "*.p12", "*.pfx", "*.p8", "*.ppk", "*.jks", "*.keystore", "*.kdbx", "*.tfstate"),
    *("*.tfvars", "id_rsa", "id_dsa", "id_ecdsa*", "id_ed25519*", ".netrc", "_netrc", ".npmrc", ".pgpass"),
    *(".my.cnf", ".pypirc", ".htpasswd", ".dockercfg", ".git-credentials", ".vault-token", ".secrets"),
    *(".boto", ".s3cfg", "credentials", "credentials.[jty]*", "secrets.[jty]*", "service[-_]account*.json"),
    *("client_secret*.json", "kubeconfig"),
)
"""Names that may hold secrets, in patterns that git, grep, rg and diff read alike; `.env.example` is none."""
SECRET_FOLDERS = (".ssh", ".gnupg", ".aws", ".azure", ".kube", ".docker", ".gcloud", ".password-store")
NOT_IN_GREP = " ".join(
    (*(f"--exclude={each}" for each in SECRET_GLOBS), *(f"--exclude-dir={each}" for each in SECRET_FOLDERS))
)
NOT_IN_RG = " ".join(f"--iglob=!{each}" for each in (*SECRET_GLOBS, *SECRET_FOLDERS))
NOT_IN_DIFF = " ".join(f"--exclude={each}" for each in (*SECRET_GLOBS, *SECRET_FOLDERS))
NOT_IN_GIT = " ".join(
    (
        *(f":(exclude,glob,icase)**/{each}" for each in SECRET_GLOBS),
        *(f":(exclude,glob,icase)**/{each}/**" for each in SECRET_FOLDERS),
    )
)
"""What searches and differences of whole folders leave out when nobody was asked; last, so that it counts."""
