import unittest

from pages import page, page_count


class PagesTest(unittest.TestCase):
    def test_full_pages(self):
        self.assertEqual(page_count(20, 10), 2)

    def test_a_rest_needs_a_page(self):
        self.assertEqual(page_count(21, 10), 3)

    def test_page(self):
        self.assertEqual(page([1, 2, 3, 4], 2, 2), [3, 4])
