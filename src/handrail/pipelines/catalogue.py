"""The pipelines that come with Handrail."""

from handrail.engine.pipeline.definition import Catalogue
from handrail.pipelines.agent import AGENT

BUILT_IN = Catalogue({AGENT.name: AGENT})
