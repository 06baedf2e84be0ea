def initials(name):
    """The first letters of all names, with points: J.R.R.T."""
    return "".join(part[0].upper() for part in name.split())


def greeting(name, hour):
    if hour < 12:
        return f"Good morning, {name}!"
    return f"Good day, {name}!"
