"""English number words as digits, so that `nineteen` and `19` are one for the checks."""

import re
from decimal import Decimal

UNITS = """
    zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen
    seventeen eighteen nineteen
""".split()
TENS = dict(
    zip("twenty thirty forty fifty sixty seventy eighty ninety".split(), range(20, 100, 10), strict=True)
)
VALUES = {word: value for value, word in enumerate(UNITS)} | TENS
SCALES = {"hundred": 100, "thousand": 1_000, "million": 1_000_000}
_SMALL = rf"(?:(?:{'|'.join(TENS)})(?:[- ](?:{'|'.join(UNITS[1:10])}))?|{'|'.join(UNITS)})"
_BELOW_THOUSAND = rf"(?:(?:{_SMALL}[- ])?hundred(?:(?: and)? {_SMALL}(?! hundred\b))?|{_SMALL})"
_WORDS = re.compile(
    rf"(?<![\w-])(?:(?P<digits>(?<![.,])\d+(?:,\d{{3}})*(?:\.\d+)?) (?P<scale>{'|'.join(SCALES)})"
    rf"|(?:{_BELOW_THOUSAND}[- ])?(?:million|thousand)(?: {_BELOW_THOUSAND})?|{_BELOW_THOUSAND})(?![\w-])",
    re.IGNORECASE,
)


def with_digits(text: str, *, smallest: int = 0) -> str:
    """The text with digits for number words from `smallest` on, as long as before: places in it stay."""

    def replaced(found: re.Match[str]) -> str:
        value = _value(found)
        written = str(value)
        if value < smallest or len(written) > len(found[0]):
            return found[0]
        return written.ljust(len(found[0]))

    return _WORDS.sub(replaced, text)


def _value(found: "re.Match[str]") -> int | Decimal:
    if found["digits"]:
        value = Decimal(found["digits"].replace(",", "")) * SCALES[found["scale"].lower()]
        return int(value) if value == int(value) else value
    total = current = 0
    for word in re.findall(r"[a-z]+", found[0].lower()):
        if word == "hundred":
            current = (current or 1) * 100
        elif scale := SCALES.get(word):
            total, current = total + (current or 1) * scale, 0
        else:
            current += VALUES.get(word, 0)
    return total + current
