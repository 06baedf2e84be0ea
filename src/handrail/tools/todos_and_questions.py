"""The todos, ask_user and next_steps tools."""

import re
from collections.abc import Collection
from itertools import chain, count, repeat
from typing import Annotated

from msgspec import Meta
from msgspec.structs import replace

from handrail.protocol.events import NextStepsOffered, TodosChanged
from handrail.protocol.values import NEXT_STEPS_TOOL, NextStep, Todo, Value
from handrail.tools.tool import CallContext, HiddenFromModel, Outcome, Question, Tool, pluralize, tool_refused

MAX_TODOS = 50
MAX_TODO_TEXT, MAX_TODO_COMMAND = 500, 1_000
TODO_ID = re.compile(r"[\w.-]{1,20}")


class TodoItem(Value):
    text: Annotated[str, Meta(min_length=1, max_length=MAX_TODO_TEXT)]
    id: str = ""


class TodosArguments(Value):
    todos: tuple[TodoItem, ...]
    commands: Annotated[tuple[Annotated[str, Meta(max_length=MAX_TODO_COMMAND)], ...], HiddenFromModel()] = ()
    """The command that completes each of them; empty, or left out at the end: none."""


class AskArguments(Value):
    question: Annotated[str, Meta(min_length=1)]
    options: tuple[str, ...] = ()


class NextStepsArguments(Value):
    steps: Annotated[tuple[Annotated[str, Meta(min_length=1, max_length=300)], ...], Meta(min_length=1)]


class Todos(Tool[TodosArguments]):
    name = "todos"
    description = "Add todos, or reword them by id. An edit, write or run that names a todo completes it."
    action = "note"
    arguments = TodosArguments

    async def run(self, arguments: TodosArguments, work: CallContext) -> Outcome:
        plan = work.session.state.plan
        todos = merge_todos(work.session.state.todos, arguments, fixed=plan.todos if plan else ())
        if len(todos) > MAX_TODOS:
            message = f"That would be {len(todos)} todos; {MAX_TODOS} is the limit. Use fewer, larger steps."
            raise tool_refused(self.name, "invalid_arguments", message)
        done = sum(todo.done for todo in todos)
        listed = "\n".join(f"{todo.id}: {todo.text}{' (done)' if todo.done else ''}" for todo in todos)
        summary = f"{pluralize(len(todos), 'todo')}, {done} done"
        changed = todos != work.session.state.todos
        return Outcome(summary, listed, events=(TodosChanged(todos=tuple(todos)),) if changed else ())


class AskUser(Tool[AskArguments]):
    name = "ask_user"
    description = "Ask the user when only they can decide."
    action = "ask"
    arguments = AskArguments

    def summary(self, arguments: AskArguments, work: CallContext) -> str:
        return " ".join(arguments.question.split())

    def question(self, arguments: AskArguments) -> Question:
        return Question(arguments.question, arguments.options)

    async def run(self, arguments: AskArguments, work: CallContext) -> Outcome:
        return Outcome("answered", work.answer)


class NextSteps(Tool[NextStepsArguments]):
    name = NEXT_STEPS_TOOL
    description = "With your final words: up to 3 messages the user may send next."
    action = "note"
    arguments = NextStepsArguments

    async def run(self, arguments: NextStepsArguments, work: CallContext) -> Outcome:
        texts = dict.fromkeys(" ".join(text.split()) for text in arguments.steps)
        steps = tuple(NextStep(text, text) for text in texts if text)[:3]
        event = NextStepsOffered(turn_id=work.turn_id, steps=steps)
        return Outcome(pluralize(len(steps), "next step"), "Shown to the user.", events=(event,))


def merge_todos(todos: list[Todo], given: TodosArguments, fixed: Collection[str] = ()) -> list[Todo]:
    """The list with new todos added and known ones reworded; nothing else of a known one changes.

    `fixed` ones keep their words: the user approved them as the steps of a plan.
    """
    result = {todo.id: todo for todo in todos}
    for item, command in zip(given.todos, chain(given.commands, repeat("")), strict=False):
        same_text = next((todo for todo in result.values() if todo.text == item.text), None)
        if known := result.get(item.id) or same_text:
            result[known.id] = known if known.id in fixed else replace(known, text=item.text)
        else:
            add_todo(result, item.text, command, item.id if TODO_ID.fullmatch(item.id) else "")
    return list(result.values())


def add_todo(todos: dict[str, Todo], text: str, command: str = "", todo_id: str = "") -> str:
    """The id of a new todo; a free one unless it is given."""
    free = (f"t{number}" for number in count(len(todos) + 1))
    new = todo_id or next(each for each in free if each not in todos)
    todos[new] = Todo(id=new, text=text, command=command)
    return new
