"""What an answer costs: by the model's own price, else by the bundled price list."""

from handrail.models.model import Model, Price
from handrail.models.providers import BUILT_IN_CONNECTIONS
from handrail.protocol.values import Usage

MILLION = 1_000_000


def cost(usage: Usage, model: Model) -> float | None:
    """USD for one request; None if the price is unknown. The first call may load the price list."""
    if model.capabilities.price is not None:
        return cost_by_price(usage, model.capabilities.price)
    connection, _, name = model.name.partition("/")
    return listed_cost(usage, connection, name)


def cost_by_price(usage: Usage, price: Price) -> float:
    """USD by a price; cached tokens cost as much as fresh ones unless it has prices for them."""
    read, written = usage.cache_read_tokens, usage.cache_write_tokens
    fresh = max(0, usage.input_tokens - read - written)
    by_read = price.input if price.cache_read is None else price.cache_read
    by_written = price.input if price.cache_write is None else price.cache_write
    total = fresh * price.input + read * by_read + written * by_written + usage.output_tokens * price.output
    return total / MILLION


def listed_cost(usage: Usage, connection: str, model: str) -> float | None:
    """USD by the bundled price list."""
    import genai_prices

    counted = genai_prices.Usage(
        input_tokens=usage.input_tokens,
        output_tokens=usage.output_tokens,
        cache_read_tokens=usage.cache_read_tokens,
        cache_write_tokens=usage.cache_write_tokens,
    )
    try:
        found = genai_prices.calc_price(counted, model, provider_id=_provider(connection))
    except (LookupError, ValueError):
        return None
    return float(found.total_price)


def listed_window(connection: str, model: str) -> int | None:
    """The context window in the bundled price list."""
    from genai_prices.data_snapshot import get_snapshot

    try:
        _, found = get_snapshot().find_provider_model(
            model, provider=None, provider_id=_provider(connection), provider_api_url=None
        )
    except LookupError:
        return None
    return found.context_window


def _provider(connection: str) -> str | None:
    return BUILT_IN_CONNECTIONS[connection].prices_as or None if connection in BUILT_IN_CONNECTIONS else None
