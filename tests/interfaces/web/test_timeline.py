"""Events as blocks of a conversation, and as the view of a run."""

import pytest

from handrail.interfaces.web.conversation.blocks import Block
from handrail.interfaces.web.conversation.timeline import Timeline
from handrail.interfaces.web.inspector import render_run, run_view
from handrail.protocol.events import (
    Answered,
    CheckFinished,
    Event,
    GateFailed,
    PlanApproved,
    PlanChanged,
    Recorded,
    RequestFailed,
    Routed,
    RunCompleted,
    RunPaused,
    RunRepaired,
    RunStarted,
    StageCompleted,
    StageStarted,
    SubagentEvent,
    SubagentFinished,
    SubagentReport,
    SubagentStarted,
    ToolFinished,
    ToolStarted,
    TurnFinished,
    TurnStarted,
    UserMessage,
)
from handrail.protocol.events.runs import MenuChoice
from handrail.protocol.plan import Plan, PlanStep
from handrail.protocol.values import (
    NextStep,
    RouteOption,
    RouterDecision,
    StructuredAnswer,
    ToolCall,
    Usage,
    to_dict,
)

TURN = (UserMessage("m1", "t1", "hello"), TurnStarted("t1", 1, "x/y", "ask"))


def recorded(*events: Event) -> list[Recorded]:
    return [Recorded("session:s", seq, 1000.0 + seq, event) for seq, event in enumerate(events, start=1)]


def shown(*events: Event) -> Timeline:
    timeline = Timeline()
    for one in recorded(*events):
        timeline.apply(one)
    return timeline


def answered(text: str = "", **fields: object) -> Answered:
    values = {"turn_id": "t1", "request_id": "r1", "message_id": "a1", "model": "x/y", "end": "stop"}
    return Answered(text=text, **(values | fields))  # type: ignore[arg-type]


def stage(name: str, number: int) -> tuple[StageStarted, StageCompleted]:
    return StageStarted("run", f"st{number}", name, "code", number=number, of=2), StageCompleted(
        "run", f"st{number}", name
    )


def test_paused_run_offers_its_choices_and_keeps_the_chosen_one() -> None:
    choices = (MenuChoice("go on", "go_on"), MenuChoice("leave", "leave"))
    pause = RunPaused("run", "plan", "Is the **plan** good?", choices, exit=2)
    open_chips = shown(*TURN, pause).html()
    assert 'data-act="choose" data-text="1"' in open_chips
    assert "<strong>plan</strong>" in open_chips
    closed = shown(*TURN, pause, TurnFinished("t1", "waiting"), UserMessage("m2", "t2", "2")).html()
    assert '<span class="chip chosen">leave</span>' in closed
    assert 'data-act="choose"' not in closed


def test_unclear_route_is_asked_with_chips() -> None:
    options = (RouteOption("chat", "an answer"), RouteOption("agent", "do it"))
    decision = RouterDecision("clarify", 0.3, "Which?", options)
    html = shown(*TURN, Routed(turn_id="t1", message="hello", by="rules", decision=decision)).html()
    assert ">an answer</button>" in html
    assert "asks you" in html


def test_broken_structured_answer_has_a_banner_with_both_ways_on() -> None:
    kept = StructuredAnswer("Half of it.", commands=("ls",), next_steps=(NextStep("x", "y"),))
    html = shown(
        *TURN, RequestFailed("r1", "give_up", "cut", recovered=kept), TurnFinished("t1", "failed")
    ).html()
    assert "Recovered: the summary, 1 command." in html
    assert 'data-how="continue"' in html
    assert 'data-how="retry"' in html


@pytest.mark.promise("WEB-3")
def test_page_made_at_once_is_the_page_made_step_by_step() -> None:
    """What a reload shows is what the stream of blocks has built."""
    calls: list[Event] = []
    for name in ("c0", "c1", "c2"):
        calls += [ToolStarted("t1", name, "read", {"path": "a"}, "safe", "a")]
        calls += [ToolFinished("t1", name, "read", "ok", "1 line")]
    events: list[Event] = [
        *TURN,
        *stage("look", 1),
        *calls,
        *stage("load", 2),
        answered("Done."),
        TurnFinished("t1", "answered"),
    ]
    whole = shown(*events)
    page: dict[str, Block] = {}
    timeline = Timeline()
    for one in recorded(*events):
        for block in timeline.apply(one):
            known = page.get(block.id)
            assert known is None or known.parent == block.parent
            page[block.id] = block
    assert timeline.html() == whole.html()
    assert list(page) == [block for block in page if f'id="{block}"' in whole.html()]


