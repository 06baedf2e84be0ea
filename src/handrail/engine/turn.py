"""The turn: get the next step, run the stage, record its result, until the run has ended or waits."""

import time
from collections.abc import Awaitable, Callable

from handrail.engine.context import StageResult, TurnContext
from handrail.engine.next_step import (
    CompleteRun,
    FailGate,
    FailRun,
    NextRound,
    PauseRun,
    RepeatForRepair,
    RunStage,
    next_step,
)
from handrail.engine.pipeline import IN_CONVERSATION, Outputs, Pipeline, Stage
from handrail.engine.plans import offered_steps
from handrail.engine.router.router import run_events
from handrail.engine.run_record import RunRecord
from handrail.engine.stages import work
from handrail.engine.turn_end import Ending, TurnEnd, end_of_run_by_hooks, run_end, turn_finished
from handrail.engine.user_input import take_steering
from handrail.protocol.commands import SendMessage
from handrail.protocol.errors import BudgetReached, ModelProblem
from handrail.protocol.events.runs import StageKind
from handrail.sessions.run_state import RunState

StageFunction = Callable[[TurnContext, Stage, RunState, Outputs], Awaitable[StageResult]]


async def run_turn(context: TurnContext) -> None:
    """Run the turn until its end is in the log."""
    end = await _before_stages(context) or await _run_stages(context)
    if context.commits_changes and context.session.state.uncommitted:
        from handrail.engine.admin.history import commit_each_change

        await commit_each_change(context.session, context.workspace)
    turn, git = context.turn, (context.workspace.root / ".git").exists()
    offered = offered_steps(context.session.state, turn, end.ending.reason, git=git)
    finished = turn_finished(turn, end.ending, turn.seconds(time.time()), offered)
    context.session.append(*end.events, finished, blobs=end.blobs)
    context.session.save_snapshot()


async def _before_stages(context: TurnContext) -> TurnEnd | None:
    """Make sure that the turn has a run; returns the end of the turn where it ends without one.

    Most turns have one: rules decided the route, and the run was committed with the start of the turn.
    """
    session = context.session
    if context.turn.batch:
        from handrail.engine.command_batch import run_batch

        if end := await run_batch(context):
            return end
    paused = session.state.paused
    if session.state.run is None and paused and paused.run_id == context.turn.run_id:
        from handrail.engine.breakout.paused_run import answer_paused_run

        if end := await answer_paused_run(context, paused):
            return end
    if session.state.run is None and context.turn.unrouted:
        from handrail.engine.router.model_classifier import route_by_model

        return await route_by_model(context)
    if session.state.run is None:  # a version of Handrail without runs started the turn
        session.append(*run_events(context.catalogue.find(""), context.turn.turn_id, ""))
    return None


async def _run_stages(context: TurnContext) -> TurnEnd:
    """Run one stage after the other, until the run has ended or waits for the user."""
    session = context.session
    pipeline = context.catalogue.find_unchanged(session.run.pipeline, session.run.sha256)
    if context.strategy.searches:
        pipeline = pipeline.for_small_models()
    context.catalogue = context.catalogue.for_pipeline(pipeline)
    record, text, tells = RunRecord(session, pipeline, context.catalogue), "", ""
    last_stage = pipeline.last(record.run.skips)
    try:
        ending = await _until_ended(context, pipeline, record)
        if ending.reason == "answered":
            text = record.words(pipeline.ends)
            tells = record.words(pipeline.tells) if pipeline.tells else ""
    except BudgetReached as problem:
        ending = Ending("budget", str(problem))
    except ModelProblem as problem:
        ending = Ending("failed", str(problem))
    events = [*record.new, *run_end(record.run, record.stored, ending, text, tells)]
    if last_stage.kind not in IN_CONVERSATION:
        ending = await end_of_run_by_hooks(context.hooks, session, ending)
    return TurnEnd(ending, events, record.blobs)


async def _until_ended(context: TurnContext, pipeline: Pipeline, record: RunRecord) -> Ending:
    ending = Ending("answered")
    while True:
        match next_step(pipeline, record.run, record.outputs, context.catalogue.checks):
            case RunStage(stage):
                done = await _run_stage(context, pipeline, record, stage)
                if done.reason != "answered":
                    return done
                ending = done if done.detail else ending  # what the user has to know about a stage stays
            case FailGate(stage, gate, issues):
                record.fail_gate(stage, gate, issues)
            case RepeatForRepair(unit, number):
                record.repair(unit, number)
            case NextRound(first, number):
                record.next_round(first, number)
            case PauseRun(pause):
                _take_messages(context, pipeline, record)
                record.pause(pause)
                return Ending("waiting", "The run is paused and waits for your answer.")
            case CompleteRun():
                if pipeline.last(record.run.skips).kind not in IN_CONVERSATION:
                    record.commit()  # hooks run before the turn ends; a kill then must not lose a stage
                problem = record.keep_values()
                return Ending("failed", problem) if problem else ending
            case FailRun(detail, reason):
                return Ending(reason, detail)


async def _run_stage(context: TurnContext, pipeline: Pipeline, record: RunRecord, stage: Stage) -> Ending:
    if record.run.open is None:
        if stage.kind not in IN_CONVERSATION:  # the others take messages themselves
            _take_messages(context, pipeline, record)
        record.start_stage(stage)
    record.commit()
    result = await _stage_function(stage.kind)(context, stage, record.run, record.outputs)
    record.reload()
    if result.ending.reason == "answered":
        record.complete_stage(result.output, result.read)
    return result.ending


def _stage_function(kind: StageKind) -> StageFunction:
    if kind == "work":
        return work.run
    from handrail.engine.stages import answer, ask, code  # most turns need none of them

    return {"answer": answer.run, "ask": ask.run, "code": code.run}[kind]


def _take_messages(context: TurnContext, pipeline: Pipeline, record: RunRecord) -> None:
    """Commit what the user sent while the last stage ran, for the stages that follow."""
    if not any(isinstance(command, SendMessage) for _, command in context.session.waiting()):
        return
    record.commit()
    names = [stage.name for stage in pipeline.stages]
    done = names.index(record.run.last) + 1 if record.run.last else 0
    coming = [stage for stage in pipeline.stages[done:] if stage.name not in record.run.skips]
    if all(stage.kind == "code" for stage in coming):
        return  # no model follows that could use the message, so it starts its own turn
    take_steering(context, pictures=any(stage.kind in IN_CONVERSATION for stage in coming))
    record.reload()
