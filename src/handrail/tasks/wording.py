"""What a request says in so many words: what to do, when, how often, to which tasks. English only.

A small model invents dates and repetitions, and changes one task where all are meant. So code reads what it
can, and only what is left goes to such a model.
"""

import re
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any, NamedTuple

from msgspec.structs import replace

from handrail.protocol.task import Task
from handrail.protocol.values import TaskFilter, to_dict
from handrail.tasks.dates import MONTHS, read_date, read_time
from handrail.tasks.normalise import Clock, named_weekday, read_repeat
from handrail.tasks.scope import DAYS, POLITE, read_filter
from handrail.tasks.search import fold, telling_words

FLAGS = re.IGNORECASE
START = r"(?:^|[.,;!]\s*|\b(?:and|then|please)\s+)"
VERBS: Mapping[str, str] = {
    "create": r"(?:remind\s+me|schedule|new\s+task|add|create)\b",
    "complete": r"(?:(?:mark|tick|check|set)\b.*\b(?:done|completed?|finished)"
    r"|(?:complete|finish|(?:tick|check)\s+off))\b",
    "delete": r"(?:delete|remove|drop)\b",
    "update": r"(?:move|reschedule|postpone|push|snooze|shift|delay|set|change|make|give|rename)\b",
}
CLEAR = re.compile(START + r"(?:delete|remove|mark|tick|move|reschedule|postpone|snooze)\b", FLAGS)
"""Verbs that mean a task of the list; "finish the report" can also be a new one."""
REQUEST = re.compile(START + f"(?:{'|'.join(VERBS.values())})", FLAGS)
SEVERAL = re.compile(r"[.;!?]\s|\band\s+(?:then|also)\b", FLAGS)
ON_LIST = re.compile(r"\s*\b(?:to|on|from|off|in)\s+(?:my|the)\s+(?:task\s+|to-?do\s+)?list\b", FLAGS)
MONTH_NAMES = "|".join(f"{name[:3]}(?:{name[3:]})?" for name in MONTHS)
NUMBER = r"\d{1,2}(?:st|nd|rd|th)"
DATE = re.compile(
    r"\b(?:(?P<before>on|by|until|till|to|for|from|of|due)\s+(?:the\s(?=end))?)?(?P<said>(?:next\s|this\s)?"
    rf"(?:{DAYS}|weekend)|today|tomorrow|yesterday|(?:the\s)?day\safter\stomorrow|next\s(?:week|month)"
    r"|in\s(?:\d{1,4}|an?)\s(?:day|week|month)s?|\d{4}-\d\d-\d\d|end\sof\s(?:the\s)?(?:week|month|year)"
    rf"|(?:the\s)?{NUMBER}?\sof\s(?:{MONTH_NAMES})(?:\s\d{{4}})?|(?:{NUMBER}|\d{{1,2}})\s(?:{MONTH_NAMES})(?:\s\d{{4}})?"
    rf"|(?:{MONTH_NAMES})\s(?:{NUMBER}|\d{{1,2}})(?:,?\s\d{{4}})?|the\s{NUMBER})\b"
    r"(?P<part>\s(?:morning|afternoon|evening|night)\b)?",
    FLAGS,
)
TIME = re.compile(
    r"\b(?:(?:at|to|for)\s)?(?P<said>\d{1,2}[:.]\d{2}(?:\s?[ap]\.?m\b\.?)?|\d{1,2}\s?[ap]\.?m\b\.?"
    r"|(?<=at\s)(?:\d{1,2}|noon|midnight)\b)",
    FLAGS,
)
REPEAT = re.compile(
    r"\b(?P<said>(?:every|each)\s(?:\d{1,4}\s(?:days?|weeks?)|(?:other|second)\s(?:day|week)|day|week|weekday|month"
    rf"|{DAYS})|daily|weekly|monthly|fortnightly)\b",
    FLAGS,
)
MONTH_DAY = re.compile(rf"\b(?:on\s)?(the\s{NUMBER})\sof\s(?:every|each)\smonth\b", FLAGS)
PRIORITY = re.compile(
    r"\b(?:(?:to|as|with|at|an?)\s)+(?P<said>high|medium|low)[\s-]priority\b"
    r"|\bpriority\s(?:to\s)?(?P<set>high|medium|low|none)\b|(?P<end>high|medium|low)[\s-]priority$",
    FLAGS,
)
ALL = re.compile(r"\b(?:all|everything|(?:every|each)\stask)\b", FLAGS)
TASK_NUMBER = re.compile(r"(?:\btask\s|#)(\d+)\b", FLAGS)
LEAD = re.compile(
    START + r"(?:remind\s+me|schedule|new\s+task\s*:?|add|create)\s*"
    r"(?:(?:an?|the)\s+(?:new\s+)?(?:task|reminder|to-?do|item)\b|(?:task|reminder|to-?do|item)\s+(?=to|for|about))?"
    r"[\s:]*(?:(?:to|of|about|for|called)\s+)?"
    r"(?:(?:an?|the)\s+)?",
    FLAGS,
)
TO_WHEN = "To which day or time? Say it again with that, such as: move the dentist to friday at 10"
FILLER_TEXT = (
    "as called can change check could delay drop each finish give high important its last late low make "
    "mark medium now off overdue please priority push recurring repeating say set shift snooze them tick "
    "too until urgent weekend would yes you"
)
FILLERS = frozenset(FILLER_TEXT.split())
"""Words of a request that name no task."""


