"""Accounts with balances in cents, transfers between them, and statements."""

from typing import NamedTuple


class Refused(Exception):
    """The transfer was not made, with the reason."""


class Entry(NamedTuple):
    day: int
    amount: int
    """Positive where money came in."""
    text: str


class Account:
    def __init__(self, owner: str, overdraft: int = 0) -> None:
        self.owner = owner
        self.overdraft = overdraft
        """How far below zero the balance may go."""
        self.entries: list[Entry] = []

    @property
    def balance(self) -> int:
        return sum(entry.amount for entry in self.entries)

    def balance_on(self, day: int) -> int:
        """The balance at the end of a day."""
        return sum(entry.amount for entry in self.entries if entry.day <= day)

    def book(self, day: int, amount: int, text: str) -> None:
        self.entries.append(Entry(day, amount, text))

    def available(self) -> int:
        return self.balance + self.overdraft

    def statement(self, first: int, last: int) -> list[tuple[int, str, int, int]]:
        """Day, text, amount and balance after it, for the entries of these days in order of days."""
        running = self.balance_on(first - 1)
        rows = []
        for entry in sorted(self.entries, key=lambda entry: entry.day):
            if first <= entry.day <= last:
                running += entry.amount
                rows.append((entry.day, entry.text, entry.amount, running))
        return rows


class Bank:
    def __init__(self, fee_percent: int = 0) -> None:
        self.fee_percent = fee_percent
        self.accounts: dict[str, Account] = {}
        self.fees = 0

    def open(self, owner: str, overdraft: int = 0) -> Account:
        if owner in self.accounts:
            raise Refused(f"{owner} has an account already")
        self.accounts[owner] = Account(owner, overdraft)
        return self.accounts[owner]

    def fee(self, amount: int) -> int:
        """The fee for a transfer, rounded down."""
        return amount * self.fee_percent // 100

    def transfer(self, day: int, giver: str, taker: str, amount: int) -> None:
        """Move money; the giver pays the fee. All of it happens, or nothing."""
        if amount <= 0:
            raise Refused("the amount must be positive")
        if giver not in self.accounts or taker not in self.accounts:
            raise Refused("there is no such account")
        fee = self.fee(amount)
        if self.accounts[giver].available() < amount + fee:
            raise Refused(f"{giver} has not enough")
        self.accounts[giver].book(day, -amount, f"to {taker}")
        if fee:
            self.accounts[giver].book(day, -fee, "fee")
        self.accounts[taker].book(day, amount, f"from {giver}")
        self.fees += fee

    def richest(self, count: int = 1) -> list[str]:
        """Owners with the largest balances, largest first; equal ones by name."""
        owners = sorted(self.accounts.values(), key=lambda account: (-account.balance, account.owner))
        return [account.owner for account in owners[:count]]

    def total(self) -> int:
        return sum(account.balance for account in self.accounts.values()) + self.fees
