"""Forms of the place of splits: a new one, and a plan, its limits, a subtask, a text for a conflict."""

from collections.abc import Iterable, Mapping, Sequence
from typing import TypeVar, get_args

from starlette.responses import Response

from handrail.app.splits.plans import known_plan
from handrail.app.splits.report import Estimate, SplitReport
from handrail.app.splits.run import read_split
from handrail.interfaces.cli.render.split_lines import STRATEGY_WORDS
from handrail.interfaces.cli.render.styles import clean, format_duration, format_usd, one_line
from handrail.interfaces.http.errors import not_found
from handrail.interfaces.web.conversation.blocks import button
from handrail.interfaces.web.html import Html, h
from handrail.interfaces.web.page_call import PageCall, part
from handrail.protocol.subtask import Granularity, SplitConflict, SplitLimits, SplitPlan, Subtask

GRANULARITIES = {"": "By rules"} | {each: each.capitalize() for each in get_args(Granularity)}
STRATEGIES = {name: words.capitalize() for name, words in STRATEGY_WORDS.items()}
PLACES = {"": "As the settings say", "here": "Here", "workers": "On workers"}
CLASSES = {"main": "Main", "fast": "Fast"}
NEEDS = {"files": "The contents of its files", "tree": "A copy of the tree, and tools"}
Named = TypeVar("Named", Subtask, SplitConflict)
LEAVES = "Leave a field empty for no limit."


def new_split_form() -> Html:
    """What a plan can be told before it is made."""
    return h(
        "form",
        _field("Task", h("textarea", name="task", rows="3", required=True)),
        _field(
            "For each file that matches (empty: the model plans)",
            h("input", name="files", type="text", placeholder="src/**/*.py"),
        ),
        h(
            "div",
            _field("Granularity", _select("granularity", GRANULARITIES)),
            _field("Strategy", _select("strategy", STRATEGIES)),
            _field("Models are asked", _select("run_on", PLACES)),
            class_="fields",
        ),
        h("details", h("summary", "Limits"), _limit_fields(SplitLimits())),
        h("div", h("button", "Plan it", type="submit", class_="primary"), class_="buttons"),
        class_="split-form",
        data_act="split-plan",
    )


async def limits_part(call: PageCall) -> Response:
    """The limits of a plan, or of a split that waits and goes on with them."""
    split_id = call.request.path_params["split"]
    planned = read_split(call.app, split_id).status == "planned"
    words = "Save" if planned else "Resume"
    return part(
        _dialog_form(
            "split-limits",
            words,
            _limit_fields(known_plan(call.app, split_id).limits),
            id=split_id,
            planned="1" if planned else "",
        )
    )


async def subtask_part(call: PageCall) -> Response:
    """A subtask of a plan, with all that can be changed in it."""
    split_id, name = call.request.path_params["split"], call.request.path_params["subtask"]
    subtask = _named(known_plan(call.app, split_id).subtasks, name)
    return part(_dialog_form("split-save", "Save", *_subtask_fields(subtask), id=split_id, subtask=name))


async def own_text_part(call: PageCall) -> Response:
    """A text of the user's own for the lines of a conflict, which begins as one of the sides."""
    split_id, name = call.request.path_params["split"], call.request.path_params["conflict"]
    conflict = _named(read_split(call.app, split_id).conflicts, name)
    begin = next((each for each in (conflict.ours, conflict.theirs) if each is not None), conflict.base)
    field = _field(
        f"What stands in {clean(conflict.path)} from line {conflict.line} on", _area("text", begin, 12)
    )
    return part(_dialog_form("split-text", "Settle with this", field, id=split_id, conflict=name))


def _named(found: Sequence[Named], name: str) -> Named:
    for each in found:
        if each.id == name:
            return each
    raise not_found(
        f"There is no {name!r} in this split any more.", "Reload the page to see it as it is now."
    )


def strategy_choice(report: SplitReport, found: Iterable[Estimate]) -> Html:
    """What each strategy would take; choosing one changes the plan."""
    rows = [_strategy(report, each) for each in found]
    return h("fieldset", h("legend", "Strategy"), *rows, class_="split-strategies")


def _strategy(report: SplitReport, each: Estimate) -> Html:
    chosen = each.strategy == report.strategy
    words = STRATEGY_WORDS[each.strategy]
    return h(
        "label",
        h(
            "input",
            type="radio",
            name="strategy",
            value=each.strategy,
            checked=chosen,
            aria_label=words,
            data_act="split-strategy",
            data_id=report.session_id,
        ),
        h("strong", words),
        h("span", f"about {format_duration(each.seconds)}", class_="number"),
        h("span", f"{each.tokens:,} tokens", class_="number"),
        h("span", format_usd(each.usd), class_="number"),
        h("span", each.risk, class_="soft risk"),
    )


def planned_subtasks(split_id: str, plan: SplitPlan, most: int) -> Html:
    """The first subtasks of a plan, each with what can be changed in it."""
    ends = plan.subtasks[0].id, plan.subtasks[-1].id
    return h("ol", *(_planned(split_id, each, *ends) for each in plan.subtasks[:most]), class_="split-plan")


