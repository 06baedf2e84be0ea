"""What waits for the user besides approvals: questions, choices of a run; and progress of commands."""

from collections.abc import Mapping
from typing import Literal

from handrail.interfaces.cli.render.styles import clean, count_of, one_line
from handrail.interfaces.web.conversation.blocks import Block, button, dot
from handrail.interfaces.web.html import Html, h
from handrail.interfaces.web.markdown import markdown
from handrail.protocol.events import (
    BatchFinished,
    BatchStarted,
    BatchStep,
    CheckFinished,
    PlanChanged,
    QuestionAnswered,
    QuestionAsked,
    Routed,
    RunPaused,
)
from handrail.protocol.values import DECLINED

PlanStatus = Literal["to be approved", "approved", "replaced"]
PLAN_SIGNS: dict[PlanStatus, str] = {"to be approved": "wait", "approved": "done", "replaced": "off"}


def question_block(asked: QuestionAsked, parent: str, answered: QuestionAnswered | None = None) -> Block:
    """A question of the model with its options; the chosen one stays after the answer."""
    block_id = f"q-{asked.question_id}"
    body: list[Html] = [h("div", markdown(asked.question), class_="prose")]
    if answered is None and asked.secret:
        body.append(_secret_form(block_id, asked))
        element = _card(block_id, "wait", "asks for a secret", body, classes="question waiting")
    elif answered is None:
        chips = [
            button(one_line(option), "answer", class_="chip", id=asked.question_id, text=option)
            for option in asked.options
        ]
        form = h(
            "form",
            h("label", "Your answer", for_=f"in-{block_id}", class_="hidden-label"),
            h("input", id=f"in-{block_id}", name="answer", placeholder="Your answer", autocomplete="off"),
            h("button", "Answer", type="submit", class_="primary"),
            data_act="answer-form",
            data_id=asked.question_id,
            class_="inline",
        )
        body += [h("div", *chips, class_="chips") if chips else h("div"), form]
        element = _card(block_id, "wait", "asks you", body, classes="question waiting")
    else:
        words = {"user": answered.answer, "nobody": "nobody could be asked", "cancelled": "not answered"}[
            answered.by
        ]
        body.append(h("div", _chosen_chips(asked.options, words), class_="chips"))
        element = _card(block_id, "off", "answered", body, classes="question")
    return Block(block_id, parent, element)


def _secret_form(block_id: str, asked: QuestionAsked) -> Html:
    """What is typed here is stored encrypted; the session gets only `stored` or `declined`."""
    return h(
        "form",
        h("label", one_line(asked.secret), for_=f"in-{block_id}"),
        h(
            "input",
            type="password",
            id=f"in-{block_id}",
            name="secret",
            autocomplete="off",
            spellcheck="false",
        ),
        h("button", "Store", type="submit", class_="primary"),
        button("Decline", "answer", class_="quiet", id=asked.question_id, text=DECLINED),
        data_act="secret-form",
        data_id=asked.question_id,
        class_="inline",
    )


def _chosen_chips(options: tuple[str, ...], chosen: str) -> list[Html]:
    picked = [
        h("span", one_line(each), class_="chip chosen" if each == chosen else "chip off") for each in options
    ]
    return picked if chosen in options else [*picked, h("span", one_line(chosen), class_="chip chosen")]


def _card(block_id: str, colour: str, word: str, body: list[Html], *, classes: str) -> Html:
    head = h("header", dot(colour, word), h("span", word, class_=f"state t-{colour}"), class_="card-head")
    return h(
        "section",
        head,
        h("div", *body, class_="card-body"),
        id=block_id,
        class_=f"card {classes}",
        data_card=True,
        tabindex="-1",
    )


def clarify_block(block_id: str, parent: str, event: Routed, chosen: str = "") -> Block:
    """Which route a message takes, where that is not clear."""
    options = [
        (str(number), one_line(each.title)) for number, each in enumerate(event.decision.options, start=1)
    ]
    body = [h("div", markdown(event.decision.question), class_="prose"), _choices(options, chosen)]
    state = ("off", "answered", "question") if chosen else ("wait", "asks you", "question waiting")
    return Block(block_id, parent, _card(block_id, state[0], state[1], body, classes=state[2]))


