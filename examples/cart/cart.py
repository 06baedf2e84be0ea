"""A shopping cart."""


def subtotal(items):
    """The sum of price times quantity of all items."""
    total = 0
    for price, quantity in items:
        total += price * quantity
    return total


def total(items, tax, discount):
    """What the customer pays: the discount comes off the subtotal, then tax is added."""
    return (subtotal(items) + tax) * (1 - discount)
