def can_vote(age):
    """Adults can vote: everybody who is 18 or older."""
    return age > 18


def ticket_price(age):
    """Children under 6 travel free, under 15 at half price."""
    if age < 6:
        return 0
    if age < 15:
        return 50
    return 100
