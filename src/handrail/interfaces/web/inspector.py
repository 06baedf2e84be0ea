"""The inspector: the run with its stages, the changes, the todos and the files of a session."""

import time
from collections.abc import Iterable, Sequence

from msgspec import Struct, field

from handrail.app.history.changes import PastChange
from handrail.app.history.sessions import SessionState
from handrail.interfaces.cli.render.change_list import change_state, files_summary
from handrail.interfaces.cli.render.styles import count_of, format_age, format_duration, format_usd, one_line
from handrail.interfaces.web.conversation.blocks import button, clock, dot
from handrail.interfaces.web.html import Html, h, join
from handrail.protocol import events

TABS = (("run", "Run"), ("changes", "Changes"), ("todos", "Todos"), ("files", "Files"))
LISTED_CHANGES = 200
LISTED_FILES = 300


class StageView(Struct):
    name: str
    kind: str = ""
    began: float = 0.0
    ended: float = 0.0
    state: str = "off"
    issues: tuple[str, ...] = ()
    times: int = 0
    cost: float = 0.0
    cost_known: bool = True
    tokens: int = 0


class RunView(Struct):
    """The last run of a session, as far as events tell."""

    pipeline: str = ""
    run_id: str = ""
    began: float = 0.0
    ended: float = 0.0
    stages: dict[str, StageView] = field(default_factory=dict)
    open: str = ""
    """The stage that is running."""
    repairs: int = 0
    rounds: int = 1
    end: str = ""
    paused: str = ""
    asked: dict[str, str] = field(default_factory=dict)
    """{approval or question: what it is about}"""
    checks: list[events.CheckFinished] = field(default_factory=list)

    def apply(self, one: events.Recorded) -> None:
        match one.event:
            case events.RunStarted() as event:
                self.pipeline, self.run_id, self.began, self.ended = event.pipeline, event.run_id, one.at, 0.0
                self.stages, self.repairs, self.rounds, self.end, self.paused = {}, 0, 1, "", ""
                self.open, self.asked, self.checks = "", {}, []
                for name in event.skips:
                    self.stages[name] = StageView(name, state="skipped")
            case events.StageStarted() as event:
                stage = self.stages.setdefault(event.stage, StageView(event.stage))
                stage.kind, stage.began, stage.ended, stage.state = event.kind, one.at, 0.0, "run"
                stage.times, stage.issues = stage.times + 1, ()
                self.open, self.paused = event.stage, ""
            case events.StageCompleted() as event:
                self._end(event.stage, one.at, "ok")
            case events.GateFailed() as event:
                self._end(event.stage, one.at, "bad")
                self.stages[event.stage].issues = event.issues
            case events.RunRepaired():
                self.repairs += 1
            case events.RunContinued() as event:
                self.rounds = event.number
            case events.RunPaused() as event:
                self.paused = event.stage
            case events.Answered() | events.RequestFailed() | events.SideAnswered() as event:
                if stage_now := self.stages.get(self.open):
                    stage_now.cost += event.cost_usd or 0.0
                    stage_now.cost_known = stage_now.cost_known and event.cost_usd is not None
                    stage_now.tokens += event.usage.input_tokens + event.usage.output_tokens
            case _:
                self._apply_end(one)

    def _apply_end(self, one: events.Recorded) -> None:
        match one.event:
            case events.RunCompleted():
                self._close(one.at, "done")
            case events.RunFailed() as event:
                self._close(one.at, event.reason)
            case events.RunBrokenOff():
                self._close(one.at, "left")
            case (
                events.ApprovalAsked(approval_id=key, summary=words)
                | events.QuestionAsked(question_id=key, question=words)
            ):
                self.asked[key] = words
            case events.ApprovalAnswered(approval_id=key) | events.QuestionAnswered(question_id=key):
                self.asked.pop(key, None)
            case events.CheckFinished() as event:
                self.checks.append(event)
            case events.TurnFinished():
                self.asked = {}

    def _end(self, name: str, at: float, state: str) -> None:
        stage = self.stages.setdefault(name, StageView(name))
        stage.ended, stage.state, self.open = at, state, ""

    def _close(self, at: float, end: str) -> None:
        self.ended, self.end, self.paused = at, end, ""
        if stage := self.stages.get(self.open):
            stage.ended, stage.state = at, "ok" if end == "done" else "bad"
        self.open = ""


