"""The bench of retrieval reads collections as other tools write them, and its figures are right."""

import json
from pathlib import Path

import pytest

from bench.retrieval import beir
from handrail.knowledge.base import KnowledgeBase
from tests.knowledge.samples import WORDS

BEIR_QRELS = "query-id\tcorpus-id\tscore\n1\t31715818\t2\n1\ta/b\t1\n1\t7\t0\nq 2\t7\t1\n"


def collection(folder: Path, qrels: str, name: str = "test.tsv") -> Path:
    rows = [
        {"_id": 31715818, "title": "", "text": "Boats are inspected in spring."},
        {"_id": "a/b", "title": "Boats", "text": "They sail at night.", "metadata": {"url": "x"}},
        {"_id": "7", "title": None, "text": "Copper is dug from the hill."},
        {"_id": "8", "title": "", "text": ""},
    ]
    queries = [
        {"_id": 1, "text": "inspected boats"},
        {"_id": "q 2", "text": "copper"},
        {"_id": "3", "text": "x"},
    ]
    (folder / "qrels").mkdir(parents=True)
    for file, lines in (("corpus.jsonl", rows), ("queries.jsonl", queries)):
        (folder / file).write_text("\ufeff" + "\n".join(map(json.dumps, lines)) + "\n\n", encoding="utf-8")
    (folder / "qrels" / name).write_text(qrels)
    return folder


@pytest.mark.parametrize("whole", [True, False])
@pytest.mark.parametrize(
    ("qrels", "name"),
    [
        (BEIR_QRELS, "test.tsv"),
        ("1 0 31715818 2\n1 0 a/b 1\n1 0 7 0\n", "test.txt"),
        ("1\tQ0\t31715818\t2.0\n1\tQ0\ta/b\t1.0\n", "test.tsv"),
    ],
)
def test_layouts_of_collections(tmp_path: Path, qrels: str, name: str, *, whole: bool) -> None:
    base = KnowledgeBase(tmp_path / "index", WORDS)
    folder = collection(tmp_path / "made", qrels, name)
    found = beir.run(base, folder, whole=whole)
    assert (found.documents, found.queries) == (3, 2 if qrels == BEIR_QRELS else 1)
    assert (found.ndcg10, found.recall100) == (1.0, 1.0)
    assert beir.run(base, folder, whole=whole).paragraphs == found.paragraphs  # nothing is there twice
    base.close()


def test_judgements_that_cannot_be_read_are_told(tmp_path: Path) -> None:
    with pytest.raises(SystemExit, match="line 2 is not a judgement"):
        beir.relevant(collection(tmp_path / "a", "1\t7\t1\n1\t7\tgood\n"))
    with pytest.raises(SystemExit, match="no judgement that a document is relevant"):
        beir.relevant(collection(tmp_path / "b", "query-id\tcorpus-id\tscore\n"))
    with pytest.raises(SystemExit, match=r"test.tsv is missing"):
        beir.relevant(collection(tmp_path / "c", "", "other"))


def test_gain_is_discounted_as_in_trec_eval() -> None:
    # 2/log2(2) + 1/log2(4) of at most 2/log2(2) + 1/log2(3)
    assert beir.ndcg_at(["a", "x", "b"], {"a": 2, "b": 1}, 10) == pytest.approx(2.5 / 2.63092975)
    assert beir.ndcg_at(["x"] * 10 + ["a"], {"a": 1}, 10) == 0.0
