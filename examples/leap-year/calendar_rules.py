"""Rules of the Gregorian calendar."""


def is_leap_year(year):
    """Every fourth year, except centuries that 400 does not divide."""
    return year % 4 == 0 and year % 100 != 0


def days_in_february(year):
    return 29 if is_leap_year(year) else 28
