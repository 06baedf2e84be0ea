VOWELS = "aeiou"


def count_vowels(text):
    """How many letters of the text are vowels, capitals included."""
    count = 0
    for letter in text:
        if letter in VOWELS:
            count += 1
    return count


def longest(words):
    return max(words, key=len)
