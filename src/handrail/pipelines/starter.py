"""What `handrail agents new` writes: an agent that works, with a word on every part."""

from handrail.pipelines.agent_folder import FILE

PROMPT = """\
You answer a question from passages of the user's documents, and from nothing else.
Give one to three findings. `quote` is one sentence of a passage, copied letter for letter. `claim` says
in one short sentence what the quote answers.
"""
DEFINITION = """\
# The agent {slug}: "@{slug} QUESTION" in a message runs it, and so does `--route {slug}`.
# `handrail agents validate {slug}` says what is wrong with this file; docs/agents.md explains every key.
name = "{name}"
description = "Answers a question from the documents here, with a quote for every claim"
needs = ["workspace"]

# The most that one run may use; what would pass it is not asked, and what was done is kept.
[budget]
tokens = 50_000
# usd = 0.50

# Stages follow one another. `code` is a step of Handrail's: gather, cite or write_file.
[[stages]]
name = "gather"
kind = "code"
step = "gather"
options = {{ files = ["*.md", "*.txt"], most = 6, characters = 6_000 }}
# A gate looks at the output. fails = "end" ends the run, "repair" does the repair unit around it again.
gates = [{{ check = "found", field = "passages", fails = "end" }}]

# `ask` is one question to a model, with a prompt of its own. (`work` would be the tool loop in the session.)
[[stages]]
name = "answer"
kind = "ask"
prompt = "prompts/answer.md"
model = "main"          # or "fast", or a model by name: "CONNECTION/NAME"
# effort = "high"       # how much it thinks: "low", "medium" or "high"
takes = ["gather"]      # outputs that it is told
gates = [
    {{ check = "not_empty", field = "findings", fails = "repair" }},
    {{ check = "quotes_match", field = "findings.quote", passages = "gather.passages", fails = "repair" }},
]

# The answer has to be of this JSON Schema.
[stages.output]
type = "object"
required = ["findings"]

[stages.output.properties.findings]
type = "array"
maxItems = 3

[stages.output.properties.findings.items]
type = "object"
required = ["quote", "claim"]
properties.quote = {{ type = "string" }}
properties.claim = {{ type = "string" }}

[[stages]]
name = "cite"
kind = "code"
step = "cite"
options = {{ findings = "answer.findings", passages = "gather.passages" }}

# Stages that are done again with what was wrong, so often and no more.
[[repairs]]
first = "answer"
last = "answer"
times = 2

# The run stops here and asks you; leaving it is always the last choice.
# [[pauses]]
# after = "gather"
# text = "This is what I found."
# options = [{{ text = "Go on" }}, {{ text = "Look again", then = "again" }}]

# Values for the next run, which a stage is told by takes = ["kept"].
# [[keeps]]
# name = "sources"
# stage = "cite"
# field = "sources"

# What you are shown at the end: "list", "json", or "text", a field of a stage.
[result]
format = "text"
stage = "cite"
field = "report"
"""


def starter(slug: str) -> dict[str, str]:
    """The files of a new agent, by their names below its folder."""
    name = slug.replace("-", " ").capitalize()
    return {FILE: DEFINITION.format(slug=slug, name=name), "prompts/answer.md": PROMPT}
