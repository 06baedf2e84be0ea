"""The graph of a plan: order, what waits for what, what is wrong with it, and what it would take."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from handrail.engine.split.estimate import Pace, estimates
from handrail.engine.split.graph import before, check_plan, needs_of, ordered, plan_problems, with_dependents
from handrail.engine.split.planner import granularity_for, map_over
from handrail.protocol.errors import UsageProblem
from handrail.protocol.subtask import SplitLimits, SplitPlan, Subtask


def subtask(name: str, *depends_on: str, **fields: object) -> Subtask:
    return Subtask(name, "Do it.", (f"{name}.py",), depends_on=depends_on, **fields)  # type: ignore[arg-type]


@given(st.lists(st.integers(0, 8), max_size=9), st.data())
def test_order_has_each_subtask_once_and_after_what_it_depends_on(
    sizes: list[int], data: st.DataObject
) -> None:
    found = []
    for number, size in enumerate(sizes):
        earlier = [f"t{each}" for each in range(number)]
        wanted = data.draw(st.lists(st.sampled_from(earlier), max_size=size, unique=True)) if earlier else []
        found.append(subtask(f"t{number}", *wanted, priority=data.draw(st.integers(-2, 2))))
    plan = SplitPlan("", tuple(reversed(found)))
    order = ordered(plan)
    assert sorted(order) == sorted(each.id for each in found)
    for each in found:
        assert all(order.index(wanted) < order.index(each.id) for wanted in each.depends_on)
        assert before(needs_of(plan), each.id) >= set(each.depends_on)


def test_highest_priority_of_those_that_can_start_goes_first() -> None:
    plan = SplitPlan("", (subtask("low"), subtask("high", priority=2), subtask("after", "low", priority=9)))
    assert ordered(plan) == ["high", "low", "after"]


def test_strategies_change_what_waits_for_what() -> None:
    plan = SplitPlan("", (subtask("a"), subtask("b"), subtask("c", "a")))
    assert needs_of(plan) == {"a": (), "b": (), "c": ("a",)}
    assert needs_of(plan, "all_at_once") == {"a": (), "b": (), "c": ()}
    order = ordered(plan)
    assert needs_of(plan, "sequential") == {order[0]: (), order[1]: (order[0],), order[2]: (order[1],)}
    assert with_dependents(needs_of(plan), ["a"]) == ("a", "c")


@pytest.mark.parametrize(
    ("subtasks", "words"),
    [
        ((subtask("a"), subtask("a")), "two subtasks a"),
        ((subtask("a", "b"),), "depends on b"),
        ((subtask("a", "a"),), "depends on a"),
        ((subtask("a", "b"), subtask("b", "a")), "wait for one another"),
        ((Subtask("a", "Do it.", ("/etc/passwd",)),), "no path inside"),
        ((Subtask("a", "Do it."),), "names no file"),
    ],
)
def test_plan_that_cannot_be_run_says_why(subtasks: tuple[Subtask, ...], words: str) -> None:
    assert words in " ".join(plan_problems(subtasks))
    with pytest.raises(UsageProblem, match=words):
        check_plan(SplitPlan("", subtasks))


def test_estimates_differ_by_strategy_and_name_what_could_go_wrong() -> None:
    two = Subtask("b", "Do it.", ("a.py",), depends_on=("c",))
    plan = SplitPlan("", (subtask("a"), two, subtask("c")), limits=SplitLimits(parallel=4))
    pace = Pace(first_seconds=1.0, per_second=100.0, price=lambda usage: usage.output_tokens / 1_000)
    found = {each.strategy: each for each in estimates(plan, {"a.py": 800}, {"main": pace, "fast": pace})}
    assert found["all_at_once"].seconds < found["graph"].seconds < found["sequential"].seconds
    assert len({each.tokens for each in found.values()}) == 1
    assert "1 dependency is ignored" in found["all_at_once"].risk
    assert "several writers" in found["graph"].risk
    assert found["sequential"].risk == ""
    assert found["graph"].usd == pytest.approx((1_000 + 1_000 + 200) / 1_000)


def test_granularity_by_rules_and_groups_of_files() -> None:
    assert granularity_for({"a": 100}, truncated=False, small=False) == "coarse"
    assert granularity_for({"a": 2_000, "b": 2_000}, truncated=False, small=False) == "medium"
    assert granularity_for({"a": 100}, truncated=True, small=False) == "fine"
    assert granularity_for({"a": 100}, truncated=False, small=True) == "fine"
    assert granularity_for(None, truncated=False, small=False) == "medium"
    assert granularity_for({"a": 9_000}, truncated=False, small=False) == "fine"
    sizes = {f"{number}.py": 1_500 for number in range(5)}
    assert [len(each.files) for each in map_over("x", sizes, "fine")] == [1] * 5
    assert [len(each.files) for each in map_over("x", sizes, "medium")] == [2, 2, 1]
    assert [len(each.files) for each in map_over("x", sizes, "coarse")] == [5]
