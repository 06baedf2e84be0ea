import unittest

from calendar_rules import days_in_february, is_leap_year


class LeapYearTest(unittest.TestCase):
    def test_ordinary_years(self):
        self.assertTrue(is_leap_year(2024))
        self.assertFalse(is_leap_year(2023))

    def test_centuries(self):
        self.assertFalse(is_leap_year(1900))
        self.assertTrue(is_leap_year(2000))

    def test_february(self):
        self.assertEqual(days_in_february(2000), 29)


if __name__ == "__main__":
    unittest.main()
