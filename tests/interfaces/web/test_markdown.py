"""Markdown as safe HTML, and flowcharts as pictures."""

import pytest

from handrail.app.flowchart import parse_flowchart
from handrail.interfaces.web.conversation.answers import StreamedText
from handrail.interfaces.web.markdown import markdown
from handrail.interfaces.web.mermaid import draw_flowchart


def test_raw_html_is_text() -> None:
    made = markdown("<script>alert(1)</script>\n\nHi <img src=x onerror=alert(1)>")
    assert "<script" not in made
    assert "<img" not in made
    assert "&lt;script&gt;" in made


def test_links_are_harmless_and_pictures_are_links() -> None:
    assert 'href="https://a.b/"' in markdown("[x](https://a.b/)")
    assert "href" not in markdown("[x](file:///etc/passwd)")
    assert "href" not in markdown("[x](/w/shop/settings)")
    picture = markdown("![a](https://a.b/pixel.png)")
    assert "<img" not in picture
    assert ">image: a</a>" in picture


def test_code_has_colours_and_unknown_languages_do_not() -> None:
    assert '<span class="hl-k">def</span>' in markdown("```python\ndef f(): ...\n```")
    assert "hl-" not in markdown("```no-such-language\ndef f(): ...\n```")


def test_streamed_text_ends_as_the_whole_text_would() -> None:
    code, table = "```python\nx = 1\n\ny = 2\n```", "| a | b |\n|---|---|\n| 1 | 2 |"
    text = f"# Title\n\nSome *words* here.\n\n- one\n- two\n\n{code}\n\n{table}\n\nEnd."
    stream, drawn = StreamedText("m1"), dict[str, str]()
    for at in range(len(text)):
        stream.feed(at, text[at])
        drawn.update({block.id: block.html for block in stream.changed()})
    bodies = [html.partition(">")[2].removesuffix("</div>") for html in drawn.values()]
    assert "".join(bodies) == markdown(text)


def test_text_that_is_sent_again_is_drawn_once() -> None:
    stream = StreamedText("m1")
    stream.feed(0, "Hello ")
    stream.feed(0, "Hello wor")
    stream.feed(6, "world")
    assert stream.text == "Hello world"


CHART = """\
flowchart LR
  %% a comment
  A[Start] -->|yes| B{"Is it (so)?"}
  B -- no --> C([End]); B ==> D[(data)]
  subgraph one [Group one]
    D -.-> E((c))
  end
  A & C --> F>flag]
  F <--> G{{six}}
  G --x H[/slanted/]
  H --> H
  classDef red fill:#f00
  class A red
"""


@pytest.mark.promise("WEB-2")
def test_flowchart_is_drawn_with_all_its_parts() -> None:
    made = draw_flowchart(CHART)
    assert made is not None
    assert made.startswith("<svg")
    for words in ("Start", "Is it (so)?", "yes", "no", "Group one", "slanted"):
        assert f">{words}</" in made
    chart = parse_flowchart(CHART)
    assert {node.shape for node in chart.nodes.values()} >= {
        "box",
        "diamond",
        "stadium",
        "database",
        "circle",
        "flag",
    }
    assert [edge.line for edge in chart.edges].count("dotted") == 1
    assert len(chart.edges) == 9


@pytest.mark.parametrize("direction", ["TB", "TD", "BT", "LR", "RL"])
def test_nodes_do_not_overlap_and_follow_the_direction(direction: str) -> None:
    from handrail.interfaces.web.mermaid.layout import arrange

    chart = parse_flowchart(f"graph {direction}\nA-->B\nA-->C\nB-->D\nC-->D\nD-->A\nA-->D")
    boxes = arrange(chart).boxes
    a, d = boxes["A"], boxes["D"]
    ahead = {"BT": a.y - d.y, "LR": d.x - a.x, "RL": a.x - d.x}.get(direction, d.y - a.y)
    assert ahead > 0
    names = list(boxes)
    for at, one in enumerate(names):
        for other in names[at + 1 :]:
            first, second = boxes[one], boxes[other]
            apart_x = abs(first.x - second.x) >= (first.width + second.width) / 2
            apart_y = abs(first.y - second.y) >= (first.height + second.height) / 2
            assert apart_x or apart_y


@pytest.mark.promise("WEB-2")
@pytest.mark.parametrize(
    "text",
    [
        "sequenceDiagram\nA->>B: hi",
        "flowchart LR\nA --> ",
        "graph TD\nsubgraph x\nA-->B",
        "pie\n a: 1",
        "",
        "flowchart LR\nA@{ shape: cloud }",
    ],
)
def test_what_cannot_be_drawn_is_shown_as_code(text: str) -> None:
    assert draw_flowchart(text) is None
    assert "<svg" not in markdown(f"```mermaid\n{text}\n```")
    assert 'class="code"' in markdown(f"```mermaid\n{text}\n```")
