"""Names of models, and what is known of them by name. The one place to change when providers move on."""

import re
from typing import NamedTuple

DEFAULTS: dict[str, str] = {
    "anthropic": "claude-sonnet-5-5",
    "openai": "gpt-6.1-terra",
    "xai": "grok-4.7",
    "openrouter": "anthropic/claude-sonnet-5.5",
    "gemini": "gemini-3.8-flash",
}
"""What a connection answers with when nobody named a model, in the order in which keys are looked for."""

BARE_NAMES: tuple[tuple[str, str], ...] = (
    (r"claude-", "anthropic"),
    (r"(gpt|chatgpt)-", "openai"),
    (r"o\d", "openai"),
    (r"grok-", "xai"),
    (r"gemini-", "gemini"),
)
"""How a model's name without a connection begins, and which connection is meant."""


class Known(NamedTuple):
    """What holds for all models whose name matches."""

    context_window: int
    images: bool
    thinking: bool
    effort: bool = False
    """Whether the provider lets a request say how much to think."""


KNOWN: tuple[tuple[str, Known], ...] = (
    (
        r"claude-[a-z]+-(4[-.][6-9]|[5-9])",
        Known(context_window=1_000_000, images=True, thinking=True, effort=True),
    ),
    (r"claude-opus-4[-.]5", Known(context_window=200_000, images=True, thinking=False, effort=True)),
    (r"claude-", Known(context_window=200_000, images=True, thinking=False)),
    (r"gpt-4\.1", Known(context_window=1_000_000, images=True, thinking=False)),
    (r"gpt-4o", Known(context_window=128_000, images=True, thinking=False)),
    (r"gpt-5\.4-(mini|nano)", Known(context_window=400_000, images=True, thinking=True, effort=True)),
    (r"gpt-5\.3$", Known(context_window=128_000, images=True, thinking=True, effort=True)),
    (r"gpt-5\.5", Known(context_window=1_000_000, images=True, thinking=True, effort=True)),
    (r"gpt-(5\.[4-9]|[6-9])", Known(context_window=1_050_000, images=True, thinking=True, effort=True)),
    (r"gpt-5", Known(context_window=400_000, images=True, thinking=True, effort=True)),
    (r"o[134](-|$)", Known(context_window=128_000, images=False, thinking=True, effort=True)),
    (r"grok-4\.[5-9]", Known(context_window=500_000, images=True, thinking=True, effort=True)),
    (r"grok-4-(1-)?fast", Known(context_window=2_000_000, images=True, thinking=True)),
    (r"grok-(code|build)", Known(context_window=256_000, images=False, thinking=True)),
    (r"grok-[3-9]", Known(context_window=131_072, images=False, thinking=True)),
    (r"gemini-(2\.5|3|4)", Known(context_window=1_000_000, images=True, thinking=True, effort=True)),
)
"""First match wins. Families only: single models are looked up in the bundled price list."""

NO_EFFORT = re.compile(r"gpt-[\d.]+-(chat|pro)|o1-(mini|preview)")
"""Models of these families that refuse an effort, or all but one."""
NO_EFFORT_WITH_TOOLS = re.compile(r"gpt-(5\.[4-9]|[6-9])")
"""Models whose chat completions take an effort, or function tools, but not both."""


def known(model: str) -> Known | None:
    """What is known by name alone; an owner before the last slash (`anthropic/claude-...`) is ignored."""
    name = bare(model)
    for pattern, facts in KNOWN:
        if re.match(pattern, name):
            return facts._replace(effort=facts.effort and not NO_EFFORT.match(name))
    return None


def bare(model: str) -> str:
    """The name without an owner before it."""
    return model.rpartition("/")[2].lower()
