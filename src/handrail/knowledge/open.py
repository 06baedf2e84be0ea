"""Open the knowledge base of a workspace or of the user."""

from collections.abc import Mapping
from pathlib import Path

from handrail.config.layers import load_settings
from handrail.config.places import find_places
from handrail.knowledge.base import KnowledgeBase, Where, base_folder, has_base
from handrail.knowledge.embeddings.model import embedding_model


def open_base(workspace: Path, environ: Mapping[str, str], where: Where | None = None) -> KnowledgeBase:
    """The base, made if there is none; without `where`, the workspace's if it has one, else the user's."""
    places = find_places(environ)
    if where is None:
        chosen = base_folder(places, workspace, "workspace")
        folder = chosen if has_base(chosen) else base_folder(places, workspace, "user")
    else:
        folder = base_folder(places, workspace, where)
    settings = load_settings(places, workspace, environ=environ).settings
    if not settings.knowledge.embeddings:
        return KnowledgeBase(folder, embedding_model(environ))
    from handrail.knowledge.embeddings.provider import provider_model

    return KnowledgeBase(folder, provider_model(settings, places, environ))
