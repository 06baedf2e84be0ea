"""Which files belong to the tests of a project, by their paths."""

import re
from pathlib import PurePosixPath

TEST_FOLDERS = frozenset({"test", "tests", "testing", "spec", "specs", "__tests__", "__snapshots__", "e2e"})
TEST_NAME = re.compile(
    r"(?:test_.*|.*_test|tests?|conftest|.*[.-](?:test|spec)|.*(?:Test|Tests|Spec))\.\w+", re.ASCII
)


def is_test_file(path: str) -> bool:
    where = PurePosixPath(path)
    in_folder = any(part.lower() in TEST_FOLDERS for part in where.parts[:-1])
    return in_folder or any(TEST_NAME.fullmatch(name) for name in (where.name, where.name.lower()))
