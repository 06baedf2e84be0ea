"""Rankings fused: what each search found alone, and what both found."""

from handrail.knowledge.ranking import by_scores, fuse, fuse_searches


def test_a_result_of_both_searches_is_first_and_one_of_words_alone_is_not_lost() -> None:
    words = {1: 9.0, 2: 8.0, 3: 1.0}
    meaning = {2: 0.5} | dict.fromkeys(range(10, 60), 0.49)  # noise, all about as near
    ranked = fuse_searches(words, meaning).numbers
    assert ranked[0] == 2
    assert ranked.index(1) <= 2


def test_how_far_apart_results_are_counts() -> None:
    words, meaning = {1: 9.0, 2: 1.0}, {2: 0.6, 1: 0.59}
    by_ranks = fuse([(1, words), (1, meaning)])
    assert by_ranks.scores[0] == by_ranks.scores[1]
    assert fuse_searches(words, meaning).numbers == [1, 2]


def test_searches_that_find_nothing_rank_nothing() -> None:
    assert by_scores({}, {}) == []
    assert by_scores({}, {3: -0.1}) == []
