"""Answers of a model: text while it streams, the finished answer, and what the user can do next."""

from collections.abc import Sequence

from msgspec import Struct, field

from handrail.interfaces.cli.render.styles import clean, count_of, format_duration, format_usd, one_line
from handrail.interfaces.web.conversation.blocks import Block, button, dot
from handrail.interfaces.web.html import Html, h
from handrail.interfaces.web.markdown import blocks, markdown, report_html
from handrail.protocol.events import Answered, RequestFailed, RunCompleted, TurnFinished
from handrail.protocol.values import NextStep, StructuredAnswer

END_WORDS = {
    "answered": ("done", "Done"),
    "waiting": ("wait", "Waiting for you"),
    "cancelled": ("off", "Stopped"),
    "budget": ("bad", "Limit reached"),
    "stuck": ("bad", "Stuck"),
    "failed": ("bad", "Failed"),
    "interrupted": ("bad", "Interrupted"),
    "unverified": ("bad", "Unverified"),
    "escalated": ("bad", "Needs your decision"),
}
CUT_ENDS = ("length", "cut", "filtered", "interrupted")


class StreamedText(Struct):
    """A text that arrives in pieces: finished blocks are drawn once, the last one again and again."""

    message_id: str
    text: str = ""
    frozen: int = 0
    """Characters in blocks that no longer change."""
    count: int = 0
    """How many blocks those are."""

    def feed(self, offset: int, text: str) -> None:
        """Add what is new; a follower may see the beginning again."""
        self.text += text[max(0, len(self.text) - offset) :]

    def changed(self) -> list[Block]:
        """The blocks that are new or different now."""
        container = f"ans-{self.message_id}"
        rest = self.text[self.frozen :]
        found = blocks(rest)
        if not found:
            return []
        drawn = [
            Block(
                f"{container}-{self.count + at}",
                container,
                h("div", each.html, id=f"{container}-{self.count + at}"),
            )
            for at, each in enumerate(found)
        ]
        if len(found) > 1:
            lines = rest.split("\n")[: found[-1].start]
            self.frozen += sum(len(line) + 1 for line in lines)
            self.count += len(found) - 1
        return drawn


class TurnFacts(Struct):
    """What a turn has done, for the line at its end."""

    turn_id: str
    seq: int
    since: float = 0.0
    edits: list[str] = field(default_factory=list)
    commands: int = 0
    verified: bool | None = None
    recovered: bool = False
    last_answer: str = ""
    next_steps: tuple[NextStep, ...] = ()
    commands_suggested: tuple[str, ...] = ()


def report_block(event: RunCompleted, parent: str, knowledge: str) -> Block:
    """The result of an agent's run, as Markdown, with links into the place Knowledge."""
    block_id = f"report-{event.run_id}"
    body = h("div", report_html(event.text, knowledge), class_="prose")
    return Block(block_id, parent, h("article", body, id=block_id, class_="answer"))


def answer_block(event: Answered, parent: str) -> Block | None:
    """The finished answer; None where it says nothing, as with calls alone."""
    block_id = f"ans-{event.message_id}"
    if event.structured:
        body = structured(event.structured)
    elif event.text.strip():
        body = h("div", markdown(event.text), class_="prose")
    else:
        return None
    cut = h("p", f"This answer was cut off ({event.end}).", class_="t-bad") if event.end in CUT_ENDS else None
    unread = (
        h("p", f"Not read as structured: {'; '.join(event.unread)}", class_="soft") if event.unread else None
    )
    return Block(
        block_id, parent, h("article", body, cut, unread, id=block_id, class_="answer", data_answer=True)
    )


def structured(answer: StructuredAnswer) -> Html:
    sections = [
        h("section", h("h3", one_line(each.title)) if each.title else None, markdown(each.text))
        for each in answer.sections
    ]
    planned = None
    if answer.changes:
        paths = [h("code", one_line(str(change.get("path", "?")))) for change in answer.changes]
        rows = [h("span", each, class_="chip") for each in paths]
        planned = h(
            "div", h("span", f"{count_of(len(paths), 'change')}:", class_="soft"), *rows, class_="planned"
        )
    return h(
        "div",
        h("div", markdown(answer.summary), class_="summary", data_summary=True),
        *sections,
        planned,
        class_="prose",
    )


def thinking_block(message_id: str, parent: str, text: str) -> Block:
    block_id = f"think-{message_id}"
    body = h("pre", clean(text), class_="output", tabindex="0")
    return Block(
        block_id, parent, h("details", h("summary", "Thinking"), body, id=block_id, class_="thinking")
    )


