"""Vectors from a provider's model: what is sent, what is told, and what happens when it is out of reach."""

import http.server
import json
import os
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import ClassVar

import anyio
import pytest

from handrail.knowledge.adding import add
from handrail.knowledge.base import KnowledgeBase
from handrail.knowledge.open import open_base
from handrail.protocol.errors import Authenticate, ConfigProblem, ModelProblem
from tests.knowledge.samples import WordEncoder
from tests.knowledge.test_base import GUIDE


class Provider(http.server.BaseHTTPRequestHandler):
    """Embeds as the samples do, with so many numbers; remembers what it was sent."""

    numbers: ClassVar[int] = 100
    asked: ClassVar[list[tuple[str, list[str], str]]] = []
    wrong: ClassVar[str] = ""

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["content-length"])))
        self.asked.append((self.path, body["input"], self.headers.get("authorization", "")))
        vectors = WordEncoder().encode(body["input"])[:, : self.numbers] + 0.01
        rows = [{"index": at, "embedding": row.tolist()} for at, row in enumerate(vectors)]
        answer = {"object": "list", "data": rows[::-1], "model": body["model"]}
        if self.wrong == "short":
            answer["data"] = rows[:-1]
        data = json.dumps(answer).encode()
        self.send_response(500 if self.wrong == "broken" else 200)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, *_given: object) -> None: ...


@pytest.fixture
def provider(monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Provider)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    for name, value in (("numbers", 100), ("asked", []), ("wrong", "")):
        monkeypatch.setattr(Provider, name, value)
    yield f"http://127.0.0.1:{server.server_address[1]}/v1"
    server.shutdown()
    server.server_close()
    thread.join()


def opened(workspace: Path, address: str, model: str = "near/words-1") -> KnowledgeBase:
    file = Path(os.environ["HANDRAIL_HOME"], "config.toml")
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(
        f'knowledge.embeddings = "{model}"\n[connections.near]\nbase_url = "{address}"\n', encoding="utf-8"
    )
    return open_base(workspace, os.environ, "workspace")


def put(base: KnowledgeBase, folder: Path) -> None:
    """Add the guide, and make its vectors, in a thread without an event loop as everywhere."""
    (folder / "guide.md").write_text(GUIDE)
    with base.writing():
        anyio.run(add, base, [str(folder / "guide.md")])
        base.embed()


@pytest.mark.promise("KB-15")
def test_a_provider_makes_the_vectors_of_paragraphs_and_queries(tmp_path: Path, provider: str) -> None:
    base = opened(tmp_path, provider)
    put(base, tmp_path)
    assert [path for path, _, _ in Provider.asked] == ["/v1/embeddings"]
    assert any("keel fee" in text for text in Provider.asked[0][1])
    assert base.vectors.dimensions == 100
    words = base.model.told(4_000)
    assert words == "near/words-1 gets the texts: about 1,000 tokens, about 0.0000 USD."
    hit = base.search("Who inspects the lantern boats?")[0]
    assert (hit.by_words, hit.by_meaning) == (1, 1)
    base.close()


@pytest.mark.promise("KB-15")
def test_out_of_reach_a_search_goes_by_words_and_says_so(tmp_path: Path, provider: str) -> None:
    base = opened(tmp_path, provider)
    put(base, tmp_path)
    Provider.wrong = "broken"
    hits = base.search("keel fee")
    assert {hit.by_meaning for hit in hits} == {0}
    assert "The last search went by words alone: " in base.status().note
    for wrong in ("broken", "short"):
        Provider.wrong = wrong
        with pytest.raises(ModelProblem), base.writing():
            base.forget_vectors()
            base.embed()
        assert base.status().without_vector == base.status().paragraphs
    Provider.wrong = ""
    with base.writing():
        assert base.embed() == base.status().paragraphs
    base.close()


@pytest.mark.promise("KB-15")
def test_another_model_replaces_all_vectors_also_for_who_has_the_base_open(
    tmp_path: Path, provider: str
) -> None:
    base = opened(tmp_path, provider)
    put(base, tmp_path)
    reader = opened(tmp_path, provider)
    assert reader.search("keel fee")[0].by_meaning
    Provider.numbers = 30
    with base.writing():
        base.forget_vectors()
        base.embed()
    assert base.vectors.dimensions == 30
    hit = (reader.search("Who inspects the lantern boats?"))[0]
    assert (hit.by_words, hit.by_meaning) == (1, 1)
    reader.remove(reader.documents())
    assert reader.vectors.empty_slots(1) == {0}
    base.close()
    reader.close()


def test_a_model_that_cannot_be_used_is_told_before_anything_is_sent(tmp_path: Path) -> None:
    with pytest.raises(ConfigProblem, match="anthropic has no endpoint for embeddings"):
        opened(tmp_path, "http://127.0.0.1:9", "anthropic/claude-opus-5")
    base = opened(tmp_path, "http://127.0.0.1:9", "openai/text-embedding-3-small")
    assert base.model.told(4_000_000).endswith("about 1,000,000 tokens, about 0.0200 USD.")
    with pytest.raises(Authenticate, match="There is no key for openai"):
        put(base, tmp_path)
    base.close()
