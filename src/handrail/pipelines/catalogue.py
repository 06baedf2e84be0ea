"""The pipelines that come with Handrail."""

from handrail.engine.pipeline.definition import Catalogue
from handrail.pipelines import chat, chat_steps
from handrail.pipelines.agent import AGENT
from handrail.pipelines.chat import CHAT

BUILT_IN = Catalogue(
    {AGENT.name: AGENT, CHAT.name: CHAT},
    checks={"chat_steps_left": chat.steps_left},
    steps={"chat_look": chat_steps.look, "chat_load": chat_steps.load, "chat_apply": chat_steps.apply},
    words={"chat_loaded": chat.loaded, "chat_applied": chat.applied},
    skips={"chat_skips": chat.skips},
)
