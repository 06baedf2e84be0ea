"""The pipeline of a build: stages, gates G1 to G5, repairs. Its states are in `states.py`."""

from handrail.engine.pipeline import Functions, Gate, Option, Pause, Pipeline, Repair, Stage
from handrail.pipelines.build import (
    commands,
    conditions,
    documents,
    execute,
    plan,
    small_model,
    verify,
)
from handrail.pipelines.build.states import (
    APPLY,
    ASSEMBLE,
    AUDIT,
    BASELINE,
    BRIEF,
    DOCUMENT,
    EXECUTE,
    PLAN,
    READ,
    REREAD,
    REVIEW,
    SURVEY,
    VERIFY,
)

CORRECTIONS, REPLANS = 3, 2
FUNCTIONS = Functions(
    checks={
        "plan_needs_no_decision": plan.does_not_escalate,
        "G1_plan": plan.plan_is_sound,
        "audit_needs_no_decision": plan.does_not_escalate,
        "G2_audit": plan.audit_accepts,
        "plan_is_harmless": plan.plan_is_harmless,
        "answer_needs_no_decision": plan.does_not_escalate,
        "commands_may_run": commands.commands_may_run,
        "changes_are_planned": execute.changes_are_planned,
        "G3_execution": execute.changes_are_sound,
        "has_no_conditions": conditions.has_no_conditions,
        "G3_conditions": conditions.conditions_are_met,
        "G4_documents": documents.documents_are_intact,
        "is_verified": verify.is_verified,
        "G5_verification": verify.checks_pass,
        "is_applied": verify.is_applied,
    },
    steps={
        "build_baseline": plan.run_baseline,
        "build_survey": plan.survey,
        "build_read": plan.read_targets,
        "build_review": plan.review_plan,
        "build_brief": execute.write_brief,
        "build_assemble": execute.assemble,
        "build_document": documents.document,
        "build_verify": verify.verify,
        "build_apply": verify.apply_files,
        "build_plan_by_rules": small_model.plan_by_rules,
        "build_execute_by_search": small_model.execute_by_search,
    },
    skips={"build_skips": plan.skipped_stages},
    words={"build_plan": plan.plan_words, "build_ended": verify.ended_words},
)

BUILD = Pipeline(
    "build",
    stages=(
        Stage(BASELINE, "code", step="build_baseline"),
        Stage(SURVEY, "code", step="build_survey", takes=(BASELINE,)),
        Stage(
            PLAN,
            "ask",
            prompt=plan.PLAN_PROMPT,
            takes=(SURVEY,),
            schema=plan.PLAN_SCHEMA,
            small="build_plan_by_rules",
            gates=(Gate("plan_needs_no_decision", ends="escalated"), Gate("G1_plan", "repair")),
        ),
        Stage(READ, "code", step="build_read", takes=(PLAN,)),
        Stage(
            AUDIT,
            "ask",
            prompt=plan.AUDIT_PROMPT,
            takes=(PLAN, READ),
            schema=plan.AUDIT_SCHEMA,
            role="audit",
        ),
        Stage(
            REVIEW,
            "code",
            step="build_review",
            takes=(BASELINE, PLAN, AUDIT),
            gates=(Gate("audit_needs_no_decision", ends="escalated"), Gate("G2_audit", "repair")),
        ),
        Stage(BRIEF, "code", step="build_brief", takes=(PLAN, READ, REVIEW, BRIEF, ASSEMBLE, REREAD, VERIFY)),
        Stage(
            EXECUTE,
            "ask",
            prompt=execute.EXECUTE_PROMPT,
            takes=(BRIEF,),
            schema=execute.EXECUTE_SCHEMA,
            small="build_execute_by_search",
            max_output=16_384,
            sampled_by=BRIEF,
        ),
        Stage(
            ASSEMBLE,
            "code",
            step="build_assemble",
            takes=(PLAN, REVIEW, BRIEF, EXECUTE, ASSEMBLE, VERIFY),
            gates=(
                Gate("answer_needs_no_decision", ends="escalated"),
                Gate("commands_may_run", ends="escalated"),
                Gate("changes_are_planned", ends="escalated"),
                Gate("G3_execution", "repair", ends="escalated"),
            ),
        ),
        Stage(
            REREAD,
            "ask",
            prompt=conditions.REREAD_PROMPT,
            takes=(f"{ASSEMBLE}.conditions", f"{ASSEMBLE}.diff"),
            schema=conditions.REREAD_SCHEMA,
            role="audit",
            gates=(Gate("G3_conditions", "repair", ends="escalated"),),
            unless="has_no_conditions",
        ),
        Stage(
            DOCUMENT,
            "code",
            step="build_document",
            takes=(PLAN, EXECUTE, ASSEMBLE),
            gates=(Gate("G4_documents"),),
        ),
        Stage(
            VERIFY,
            "code",
            step="build_verify",
            takes=(BASELINE, BRIEF, EXECUTE, ASSEMBLE, DOCUMENT, VERIFY),
            gates=(
                Gate("is_verified", ends="unverified"),
                Gate("G5_verification", "repair", ends="escalated"),
            ),
        ),
        Stage(
            APPLY, "code", step="build_apply", takes=(ASSEMBLE, DOCUMENT, VERIFY), gates=(Gate("is_applied"),)
        ),
    ),
    pauses=(
        Pause(REVIEW, says="build_plan", when="plan_is_harmless", options=(Option("Build it", "go_on"),)),
    ),
    repairs=(
        Repair(PLAN, PLAN, 1),
        Repair(PLAN, REVIEW, REPLANS),
        Repair(BRIEF, VERIFY, CORRECTIONS),
    ),
    ends="build_ended",
    skips="build_skips",
    functions=FUNCTIONS,
)


def build_pipeline(candidates: int) -> Pipeline:
    """The pipeline with room for so many candidates before the corrections."""
    *others, correct = BUILD.repairs
    return BUILD._replace(repairs=(*others, correct._replace(times=CORRECTIONS + candidates - 1)))
