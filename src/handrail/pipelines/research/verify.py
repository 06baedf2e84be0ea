"""Check a draft by code: four scores with a threshold each, and what has to be written again."""

from collections.abc import Sequence
from typing import NamedTuple

import anyio.to_thread
from msgspec import convert

from handrail.engine.pipeline import Failed, Output, Outputs, Passed, StepContext, Verdict
from handrail.knowledge.checks.contradictions import find_contradictions
from handrail.knowledge.checks.entities import check_entities
from handrail.knowledge.checks.relations import check_relations
from handrail.pipelines.agent_file import Texts, look_up
from handrail.pipelines.research.depth import read_question
from handrail.pipelines.research.labels import Labelled, Source, label_draft, quotes_instead
from handrail.pipelines.research.retrieve import FoundSources, sources_of
from handrail.protocol.values import Value, to_dict

ENTITIES, CITATIONS, RELATIONS = 0.80, 0.75, 0.70
MAX_ISSUES = 8
NO_ANSWER = "The draft has no sentence that a source supports. If the sources do not answer, leave it empty."


class VerifyOptions(Value):
    draft: Texts  # the answer of the stage that wrote it
    sources: FoundSources


class NoOptions(Value):
    pass


class Scores(Value):
    citations: float
    """Of the sentences and quotes, so many are in the sources as they are given."""
    entities: float
    """Of the names and numbers."""
    relations: float
    """Of the statements, so many relate things as the sources do."""
    contradictions: int
    """Pairs of quoted sentences that may contradict each other."""


async def verify(options: VerifyOptions, work: StepContext) -> Output:
    """The draft with the support of each sentence, its scores, and what failed."""
    sources = sources_of(look_up(work.outputs, options.sources))
    draft = work.outputs[options.draft.split(".")[0]]
    labelled = await anyio.to_thread.run_sync(label_draft, draft, sources)
    judged = await anyio.to_thread.run_sync(judge, labelled, sources)
    delivered = quotes_instead(labelled, sources)
    said = [each.text for each in delivered.sentences if each.passages]
    return {
        "labelled": to_dict(delivered),
        "said": f"Answer: {' '.join(said)}" if said else "",
        "scores": to_dict(judged.scores),
        "failed": list(judged.failed),
        "issues": list(judged.issues),
        "verified": bool(said) and not judged.failed,
        "last": work.repaired >= read_question(work.question).depth.repairs,
    }


class Judged(NamedTuple):
    scores: Scores
    failed: tuple[str, ...]
    """Scores below their threshold, and contradictions."""
    issues: tuple[str, ...]
    """For the model: what to write differently."""


def judge(labelled: Labelled, sources: Sequence[Source]) -> Judged:
    """The scores of a draft, against the thresholds of the specification."""
    said = labelled.sentences
    text = " ".join(each.text for each in said)
    texts = [each.text for each in sources]
    entities, relations = check_entities(text, texts), check_relations(text, texts)
    passages = {(each.label, each.quote) for one in said for each in one.passages}
    against = find_contradictions(sorted(passages))
    counted = len(said) + len(labelled.evidence) + len(labelled.bad_quotes)
    right = counted - len(labelled.unsupported) - len(labelled.bad_quotes)
    scores = Scores(
        round(right / counted, 4) if counted else 0.0, entities.rate, relations.rate, len(against)
    )
    failed = []
    if scores.citations < CITATIONS:
        failed.append(f"citations {scores.citations:.2f}, at least {CITATIONS:.2f} are needed")
    if scores.entities < ENTITIES:
        wanted = f"at least {ENTITIES:.2f} are needed; in no source: {', '.join(entities.missing[:5])}"
        failed.append(f"names and numbers {scores.entities:.2f}, {wanted}")
    if scores.relations < RELATIONS:
        failed.append(f"relations {scores.relations:.2f}, at least {RELATIONS:.2f} are needed")
    failed += [
        f"[{each.first}] and [{each.second}] may contradict each other: {each.reason}" for each in against
    ]
    issues = [f"No source says: {each.text!r} {each.problem}" for each in labelled.unsupported]
    issues += [f"This quote is in no source, word for word: {each!r}" for each in labelled.bad_quotes]
    issues += [] if any(each.passages for each in said) else [NO_ANSWER]
    return Judged(scores, tuple(failed), tuple([*failed, *issues][:MAX_ISSUES]))


def labelled_of(output: Output) -> Labelled:
    return convert(output["labelled"], Labelled)


def verified_or_last(_options: NoOptions, output: Output, _outputs: Outputs) -> Verdict:
    """Whether the draft is verified, or may not be written again: then it is delivered as it is."""
    return Passed() if output["verified"] or output["last"] else Failed(tuple(output["issues"]))