def recovery_banner(event: Answered | RequestFailed, parent: str) -> Block:
    """What was saved of a broken answer, and the two ways on."""
    kept = event.recovered or StructuredAnswer("")
    parts = [
        count_of(len(getattr(kept, name)), noun)
        for name, noun in (
            ("sections", "section"),
            ("changes", "change"),
            ("commands", "command"),
            ("todos", "todo"),
        )
        if getattr(kept, name)
    ]
    what = ", ".join((["the summary"] if kept.summary else []) + parts) or "nothing"
    block_id = f"recovery-{event.request_id}"
    words = h("p", h("strong", "The answer broke off. "), f"Recovered: {what}. None of its changes was made.")
    body = structured(kept) if kept.summary else None
    buttons = h(
        "div",
        button("Continue with what was recovered", "resume", class_="primary", how="continue"),
        button("Retry", "resume", how="retry"),
        class_="buttons",
    )
    return Block(
        block_id,
        parent,
        h(
            "section",
            dot("wait", "recovered"),
            h("div", words, body, buttons),
            id=block_id,
            class_="banner wait",
        ),
    )


def failure_banner(event: RequestFailed, parent: str) -> Block:
    block_id = f"recovery-{event.request_id}"
    words = h("p", h("strong", "The request failed. "), one_line(event.message))
    buttons = h("div", button("Retry", "resume", class_="primary", how="retry"), class_="buttons")
    return Block(
        block_id,
        parent,
        h("section", dot("bad", "failed"), h("div", words, buttons), id=block_id, class_="banner bad"),
    )


def turn_end(event: TurnFinished, turn: TurnFacts, parent: str) -> Block:
    """How the turn ended, what was done, and what it took."""
    colour, word = END_WORDS[event.reason]
    if event.reason == "answered" and turn.recovered:
        colour, word = "wait", "Recovered"
    elif event.reason == "answered" and turn.verified:
        colour, word = "ok", "Done, verified"
    usage = event.usage
    cached = f" ({usage.cache_read_tokens:,} cached)" if usage.cache_read_tokens else ""
    done = []
    if turn.edits:
        names = list(dict.fromkeys(turn.edits))
        done.append(f"changed {names[0]}" if len(names) == 1 else f"changed {count_of(len(names), 'file')}")
    if turn.commands:
        done.append(f"ran {count_of(turn.commands, 'command')}")
    facts = [
        h("span", "; ".join(done)) if done else None,
        h("span", format_duration(event.seconds)),
        h("span", f"{usage.input_tokens:,} in{cached} · {usage.output_tokens:,} out"),
        h("span", format_usd(event.cost_usd)),
        h("a", "raw answer", href="#", data_place="audit") if turn.last_answer else None,
    ]
    detail = (
        h("p", event.detail, class_="soft detail") if event.detail and event.reason != "answered" else None
    )
    block_id = f"end-{turn.turn_id}"
    state = h("span", dot(colour, word), word, class_=f"end-word t-{colour}")
    return Block(
        block_id,
        parent,
        h("div", detail, h("div", state, *facts, class_="facts"), id=block_id, class_="turn-end"),
    )


def next_steps_block(turn: TurnFacts, parent: str, steps: Sequence[NextStep]) -> list[Block]:
    if not steps:
        return []
    block_id = f"next-{turn.turn_id}"
    chips = [button(one_line(step.label), "fill", class_="chip", text=step.input) for step in steps]
    return [Block(block_id, parent, h("div", *chips, id=block_id, class_="next", data_next=True))]


def commands_block(turn_id: str, parent: str, commands: Sequence[str]) -> list[Block]:
    """The commands that an answer suggests: run one, or all."""
    if not commands:
        return []
    block_id = f"cmds-{turn_id}"
    rows = [
        h(
            "li",
            h("pre", clean(command), class_="command", tabindex="0"),
            button("Run", "run-command", class_="small", command=command),
        )
        for command in commands
    ]
    every = (
        button(f"Run all {len(commands)}", "run-all", class_="small primary") if len(commands) > 1 else None
    )
    head = h(
        "header",
        h("span", "Suggested commands", class_="path"),
        h("span", class_="space"),
        every,
        class_="card-head",
    )
    element = h(
        "section", head, h("ol", *rows), id=block_id, class_="card commands", data_card=True, tabindex="-1"
    )
    return [Block(block_id, parent, element)]