def run_view(found: Iterable[events.Recorded]) -> RunView:
    view = RunView()
    for one in found:
        view.apply(one)
    return view


def render_inspector(counts: dict[str, int], panel: Html, tab: str = "run") -> Html:
    tabs = [
        h(
            "button",
            label,
            h("span", str(counts[name]), class_="count") if counts.get(name) else None,
            type="button",
            role="tab",
            id=f"tab-{name}",
            aria_selected="true" if name == tab else "false",
            aria_controls="panel",
            tabindex="0" if name == tab else "-1",
            data_act="tab",
            data_id=name,
        )
        for name, label in TABS
    ]
    return h(
        "aside",
        h("div", *tabs, class_="tabs", role="tablist", aria_label="Details"),
        h(
            "div",
            panel,
            class_="panel",
            id="panel",
            role="tabpanel",
            aria_labelledby=f"tab-{tab}",
            tabindex="0",
        ),
        class_="inspector",
        id="inspector",
        aria_label="Details of the session",
    )


def overview(
    view: RunView, stages: Sequence[str], state: SessionState, changes: Sequence[PastChange]
) -> Html:
    """The first tab: the run, then the open todos and the last changes in short."""
    parts = [render_run(view, stages)]
    if state.todos:
        parts.append(render_todos(state))
    if changes:
        parts.append(render_changes(changes, state, short=True))
    return join(*parts)


def render_run(view: RunView, stages: Sequence[str]) -> Html:
    if not view.pipeline:
        words = "The stages of a message appear here: what runs, what it costs, what a gate rejected."
        return h("section", h("h2", "Run"), h("p", words, class_="soft"))
    names = list(dict.fromkeys([*stages, *view.stages]))
    rows = [_stage_row(view.stages.get(name) or StageView(name), view) for name in names]
    if view.asked:
        words = one_line(next(iter(view.asked.values())))
        rows.append(_step(dot("wait", "waiting"), "Waiting for you", words, now=True))
    done = sum(view.stages[name].state in ("ok", "skipped") for name in names if name in view.stages)
    took = format_duration(view.ended - view.began) if view.ended else clock(view.began)
    costs = list(view.stages.values())
    cost = format_usd(sum(each.cost for each in costs) if all(each.cost_known for each in costs) else None)
    remarks = [f"repaired {count_of(view.repairs, 'time')}"] if view.repairs else []
    remarks += [f"round {view.rounds}"] if view.rounds > 1 else []
    remarks += [view.end] if view.end not in ("", "done") else []
    checks = [
        _step(
            dot("ok" if each.passed else "bad", "passed" if each.passed else "failed"), "Check", each.summary
        )
        for each in view.checks[-3:]
    ]
    return h(
        "section",
        h("h2", h("span", view.pipeline.capitalize()), h("span", took, f" · {cost}", class_="soft")),
        *rows,
        *checks,
        h("p", "; ".join(remarks), class_="soft") if remarks else None,
        h("progress", value=done, max=max(1, len(names)), aria_label=f"{done} of {len(names)} stages"),
    )


def _stage_row(stage: StageView, view: RunView) -> Html:
    signs = {
        "ok": ("ok", "done"),
        "bad": ("bad", "rejected"),
        "run": ("run", "running"),
        "skipped": ("off", "not needed"),
    }
    sign, word = signs.get(stage.state, ("off", "not started"))
    facts: list[str] = []
    if stage.ended:
        facts.append(format_duration(stage.ended - stage.began))
    if stage.tokens:
        facts.append(f"{stage.tokens:,} tokens")
    if stage.cost:
        facts.append(format_usd(stage.cost if stage.cost_known else None))
    if stage.times > 1:
        facts.append(f"{stage.times} times")
    if view.paused == stage.name:
        sign, word = "wait", "waits for you"
    note: Html | str = " · ".join(facts) or word
    if stage.state == "run" and not view.end:
        note = clock(stage.began)
    return _step(
        dot(sign, word), stage.name, note, issues=stage.issues, now=stage.state == "run" and not view.end
    )


