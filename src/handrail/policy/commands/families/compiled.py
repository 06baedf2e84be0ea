"""Rules for Rust and Go."""

from functools import partial

from handrail.policy.commands.command_rule import Rule

CARGO = """
    -q|--quiet -v|--verbose -r|--release -p|--package=WORD --workspace --all --lib --bins --bin=WORD
    --examples --example=WORD --tests --test=WORD --benches --bench=WORD --all-targets -F|--features=TEXT
    --all-features --no-default-features --profile=WORD -j|--jobs=NUMBER --keep-going --locked --offline
    --frozen --color=WORD --message-format=WORD --exclude=WORD --doc --no-run --no-fail-fast
    --future-incompat-report --timings --target=TRIPLE
"""
CARGO_ASK = (
    "--config x, --manifest-path /x/Cargo.toml, --target-dir /x, -C /x, -Z unstable, --artifact-dir=x, "
    "--out-dir x, --lockfile-path x, --target x.json, --target ./x-y.json"
)
GO = """-v -x -n -race -a -msan -asan -trimpath -tags=WORD -p=NUMBER -mod=WORD -buildvcs=WORD"""
GO_TEST = f"""
    {GO} -run=TEXT -bench=TEXT -benchmem -benchtime=WORD -count=NUMBER -cover -covermode=WORD
    -coverpkg=GO_PACKAGE -coverprofile=ARTEFACT -failfast -json -list=TEXT -parallel=NUMBER -short
    -shuffle=WORD -skip=TEXT -timeout=WORD -fuzz=TEXT -fuzztime=WORD -vet=WORD -cpu=TEXT -fullpath
"""


def cargo(name: str) -> str:
    return ", ".join(f"cargo {name} {each}" for each in CARGO_ASK.split(", "))


cargo_rule = partial(Rule, options=CARGO, runs_code=True)
go_rule = partial(Rule, style="single", options=GO, arguments="GO_PACKAGE...", runs_code=True)

RULES = (
    cargo_rule(
        "cargo build, cargo check, cargo clippy",
        auto="cargo build --release, cargo check, cargo build --target a-b-c, cargo clippy",
        ask=f"{cargo('build')}, {cargo('check')}, cargo build x, cargo clippy --fix, cargo check -- -D x",
    ),
    cargo_rule(
        "cargo run",
        arguments="ARGUMENT...",
        after="REST",
        auto="cargo run, cargo run -- --help, cargo run -- a b",
        ask=f"{cargo('run')}, cargo run -- ../x, cargo run /etc/passwd",
    ),
    cargo_rule(
        "cargo test",
        arguments="TEXT?",
        after="REST",
        auto="cargo test, cargo test name, cargo test -- --nocapture, cargo test -p app name -- --exact",
        ask=f"{cargo('test')}, cargo test -- --logfile=/x",
    ),
    Rule(
        "cargo fmt",
        options="--check -q|--quiet -v|--verbose --all -p|--package=WORD",
        needs="--check",
        runs_code=True,  # the workspace may name another toolchain
        auto="cargo fmt --check, cargo fmt --all --check",
        ask="cargo fmt, cargo fmt --check --manifest-path x, cargo fmt --check -- x, cargo fmt -- --check",
    ),
    go_rule(
        "go build",
        auto="go build ./..., go build, go build -v ./cmd/app",
        ask="""
            go build -o /x ./..., go build -toolexec ./x ./..., go build -toolexec=./x, go build -overlay x,
            go build -modfile=x, go build -C /x, go build -ldflags=x, go build -gcflags=x, go build -exec x,
            go build -compiler gccgo, go build -pkgdir x
        """,
    ),
    go_rule("go vet", auto="go vet ./...", ask="go vet -vettool=./x ./..., go vet -C /x, go vet -toolexec x"),
    Rule(
        "go test",
        style="single",
        options=GO_TEST,
        arguments="GO_PACKAGE...",
        runs_code=True,
        auto="""
            go test ./... -run TestFoo, go test -race -count=1 ./..., go test -coverprofile=cover.out ./...
        """,
        ask="""
            go test -exec ./x ./..., go test -o x ./..., go test -toolexec=./x ./...,
            go test -coverprofile=main.go ./..., go test -outputdir=/x, go test -cpuprofile=a.go,
            go test ./... -args -x, go test -trace=x
        """,
    ),
    Rule(
        "go run",
        style="single",
        options=GO,
        arguments="GO_PACKAGE REST...",
        runs_code=True,
        auto="go run ., go run ./cmd/app --port 80, go run main.go",
        ask="go run, go run -exec ./x ., go run x.invalid/y@latest, go run -C /x ., go run -toolexec x .",
    ),
)
