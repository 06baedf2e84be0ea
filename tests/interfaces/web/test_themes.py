"""Colour themes: each has all values, and text that can be read."""

import itertools
import re

import pytest

from handrail.interfaces.web.frame import THEMES, static_files

VALUES = {"bg", "panel", "sunk", "line", "ink", "soft", "accent", "on-accent", "ok", "bad", "wait"}
RULE = re.compile(r'\[data-theme="(\w+)"\] \{([^}]*)\}')
AA = 4.5


def themes() -> dict[str, dict[str, str]]:
    text = static_files()["themes.css"].decode()
    return {name: dict(re.findall(r"--([\w-]+): (#\w{6});", rule)) for name, rule in RULE.findall(text)}


def luminance(colour: str) -> float:
    parts = [int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5)]
    red, green, blue = (
        part / 12.92 if part <= 0.03928 else ((part + 0.055) / 1.055) ** 2.4 for part in parts
    )
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def contrast(one: str, other: str) -> float:
    dark, light = sorted((luminance(one), luminance(other)))
    return (light + 0.05) / (dark + 0.05)


@pytest.mark.promise("WEB-12")
@pytest.mark.parametrize("name", THEMES)
def test_text_of_every_theme_can_be_read(name: str) -> None:
    values = themes()[name]
    assert values.keys() == VALUES
    texts, surfaces = ("ink", "soft", "accent", "ok", "bad", "wait"), ("bg", "panel", "sunk")
    pairs = [*itertools.product(texts, surfaces), ("on-accent", "accent")]
    low = [(text, surface) for text, surface in pairs if contrast(values[text], values[surface]) < AA]
    assert not low


def test_there_are_a_dozen_themes_beside_light_and_dark() -> None:
    assert set(themes()) == set(THEMES)
    assert len(THEMES) >= 14
