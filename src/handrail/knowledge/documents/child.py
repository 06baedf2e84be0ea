"""The child process that reads one document: `python -m handrail.knowledge.documents.child pdf 60`.

The number limits its processor time, in seconds. The document is on standard input. On standard output
is the text with its blocks, or why it cannot be read.
"""

import resource
import sys

from msgspec import Struct, json

from handrail.knowledge.documents.parsed import Parsed, Unreadable
from handrail.knowledge.documents.rich import parse_docx, parse_html, parse_pdf

MEMORY = 1_500_000_000
PARSERS = {"html": parse_html, "pdf": parse_pdf, "docx": parse_docx}


class Answer(Struct):
    parsed: Parsed | None = None
    problem: str = ""


def main() -> None:
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    resource.setrlimit(resource.RLIMIT_CPU, (int(sys.argv[2]), int(sys.argv[2])))
    resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))  # it cannot write a file
    try:
        answer = Answer(PARSERS[sys.argv[1]](sys.stdin.buffer.read()))
    except Unreadable as problem:
        answer = Answer(problem=str(problem))
    except MemoryError:
        answer = Answer(problem=f"needs more than {MEMORY / 1e9:.1f} GB of memory to be read.")
    sys.stdout.buffer.write(json.encode(answer))


if __name__ == "__main__":
    main()
