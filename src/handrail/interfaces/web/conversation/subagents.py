"""Each sub-agent as one folded entry: its task and state, and inside a line for each of its calls."""

from typing import Any

from handrail.interfaces.cli.render.styles import clean, format_duration, format_usd, one_line
from handrail.interfaces.cli.render.tool_calls import SHORT_TOOL_NAMES, note
from handrail.interfaces.web.conversation.blocks import Block, clock, dot, notes
from handrail.interfaces.web.html import Html, h
from handrail.protocol import events

WIDTH = 100_000
TASK_SHOWN, REPORT_SHOWN = 160, 4_000
SIGNS = {"answered": "ok", "cancelled": "off", "interrupted": "off", "waiting": "wait"}


class SubagentBlocks:
    """Apply the events of sub-agents in order; each call returns the blocks to add or replace."""

    def __init__(self) -> None:
        self._started: dict[str, tuple[events.SubagentStarted, float]] = {}
        self._subjects: dict[tuple[str, str], str] = {}
        """{sub-agent and call: what the call is about}"""
        self._lines = 0

    def apply(self, event: events.SubagentsEvent, at: float, parent: str) -> list[Block]:
        """`parent`: the block for those of the conversation itself."""
        match event:
            case events.SubagentStarted(subagent_id=name):
                known = event.parent in self._started
                if name in self._started:  # it goes on after a restart
                    return [self._head(name, clock(at), dot("run", "running"))]
                self._started[name] = event, at
                above = f"sub-{event.parent}" if known else parent
                fold = Block(f"sub-{name}", above, tag="details", classes="stage subagent")
                return [fold, self._head(name, clock(at), dot("run", "running"))]
            case events.SubagentEvent(subagent_id=name) if name in self._started:
                return self._inside(name, event.event, at)
            case events.SubagentFinished(subagent_id=name) if name in self._started:
                return self._ended(name, event.report, at)
        return []

    def _head(self, name: str, time: Html, sign: Html, doing: str = "") -> Block:
        started, _ = self._started[name]
        block_id = f"sub-{name}-head"
        words = h("span", one_line(clean(started.task))[:TASK_SHOWN], class_="words")
        who = h("span", clean(f"sub-agent {started.agent}".strip()), class_="soft")
        now = h("span", one_line(clean(doing))[:TASK_SHOWN], class_="soft")
        return Block(
            block_id,
            f"sub-{name}",
            h("summary", sign, who, words, now, h("span", class_="space"), time, id=block_id),
        )

    def _inside(self, name: str, inner: dict[str, Any], at: float) -> list[Block]:
        running = dot("run", "running")
        match inner:
            case {"type": "tool_started", "call_id": str() as call, "tool": str() as tool}:
                subject = str(inner.get("summary", ""))
                self._subjects[name, call] = subject
                return [self._head(name, clock(self._started[name][1]), running, f"{tool} {subject}")]
            case {"type": "tool_finished", "call_id": str() as call, "tool": str() as tool}:
                self._lines += 1
                subject, status = self._subjects.pop((name, call), ""), inner.get("status", "")
                end = f"{subject}: {inner.get('summary', '')}".strip(": ")
                rows = note(SHORT_TOOL_NAMES.get(tool, tool), end, WIDTH, "dim" if status == "ok" else "bad")
                return notes(f"sub-{name}-{self._lines}", f"sub-{name}", rows)
        return []

    def _ended(self, name: str, report: events.SubagentReport, at: float) -> list[Block]:
        _, since = self._started[name]
        cost = format_usd(report.cost_usd) if report.cost_usd else ""
        took = h("span", " · ".join(filter(None, [cost, format_duration(at - since)])), class_="soft")
        sign = dot(SIGNS.get(report.reason, "bad"), report.reason)
        text = "\n".join(filter(None, [report.detail, report.text]))[:REPORT_SHOWN]
        rows = [row for line in text.splitlines() for row in note("", clean(line), WIDTH)]
        head = self._head(name, took, sign, "" if report.reason == "answered" else report.reason)
        return [*notes(f"sub-{name}-report", f"sub-{name}", rows), head]
