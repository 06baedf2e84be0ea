"""A folder of documents with `questions.jsonl`, as a collection in BEIR layout of its paragraphs."""

import json
from pathlib import Path

from handrail.knowledge.documents.cut import cut
from handrail.knowledge.documents.plain import parse_markdown

QUESTIONS = "questions.jsonl"


def make_collection(source: Path, target: Path) -> None:
    """Write the layout; a paragraph is relevant for the questions whose quotes it has."""
    corpus: list[dict[str, str]] = []
    for path in sorted(source.glob("*.md")):
        parsed = parse_markdown(path.read_text(encoding="utf-8"))
        made = cut(parsed, name=path.name, source=path.name, tier="standard", sha256="", size=0)
        for number, each in enumerate(made.paragraphs):
            corpus.append({"_id": f"{path.stem}-{number}", "title": each.heading, "text": each.text})
    queries, qrels = [], ["query-id\tcorpus-id\tscore"]
    for number, line in enumerate((source / QUESTIONS).read_text(encoding="utf-8").splitlines()):
        row = json.loads(line)
        queries.append({"_id": f"q{number}", "text": row["question"]})
        stem = Path(row["document"]).stem
        [found] = [
            each for each in corpus if each["_id"].startswith(f"{stem}-") and row["quote"] in each["text"]
        ]
        qrels.append(f"q{number}\t{found['_id']}\t1")
    (target / "qrels").mkdir(parents=True)
    _write(target / "corpus.jsonl", [json.dumps(each) for each in corpus])
    _write(target / "queries.jsonl", [json.dumps(each) for each in queries])
    _write(target / "qrels" / "test.tsv", qrels)


def _write(path: Path, lines: list[str]) -> None:
    path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
