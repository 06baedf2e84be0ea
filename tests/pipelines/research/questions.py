"""A small collection, and what a scripted model says to each stage of a research run."""

import json
import os
import shutil
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from handrail.knowledge.adding import add
from handrail.knowledge.open import open_base
from tests.pipelines.agents import EXAMPLES, as_json

QUESTION = "How many passengers does a ferry carry, and what do night crossings cost?"
PASSENGERS = "A ferry carries at most nineteen passengers and two goats."
NIGHT = "Night crossings cost double and need a pilot with a green lantern."
FLAME = "The ferryman must refuse anyone who carries an open flame without a shade."
QUESTIONS = ["How many passengers does a ferry carry?", "What do night crossings cost?"]
GOOD = {
    "evidence": [{"source": "S1", "quote": PASSENGERS}, {"source": "S1", "quote": NIGHT}],
    "answer": f"The ferry carries at most 19 passengers and two goats [S1]. {NIGHT}",
    "sections": [{"title": "Flames", "text": f"{FLAME[:-1]} [S9]."}],
}
BAD = {
    "evidence": [{"source": "S1", "quote": PASSENGERS.replace("nineteen", "twenty")}],
    "answer": "A ferry carries at most twenty passengers and two goats [S1]. Night crossings are free.",
}


async def collection(workspace: Path, *names: str) -> Path:
    """A workspace with documents of the example collection in its knowledge base."""
    folder = workspace / "docs"
    folder.mkdir(parents=True)
    for name in names or ("ferry-rules.md",):
        shutil.copy(EXAMPLES / "knowledge" / name, folder)
    await add_documents(workspace)
    return workspace


async def add_documents(workspace: Path) -> None:
    """Bring the knowledge base up to date with the workspace's documents."""
    base = open_base(workspace, os.environ, "workspace")
    try:
        with base.writing():
            await add(base, [str(workspace / "docs")])
    finally:
        base.close()


@contextmanager
def web_search(rows: Sequence[Mapping[str, str]]) -> Iterator[str]:
    """The address of a web search that always finds these."""

    class Found(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            data = json.dumps({"results": rows}).encode()
            self.send_response(200)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        def log_message(self, *_given: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Found)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}/"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def answers(*drafts: Mapping[str, Any], tells: str = "yes") -> Sequence[Any]:
    """The first draft, and the one that follows a repair."""
    first, *second = drafts or (GOOD,)
    return [
        as_json("The user's message:", {"means": "pipeline_response", "confidence": 0.9}),
        *(as_json("have to be corrected", each) for each in second),
        as_json("Output of search_web.results", {"questions": QUESTIONS, "changed": "nothing"}),
        as_json("Output of retrieve.context", first),
        as_json("Output of verify.said", {"tells": tells}),
        as_json("Question:\n", {"questions": QUESTIONS, "plan": "Both in two sentences.", "unclear": ""}),
    ]
