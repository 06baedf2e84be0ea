import unittest

from cart import subtotal, total


class CartTest(unittest.TestCase):
    def test_subtotal(self):
        self.assertEqual(subtotal([(10, 2), (5, 1)]), 25)

    def test_discount_comes_before_tax(self):
        self.assertEqual(total([(50, 2)], 19, 0.1), 109)


if __name__ == "__main__":
    unittest.main()
