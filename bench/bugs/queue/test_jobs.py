import unittest

from jobs import Jobs


class JobsTest(unittest.TestCase):
    def test_first_in_first_out(self):
        jobs = Jobs()
        jobs.add("a")
        jobs.add("b")
        self.assertEqual(jobs.next(), "a")
        self.assertEqual(len(jobs), 1)

    def test_nothing_left(self):
        self.assertIsNone(Jobs().next())
