"""The check as a program: files as JSON on standard input, what can be said of them as JSON on the output.

Grammars are C code, and a file may be anybody's: what goes astray costs this process and no other.
"""

import json
import resource
import sys

from handrail.changes.mutation.checking import Version, check_refactor

MEMORY = 1_000_000_000
DEEPEST = 20_000


def main() -> None:
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    sys.setrecursionlimit(DEEPEST)
    checked = check_refactor([Version(*each) for each in json.load(sys.stdin)])
    said = checked._asdict() | {"elsewhere": checked.elsewhere._asdict()}
    json.dump(said, sys.stdout)


if __name__ == "__main__":
    main()
