"""The agent: the model works with its tools in the session's conversation until it has answered."""

from handrail.engine.pipeline.definition import Pipeline, Stage

AGENT = Pipeline("agent", stages=(Stage("work", "work"),))
