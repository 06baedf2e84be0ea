def page_count(items, per_page):
    """How many pages are needed for so many items."""
    return items // per_page


def page(items, number, per_page):
    """The items of a page; the first page is number 1."""
    start = (number - 1) * per_page
    return items[start : start + per_page]
