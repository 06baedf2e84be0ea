"""The fetch tool."""

from typing import TYPE_CHECKING, Annotated, NamedTuple
from urllib.parse import urljoin

import anyio
from pydantic import Field

from handrail import __version__
from handrail.protocol.values import Value
from handrail.tools.addresses import Address, NotFetched, address_of, is_written, resolved
from handrail.tools.base import About, Outcome, Tool, Work, failure
from handrail.tools.clip import counted, head, plain
from handrail.tools.said import user_texts

if TYPE_CHECKING:
    import httpx2

SECONDS = 20.0
"""For everything, redirects included."""
CONNECT_SECONDS = 5.0
MOST_BYTES = 1_000_000
MOST_CHARACTERS = 12_000
REDIRECTS = 5
HEADERS = {
    "user-agent": f"handrail/{__version__}",
    "accept": "text/html,text/*,application/json;q=0.9,*/*;q=0.5",
}
TEXT_TYPES = ("text/", "application/json", "application/xml", "application/javascript", "application/yaml")


class Page(NamedTuple):
    url: str
    status: int
    kind: str
    data: bytes
    cut: bool
    charset: str


class FetchArguments(Value):
    url: Annotated[str, Field(min_length=1, max_length=4_000)]


class Fetch(Tool[FetchArguments]):
    name = "fetch"
    description = "Get a web page as text."
    action = "fetch"
    arguments = FetchArguments

    def about(self, arguments: FetchArguments) -> About:
        return About(url=arguments.url)

    def summary(self, arguments: FetchArguments, work: Work) -> str:
        return " ".join(arguments.url.split())

    def preview(self, arguments: FetchArguments, work: Work) -> str:
        return f"GET {arguments.url}"

    async def run(self, arguments: FetchArguments, work: Work) -> Outcome:
        written = is_written(arguments.url, user_texts(work.session))
        try:
            trusted = address_of(arguments.url) if written else None
            with anyio.fail_after(SECONDS):
                page = await get(arguments.url, trusted)
        except NotFetched as problem:
            return failure(self.name, "fetch_failed", str(problem))
        except TimeoutError:
            return failure(self.name, "timeout", f"No whole answer within {SECONDS:g} s.")
        return outcome_of(page)


async def get(url: str, trusted: Address | None) -> Page:
    """The page, redirects followed and each one checked; only `trusted` may lie in a private network."""
    import httpx2

    timeout = httpx2.Timeout(None, connect=CONNECT_SECONDS)
    async with httpx2.AsyncClient(trust_env=False, timeout=timeout, headers=HEADERS) as client:
        for _ in range(REDIRECTS + 1):
            try:
                found = await _get_once(client, url, trusted)
            except (httpx2.HTTPError, httpx2.InvalidURL) as error:
                raise NotFetched(
                    f"{url} could not be fetched: {str(error) or type(error).__name__}."
                ) from error
            if isinstance(found, Page):
                return found
            url = found
    raise NotFetched(f"More than {REDIRECTS} redirects, the last to {url}.")


async def _get_once(client: "httpx2.AsyncClient", url: str, trusted: Address | None) -> Page | str:
    """The page, or where it says to look instead."""
    address = address_of(url)
    numbers = await resolved(address, private=address == trusted)
    response = await _connected(client, url, address, numbers)
    try:
        where = response.headers.get("location")
        if response.is_redirect and where:
            return urljoin(url, where)
        data = bytearray()
        async for chunk in response.aiter_bytes():
            data += chunk
            if len(data) > MOST_BYTES:
                break
    finally:
        await response.aclose()
    kind = response.headers.get("content-type", "text/plain").partition(";")[0].strip().lower()
    cut, charset = len(data) > MOST_BYTES, response.charset_encoding or "utf-8"
    return Page(url, response.status_code, kind, bytes(data[:MOST_BYTES]), cut, charset)


async def _connected(
    client: "httpx2.AsyncClient", url: str, address: Address, numbers: list[str]
) -> "httpx2.Response":
    """The beginning of an answer, from the first of the checked IPs that takes the connection."""
    import httpx2

    for number in numbers:
        target = httpx2.URL(url).copy_with(host=number, fragment=None)
        request = client.build_request("GET", target, headers={"host": address.netloc})
        request.extensions["sni_hostname"] = address.host
        try:
            return await client.send(request, stream=True)
        except (httpx2.ConnectError, httpx2.ConnectTimeout):
            if number == numbers[-1]:
                raise
    raise NotFetched(f"{address.host} has no address.")


def outcome_of(page: Page) -> Outcome:
    """What the model is shown of a page."""
    if not page.kind.startswith(TEXT_TYPES) and not page.kind.endswith(("+json", "+xml")):
        return failure("fetch", "fetch_failed", f"{page.url} is {page.kind}, not text.")
    try:
        text = page.data.decode(page.charset, errors="replace")
    except LookupError:
        text = page.data.decode(errors="replace")
    if "html" in page.kind:
        from handrail.tools.html_text import text_of_html

        text = text_of_html(text)
    text = plain(text)
    note = f"\n[only the first {MOST_BYTES:,} bytes were fetched]" if page.cut else ""
    content = f"[{page.status} {page.url}]\n{head(text, MOST_CHARACTERS, 'The page goes on.')}{note}"
    ok = page.status < 400
    return Outcome(
        summary=f"{page.status}, {counted(len(text), 'character')}",
        content=content,
        status="ok" if ok else "failed",
        output=text.encode(errors="replace") if len(text) > MOST_CHARACTERS else b"",
    )
