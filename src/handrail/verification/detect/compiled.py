"""The checks of Go and Rust projects, and of a Makefile."""

import re
from collections.abc import Iterator
from typing import Any

from handrail.tools.reports import compiled_tools
from handrail.tools.reports.issue import Issue
from handrail.verification.check import ANY_CODE, CACHE_FOLDER, Check
from handrail.verification.detect.part import Part

GO_MANIFEST, RUST_MANIFEST = "go.mod", "Cargo.toml"
MAKEFILES = ("GNUmakefile", "makefile", "Makefile")
TEST_TARGET = re.compile(r"(?m)^(?P<target>test|check)\s*:(?!=)")
GO_SUFFIXES, RUST_SUFFIXES = (".go",), (".rs",)
CARGO_FAILED = 101
# Without a network, asking for it only takes time.
GO_VARIABLES = {"GOPROXY": "off", "GOTOOLCHAIN": "local", "GOCACHE": f"{CACHE_FOLDER}/go"}
CARGO_VARIABLES = {"CARGO_NET_OFFLINE": "true", "CARGO_TARGET_DIR": f"{CACHE_FOLDER}/cargo"}


def go_checks(part: Part) -> Iterator[Check]:
    go = part.program("go")
    if not go:
        missing = "go is not installed: https://go.dev/doc/install"
        yield from (Check(kind, "go", missing=missing) for kind in ("lint", "build", "tests"))
        return

    def check(kind: Any, *words: str, reader: Any = compiled_tools.go_text) -> Check:
        codes = frozenset({1, 2})
        return Check(kind, "go", (go, *words), reader=reader, found_codes=codes, environ=GO_VARIABLES)

    def alone(issue: Issue) -> tuple[str, ...]:
        package, _, test = issue.test.rpartition(".")
        name = "/".join(f"^{re.escape(each)}$" for each in test.split("/"))
        return (go, "test", "-json", "-count=1", "-run", name, package) if package else ()

    yield check("lint", "vet", "./...")
    yield check("build", "build", "./...")
    yield check("tests", "test", "-json", "./...", reader=compiled_tools.go_test)._replace(alone=alone)


def rust_checks(part: Part) -> Iterator[Check]:
    cargo = part.program("cargo")
    if not cargo:
        missing = "cargo is not installed: https://rustup.rs"
        yield from (Check(kind, "cargo", missing=missing) for kind in ("build", "tests"))
        return
    clippy = part.program("cargo-clippy")
    codes = frozenset({1, CARGO_FAILED})

    def check(kind: Any, *words: str) -> Check:
        words = (cargo, *words)
        reader = compiled_tools.cargo
        # They lock the folder that they all write to, so they would only wait for each other.
        return Check(
            kind, "cargo", words, reader=reader, found_codes=codes, environ=CARGO_VARIABLES, writes=True
        )

    def alone(issue: Issue) -> tuple[str, ...]:
        return (cargo, "test", issue.test, "--", "--exact") if issue.test else ()

    yield check("build", "check", "--all-targets", "--message-format=json")
    if clippy:
        yield check("lint", "clippy", "--all-targets", "--message-format=json")
    yield check("tests", "test", "--message-format=json", "--no-fail-fast")._replace(alone=alone)


def make_checks(part: Part) -> Iterator[Check]:
    """`make test`, for a part whose tests nothing else runs."""
    for name in MAKEFILES:
        if found := TEST_TARGET.search(part.text(name)):
            make = part.program("make")
            if not make:
                yield Check("tests", "make", missing="make is not installed")
            else:
                yield Check("tests", "make", (make, found["target"]), found_codes=ANY_CODE, writes=True)
            return
