"""Errors of the API: their JSON, and the HTTP status of each error of the application."""

from typing import NamedTuple

from msgspec.json import encode
from starlette.responses import Response

from handrail.protocol import errors
from handrail.protocol.errors import HandrailError
from handrail.protocol.values import FileConflict, Value

JSON = "application/json"


class Problem(Value):
    code: str
    """Stays the same between versions."""
    message: str
    """What happened, for a person."""
    advice: str
    """What to do about it."""
    conflicts: tuple[FileConflict, ...] = ()
    """For `undecided`: the files that the user has to decide about."""


class ErrorBody(Value):
    error: Problem


class FlatError(Value):
    """An error of the task list and its assistant, whose form is fixed by their contract."""

    error: str
    """The code, which stays the same between versions."""
    detail: str
    """What happened, for a person."""
    advice: str = ""
    details: tuple[str, ...] = ()
    """For `invalid_operations`: what is wrong with each."""


class ApiError(HandrailError):
    """A request that is refused by the API itself."""

    def __init__(
        self, status: int, code: str, message: str, advice: str, details: tuple[str, ...] = ()
    ) -> None:
        super().__init__(message)
        self.status = status
        self.code = code
        self.advice = advice
        self.details = details


class Kind(NamedTuple):
    status: int
    code: str
    advice: str


# 400: the request is not what the OpenAPI document describes. 409: it cannot be done here and now.
KINDS: dict[type[HandrailError], Kind] = {
    errors.IdempotencyConflict: Kind(409, "idempotency_conflict", "Send another Idempotency-Key with it."),
    errors.ChangedSince: Kind(409, "changed", "Show the user what would be done now, and ask again."),
    errors.UsageProblem: Kind(409, "usage", "Change the request as the message says."),
    errors.ConfigProblem: Kind(409, "config", "Correct the settings that the message names."),
    errors.IntentsProblem: Kind(409, "intents", "Correct the file of intents, or create it."),
    errors.RetryLater: Kind(503, "retry_later", "Send the same request again later."),
    errors.FixRequest: Kind(502, "model_refused", "Choose another model, or change the request."),
    errors.Authenticate: Kind(502, "authenticate", "Check the key of the model's provider."),
    errors.ModelProblem: Kind(502, "model", "Choose another model, or try again later."),
    errors.BudgetReached: Kind(409, "budget", "Raise the limit in the settings."),
    errors.NoModel: Kind(
        409, "no_model", "Set up a model: paste a key, use a local server, or download one."
    ),
    errors.FetchStopped: Kind(502, "download_stopped", "Start the download again; it continues."),
    errors.StorageFull: Kind(507, "storage_full", "Free some disk space, then send the request again."),
    errors.StorageBusy: Kind(503, "storage_busy", "Send the same request again later."),
    errors.LostHold: Kind(409, "lost_hold", "Read the session again, then decide whether to repeat it."),
    errors.WrongSequence: Kind(409, "lost_hold", "Read the session again, then decide whether to repeat it."),
    errors.StorageProblem: Kind(500, "storage", "`handrail doctor` says what is wrong with the log."),
    errors.Undecided: Kind(409, "undecided", "Accept the merge of each file, or leave the file as it is."),
    errors.PathProblem: Kind(409, "path", "Name another path."),
    errors.ToolRefused: Kind(409, "refused", "Change the request as the message says."),
}


def kind_of(error: HandrailError) -> Kind:
    if isinstance(error, ApiError):
        return Kind(error.status, error.code, error.advice)
    found = next((KINDS[each] for each in type(error).__mro__ if each in KINDS), None)
    return found or Kind(500, "failed", "Look at the message; `handrail doctor` checks the setup.")


def problem_of(error: HandrailError) -> Problem:
    conflicts = error.conflicts if isinstance(error, errors.Undecided) else ()
    kind = kind_of(error)
    return Problem(kind.code, str(error), kind.advice, conflicts)


def flat_error(error: HandrailError) -> FlatError:
    kind = kind_of(error)
    details = error.details if isinstance(error, ApiError) else ()
    return FlatError(kind.code, str(error), kind.advice, details)


def error_response(error: HandrailError, *, flat: bool = False) -> Response:
    kind = kind_of(error)
    headers = {"retry-after": "2"} if kind.status == 503 else None
    body = flat_error(error) if flat else ErrorBody(problem_of(error))
    return Response(encode(body), kind.status, headers, media_type=JSON)


def not_found(what: str, advice: str) -> ApiError:
    return ApiError(404, "not_found", what, advice)