class Wording(NamedTuple):
    """What the words of one request say."""

    op: str
    """Empty: they do not say what to do."""
    is_clear: bool
    """The verb always means a task of the list."""
    fields: Mapping[str, str]
    """Date, time, recurrence and priority, in the user's words."""
    rest: str
    """The other words."""
    scope: str
    """The words that can say which tasks are meant."""


def read_wording(message: str, clock: Clock) -> Wording | None:
    """None for several requests or sentences, a question, a quotation, or a date that can mean two things."""
    text = ON_LIST.sub("", " ".join(message.split())).strip(" .!")
    if polite := POLITE.match(text.lower()):
        text = re.sub(r"^you\s", "", text[polite.end() :].strip(), flags=FLAGS).rstrip(" ?")
    if re.search('[?"“]', text) or SEVERAL.search(text):
        return None
    text = MONTH_DAY.sub(r"every month on \1", text)
    fields = dict[str, str]()
    rest, repeats = _cut(text, REPEAT, lambda said: read_repeat(said) is not None)
    rest, times = _cut(rest, TIME, lambda said: read_time(said) is not None)
    scope = rest
    rest, dates = _cut(rest, DATE, lambda said: read_date(said, *clock) is not None)
    found = REQUEST.findall(rest)
    op = next((name for name, verb in VERBS.items() if re.search(START + verb, rest, FLAGS)), "")
    vague = any(each["part"] for each in dates) and not times  # "in the evening" is no time of day
    if vague or max(len(found), len(repeats), len(times), len(dates) * (op != "update")) > 1:
        return None
    if dates and op not in ("complete", "delete"):
        fields["scheduled_for"] = dates[-1]["said"]
        before, _, after = scope.rpartition(dates[-1][0])
        scope = f"{before} {after}"
    if dates and op == "complete" and dates[-1]["before"]:
        fields["date"] = dates[-1]["said"]
    if op not in ("complete", "delete"):
        fields |= {"time": times[0]["said"]} if times else {}
        fields |= {"recurrence": repeats[0]["said"]} if repeats else {}
        if wanted := PRIORITY.search(rest):
            fields["priority"] = next(filter(None, wanted.groups()))
            rest, scope = PRIORITY.sub(" ", rest), PRIORITY.sub(" ", scope)
    return Wording(op, bool(CLEAR.search(rest)), fields, " ".join(rest.split()), scope)


def corrected_wording(message: str, corrections: Sequence[str], clock: Clock) -> Wording | None:
    """The same with what the user said to the proposal: "make it friday"."""
    read = read_wording(message, clock)
    for said in corrections:
        other = read_wording(said, clock)
        if not (read and other and other.fields and other.op in ("", "update")):
            return None
        read = read._replace(fields={**read.fields, **other.fields})
    return read


def _cut(
    text: str, pattern: "re.Pattern[str]", reads: Callable[[str], bool]
) -> tuple[str, list["re.Match[str]"]]:
    """The text without the phrases that can be read, and these."""
    found = [match for match in pattern.finditer(text) if reads(match["said"])]
    for match in reversed(found):
        text = f"{text[: match.start()].rstrip()} {text[match.end() :].lstrip()}"
    return text.strip(), found