def _planned(split_id: str, subtask: Subtask, first: str, last: str) -> Html:
    name = subtask.id
    traits = [f"after {', '.join(subtask.depends_on)}"] * bool(subtask.depends_on)
    traits += ["with the fast model"] * (subtask.model_class == "fast")
    traits += ["in a tree"] * (subtask.needs == "tree")
    writes = f"; changes {', '.join(subtask.writes)}" if subtask.writes else ""
    known = {"id": split_id, "subtask": name}
    path = f"{split_id}/subtasks/{name}"
    return h(
        "li",
        h(
            "div",
            h("strong", name),
            h("span", f" {', '.join(traits)}", class_="soft"),
            h("p", one_line(subtask.instruction)),
            h("p", f"{', '.join(subtask.files) or 'no file is shown'}{writes}", class_="soft"),
        ),
        h(
            "div",
            None if name == first else _change("Up", "split-move", known | {"by": "-1"}),
            None if name == last else _change("Down", "split-move", known | {"by": "1"}),
            button("Edit", "split-edit", class_="small", label=f"Edit: {name}", title=name, path=path),
            None if first == last else _change("Remove", "split-remove", known),
            class_="buttons",
        ),
    )


def _change(words: str, act: str, known: dict[str, str]) -> Html:
    return button(words, act, class_="small", label=f"{words}: {known['subtask']}", **known)


def limits_words(limits: SplitLimits) -> str:
    """The limits as a sentence."""

    def most(tokens: int | None, usd: float | None, words: str) -> list[str]:
        found = [f"{tokens:,} tokens"] if tokens is not None else []
        found += [format_usd(usd)] if usd is not None else []
        return [f"{' and '.join(found)} {words}"] if found else []

    each = most(limits.subtask_tokens, limits.subtask_usd, "for each")
    whole = most(limits.tokens, limits.usd, "in all")
    tries = "1 try" if limits.tries == 1 else f"{limits.tries} tries"
    return f"At most {', '.join([f'{limits.parallel} at once', tries, *whole, *each])}."


def _limit_fields(limits: SplitLimits) -> Html:
    def number(words: str, name: str, value: float | None, **attributes: str) -> Html:
        shown = "" if value is None else f"{value:.15g}"
        return _field(words, h("input", type="number", name=name, value=shown, **attributes))

    return h(
        "div",
        number("At once", "parallel", limits.parallel, min="1", max="256", required="1"),
        number("Tries of a subtask", "tries", limits.tries, min="1", max="10", required="1"),
        number("USD in all", "usd", limits.usd, min="0", step="any"),
        number("Tokens in all", "tokens", limits.tokens, min="1"),
        number("USD of a subtask", "subtask_usd", limits.subtask_usd, min="0", step="any"),
        number("Tokens of a subtask", "subtask_tokens", limits.subtask_tokens, min="1"),
        h("p", LEAVES, class_="soft"),
        class_="fields",
    )


def _subtask_fields(subtask: Subtask) -> Iterable[Html]:
    yield _field("Instruction", _area("instruction", subtask.instruction, 4, required=True))
    yield _field("Files that it is shown, one in each line", _area("files", "\n".join(subtask.files), 2))
    yield _field(
        "What it may change or create (empty: its files; a folder ends with /)",
        _area("writes", "\n".join(subtask.writes), 2),
    )
    yield _field("Constraints, one in each line", _area("constraints", "\n".join(subtask.constraints), 2))
    yield _field(
        "Depends on, with blanks between", h("input", name="depends_on", value=" ".join(subtask.depends_on))
    )
    yield h(
        "div",
        _field("Model", _select("model_class", CLASSES, subtask.model_class)),
        _field("Needs", _select("needs", NEEDS, subtask.needs)),
        _field("Priority", h("input", type="number", name="priority", value=subtask.priority, required=True)),
        class_="fields",
    )


def _dialog_form(act: str, words: str, *fields: Html, **data: str) -> Html:
    return h(
        "form",
        *fields,
        h("p", class_="t-bad problem", role="alert"),
        h(
            "div",
            h("button", words, type="submit", class_="primary"),
            button("Cancel", "dialog-close"),
            class_="buttons",
        ),
        class_="task-form",
        data_act=act,
        **{f"data_{name}": value for name, value in data.items()},
    )


def _field(words: str, control: Html) -> Html:
    return h("label", h("span", words), control, class_="field")


def _area(name: str, text: str, rows: int, *, required: bool = False) -> Html:
    # A browser leaves out the first line end of a text area.
    return h("textarea", f"\n{text}", name=name, rows=rows, spellcheck="false", required=required)


def _select(name: str, words: Mapping[str, str], chosen: str = "") -> Html:
    options = [h("option", text, value=value, selected=value == chosen) for value, text in words.items()]
    return h("select", *options, name=name)