def _step(sign: Html, words: str, note: Html | str, *, issues: Sequence[str] = (), now: bool = False) -> Html:
    below = [h("div", one_line(issue), class_="issues t-bad") for issue in issues]
    return h(
        "div",
        sign,
        h("span", words, class_="words"),
        h("span", note, class_="soft"),
        *below,
        class_=f"step{' now' if now else ''}",
    )


def render_todos(state: SessionState) -> Html:
    if not state.todos:
        words = "A plan with several steps is listed here. Facts complete a step, never a claim of the model."
        return h("section", h("h2", "Todos"), h("p", words, class_="soft"))
    done = sum(todo.done for todo in state.todos)
    rows = []
    for todo in state.todos:
        box = (
            dot("ok", "done")
            if todo.done
            else button("", "todo-done", id=todo.id, label=f"Mark as done: {one_line(todo.text)}")
        )
        rows.append(
            h(
                "div",
                box,
                h("span", one_line(todo.text), class_="words"),
                class_=f"todo{' done' if todo.done else ''}",
            )
        )
    head = h("h2", "Todos", h("span", f"{done} of {len(state.todos)}", class_="soft"))
    return h("section", head, *rows)


def render_changes(changes: Sequence[PastChange], state: SessionState, *, short: bool = False) -> Html:
    numbers = {change.id: change.number for change in changes}
    shown = list(reversed(changes))[: 5 if short else LISTED_CHANGES]
    if not shown:
        words = "Every change of a file is listed here, with its diff, and can be undone."
        return h("section", h("h2", "Changes"), h("p", words, class_="soft"))
    redo = button("Redo", "redo", class_="quiet small") if state.rewinds else None
    rows = [_change_row(change, numbers, short=short) for change in shown]
    more = len(changes) - len(shown)
    rest = (
        h("p", f"{count_of(more, 'older change')} not shown", class_="soft")
        if more > 0 and not short
        else None
    )
    return h("section", h("h2", "Changes", redo), *rows, rest)


def _change_row(change: PastChange, numbers: dict[str, int], *, short: bool) -> Html:
    sign = {"applied": "ok", "not applied": "bad", "unfinished": "run"}.get(change.status, "off")
    state = change_state(change, numbers)
    if change.verified is not None:
        state += ", check passed" if change.verified else ", check failed"
    link = h(
        "a",
        f"{change.number} {files_summary(change.prepared.files, change.prepared.unlisted)}",
        href="#",
        data_place=f"changes/{change.id}",
    )
    acts = None
    if change.status == "applied" and change.prepared.by != "rollback" and not short:
        acts = h(
            "span",
            button("Undo", "undo", class_="quiet small", change=change.id),
            button("Rewind to before", "rewind", class_="quiet small", change=change.id),
            class_="acts",
        )
    facts = f"{state}, {format_age(time.time() - change.at)}"
    by = "" if change.prepared.by == "agent" else f" by {change.prepared.by}"
    return h(
        "div", dot(sign, state), link, h("span", f"{facts}{by}", class_="soft"), acts, class_="change-row"
    )


def render_files(state: SessionState) -> Html:
    """The files that the model has seen or changed in this session."""
    changed = state.files.changed
    rows = []
    for path, seen in list(reversed(state.files.files.items()))[:LISTED_FILES]:
        word = "changed" if path in changed else "read in part" if not seen.whole else "read"
        how = {"user": "you attached it", "auto": "attached again"}.get(seen.how, f"turn {seen.turn}")
        rows.append(
            h(
                "div",
                h("code", one_line(path)),
                h("span", f"{word} · {how}", class_="soft"),
                class_="file-row",
            )
        )
    if not rows:
        return h(
            "section", h("h2", "Files"), h("p", "Files that the model has seen or changed.", class_="soft")
        )
    return h("section", h("h2", "Files", h("span", str(len(state.files.files)), class_="soft")), *rows)
