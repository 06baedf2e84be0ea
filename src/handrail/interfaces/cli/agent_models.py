"""Which model each stage of an agent asks: it decides who sees the files."""

from collections.abc import Iterator, Mapping
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from handrail.config.places import Places
from handrail.engine.pipeline.definition import Stage
from handrail.models.base import Request

if TYPE_CHECKING:
    from handrail.engine.answerers import Answerers

NOT_SENT = "not sent: the model is not known to take it"


class AgentModels:
    """The models of agents as the user's settings have them; nothing is read before one is asked about."""

    def __init__(self, places: Places, workspace: Path, environ: Mapping[str, str]) -> None:
        self._places = places
        self._workspace = workspace
        self._environ = environ

    def why_not(self, model: str) -> str:
        """Why a model that is named in full cannot be asked; empty where it can."""
        return self._answerers.reach(model).problem

    def lines(self, stage: Stage) -> Iterator[str]:
        """Whom an `ask` or `work` goes to, and with how much effort."""
        model = stage.model or (self._answerers.set_for(stage.role) if stage.kind == "ask" else "")
        reached = self._answerers.reach(model) if model else None
        if stage.kind == "ask":
            called = stage.model or (f"{stage.role}, now {model}" if model else stage.role)
            yield f"model {called}{f' at {reached.place}' if reached and reached.place else ''}"
        if reached and reached.problem:
            yield f"which cannot be asked: {reached.problem}"
        if stage.effort:
            taken = reached is None or reached.problem or reached.capabilities.effort_for(_asked(stage))
            yield f"effort {stage.effort}{'' if taken else f' ({NOT_SENT})'}"

    @cached_property
    def _answerers(self) -> "Answerers":
        from handrail.config.layers import load_settings
        from handrail.engine.answerers import Answerers

        loaded = load_settings(self._places, self._workspace, environ=self._environ)
        return Answerers(loaded, self._places, self._environ, "", self._workspace)


def _asked(stage: Stage) -> Request:
    return Request("", (), effort=stage.effort)
