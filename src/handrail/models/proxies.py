"""Proxies that the environment names, and the hosts that it excepts from them."""

import os
import sys
from typing import NamedTuple
from urllib.parse import SplitResult, urlsplit

PORTS = {"http": 80, "https": 443}
SCHEMES = ("http", "https", "socks5", "socks5h")


class Target(NamedTuple):
    """Where a request is to go, as far as the choice of a proxy depends on it."""

    scheme: str
    host: str
    port: int | None


def proxy_for(url: SplitResult) -> SplitResult | None:
    """The proxy on the way to an address, None where there is none; raises ValueError if it cannot be one."""
    # Elsewhere the system's own settings may name one too.
    if sys.platform == "linux" and not any(name.lower().endswith("_proxy") for name in os.environ):
        return None
    from urllib.request import getproxies

    named = getproxies()
    words = named.get(url.scheme) or named.get("all") or ""
    target = Target(url.scheme, url.hostname or "", url.port or PORTS.get(url.scheme))
    if not words or is_excepted(target, named.get("no", "")):
        return None
    proxy = urlsplit(words if "://" in words else f"http://{words}")
    if proxy.scheme not in SCHEMES or not proxy.hostname:
        raise ValueError(f"{proxy.scheme}://{proxy.hostname or ''} is none of {', '.join(SCHEMES)}")
    return proxy


def is_excepted(target: Target, exceptions: str) -> bool:
    """Whether NO_PROXY holds for it: a star, domains, addresses and networks, with or without a port."""
    entries = [entry.strip().lower() for entry in exceptions.split(",")]
    return any(entry == "*" or _covers(entry, target) for entry in entries if entry)


def _covers(entry: str, target: Target) -> bool:
    scheme, _, rest = entry.rpartition("://")
    if scheme not in {"", "all", target.scheme}:
        return False
    if "/" in rest or rest.count(":") > 1:
        return _covers_address(rest, target)
    domain, _, port = rest.partition(":")
    if port and port != str(target.port):
        return False
    domain = domain.removeprefix("*")
    return target.host == domain or target.host.endswith(f".{domain.removeprefix('.')}")


def _covers_address(entry: str, target: Target) -> bool:
    """An address of version 6, which may stand in brackets with a port behind it, or a network."""
    from ipaddress import ip_address, ip_network

    if entry.startswith("["):
        inside, _, behind = entry[1:].partition("]")
        if behind.startswith(":") and behind[1:] != str(target.port):
            return False
        entry = inside + (behind if behind.startswith("/") else "")
    try:
        return ip_address(target.host) in ip_network(entry, strict=False)
    except ValueError:
        return False  # a name, or an entry that says nothing: other programs pass over these too
