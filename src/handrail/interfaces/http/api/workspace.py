"""The workspace itself: its state, the doctor, files to mention."""

from typing import Annotated

from msgspec import Meta

from handrail import __version__
from handrail.app.app import App, Options, diagnose
from handrail.app.files import find_files, read_file
from handrail.app.mentions import complete_mention
from handrail.interfaces.http.endpoint import Call, Endpoint
from handrail.protocol.values import Mode, Value

Path = Annotated[str, Meta(max_length=4_096)]


class GitInfo(Value):
    branch: str
    changed: int


class WorkspaceState(Value):
    name: str
    path: str
    version: str
    mode: Mode
    """Of new sessions."""
    sandbox: str
    """What confines commands; `none` where nothing does."""
    git: GitInfo | None
    notices: tuple[str, ...]
    """What the user should know, such as a repaired log."""


async def show_workspace(call: Call) -> WorkspaceState:
    """The workspace as the first lines of a conversation show it."""
    app, git = call.app, await call.app.git_state()
    protection = await app.sandbox()
    return WorkspaceState(
        call.workspace.name,
        str(call.workspace.root),
        __version__,
        app.settings.mode,
        protection.name,
        GitInfo(git.branch, git.changed) if git else None,
        tuple(app.notices),
    )


class Finding(Value):
    name: str
    level: str
    """`ok`, `warn`, `fail` or `-`."""
    text: str
    advice: str


class Diagnosis(Value):
    findings: tuple[Finding, ...]


async def doctor(call: Call) -> Diagnosis:
    """Check the setup; sends the model one short question."""
    options = Options(call.workspace.root, model=call.app.options.model)
    found = [Finding(*each) async for each in diagnose(options, call.workspace.environ)]
    return Diagnosis(tuple(found))


class FileQuery(Value):
    typed: Path = ""
    """The start of a path, or of a file's name in any folder."""


class FileList(Value):
    paths: tuple[str, ...]
    """Folders end with a slash."""


async def list_files(call: Call, query: FileQuery) -> FileList:
    """Files that a message could mention, completed from what was typed."""
    return FileList(tuple(await call.app.query(lambda app: find_files(app, query.typed))))


class MentionQuery(Value):
    typed: Path = ""
    """What follows the `@`."""
    first: bool = False
    """The `@` begins the message, so that it can also call an agent."""


class Mention(Value):
    text: str
    note: str
    """What it is; empty for a file or folder."""


class MentionList(Value):
    mentions: tuple[Mention, ...]


async def list_mentions(call: Call, query: MentionQuery) -> MentionList:
    """All that a message could mention with `@`, completed from what was typed."""
    found = await call.app.query(lambda app: complete_mention(app, query.typed, first=query.first))
    return MentionList(tuple(Mention(*each) for each in found))


class ContentQuery(Value):
    path: Annotated[str, Meta(min_length=1, max_length=4_096)]


class FileContent(Value):
    path: str
    text: str
    sha256: str


async def show_file(call: Call, query: ContentQuery) -> FileContent:
    """The text of a file in the workspace; not of files that look like secrets."""

    def read(app: App) -> FileContent:
        found = read_file(app, query.path)
        return FileContent(found.path, found.text, found.sha256)

    return await call.app.query(read)


WORKSPACE_ENDPOINTS = (
    Endpoint("GET", "/workspace", show_workspace),
    Endpoint("GET", "/doctor", doctor),
    Endpoint("GET", "/files", list_files),
    Endpoint("GET", "/mentions", list_mentions),
    Endpoint("GET", "/file", show_file),
)
