"""The pipelines that come with Handrail."""

from handrail.engine.pipeline.definition import Catalogue
from handrail.pipelines.agent import AGENT
from handrail.pipelines.chat import CHAT

BUILT_IN = Catalogue({AGENT.name: AGENT, CHAT.name: CHAT})
