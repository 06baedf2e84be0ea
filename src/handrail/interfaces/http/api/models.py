"""Models: which one answers, how to set one up, and the download of the small one."""

from typing import TYPE_CHECKING, Annotated, Literal

import anyio
from msgspec import Meta, Struct

from handrail.app.models import PROVIDERS, SmallModel, install_runtime, provider_of_key
from handrail.config.toml_edit import save_setting
from handrail.interfaces.http.endpoint import Call, Endpoint
from handrail.interfaces.http.errors import ApiError
from handrail.protocol.errors import HandrailError, ModelProblem, UsageProblem
from handrail.protocol.values import Value

if TYPE_CHECKING:
    from handrail.app.models import DownloadProgress
    from handrail.interfaces.http.server import Server


class ModelServer(Value):
    """A server on this machine that answers."""

    name: str
    models: tuple[str, ...]
    """As `connection/name`, for `PUT models/main`."""


class SmallModelState(Value):
    name: str
    bytes: int
    ready: bool
    downloaded: int
    """Bytes that are here."""
    runtime: bool
    """Whether the library that runs it is installed."""
    install: str
    """The command that installs the library."""
    state: Literal["none", "downloading", "failed", "done"]
    """Of a download in this server."""
    problem: str


class ModelReport(Value):
    model: str
    """Empty: none can answer."""
    why: str
    problem: str
    providers: tuple[str, ...]
    """Those that a key can be for."""
    servers: tuple[ModelServer, ...]
    small: SmallModelState


class Download(Struct, eq=False):
    """A download that this server has started."""

    scope: anyio.CancelScope
    state: Literal["downloading", "failed", "done"] = "downloading"
    done: int = 0
    problem: str = ""


async def show_models(call: Call) -> ModelReport:
    """Which model answers here and why; and what could be used instead."""
    model = why = problem = ""
    try:
        choice = await call.app.chosen_model()
        model, why = choice.reference, choice.why
    except HandrailError as error:
        problem = str(error)
    servers = [ModelServer(each.name, tuple(each.references)) for each in await call.app.model_pool.servers()]
    return ModelReport(model, why, problem, PROVIDERS, tuple(servers), small_model(call))


def small_model(call: Call) -> SmallModelState:
    found, download = SmallModel(call.workspace.environ), call.server.download
    ready = found.path() is not None
    return SmallModelState(
        found.name,
        found.size,
        ready,
        found.size if ready else max(found.downloaded, download.done if download else 0),
        found.has_runtime,
        install_runtime(),
        download.state if download else "none",
        download.problem if download else "",
    )


class ChosenModel(Value):
    model: Annotated[str, Meta(min_length=1, max_length=500)]


async def set_model(call: Call, body: ChosenModel) -> ModelReport:
    """Make a model the user's default."""
    reference = await call.app.model_pool.check(body.model)
    save_setting(call.app.places, "models.main", reference)
    return await _reopened(call)


class PastedKey(Value):
    key: Annotated[str, Meta(min_length=8, max_length=1_000)]
    connection: Annotated[str, Meta(max_length=100)] = ""
    """The provider; found by the form of the key when empty."""


async def store_key(call: Call, body: PastedKey) -> ModelReport:
    """Check a key with one short question to its provider, and store it for this user."""
    owner = body.connection or provider_of_key(body.key)
    if owner not in PROVIDERS:
        raise ApiError(
            409,
            "unknown_provider",
            "The form of the key does not show which provider it is for.",
            f"Send `connection` with one of: {', '.join(PROVIDERS)}.",
        )
    try:
        await call.app.model_pool.try_key(owner, body.key)
    except ModelProblem as refused:
        raise UsageProblem(f"{refused} The key was not stored.") from refused
    call.app.model_pool.keep_key(owner, body.key)
    return await _reopened(call)


async def _reopened(call: Call) -> ModelReport:
    await call.server.reopen_all()
    return await show_models(call._replace(app=await call.workspace.app()))


async def download_small_model(call: Call) -> SmallModelState:
    """Start the download of the small model, or continue it."""
    model, server = SmallModel(call.workspace.environ), call.server
    if not model.has_runtime:
        raise UsageProblem(f"The library that runs the model is missing. First run `{install_runtime()}`.")
    if server.download is None or server.download.state != "downloading":
        server.download = Download(anyio.CancelScope())
        server.tasks.start_soon(run_download, server, model, server.download)
    return small_model(call)


async def run_download(server: "Server", model: SmallModel, download: Download) -> None:
    def tell(progress: "DownloadProgress") -> None:
        download.done = progress.done

    with download.scope:
        try:
            await model.download(tell)
        except HandrailError as problem:
            download.state, download.problem = "failed", str(problem)
            return
        download.state = "done"
        await server.reopen_all()
    if download.scope.cancelled_caught:
        download.state, download.problem = "failed", "It was stopped. What has arrived is kept."


async def show_small_model(call: Call) -> SmallModelState:
    """The small model, and how far its download is."""
    return small_model(call)


async def stop_download(call: Call) -> SmallModelState:
    """Stop the download; what has arrived is kept."""
    if call.server.download:
        call.server.download.scope.cancel()
    return small_model(call)


MODEL_ENDPOINTS = (
    Endpoint("GET", "/models", show_models),
    Endpoint("PUT", "/models/main", set_model),
    Endpoint("POST", "/models/key", store_key),
    Endpoint("GET", "/models/small", show_small_model),
    Endpoint("POST", "/models/small/download", download_small_model, status=202),
    Endpoint("DELETE", "/models/small/download", stop_download),
)