def pause_block(event: RunPaused, parent: str, chosen: str = "") -> Block:
    """A paused run: what it found, and what the user can choose."""
    block_id = f"pause-{event.run_id}-{event.stage}"
    options = [(str(number), one_line(choice.text)) for number, choice in enumerate(event.choices, start=1)]
    body = [h("div", markdown(event.text), class_="prose"), _choices(options, chosen)]
    state = ("off", "answered", "question") if chosen else ("wait", "waits for you", "question waiting")
    return Block(block_id, parent, _card(block_id, state[0], state[1], body, classes=state[2]))


def _choices(options: list[tuple[str, str]], chosen: str) -> Html:
    if chosen:
        picked = dict(options).get(chosen.strip(), one_line(chosen))
        return h("div", _chosen_chips(tuple(text for _, text in options), picked), class_="chips")
    chips = [button(text, "choose", class_="chip", text=number) for number, text in options]
    return h("div", *chips, class_="chips")


def plan_block(event: PlanChanged, parent: str, state: PlanStatus = "to be approved") -> Block:
    """A plan of the session; with buttons to approve and to edit it while it waits for that."""
    block_id = f"plan-{event.plan_id}"
    rows = [
        h(
            "li",
            one_line(step.description),
            h("div", *(h("code", one_line(path)) for path in step.files), class_="soft")
            if step.files
            else None,
            h("div", "check: ", h("code", one_line(step.check)), class_="soft") if step.check else None,
        )
        for step in event.plan.steps
    ]
    body = [h("p", h("strong", one_line(event.plan.objective))), h("ol", *rows)]
    if state == "to be approved":
        words = "Approve and follow: the steps become todos, and files may be edited"
        approve = button(words, "approve-plan", class_="primary", id=event.plan_id)
        body.append(h("div", approve, button("Edit", "edit-plan"), class_="buttons"))
    return Block(block_id, parent, _card(block_id, PLAN_SIGNS[state], f"plan, {state}", body, classes="plan"))


def check_block(block_id: str, parent: str, event: CheckFinished) -> Block:
    """The result of the turn's check: green is for verified, and for nothing else."""
    colour, word = ("ok", "check passes") if event.passed else ("bad", "check fails")
    chip = h("span", dot(colour, word), f"{word}: {event.summary}", class_=f"chip state-{colour}")
    if event.passed or not event.content.strip():
        return Block(block_id, parent, h("div", chip, id=block_id, class_="checks"))
    output = h("pre", clean(event.content.rstrip()), class_="output", tabindex="0")
    return Block(
        block_id, parent, h("details", h("summary", chip), output, id=block_id, class_="checks", open=True)
    )


def batch_block(
    batch: BatchStarted, event: BatchStep | BatchFinished, parent: str, results: Mapping[int, str]
) -> Block:
    """The command panel: how far a batch is, each command with its state, and what is next."""
    block_id = f"batch-{batch.batch_id}"
    ended = isinstance(event, BatchFinished)
    finished = event.succeeded + event.failed
    bad = event.failed > 0
    rows = []
    for number, command in enumerate(batch.commands, start=1):
        state, word = ("off", "not run" if ended else "next")
        if number in results:
            state, word = ("done", "ran") if results[number] == "ok" else ("bad", results[number])
        elif number == event.number and not ended:
            state, word = "run", "running"
        rows.append(h("li", dot(state, word), h("code", one_line(command)), h("span", word, class_="soft")))
    how = f"{event.succeeded} succeeded · {event.failed} failed · {event.remaining} remaining"
    why = h("p", event.why, class_="t-bad why") if isinstance(event, BatchFinished) and event.why else None
    word = f"{count_of(event.total, 'command')}: {how}"
    head = h(
        "header",
        dot(
            "bad" if bad else "run" if not ended else "ok",
            "failed" if bad else "running" if not ended else "done",
        ),
        h("span", word, class_="path"),
        h("span", class_="space"),
        button("Close", "close-panel", class_="quiet small"),
        class_="card-head",
    )
    bar = h("progress", value=finished, max=event.total, class_="bad" if bad else None, aria_label=how)
    element = h(
        "section",
        head,
        bar,
        h("ol", *rows),
        why,
        id=block_id,
        class_="card batch",
        data_card=True,
        tabindex="-1",
    )
    return Block(block_id, parent, element)
