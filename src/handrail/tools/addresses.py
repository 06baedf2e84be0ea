"""Which addresses may be fetched: the public ones, and those the user wrote."""

import ipaddress
import re
import socket
from typing import NamedTuple
from urllib.parse import urlsplit

import anyio

WRITTEN = re.compile(r"https?://[^\s<>\"'`\\^{}|]+", re.IGNORECASE)
DEFAULT_PORTS = {"http": 80, "https": 443}


class NotFetched(Exception):
    """Why a page could not be had, for the model."""


class Address(NamedTuple):
    scheme: str
    host: str
    port: int

    @property
    def netloc(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return host if self.port == DEFAULT_PORTS[self.scheme] else f"{host}:{self.port}"


def urls_in(text: str) -> set[str]:
    """The URLs that stand in a text, without the punctuation around them."""
    return {_without_fragment(_trimmed(found)) for found in WRITTEN.findall(text)}


def is_written(url: str, texts: list[str]) -> bool:
    """Whether exactly this URL stands in one of the texts."""
    wanted = _without_fragment(url)
    return any(wanted in urls_in(text) for text in texts)


def address_of(url: str) -> Address:
    """Scheme, host and port of a URL that can be fetched."""
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError as error:
        raise NotFetched(f"{url[:200]} is not a URL ({error}).") from error
    if parts.scheme not in DEFAULT_PORTS or not parts.hostname:
        raise NotFetched(f"{url[:200]}: only http and https addresses can be fetched.")
    if parts.username is not None or parts.password is not None:
        raise NotFetched("Addresses with a user name or password in them are not fetched.")
    return Address(parts.scheme, parts.hostname, port or DEFAULT_PORTS[parts.scheme])


async def resolved(address: Address, *, private: bool) -> list[str]:
    """IPs of the host, looked up once so that what is checked is what is connected to."""
    try:
        found = await anyio.getaddrinfo(address.host, address.port, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError) as error:
        raise NotFetched(f"{address.host} was not found ({error}).") from error
    numbers = [str(entry[4][0]).partition("%")[0] for entry in found]
    if not private and not all(is_public(number) for number in numbers):
        raise NotFetched(
            f"{address.host} is this machine or in its network: fetched only when the user wrote the URL."
            " Ask the user for it."
        )
    return list(dict.fromkeys(numbers))


def is_public(number: str) -> bool:
    """Whether an IP belongs to the open internet; addresses that wrap another are judged by that."""
    ip = ipaddress.ip_address(number)
    if isinstance(ip, ipaddress.IPv6Address):
        inner = ip.ipv4_mapped or ip.sixtofour or (ip.teredo[1] if ip.teredo else None)
        if inner is not None:
            return is_public(str(inner))
        if ip in ipaddress.ip_network("64:ff9b::/96"):
            return is_public(str(ipaddress.IPv4Address(int(ip) & 0xFFFFFFFF)))
    return ip.is_global and not ip.is_multicast


def _trimmed(url: str) -> str:
    url = url.rstrip(".,;:!?*_~")
    while url.endswith((")", "]")) and url.count(url[-1]) > url.count({")": "(", "]": "["}[url[-1]]):
        url = url[:-1].rstrip(".,;:!?*_~")
    return url


def _without_fragment(url: str) -> str:
    url = url.partition("#")[0]
    return url.removesuffix("/") if url.count("/") == 3 else url
