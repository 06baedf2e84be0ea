"""Fees of a car park, as described in PARKING.md."""

COINS = (200, 100, 50, 20, 10)


def fee(minutes: int, *, lost: bool = False) -> int:
    """Cents for a stay of so many minutes."""
    if lost:
        return 2500
    days, rest = divmod(minutes, 24 * 60)
    if days == 0 and rest <= 15:
        return 0
    return days * 1200 + min(1200, -(-rest // 60) * 200)


def change(fee: int, paid: int) -> list[int]:
    """The coins that come back, largest first."""
    if paid < fee:
        raise ValueError("not enough")
    rest = paid - fee
    coins = []
    for coin in COINS:
        while rest >= coin:
            coins.append(coin)
            rest -= coin
    return coins
