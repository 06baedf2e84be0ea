"""How many tokens a text will hardly pass, with whichever model.

Tokenizers agree on prose and differ on everything else: some have one token a digit, and rare signs take
one for each of their bytes. So each kind of character is counted as by the tokenizer that makes most of it.
"""

import re

LETTERS, CAPITALS = re.compile(r"[a-z]+"), re.compile(r"[A-Z]+")
SIGNS = re.compile(r"([^A-Za-z0-9\s\x80-\U0010ffff])\1*")
SPACE = re.compile(r" {2,}|\t+|[\r\n\f\v]+| (?=[\r\n\t])")
"""A single space before a word belongs to the word."""
WORD, LONGEST_WORD = 6, 18
"""Letters of a token, and of what can still be a word: longer ones are no language."""
NO_WORD = 0.65
"""Tokens for each letter that is in no word."""
CAPITAL = 0.75
"""Of a word that begins with one."""
REPEATED = 1 / 16
BLANK_LINE = 1 / 4
TWO_BYTES, THREE_BYTES, FOUR_BYTES = 1.0, 1.75, 4.0
"""For each character by its bytes in UTF-8: accents and Cyrillic, Chinese or Thai, emoji."""
RESERVE = 1.1


def most_text_tokens(text: str) -> int:
    """At least what tokenizers were seen to make of prose, code, data and noise; of prose a third more."""
    counted = sum(_word(len(word)) for word in LETTERS.findall(text))
    counted += sum(CAPITAL if len(word) == 1 else NO_WORD * len(word) for word in CAPITALS.findall(text))
    counted += sum(map(text.count, "0123456789"))
    counted += sum(1 + REPEATED * (len(found[0]) - 1) for found in SIGNS.finditer(text))
    counted += sum(_space(found) for found in SPACE.findall(text))
    if not text.isascii():
        counted += sum(_foreign(character) for character in text if character > "\x7f")
    return int(RESERVE * counted) + 1


def _word(letters: int) -> float:
    return NO_WORD * letters if letters > LONGEST_WORD else 1 + (letters - 1) // WORD


def _space(found: str) -> float:
    return 1 + len(found) * (BLANK_LINE if found[0] in "\r\n" and len(found) > 2 else REPEATED)


def _foreign(character: str) -> float:
    if character < "\u0800":
        return TWO_BYTES
    return THREE_BYTES if character < "\U00010000" else FOUR_BYTES
