"""Article numbers with a check letter, as described in ARTICLES.md."""


def letter(digits: str) -> str:
    """The check letter of five digits."""
    if len(digits) != 5 or not digits.isdigit():
        raise ValueError(f"not five digits: {digits}")
    total = sum(place * int(digit) for place, digit in enumerate(digits, start=1))
    return chr(ord("A") + total % 26)


def valid(number: str) -> bool:
    """Whether the number is right."""
    plain = number.replace(" ", "").replace("-", "").upper()
    digits = plain[:-1]
    return len(digits) == 5 and digits.isdigit() and plain[-1] == letter(digits)


def next_number(number: str) -> str:
    """The number that follows."""
    if not valid(number):
        raise ValueError(f"not valid: {number}")
    plain = number.replace(" ", "").replace("-", "")
    digits = f"{(int(plain[:5]) + 1) % 100_000:05}"
    return digits + letter(digits)
