import unittest

from words import count_vowels, longest


class WordsTest(unittest.TestCase):
    def test_small(self):
        self.assertEqual(count_vowels("banana"), 3)

    def test_capitals(self):
        self.assertEqual(count_vowels("Apple"), 2)

    def test_longest(self):
        self.assertEqual(longest(["a", "bbb", "cc"]), "bbb")
