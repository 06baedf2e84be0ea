"""Whether a model that is named in full can be asked at all, before anybody asks it."""

from collections.abc import Mapping
from typing import NamedTuple
from urllib.parse import urlsplit

from handrail.config.connections import ConnectionSettings
from handrail.models.base import Capabilities
from handrail.models.capabilities import Probed, describe
from handrail.models.connect import Credential, find_key, wants_key
from handrail.models.connections import EMBEDDED, SCRIPTED, connections
from handrail.protocol.errors import ConfigProblem, UsageProblem


class Reach(NamedTuple):
    """Where a model answers, or what stands in the way."""

    place: str = ""
    """Who sees what it is told: the host of its server."""
    problem: str = ""
    """Why it cannot be asked, and what to do; empty where it can."""
    capabilities: Capabilities = Capabilities()
    """As far as they are known by name."""


def reach(
    reference: str,
    *,
    environment: Mapping[str, str],
    settings: Mapping[str, ConnectionSettings],
    credential: Credential,
) -> Reach:
    """How `connection/name` can be reached. Nothing is asked: only names, keys and files are looked at."""
    name, _, model = reference.partition("/")
    if name == SCRIPTED:
        return Reach("this machine")
    if name == EMBEDDED:
        return _embedded(reference, environment)
    try:
        available = connections(settings)
        if name not in available:
            known = ", ".join(sorted([*available, EMBEDDED]))
            return Reach(problem=f"there is no connection {name!r} in your settings; there are: {known}")
        connection = available[name]
        key = find_key(connection, environment, credential)
    except ConfigProblem as problem:
        return Reach(problem=str(problem).rstrip("."))
    place = urlsplit(connection.base_url).netloc.rpartition("@")[2]
    if not key and wants_key(connection):
        variables = " or ".join(connection.key_env)
        return Reach(place, f"there is no key for {name}; put one into {variables}")
    return Reach(place, capabilities=describe(connection, model, Probed()))


def _embedded(reference: str, environment: Mapping[str, str]) -> Reach:
    from handrail.models.embedded.files import file_for
    from handrail.models.embedded.offer import find_embedded

    try:
        offer = find_embedded(environment, file_for(reference))
    except (UsageProblem, ConfigProblem) as problem:
        return Reach(problem=str(problem).rstrip("."))
    if not offer.ready:
        return Reach("this machine", f"{offer.reference} is not on this machine yet: {offer.advice}")
    return Reach("this machine", capabilities=Capabilities(one_action=True))
