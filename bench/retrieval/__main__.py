"""Run a collection, or generated paragraphs; docs/knowledge.md has figures."""

import argparse
import os
import tempfile
from pathlib import Path

from bench.retrieval import beir, generated, questions
from handrail.knowledge.base import EmbeddingModel, KnowledgeBase
from handrail.knowledge.embeddings.model import embedding_model


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.retrieval")
    parser.add_argument(
        "folder", nargs="?", type=Path, help="a collection in BEIR layout, or documents with questions.jsonl"
    )
    parser.add_argument("--index", type=Path, help="where the index is kept for the next run")
    parser.add_argument("--cut", action="store_true", help="cut documents into paragraphs, as `kb add` does")
    parser.add_argument("--words", action="store_true", help="without the embedding model")
    parser.add_argument("--generated", type=int, metavar="N", help="N generated paragraphs instead")
    parser.add_argument("--kills", type=int, default=10, help="of the indexing process, at random moments")
    parser.add_argument("--fill", nargs=2, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.fill:
        generated.fill(Path(given.fill[0]), int(given.fill[1]))
        return
    with tempfile.TemporaryDirectory() as scratch:
        folder = given.index or Path(scratch, "index")
        if given.generated:
            generated.run(folder, given.generated, given.kills)
            return
        if not given.folder:
            parser.error("name a folder, or --generated N")
        model = embedding_model(os.environ)
        if given.words or model.missing:
            print(f"by words alone{'' if given.words else ': ' + model.missing}")
            model = EmbeddingModel("", model.load, "left out")
        base = KnowledgeBase(folder, model)
        collection = given.folder
        if (collection / questions.QUESTIONS).exists():
            collection = Path(scratch, "collection")
            questions.make_collection(given.folder, collection)
        found = beir.run(base, collection, whole=not given.cut)
        base.close()
    print(
        f"{found.documents:,} documents, {found.paragraphs:,} paragraphs, {found.queries:,} queries\n"
        f"nDCG@10 {found.ndcg10:.4f}   R@100 {found.recall100:.4f}\n"
        f"search p50 {found.query_ms:.1f} ms, and {found.vector_ms:.1f} ms for the query's vector\n"
        f"index {found.index_seconds:.1f} s for texts, {found.embed_seconds:.1f} s for vectors"
    )


if __name__ == "__main__":
    main()
