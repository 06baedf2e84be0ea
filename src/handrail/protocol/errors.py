"""Everything that can go wrong, named by what happens next.

HandrailError                 a sentence for the user that says what to do; `exit_status` for the shell
├── UsageProblem              the request itself is off: unknown session, bad option            (2)
├── ConfigProblem             a settings file cannot be read or says something unknown          (2)
├── IntentsProblem            the file of intents cannot be read, or what is wanted of it done  (2)
├── ModelProblem              what an adapter raises; no provider's own error passes it
│   ├── RetryLater            rate limit, overload, network, cut stream: the same request may work
│   ├── FixRequest            the provider refuses this request: too long, not a known model    (1)
│   ├── Authenticate          the key is missing or refused                                     (1)
│   └── GiveUp                the answer cannot be used and trying again will not help          (1)
├── BudgetReached             the next request would pass a budget: it is not sent              (1)
├── NoModel                   nothing to answer with: no key, no server                         (1)
├── FetchStopped              a download ended early; what has come is kept, the next one goes on (1)
├── StorageProblem            the log cannot take or give an event                              (1)
│   ├── StorageFull           no room left on the disk: the action was not begun
│   ├── StorageBusy           another process kept the database longer than the deadline
│   ├── StorageDamaged        bytes are not what was written; the file is kept
│   ├── LostHold              another process has become this session's holder
│   └── WrongSequence         somebody else appended to this stream first
├── Undecided                 a rewind meets edits of others: the user says what becomes of each file (1)
├── PathProblem               a path that cannot be used: missing, binary, too large, outside   (1)
└── ToolRefused               carries the ToolError that model, log and screen all see
"""

from typing import Literal

from handrail.protocol.values import FileConflict, Value

RefusalReason = Literal[
    "outside_workspace",
    "protected_path",
    "stale_file",
    "no_hash",
    "file_missing",
    "file_exists",
    "not_text",
    "too_large",
    "no_match",
    "ambiguous_match",
    "no_change",
    "already_applied",
    "overlap",
    "out_of_range",
    "malformed_diff",
    "large_loss",
    "emptied",
    "elision",
    "conflict_markers",
    "suspicious_text",
    "escaped_breaks",
    "truncated",
    "other_refused",
    "conflict",
    "hard_link",
    "command_not_allowed",
    "command_failed",
    "mode_forbids",
    "hook_denied",
    "user_rejected",
    "nobody_to_ask",
    "budget_exhausted",
    "invalid_arguments",
    "invalid_path",
    "missing_intent_id",
    "unknown_intent",
    "intent_done",
    "intent_ignored",
    "intents_unreadable",
    "scope_violation",
    "unknown_tool",
    "fetch_failed",
    "timeout",
    "cancelled",
    "interrupted",
    "storage_failed",
]


class ToolError(Value):
    """A refusal that a model can act on; the same object goes to the model and the log."""

    type: Literal["tool_error"] = "tool_error"
    tool: str
    reason: RefusalReason
    message: str
    """What to do next."""
    file: str = ""
    intent_id: str = ""


class HandrailError(Exception):
    """Base of all errors that reach a user; the message says what to do."""

    exit_status = 1


class UsageProblem(HandrailError):
    exit_status = 2


class ConfigProblem(HandrailError):
    exit_status = 2


class IntentsProblem(HandrailError):
    """`line` is where in the file, from 1; 0: nowhere in particular."""

    exit_status = 2

    def __init__(self, message: str, line: int = 0) -> None:
        super().__init__(message)
        self.line = line


class ModelProblem(HandrailError):
    """`billed` is true when the provider may have charged for the attempt."""

    billed = False


class RetryLater(ModelProblem):
    """The same request may work later; `delay` is the server's own wish in seconds, if it said one."""

    def __init__(self, message: str, delay: float | None = None, *, billed: bool = False) -> None:
        super().__init__(message)
        self.delay = delay
        self.billed = billed


class FixRequest(ModelProblem):
    """`too_long` is true when the conversation does not fit the model's window: compact, then ask again."""

    def __init__(self, message: str, *, too_long: bool = False) -> None:
        super().__init__(message)
        self.too_long = too_long


class Authenticate(ModelProblem):
    pass


class GiveUp(ModelProblem):
    pass


class BudgetReached(HandrailError):
    pass


class NoModel(HandrailError):
    pass


class FetchStopped(HandrailError):
    pass


class StorageProblem(HandrailError):
    pass


class StorageFull(StorageProblem):
    pass


class StorageBusy(StorageProblem):
    pass


class StorageDamaged(StorageProblem):
    pass


class LostHold(StorageProblem):
    pass


class WrongSequence(StorageProblem):
    pass


class PathProblem(HandrailError):
    """A path that cannot be used; `reason` is the refusal a tool would give for it."""

    def __init__(self, message: str, reason: RefusalReason, path: str = "") -> None:
        super().__init__(message)
        self.reason: RefusalReason = reason
        self.path = path


class Undecided(HandrailError):
    """Nothing was done; each conflict is a file that must be left as it is, or whose merge be accepted."""

    def __init__(self, message: str, conflicts: tuple[FileConflict, ...]) -> None:
        super().__init__(message)
        self.conflicts = conflicts


class ToolRefused(HandrailError):
    def __init__(self, error: ToolError) -> None:
        super().__init__(error.message)
        self.error = error
