"""The bound of tokens holds for texts of all kinds, and is not much more than ordinary ones have."""

import base64
import hashlib

import pytest

from handrail.context.token_budget import token_upper_bound

PROSE = (
    "Every message runs one pipeline: a list of stages that code walks. "
    "The model never decides which stage is next. "
)
CODE = """\
def told(run: RunState, stored: Stored, how: str) -> str:
    if run.conversational or run.spoke:
        return ""
    return summary(run, outputs_of(run, stored), how)
"""
MINIFIED = (
    '!function(e,t){for(var n=0;n<t.length;n++){var r=t[n];r.a=r.a||!1,"b"in r&&(r.w=!0),Object.d(e,r.k,r)}}'
    "(a,[{k:1}]);"
)
HASHES = [hashlib.sha256(bytes([number])) for number in range(16)]


@pytest.mark.promise("RUN-7")
@pytest.mark.parametrize(
    ("text", "tokens", "share"),
    [
        (PROSE * 10, 231, 1.35),
        (CODE * 10, 530, 1.35),
        (MINIFIED * 10, 750, 1.35),
        ("0123456789" * 10, 100, 1.2),
        ('{"id":17,"price":23.29,"ok":true},' * 10, 180, 1.6),
        ("价格上涨了百分之三。我们需要写出报告。" * 10, 170, 2.2),
        ("เราต้องทำการทดสอบทั้งหมด" * 10, 400, 1.2),
        ("😀🎉🚀🧪" * 10, 160, 1.2),
        (" \n" * 10, 20, 1.3),
        ("Wir müssen alle Prüfungen bis nächste Woche abschließen. " * 10, 191, 1.2),
        ("".join(each.hexdigest() for each in HASHES), 905, 1.2),
        ("".join(base64.b64encode(each.digest()).decode() for each in HASHES), 540, 1.2),
        ("", 0, 1.0),
    ],
    ids=lambda value: value[:12] if isinstance(value, str) else "",
)
def test_no_text_has_more_tokens_than_the_bound(text: str, tokens: int, share: float) -> None:
    """`tokens`: the larger of what the tokenizers of two providers made of the text."""
    assert tokens <= token_upper_bound(text) <= tokens * share + 1
