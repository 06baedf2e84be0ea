"""Every error, named by what happens next; the tree is drawn here.

HandrailError                 a sentence for the user that says what to do; `exit_status` for the shell
├── UsageProblem              the request is wrong: unknown session, bad option                 (2)
│   ├── IdempotencyConflict   a key came again with other operations: use a new key
│   └── ChangedSince          what the user agreed to is no longer what would be done: show it again
├── ConfigProblem             a settings file cannot be read or has an unknown key              (2)
├── IntentsProblem            the file of intents cannot be read, or the edit of it is wrong    (2)
├── ModelProblem              what an adapter raises in place of a provider's own error
│   ├── RetryLater            rate limit, overload, network, cut stream: the same request may work
│   │   └── SchemaRefused     the schema of the answer may be the reason: asked for in another way
│   ├── FixRequest            the provider refuses this request: too long, not a known model    (1)
│   ├── Authenticate          the key is missing or refused                                     (1)
│   └── GiveUp                the answer cannot be used and trying again will not help          (1)
├── BudgetReached             the next request would exceed a budget: it is not sent            (1)
├── NoModel                   no model can be used: no key, no server                           (1)
├── FetchStopped              a download ended early; the next one continues it                 (1)
├── StorageProblem            the log cannot store or return an event                           (1)
│   ├── StorageFull           the disk is full: the action was not started
│   ├── StorageBusy           another process locked the database past the deadline
│   ├── StorageUnreachable        no connection to the database: it is tried again
│   ├── StorageDamaged        stored bytes have changed; the file is kept
│   ├── LostHold              another process has become this session's holder
│   └── WrongSequence         somebody else appended to this stream first
├── Undecided                 others edited files of a rewind: the user decides about each file (1)
├── PathProblem               a path that cannot be used: missing, binary, too large, outside   (1)
└── ToolRefused               carries the ToolError that model, log and screen all see
"""

from typing import Literal

from handrail.protocol.values import FileConflict, Tagged

PathReason = Literal["outside_workspace", "protected_path", "invalid_path", "hard_link"]
FileReason = Literal["stale_file", "no_hash", "file_missing", "file_exists", "not_text", "too_large"]
MatchReason = Literal[
    "no_match", "ambiguous_match", "no_change", "already_applied", "overlap", "out_of_range"
]
TextReason = Literal[
    "large_loss", "emptied", "elision", "conflict_markers", "suspicious_text", "escaped_breaks"
]
EditReason = Literal["malformed_diff", "truncated", "other_refused", "conflict"]
CallReason = Literal["unknown_tool", "invalid_arguments", "mode_forbids", "hook_denied", "budget_exhausted"]
RunReason = Literal["command_not_allowed", "command_failed", "fetch_failed", "source_failed", "timeout"]
StopReason = Literal["user_rejected", "nobody_to_ask", "cancelled", "interrupted", "storage_failed"]
ActiveIntentReason = Literal["missing_intent_id", "unknown_intent", "intent_done", "intent_ignored"]
IntentReason = Literal[ActiveIntentReason, "intents_unreadable", "scope_violation"]
ChangeReason = Literal[PathReason, FileReason, MatchReason, TextReason, EditReason]
RefusalReason = Literal[ChangeReason, CallReason, RunReason, StopReason, IntentReason]


class ToolError(Tagged, tag="tool_error"):
    """A refusal that a model can act on; model and log get the same object."""

    tool: str
    reason: RefusalReason
    message: str
    file: str = ""
    intent_id: str = ""


class HandrailError(Exception):
    """Base of all errors that reach a user; the message says what happened and what to do."""

    exit_status = 1


class UsageProblem(HandrailError):
    exit_status = 2


class IdempotencyConflict(UsageProblem): ...


class ChangedSince(UsageProblem): ...


class ConfigProblem(HandrailError):
    exit_status = 2


class IntentsProblem(HandrailError):
    """`line` is the line in the file, from 1; 0: no particular one."""

    exit_status = 2

    def __init__(self, message: str, line: int = 0) -> None:
        super().__init__(message)
        self.line = line


class ModelProblem(HandrailError):
    """`billed` is true when the provider may have charged for the attempt."""

    billed = False


class RetryLater(ModelProblem):
    """The same request may work later; `delay` is the wait in seconds that the server asks for, if any."""

    def __init__(self, message: str, delay: float | None = None, *, billed: bool = False) -> None:
        super().__init__(message)
        self.delay = delay
        self.billed = billed


class SchemaRefused(RetryLater):
    """The server may refuse the schema of the answer; `otherwise` is the problem if that is not the reason.

    `sure`: the server would refuse the same request again.
    """

    def __init__(self, message: str, otherwise: ModelProblem, *, sure: bool) -> None:
        super().__init__(message, 0.0, billed=otherwise.billed)
        self.otherwise = otherwise
        self.sure = sure


class FixRequest(ModelProblem):
    """`too_long`: the conversation does not fit the model's window. Compact it, then ask again."""

    def __init__(self, message: str, *, too_long: bool = False) -> None:
        super().__init__(message)
        self.too_long = too_long


class Authenticate(ModelProblem): ...


class GiveUp(ModelProblem): ...


class BudgetReached(HandrailError): ...


class NoModel(HandrailError): ...


class FetchStopped(HandrailError): ...


class StorageProblem(HandrailError): ...


class StorageFull(StorageProblem): ...


class StorageBusy(StorageProblem): ...


class StorageUnreachable(StorageProblem): ...


class StorageDamaged(StorageProblem): ...


class LostHold(StorageProblem): ...


class WrongSequence(StorageProblem): ...


class PathProblem(HandrailError):
    """A path that cannot be used; `reason` is what a tool's refusal would carry."""

    def __init__(self, message: str, reason: RefusalReason, path: str = "") -> None:
        super().__init__(message)
        self.reason: RefusalReason = reason
        self.path = path


class Undecided(HandrailError):
    """Nothing was done: the user must first leave each conflicting file as it is, or accept its merge."""

    def __init__(self, message: str, conflicts: tuple[FileConflict, ...]) -> None:
        super().__init__(message)
        self.conflicts = conflicts


class ToolRefused(HandrailError):
    def __init__(self, error: ToolError) -> None:
        super().__init__(error.message)
        self.error = error
        self.at_fault: int | None = None
        """For calls that run together: the index of the refused one; None: all were refused."""
