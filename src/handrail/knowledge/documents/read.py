"""Read a document: text in this process, and HTML, PDF and DOCX in a child with limits."""

import os
import sys
from importlib.util import find_spec

from msgspec import DecodeError, json

from handrail.config.extras import install_command
from handrail.knowledge.documents.child import Answer
from handrail.knowledge.documents.parsed import Kind, Parsed, Unreadable, decode_text
from handrail.knowledge.documents.plain import parse_code, parse_markdown, parse_text
from handrail.tools.process import NO_STDERR, SOURCE_ROOT, run_for_output
from handrail.tools.secrets import without_secrets

SECONDS = 60
"""Of the processor's time, for one document; the child gets three times as much until it is stopped."""
MAX_OUTPUT = 200_000_000
LIBRARIES = {"pdf": "pypdf", "docx": "docx"}
"""Of the extra `knowledge`."""
IN_PROCESS = {"markdown": parse_markdown, "text": parse_text, "code": parse_code}


async def read_document(data: bytes, kind: Kind, seconds: int = SECONDS) -> Parsed:
    """The text and blocks of a document; raises Unreadable. Nothing in it is run, loaded or followed."""
    if parse := IN_PROCESS.get(kind):
        parsed = parse(decode_text(data))
    else:
        parsed = await _in_child(data, kind, seconds)
    if not parsed.blocks:
        raise Unreadable("has no text.")
    return parsed


async def _in_child(data: bytes, kind: Kind, seconds: int) -> Parsed:
    if (library := LIBRARIES.get(kind)) and find_spec(library) is None:
        raise Unreadable(f"needs libraries that are missing. Run `{install_command('knowledge')}`.")
    code, output = await run_for_output(
        [sys.executable, "-P", "-m", "handrail.knowledge.documents.child", kind, str(seconds)],
        folder=SOURCE_ROOT,
        environment=without_secrets(os.environ) | {"PYTHONPATH": str(SOURCE_ROOT)},
        timeout=3 * seconds,
        limit=MAX_OUTPUT,
        stdin=data,
        stderr=NO_STDERR,
    )
    if len(output) >= MAX_OUTPUT:
        raise Unreadable(f"has more than {MAX_OUTPUT / 1e6:,.0f} MB of text.")
    try:
        answer = json.decode(output, type=Answer) if code == 0 else None
    except DecodeError:
        answer = None
    if answer is None and code is not None and code >= 0:
        raise Unreadable("could not be read: its reader failed. The file may be broken.")
    if answer is None:
        raise Unreadable(
            f"could not be read: its reader was stopped after {seconds} s, or for want of memory. "
            "The file may be broken, or made to do this."
        )
    if answer.parsed is None:
        raise Unreadable(answer.problem)
    return answer.parsed
