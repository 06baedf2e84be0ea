"""Stock of a depot: deliveries, reservations, shipments and what has to be ordered again."""

from dataclasses import dataclass


class OutOfStock(Exception):
    """There is not enough of an article."""


@dataclass
class Article:
    name: str
    stock: int = 0
    reserved: int = 0
    minimum: int = 0

    @property
    def available(self) -> int:
        return self.stock - self.reserved


class Depot:
    def __init__(self) -> None:
        self.articles: dict[str, Article] = {}
        self.orders: dict[int, dict[str, int]] = {}
        self._last = 0

    def deliver(self, name: str, count: int, minimum: int | None = None) -> None:
        """Goods come in; the minimum is kept unless another is given."""
        if count < 0:
            raise ValueError("count must not be negative")
        article = self.articles.setdefault(name, Article(name))
        article.stock += count
        if minimum is not None:
            article.minimum = minimum

    def reserve(self, wanted: dict[str, int]) -> int:
        """Reserve all articles of an order and return its number; nothing is reserved where one is short."""
        for name, count in wanted.items():
            if name not in self.articles or self.articles[name].available < count:
                raise OutOfStock(name)
        for name, count in wanted.items():
            self.articles[name].reserved += count
        self._last += 1
        self.orders[self._last] = dict(wanted)
        return self._last

    def ship(self, number: int) -> dict[str, int]:
        """Send a reserved order; returns what was sent."""
        order = self.orders.pop(number)
        for name, count in order.items():
            self.articles[name].stock -= count
            self.articles[name].reserved -= count
        return order

    def cancel(self, number: int) -> None:
        """Give the articles of an order free again."""
        order = self.orders.pop(number)
        for name, count in order.items():
            self.articles[name].reserved -= count

    def to_order(self, factor: int = 2) -> dict[str, int]:
        """How many to buy of each article that has less available than its minimum, in order of names.

        So many that `factor` times the minimum is available afterwards.
        """
        needed: dict[str, int] = {}
        for name in sorted(self.articles):
            article = self.articles[name]
            if article.available < article.minimum:
                needed[name] = article.minimum * factor - article.available
        return needed

    def take_inventory(self, counted: dict[str, int]) -> dict[str, int]:
        """Set the stock to what was counted; returns the differences, without zeros.

        What was not counted is not there.
        """
        differences: dict[str, int] = {}
        for name, article in self.articles.items():
            difference = counted.get(name, 0) - article.stock
            if difference:
                differences[name] = difference
            article.stock += difference
        return differences

    def report(self) -> list[str]:
        """A line for each article that is in stock, such as `nails: 10 (3 reserved)`."""
        lines = []
        for name, article in sorted(self.articles.items()):
            if article.stock:
                note = f" ({article.reserved} reserved)" if article.reserved else ""
                lines.append(f"{name}: {article.stock}{note}")
        return lines
