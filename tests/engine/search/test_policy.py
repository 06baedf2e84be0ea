"""What is asked next, by what was tried and the time that is left."""

from hypothesis import given
from hypothesis import strategies as st

from handrail.engine.search.mutations import COMMON, Mutation
from handrail.engine.search.policy import (
    Branch,
    Draft,
    FunctionAt,
    Graft,
    Line,
    Question,
    Result,
    Situation,
    edits_ahead,
    next_question,
    rivals,
)

LINES = tuple(Line("a.py", number) for number in (7, 3, 5))
FUNCTION = FunctionAt("a.py", "total", 2)
BUG = Situation(short=("a.py",), functions=(FUNCTION,), lines=LINES)
UNWEIGHED = BUG._replace(weighs=False)


def asked(now: Situation, result: Result = "failed", most: int = 200) -> list[Question]:
    """The questions, if each has this result."""
    found: list[Question] = []
    while (question := next_question(now)) and len(found) < most:
        found.append(question)
        now = now._replace(asked={**now.asked, question.key: result})
    return found


def branch(line: Line, prefix: str, probability: float, *, at_start: bool = False) -> Branch:
    return Branch(line, prefix, probability, at_start)


def test_most_suspicious_lines_are_weighed_first() -> None:
    assert [(each.kind, each.line) for each in asked(BUG)[:3]] == [
        ("weighing", 7),
        ("weighing", 3),
        ("weighing", 5),
    ]


def test_likely_ways_to_write_a_suspicious_line_come_before_all_others() -> None:
    found = {
        LINES[0]: [branch(LINES[0], "x", 0.4)],
        LINES[1]: [branch(LINES[1], "y", 0.42), branch(LINES[1], "z", 0.9)],
    }
    weighed = [each for each in asked(BUG._replace(branches=found)) if each.kind == "line"]
    assert [each.prefix for each in weighed] == ["z", "x", "y"]


def test_the_beginning_of_a_block_is_asked_for_with_the_rest_of_its_function() -> None:
    now = BUG._replace(branches={LINES[0]: [branch(LINES[0], "    if a", 0.9)]})
    head = now._replace(written={LINES[0]: {"    if a": "    if a < b:\n"}})
    questions = asked(head, "unusable")
    at = next(number for number, each in enumerate(questions) if each.kind == "line")
    assert questions[at + 1] == questions[at]._replace(kind="function")
    slip = now._replace(written={LINES[0]: {"    if a": "    if a < (b\n"}})
    assert all(each.prefix == "" for each in asked(slip, "unusable") if each.kind == "function")


def test_a_line_at_the_end_of_a_block_is_written_after_it_not_in_its_place() -> None:
    now = BUG._replace(branches={LINES[0]: [Branch(LINES[0], "    at", 0.9, after=True)]})
    found = [(each.kind, each.line) for each in asked(now) if each.prefix]
    assert found == [("insertion", LINES[0].number + 1)]


def test_a_wrong_function_is_also_written_again_without_a_look_at_it() -> None:
    rewrite = Draft("b", "a.py", "total", 2)
    kinds = [(each.kind, each.fresh) for each in asked(BUG._replace(rewrites=(rewrite,)))]
    assert ("function", True) in kinds
    assert ("function", False) not in kinds  # it would be copied


def test_a_question_whose_answers_are_mostly_new_is_asked_again_while_there_is_time() -> None:
    now = Situation(drafts=(Draft("b", "a.py"),))
    some = asked(now)
    wasted = {each.key: "repeated" if at < 2 else "failed" for at, each in enumerate(some[:9])}
    assert next_question(now._replace(asked=wasted)) is not None  # type: ignore[arg-type]
    wasted = {each.key: "repeated" if at < 2 else "failed" for at, each in enumerate(some[:5])}
    assert next_question(now._replace(asked=wasted)) is None  # type: ignore[arg-type]


def test_a_way_that_leads_to_a_line_which_was_tried_is_not_taken() -> None:
    ways = [
        branch(LINES[0], "return a", 0.6),
        branch(LINES[0], "return ab", 0.5),
        branch(LINES[0], "return b", 0.4),
    ]
    now = BUG._replace(branches={LINES[0]: ways}, written={LINES[0]: {"return a": "return abc\n"}})
    assert [each.prefix for each in asked(now) if each.kind == "line"] == ["return a", "return b"]


def test_a_new_line_is_also_tried_before_the_old_one() -> None:
    now = BUG._replace(branches={LINES[0]: [branch(LINES[0], "    items", 0.3, at_start=True)]})
    kinds = [each.kind for each in asked(now) if each.prefix == "    items"]
    assert kinds == ["line", "insertion"]


def test_model_that_cannot_be_weighed_writes_functions_then_lines_then_insertions_then_warmer_ones() -> None:
    questions = asked(UNWEIGHED)
    kinds = [(each.kind, each.temperature) for each in questions]
    assert kinds[0] == ("function", 0.0)
    assert kinds.index(("function", 0.0)) < kinds.index(("line", 0.0)) < kinds.index(("insertion", 0.0))
    assert kinds.index(("insertion", 0.0)) < kinds.index(("line", 0.7))


