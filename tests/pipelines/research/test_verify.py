"""The thresholds of a report: at each it is verified, just below it is not."""

import pytest

from handrail.pipelines.research.labels import Labelled, Passage, Section, Sentence, Source
from handrail.pipelines.research.verify import judge

BOATS = "Boats carry salt."
TURNED = "Salt carries boats."


def labelled(said: list[str], bad: int = 0) -> Labelled:
    """These sentences, all with a label, and so many quotes that are in no source."""
    sentences = tuple(Sentence(text, (Passage(f"S{number}", text),)) for number, text in enumerate(said, 1))
    return Labelled((Section("", sentences),), tuple(f"no quote {each}" for each in range(bad)), ())


@pytest.mark.promise("RESEARCH-3")
@pytest.mark.parametrize(
    ("score", "draft", "source", "failed"),
    [
        ("citations", labelled([BOATS] * 3, bad=1), BOATS, ""),
        ("citations", labelled([BOATS] * 5, bad=2), BOATS, "citations 0.71, at least 0.75"),
        (
            "entities",
            labelled(["We saw Velmora, Tarn, Orrin, Hest, Marrow."]),
            "We saw Velmora, Tarn, Orrin, Hest.",
            "",
        ),
        (
            "entities",
            labelled(["We saw Velmora, Tarn, Orrin, Hest."]),
            "We saw Velmora, Tarn, Orrin.",
            "names and numbers 0.75, at least 0.80 are needed; in no source: Hest",
        ),
        ("relations", labelled([BOATS] * 7 + [TURNED] * 3), BOATS, ""),
        ("relations", labelled([BOATS] * 2 + [TURNED]), BOATS, "relations 0.67, at least 0.70"),
        ("contradictions", labelled([BOATS, TURNED]), f"{BOATS} {TURNED}", ""),
        (
            "contradictions",
            labelled(["Inspectors keep the report for 30 days.", "Inspectors keep the report for 14 days."]),
            "Inspectors keep the report for 30 days. Inspectors keep the report for 14 days.",
            "[S1] and [S2] may contradict each other",
        ),
    ],
)
def test_a_draft_is_verified_down_to_each_threshold(
    score: str, draft: Labelled, source: str, failed: str
) -> None:
    judged = judge(draft, [Source("S1", source)])
    assert len(judged.failed) == bool(failed), judged
    assert failed in "".join(judged.failed)
    if not failed:
        at = {"citations": 0.75, "entities": 0.8, "relations": 0.7, "contradictions": 0}
        assert getattr(judged.scores, score) == at[score]
