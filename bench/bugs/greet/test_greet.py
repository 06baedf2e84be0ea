import unittest

from greet import greeting, initials


class GreetTest(unittest.TestCase):
    def test_initials(self):
        self.assertEqual(initials("john ronald reuel tolkien"), "J.R.R.T.")

    def test_greeting(self):
        self.assertEqual(greeting("Ann", 9), "Good morning, Ann!")
