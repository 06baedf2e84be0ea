"""Chat: a message that only asks is answered, and nothing is changed for it."""

from handrail.engine.pipeline.definition import Pipeline, Stage

CHAT = Pipeline("chat", stages=(Stage("answer", "work"),))
