import os
import random
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from handrail.knowledge.base import KnowledgeBase
from tests.knowledge.index_child import DOCUMENTS, LONG, PARAGRAPHS, text_of
from tests.knowledge.samples import WORDS, WordEncoder

ROOT = Path(__file__).parents[2]
MOST_RUNS = 60


def start_child(folder: Path, *arguments: str) -> "subprocess.Popen[bytes]":
    return subprocess.Popen(
        [sys.executable, "-m", "tests.knowledge.index_child", str(folder), *arguments],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": f"{ROOT / 'src'}{os.pathsep}{ROOT}"},
        stdout=subprocess.PIPE,
    )


@pytest.mark.promise("KB-5")
def test_replacing_a_document_killed_at_random_moments_leaves_the_old_or_the_new_version(
    tmp_path: Path,
) -> None:
    dice, versions = random.Random(23), set[int]()
    for _ in range(8):
        child = start_child(tmp_path, "replace")
        assert child.stdout
        begun = int(child.stdout.readline())
        while begun == 0 or dice.random() < 0.4:
            begun = int(child.stdout.readline())
        try:
            child.wait(timeout=dice.random() * 0.1)
        except subprocess.TimeoutExpired:
            child.send_signal(signal.SIGKILL)
        child.wait()
        begun = max([begun, *map(int, child.stdout.read().split())])
        child.stdout.close()
        base = KnowledgeBase(tmp_path, WORDS)
        [document] = base.documents()
        texts = [each.text for each in base.store.in_order(document.number, 0, LONG + 1)]
        number = int(document.sha256)
        assert texts == [f"Paragraph {each} of version {number}." for each in range(LONG)]
        assert number in (begun - 1, begun)
        assert base.store.problems() == []
        versions.add(number)
        base.close()
    assert len(versions) > 3


@pytest.mark.promise("KB-5")
def test_indexing_killed_at_random_moments_loses_and_doubles_nothing(tmp_path: Path) -> None:
    dice = random.Random(22)
    killed = 0
    for _ in range(MOST_RUNS):
        child = start_child(tmp_path)
        assert child.stdout
        # Each commit is one line: kill it a random moment after a random one of them.
        for _ in range(dice.randint(1, 6)):
            if not child.stdout.readline():
                break
        try:
            child.wait(timeout=dice.random() * 0.05)
        except subprocess.TimeoutExpired:
            killed += 1
            child.send_signal(signal.SIGKILL)
            child.wait()
        else:
            assert child.returncode == 0
            break
        finally:
            child.stdout.close()
    else:
        pytest.fail("it never came to its end")
    assert killed > 2
    base = KnowledgeBase(tmp_path, WORDS)
    found = [
        each.text for document in base.documents() for each in base.store.in_order(document.number, 0, 99)
    ]
    assert sorted(found) == sorted(text_of(d, p) for d in range(DOCUMENTS) for p in range(PARAGRAPHS))
    status = base.status()
    assert (status.paragraphs, status.without_vector) == (DOCUMENTS * PARAGRAPHS, 0)
    assert base.store.slots_used() == DOCUMENTS * PARAGRAPHS
    assert base.store.problems() == []
    assert not base.vectors.empty_slots(base.store.slots_used())
    for document in range(0, DOCUMENTS, 7):  # each paragraph has its own vector
        vector = WordEncoder().encode([f"doc{document}\n{text_of(document, 1)}"])[0]
        slot, cosine = base.vectors.search(vector, base.store.slots_used(), 1)[0]
        assert cosine > 0.99
        [paragraph] = base.store.paragraphs([base.store.by_slots([slot])[slot]])
        assert paragraph.text == text_of(document, 1)
    base.close()