def test_a_file_of_stubs_is_drafted_then_mixed_from_its_drafts_then_drafted_by_function() -> None:
    drafts = (Draft("start", "a.py"), Draft("best", "a.py", "b", 1), Draft("best", "a.py", "c", 2))
    now = BUG._replace(drafts=drafts, grafts=(Graft("a.py", "c", 1),), base="best")
    questions = asked(now)
    assert [(each.kind, each.name) for each in questions[:7]] == [
        *[("file", "")] * 4,
        ("graft", "c"),
        ("function", "b"),
        ("function", "c"),
    ]
    assert len({each.temperature for each in questions[:4]}) == 4
    assert all(each.fresh for each in questions[:7] if each.kind != "graft")


def test_a_draft_is_not_asked_for_again_when_other_files_became_better() -> None:
    now = Situation(drafts=(Draft("start", "a.py"),), base="one")
    first = next_question(now)
    assert first
    second = next_question(now._replace(base="two", asked={first.key: "better"}))
    assert second
    assert (second.kind, second.temperature) != (first.kind, first.temperature)


def test_what_only_gets_old_answers_is_not_asked_at_ever_higher_temperatures() -> None:
    questions = asked(UNWEIGHED._replace(lines=()), "unchanged")
    assert [each.kind for each in questions].count("function") == 2
    assert [each.kind for each in questions].count("file") == 2


def test_better_files_are_asked_about_anew() -> None:
    first = next_question(UNWEIGHED)
    assert first
    again = next_question(UNWEIGHED._replace(base="other", asked={first.key: "better"}))
    assert again == first._replace(base="other")


def test_nothing_is_asked_that_does_not_fit_into_the_time_but_the_first_question() -> None:
    late = BUG._replace(seconds_left=0.0)
    first = next_question(late)
    assert first
    assert next_question(late._replace(asked={first.key: "failed"})) is None
    slow = UNWEIGHED._replace(
        seconds_left=3.0, seconds_of={"function": 9.0, "line": 1.0}, asked={"x": "failed"}
    )
    next_one = next_question(slow)
    assert next_one
    assert next_one.kind == "line"


RESULTS = st.sampled_from(["better", "failed", "unusable", "unchanged", "repeated", "weighed"])


@given(st.lists(RESULTS, min_size=1, max_size=30), st.booleans())
def test_no_question_is_asked_twice_and_the_questions_end(results: list[Result], weighs: bool) -> None:
    found = {LINES[1]: [branch(LINES[1], str(number), 0.9 / (number + 1)) for number in range(40)]}
    now = BUG._replace(weighs=weighs, branches=found, drafts=(Draft("start", "new.py"),))
    keys: list[str] = []
    while (question := next_question(now)) and len(keys) < 1_000:
        result = results[len(keys) % len(results)]
        keys.append(question.key)
        now = now._replace(asked={**now.asked, keys[-1]: result})
        if result == "better" and len(now.base) < 5:
            now = now._replace(base=f"{now.base}.")
    assert len(keys) == len(set(keys))
    assert 0 < len(keys) < 1_000


def test_a_function_is_begun_in_each_likely_way() -> None:
    stub = Draft("b", "a.py", "total", 3)
    now = Situation(drafts=(stub,), openings={stub: ["    rows", "    return"]})
    found = [(each.kind, each.prefix) for each in asked(now)[:4]]
    assert found == [
        ("function", ""),
        ("weighing", ""),
        ("function", "    rows"),
        ("function", "    return"),
    ]


def test_all_edits_before_the_next_question_are_tried_at_once_and_none_twice() -> None:
    edits = {line: [Mutation(f"{line.number} {number}\n", COMMON) for number in range(20)] for line in LINES}
    now = BUG._replace(mutations=edits, screens=True)
    ahead = edits_ahead(now)
    assert len({each.key for each in ahead}) == len(ahead) == 60
    assert {each.kind for each in ahead} == {"mutation"}
    left = now._replace(asked={each.key: "failed" for each in ahead[1:]})
    assert edits_ahead(left) == [ahead[0]] == [next_question(left)]
    done = now._replace(asked={each.key: "failed" for each in ahead})
    assert not edits_ahead(done)


def test_questions_that_are_passed_over_do_not_hide_the_edits_behind_them() -> None:
    edits = {line: [Mutation(f"{line.number}\n", COMMON)] for line in LINES}
    now = BUG._replace(
        mutations=edits,
        screens=True,
        drafts=(Draft("base", "a.py", "total", 3),),
        asked={"x": "failed"},
        seconds_left=2.0,
        seconds_of={"function": 9.0, "weighing": 9.0},
    )
    question = next_question(now)
    assert question
    assert question.kind == "mutation"
    assert len(edits_ahead(now)) == len(LINES)


def test_the_function_that_an_edit_changed_is_written_anew_as_its_rival() -> None:
    functions = (FunctionAt("a.py", "largest", 4), FunctionAt("a.py", "total", 2))
    rewrites = tuple(Draft("base", "a.py", each.name, each.line + 1) for each in functions)
    now = BUG._replace(functions=functions, rewrites=rewrites)
    for number, name in ((3, "total"), (7, "largest")):
        passed = Question("mutation", "a.py", line=number, prefix="x\n")
        assert [each.name for each in rivals(now, passed) if each.kind == "function"] == [name]
