import unittest

from ages import can_vote, ticket_price


class AgesTest(unittest.TestCase):
    def test_voting(self):
        self.assertTrue(can_vote(18))
        self.assertFalse(can_vote(17))

    def test_prices(self):
        self.assertEqual([ticket_price(age) for age in (5, 6, 15)], [0, 50, 100])