def proposal(
    wording: Wording, tasks: Mapping[str, Task], clock: Clock, picked: Collection[str] = ()
) -> dict[str, Any] | None:
    """The operation that is meant, or what has to be asked; None where the words do not say it."""
    if wording.is_clear and wording.op == "update" and not wording.fields:
        return {"operations": [], "question": TO_WHEN}
    meant = understood(wording, tasks, clock, picked)
    return {"operations": [meant]} if meant else None


def understood(
    wording: Wording, tasks: Mapping[str, Task], clock: Clock, picked: Collection[str] = ()
) -> dict[str, Any] | None:
    """The operation that is meant; None where the words do not say it. `picked`: tasks that it is about."""
    op, fields = wording.op, dict(wording.fields)
    if op == "create":
        title = LEAD.sub("", wording.rest, count=1).strip(" ,:\"'“”")
        if not title or not LEAD.match(wording.rest):
            return None
        if "recurrence" in fields and not named_weekday(fields["recurrence"]):
            fields.setdefault("scheduled_for", "today")
        return {"op": op, "title": title[:1].upper() + title[1:], **fields}
    if not op or (op == "update" and not fields):
        return None
    every = ALL.search(wording.rest)
    if op == "complete" and not (wording.is_clear or every) and wording.scope != wording.rest:
        return None  # "finish the report by friday"
    if every and not picked:
        return {"op": f"bulk_{op}", "where": _where(wording, clock), **_without(fields, "date")}
    words = _words(wording.rest)
    known = {each: tasks[each] for each in picked} if picked else tasks
    if numbers := TASK_NUMBER.findall(wording.rest):
        meant = numbers
    elif words:
        meant = [task.id for task in known.values() if _has_all(task, words)]
        meant = [each for each in meant if not tasks[each].completed] or meant
        if not meant:
            near = any(words & set(fold(task.title).split()) for task in tasks.values())
            named = " ".join(sorted(words, key=wording.rest.lower().find))
            return {"op": op, "id": named, **fields} if wording.is_clear and not near else None
    else:
        meant = list(picked)
    if len(meant) > 1 and picked:
        return {"op": f"bulk_{op}", "where": {"ids": meant}, **_without(fields, "date")}
    return by_occurrence({"op": op, "id": meant[0], **fields}, tasks) if len(meant) == 1 else None


def by_occurrence(operation: dict[str, Any], tasks: Mapping[str, Task]) -> dict[str, Any]:
    """The operation; completing a repeating task means one occurrence of it."""
    task = tasks.get(str(operation.get("id", "")))
    if operation["op"] == "complete" and task:
        return {**operation, "op": "complete_occurrence"} if task.repeats else _without(operation, "date")
    return operation


def _without(fields: Mapping[str, Any], name: str) -> dict[str, Any]:
    return {each: value for each, value in fields.items() if each != name}


def _words(text: str) -> set[str]:
    return telling_words(text) - FILLERS


def _has_all(task: Task, words: Collection[str]) -> bool:
    """Whether the title has each word, or one that begins with it; numbers have to be the same."""
    title = fold(task.title).split()
    return all(
        any(each == word if word.isdigit() else each.startswith(singular(word)) for each in title)
        for word in words
    )


def singular(word: str) -> str:
    return word[:-1] if len(word) > 3 and word.endswith("s") and not word.endswith("ss") else word


def _where(wording: Wording, clock: Clock) -> dict[str, Any]:
    """The tasks of `all ...`: open ones unless they are said to be done; what repeats is only deleted."""
    found = read_filter(wording.scope, clock) or TaskFilter()
    words = [singular(word) for word in fold(wording.rest).split() if word in _words(wording.rest)]
    if wording.op == "complete":
        found = replace(found, completed=None)
    if found.completed is None and (wording.op != "delete" or not (words or found != TaskFilter())):
        found = replace(found, completed=False)
    if wording.op != "delete" and found.repeating is None:
        found = replace(found, repeating=False)
    given = to_dict(replace(found, text=" ".join(words)))
    return {name: value for name, value in given.items() if value not in ("", [], None)}


def grounded(operation: Mapping[str, Any], message: str, wording: Wording | None) -> dict[str, Any]:
    """What a model proposed, with the values that the message has, and without those that it has not."""
    text = message.lower()
    kept = {
        name: value
        for name, value in operation.items()
        if name not in ("scheduled_for", "time", "recurrence") or str(value).lower() in text
    }
    if wording is None:
        return kept
    return {**kept, **({"op": wording.op} if wording.is_clear else {}), **wording.fields}
