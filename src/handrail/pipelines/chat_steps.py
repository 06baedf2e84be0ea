"""What code does for a chat: look around, load what was planned, apply what was answered."""

import re
from collections.abc import Iterator
from typing import Any

from handrail.engine.pipeline.definition import Change, Output, Work
from handrail.pipelines.calls import hits_of, why_not
from handrail.tools.clip import head

MOST_FILES, MOST_PATTERNS, MOST_URLS, MOST_MENTIONS = 10, 12, 3, 4
LISTED, HITS = 4_000, 2_000
"""Characters: of the files that a plan is made from, and of what was found of a name."""
WILD, BRACKETS = re.compile(r"[*?]"), re.compile(r"[\[{]")
"""What makes a pattern of a path, and what may as well stand in a name: app/[id]/page.tsx."""
NOTES = ("[cut after ", "[stopped at ")
LISTED_TODO = re.compile(r"^(\S+): (.*?)( \(done\))?$", re.MULTILINE)
KEYS = {"create": ("text",), "rewrite": ("text", "base_hash"), "replace": ("edits", "base_hash")}
WHOLE = ("create", "rewrite")
TOOLS = {"create": "write", "rewrite": "write", "replace": "edit", "delete": "delete"}


async def look(work: Work) -> Output:
    """What files there are and what was said before, for the plan."""
    end = await work.call("list", {"path": ".", "depth": 2})
    files = head(end.content, LISTED, "There are more.") if end.ok else ""
    return {"files": files, "earlier": work.earlier}


async def load(work: Work) -> Output:
    """What the plan names, as far as there is room for it; each file with its hash."""
    plan, loading = work.outputs["plan"], Loading(work)
    for url in plan["urls"][:MOST_URLS]:
        await loading.take("fetch", {"url": url}, url)
    for pattern in plan["patterns"][:MOST_PATTERNS]:
        await loading.files_of(pattern)
    for name in plan["mentions"][:MOST_MENTIONS]:
        await loading.mention(name)
    return {"parts": loading.parts, "missing": loading.missing, "paths": list(loading.files)}


class Loading:
    """What was found so far, and what was not."""

    def __init__(self, work: Work) -> None:
        self._work = work
        self._room = work.room
        self.parts: list[str] = []
        self.missing: list[str] = []
        self.files: dict[str, None] = {}

    async def files_of(self, pattern: str) -> None:
        """The files that a pattern names; of a plain path, wherever it is."""
        wild, brackets = WILD.search(pattern), BRACKETS.search(pattern)
        if not wild and await self.file(pattern, perhaps=bool(brackets)):
            return
        if wild or brackets:
            end = await self._work.call("glob", {"pattern": pattern})
            none = not end.ok or end.content.startswith("No file matches")
            found = [] if none else [name for name in end.content.splitlines() if not name.startswith(NOTES)]
            if not found:
                self.missing.append(f"{pattern}: no file matches")
            for path in found[:MOST_FILES]:
                await self.file(path)

    async def file(self, path: str, *, perhaps: bool = False) -> bool:
        """Whether the file is there, as far as anybody looks; `perhaps`: it need not be."""
        if path in self.files:
            return True
        if len(self.files) >= MOST_FILES or self._room <= 0:
            self.missing.append(f"{path}: not read, there is no room for more")
            return True
        if await self.take("read", {"path": path}, path, perhaps=perhaps):
            self.files[path] = None
        return path in self.files

    async def mention(self, name: str) -> None:
        """Where a name stands, and the file in which it stands first."""
        hits = hits_of(await self._work.call("search", {"pattern": name, "rows": True}))
        if not hits:
            self.missing.append(f"{name}: stands nowhere")
            return
        told = "\n".join(f"{hit.path}:{hit.line}:{hit.text}" for hit in hits)
        self._add(f"Where {name} stands:\n{head(told, HITS, 'There are more.')}")
        await self.file(hits[0].path)

    async def take(self, tool: str, arguments: dict[str, Any], what: str, *, perhaps: bool = False) -> bool:
        end = await self._work.call(tool, arguments)
        if end.ok:
            self._add(end.content)
        elif not perhaps:
            self.missing.append(f"{what}: {why_not(end).message}")
        return end.ok

    def _add(self, text: str) -> None:
        text = head(text, max(self._room, 200), "There was no room for more.")
        self._room -= len(text)
        self.parts.append(text)


async def apply(work: Work) -> Output:
    """Put the todos of the answer on the list, and make its changes, all or none."""
    answer = work.outputs["answer"]
    changes = [cleaned(change) for change in answer.get("changes", [])]
    todos = [{**todo, "text": " ".join(todo["text"].split())[:500]} for todo in answer.get("todos", [])]
    todos = [todo for todo in todos if todo["text"]]
    known = await _listed(work, [todo["text"] for todo in todos]) if todos else {}
    still_open = {text: todo for text, (todo, done) in known.items() if not done}
    named = [still_open[todo["text"]] for todo in todos if todo["done"] and todo["text"] in still_open]
    refused, paths, files = "", list[str](), list[str]()
    if changes:
        ends = await work.change_together(list(_calls(changes, named)))
        wrong = next((end for end in ends if not end.ok), None)
        refused = why_not(wrong).message if wrong else ""
        paths = [] if wrong else [change["path"] for change in changes]
    done = set(named) if paths else set()
    left = [text for text, todo in still_open.items() if todo not in done]
    if left and paths:
        for path in dict.fromkeys(paths):
            end = await work.call("read", {"path": path})
            files += [head(end.content, work.room // 4, "Read on where it matters.")] if end.ok else []
    return {"paths": paths, "refused": refused, "left": left, "done": len(done), "files": files}


async def _listed(work: Work, texts: list[str]) -> dict[str, tuple[str, bool]]:
    """The ids that todos have on the session's list, by their texts, and whether they are done."""
    end = await work.call("todos", {"todos": [{"text": text} for text in texts]})
    known = (
        {text: (todo, bool(done)) for todo, text, done in LISTED_TODO.findall(end.content)} if end.ok else {}
    )
    return {text: known[text] for text in texts if text in known}


def _calls(changes: list[dict[str, Any]], todos: list[str]) -> Iterator[Change]:
    """Each change as a call that changes files; what is done with all of them is named by the first."""
    for number, change in enumerate(changes):
        form = str(change.get("form", ""))
        arguments = {name: value for name, value in change.items() if name != "form"}
        if form in WHOLE:
            arguments["only"] = form
        if todos and number == 0:
            arguments["todos"] = todos
        yield Change(TOOLS.get(form, "edit"), arguments)


def cleaned(change: dict[str, Any]) -> dict[str, Any]:
    """The change with what belongs to its form alone: models fill in what they leave empty."""
    form = str(change.get("form", ""))
    wanted = ("form", "path", *KEYS.get(form, ("base_hash",)))
    kept = {name: value for name, value in change.items() if name in wanted and value is not None}
    return {name: value for name, value in kept.items() if value != "" or (name == "text" and form in WHOLE)}
