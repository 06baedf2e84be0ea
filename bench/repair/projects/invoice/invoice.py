"""Invoices: lines with quantities and prices in cents, discounts, tax, and a printable summary."""

from dataclasses import dataclass, field


@dataclass
class Line:
    name: str
    price: int
    """In cents, for one piece."""
    quantity: int = 1
    discount: int = 0
    """Percent off this line."""

    def amount(self) -> int:
        """Cents for the whole line after its discount, half cents rounded up."""
        gross = self.price * self.quantity
        return (gross * (100 - self.discount) + 50) // 100


@dataclass
class Invoice:
    tax_percent: int = 20
    lines: list[Line] = field(default_factory=list)
    paid: int = 0

    def add(self, name: str, price: int, quantity: int = 1, discount: int = 0) -> None:
        """Add a line; a line with the same name, price and discount grows instead."""
        if quantity < 1:
            raise ValueError("quantity must be at least 1")
        if not 0 <= discount <= 100:
            raise ValueError("discount must be between 0 and 100")
        for line in self.lines:
            if (line.name, line.price, line.discount) == (name, price, discount):
                line.quantity += quantity
                return
        self.lines.append(Line(name, price, quantity, discount))

    def subtotal(self) -> int:
        return sum(line.amount() for line in self.lines)

    def tax(self) -> int:
        """Tax on the subtotal, half cents rounded up."""
        return (self.subtotal() * self.tax_percent + 50) // 100

    def total(self) -> int:
        return self.subtotal() + self.tax()

    def pay(self, amount: int) -> int:
        """Record a payment; returns the change, because nothing can be paid twice."""
        if amount <= 0:
            raise ValueError("a payment must be positive")
        due = self.due()
        taken = min(amount, due)
        self.paid += taken
        return amount - taken

    def due(self) -> int:
        return max(0, self.total() - self.paid)

    def largest_line(self) -> str:
        """Name of the line with the largest amount, the first of equals; empty without lines."""
        best = ""
        most = -1
        for line in self.lines:
            if line.amount() > most:
                best, most = line.name, line.amount()
        return best


def money(cents: int) -> str:
    """Cents as text, such as 1,234.05 or -0.50."""
    sign = "-" if cents < 0 else ""
    whole, rest = divmod(abs(cents), 100)
    return f"{sign}{whole:,}.{rest:02}"


def summary(invoice: Invoice) -> str:
    """One row a line, then the total, in columns."""
    rows = [(f"{line.quantity} x {line.name}", money(line.amount())) for line in invoice.lines]
    rows.append(("tax", money(invoice.tax())))
    rows.append(("total", money(invoice.total())))
    left = max(len(name) for name, _ in rows)
    right = max(len(amount) for _, amount in rows)
    return "\n".join(f"{name:<{left}}  {amount:>{right}}" for name, amount in rows)