def test_calls_that_share_an_id_in_different_answers_stay_apart() -> None:
    call = (
        ToolStarted("t1", "c", "read", {}, "safe", "first.py"),
        ToolFinished("t1", "c", "read", "ok", "1 line"),
    )
    again = (
        ToolStarted("t1", "c", "read", {}, "safe", "second.py"),
        ToolFinished("t1", "c", "read", "ok", "2 lines"),
    )
    first = answered(calls=(ToolCall("c", "read", {"path": "first.py"}),), end="tool_calls")
    second = answered(
        calls=(ToolCall("c", "read", {"path": "second.py"}),), message_id="a2", end="tool_calls"
    )
    html = shown(*TURN, first, *call, second, *again).html()
    assert "first.py" in html
    assert "second.py" in html


def test_green_is_only_for_what_was_verified() -> None:
    done = shown(*TURN, answered("x"), TurnFinished("t1", "answered")).html()
    assert 'class="end-word t-done"' in done
    check = CheckFinished("t1", "k", passed=True, summary="exit 0", content="")
    verified = shown(*TURN, answered("x"), check, TurnFinished("t1", "answered")).html()
    assert 'class="end-word t-ok"' in verified
    assert "Done, verified" in verified


def test_run_shows_stages_gates_repairs_and_cost() -> None:
    price = answered("x", cost_usd=0.25, usage=Usage(100, 20), apart=True)
    look, looked = stage("look", 1)
    load, _ = stage("load", 2)
    failed = GateFailed("run", "st2", "load", "complete", ("a name is missing",))
    view = run_view(
        recorded(
            RunStarted("run", "t1", "report"),
            look,
            price,
            looked,
            load,
            failed,
            RunRepaired("run", "load", "load", 1),
            load,
        )
    )
    html = render_run(view, ("look", "load", "write"))
    assert "120 tokens" in html
    assert "$0.25" in html
    assert "repaired 1 time" in html
    assert ">write<" in html
    assert "not started" in html
    broken = render_run(run_view(recorded(RunStarted("run", "t1", "report"), load, failed)), ())
    assert "a name is missing" in broken


@pytest.mark.promise("RESEARCH-1")
def test_the_report_of_an_agent_is_drawn_as_markdown_and_its_budget_comes_first() -> None:
    """Catches: the report as lines with signs, a budget that is told when all is over."""
    began = RunStarted("run", "t1", "research", sha256="ab", budget="$10.00")
    html = shown(*TURN, began, RunCompleted("run", "# Ferries\n\nThey carry *nineteen* [S1].")).html()
    assert "<em>nineteen</em> [S1]" in html
    assert html.index("at most $10.00") < html.index("nineteen")


def test_plan_is_a_card_until_the_user_approves_it() -> None:
    plan = Plan("Totals are right", (PlanStep("Fix total", files=("src/cart.py",), check="pytest -q"),))
    changed = PlanChanged("p1", plan, "model")
    html = shown(*TURN, changed).html()
    assert 'data-act="approve-plan" data-id="p1"' in html
    assert "<code>pytest -q</code>" in html
    approved = shown(*TURN, changed, PlanApproved("p1", ("1",))).html()
    assert "plan, approved" in approved
    assert "approve-plan" not in approved


@pytest.mark.promise("SUB-9")
def test_a_subagent_is_one_folded_entry_with_its_own_subagents_inside() -> None:
    def start(name: str, parent: str = "") -> SubagentStarted:
        return SubagentStarted(
            turn_id="t1", call_id="c", subagent_id=name, parent=parent, task=f"<b>{name}</b>", mode="ask"
        )

    def inside(name: str, event: Event) -> SubagentEvent:
        return SubagentEvent(subagent_id=name, event=to_dict(event))

    began = ToolStarted("t1", "c1", "read", {"path": "a.txt"}, "safe", "a.txt")
    ended = ToolFinished("t1", "c1", "read", "ok", "2 lines", "secret content")
    report = SubagentReport(reason="answered", text="It is <i>fine</i>.")
    timeline = shown(
        *TURN,
        start("one"),
        start("two", "one"),
        inside("two", began),
        inside("two", ended),
        SubagentFinished("two", report),
    )
    html = str(timeline.html())
    assert html.index('id="sub-one"') < html.index('id="sub-two"') < html.index("2 lines")
    assert "<details open" not in html
    assert "&lt;b&gt;two" in html
    assert "It is &lt;i&gt;fine" in html
    assert "secret content" not in html
    assert timeline.tree.get("sub-two") == Block(
        "sub-two", "sub-one", tag="details", classes="stage subagent"
    )
