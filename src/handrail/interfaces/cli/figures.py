"""Numbers as a person reads them."""

from handrail.protocol.values import Usage


def duration(seconds: float) -> str:
    """`0.4 s`, `42 s`, `2:05 min`, `1:02:03 h`."""
    if seconds < 9.95:
        return f"{max(0.0, seconds):.1f} s"
    whole = round(seconds)
    if whole < 60:
        return f"{whole} s"
    minutes, rest = divmod(whole, 60)
    if minutes < 60:
        return f"{minutes}:{rest:02} min"
    return f"{minutes // 60}:{minutes % 60:02}:{rest:02} h"


def clock(seconds: float) -> str:
    """The same in whole seconds, for something that is still going on."""
    return duration(seconds) if seconds >= 10 else f"{int(max(0.0, seconds))} s"


def ago(seconds: float) -> str:
    """`just now`, `5 min ago`, `3 h ago`, `12 days ago`."""
    if seconds < 60:
        return "just now"
    for size, unit in ((86_400, "day"), (3600, "h"), (60, "min")):
        if seconds >= size:
            count = int(seconds // size)
            return f"{count} {unit}{'s' if unit == 'day' and count > 1 else ''} ago"
    return "just now"


def usd(cost: float | None) -> str:
    """`$0.00` when it was free, four digits when it was almost, words when nobody knows the price."""
    if cost is None:
        return "cost not known"
    return f"${cost:.4f}" if 0 < cost < 0.01 else f"${cost:.2f}"


def tokens(usage: Usage) -> str:
    """`1,204 in  96 out`, and how much of it the provider had in its cache."""
    cached = f" ({usage.cache_read_tokens:,} cached)" if usage.cache_read_tokens else ""
    return f"{usage.input_tokens:,} in{cached}  {usage.output_tokens:,} out"


def size(count: int) -> str:
    """`0 kB`, `12 kB`, `3.1 MB`, `2,000 MB`."""
    megabytes = count / 1_000_000
    if megabytes < 0.9995:
        return f"{-(-count // 1000)} kB"
    return f"{megabytes:.1f} MB" if megabytes < 9.95 else f"{megabytes:,.0f} MB"
