"""The builder of HTML: nothing that it is given becomes markup by accident."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from handrail.interfaces.web.html import h, join, safe_address
from tests.project.source import SOURCE, calls, modules


@pytest.mark.promise("WEB-1")
@given(st.text(), st.text())
def test_text_and_attributes_are_escaped(text: str, value: str) -> None:
    made = h("p", text, title=value)
    inside = made.removeprefix("<p").removesuffix("</p>")
    assert made.startswith("<p")
    assert "<" not in inside
    assert inside.count('"') == 2


def test_markup_that_is_joined_to_text_is_text_again() -> None:
    assert h("b", "x" + h("i", "y")) == "<b>x&lt;i&gt;y&lt;/i&gt;</b>"
    assert join(h("i", "y"), "<") == "<i>y</i>&lt;"


@pytest.mark.parametrize(
    "address",
    [
        "javascript:alert(1)",
        " java\tscript:alert(1)",
        "JAVASCRIPT:x",
        "data:text/html,x",
        "vbscript:x",
        "x:y",
        "\x01javascript:x",
    ],
)
def test_addresses_that_could_run_something_are_empty(address: str) -> None:
    assert safe_address(address) == ""
    assert h("a", "x", href=address) == '<a href="">x</a>'


def test_handlers_styles_and_inline_scripts_cannot_be_made() -> None:
    for name in ("onclick", "style", "srcdoc"):
        with pytest.raises(ValueError, match="could run something"):
            h("p", "x", **{name: "alert(1)"})
    with pytest.raises(ValueError, match="are files"):
        h("script", "alert(1)")


@pytest.mark.promise("WEB-1")
def test_only_the_builder_makes_markup_out_of_text() -> None:
    folder = SOURCE / "interfaces" / "web"
    found = [call for call in calls(modules()) if call.name == "Html" or call.name.endswith(".Html")]
    outside = [call for call in found if call.module != str((folder / "html.py").relative_to(SOURCE))]
    assert found
    assert not outside
