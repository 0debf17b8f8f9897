"""Where a webhook may be sent: to public addresses over https, and to networks that are named.

A name is looked up once for each try, and the connection is made to the very addresses that were
checked: a name that leads elsewhere a moment later leads nowhere.
"""

import socket
from collections.abc import Iterable, Iterator, Sequence
from ipaddress import (
    IPv4Address,
    IPv4Network,
    IPv6Address,
    IPv6Network,
    ip_address,
    ip_network,
)
from typing import Final, NamedTuple, TypeAlias
from urllib.parse import quote, urlsplit

Address: TypeAlias = IPv4Address | IPv6Address
Network: TypeAlias = IPv4Network | IPv6Network
# Below 1024 stand the services of a machine, which might take a request for one of their own.
PORTS: Final = (80, 443)
FIRST_FREE_PORT: Final = 1024
_NAT64: Final = ip_network("64:ff9b::/96")
# Not every version of Python knows that nobody's host is there.
_RESERVED: Final = tuple(
    map(ip_network, ("192.0.0.0/24", "192.88.99.0/24", "64:ff9b:1::/48", "3fff::/20"))
)
_IN_PATHS: Final = "/%:@!$&'()*+,;=~"


class AddressRefused(ValueError):
    """Nothing is sent there; the message says why."""


class Target(NamedTuple):
    host: str
    port: int
    is_secure: bool
    # What is asked for there, with its query.
    path: str


def target_of(url: str) -> Target:
    """Take an address apart, or raise AddressRefused where it cannot be one of a webhook.

    Examples
    --------
    >>> target_of("https://example.org/hook?team=judges")
    Target(host='example.org', port=443, is_secure=True, path='/hook?team=judges')
    """
    if not url.isprintable() or " " in url or "\\" in url:
        raise AddressRefused("An address has no blanks, backslashes or line breaks.")
    try:
        parts = urlsplit(url)
        port = parts.port
        host = (parts.hostname or "").encode("idna").decode()
    except ValueError as error:
        raise AddressRefused(f"This is no address: {error}.") from None
    if parts.scheme not in ("http", "https") or not host:
        raise AddressRefused("The address begins with https:// and names a host.")
    if parts.username is not None or parts.password is not None:
        raise AddressRefused("The address holds a user's name: a signature is sent instead.")
    is_secure = parts.scheme == "https"
    port = port if port is not None else 443 if is_secure else 80
    if port not in PORTS and port < FIRST_FREE_PORT:
        raise AddressRefused(f"Port {port} belongs to another service: use 443, or one from 1024.")
    path = quote(parts.path or "/", safe=_IN_PATHS)
    query = f"?{quote(parts.query, safe=_IN_PATHS + '?')}" if parts.query else ""
    return Target(host, port, is_secure, path + query)


def checked(target: Target, allowed: Sequence[str]) -> list[str]:
    """Return the addresses of a host, all of which may be sent to, or raise AddressRefused.

    `allowed` are the networks that are named in WEBHOOK_ALLOW_PRIVATE.
    """
    try:
        infos = socket.getaddrinfo(target.host, target.port, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError):
        raise AddressRefused(f"There is no host {target.host}.") from None
    addresses = list(dict.fromkeys(str(info[4][0]) for info in infos))
    networks = [ip_network(network) for network in allowed]
    for address in addresses:
        if reason := why_refused(ip_address(address), target, networks):
            raise AddressRefused(reason)
    return addresses


def why_refused(address: Address, target: Target, allowed: Iterable[Network]) -> str:
    """Say why nothing is sent to an address; nothing where it may be.

    Examples
    --------
    >>> target = target_of("https://metadata.example.org/")
    >>> why_refused(ip_address("169.254.169.254"), target, [])
    'metadata.example.org leads to 169.254.169.254, which is a link-local address.'
    >>> why_refused(ip_address("::ffff:10.0.0.1"), target, [ip_network("10.0.0.0/8")])
    ''
    """
    if isinstance(address, IPv6Address):
        address = address.ipv4_mapped or address
    if any(address in network for network in allowed):
        return ""
    for candidate in (address, *_tunnelled(address)):
        if kind := _kind_of(candidate):
            return f"{target.host} leads to {address}, which is {kind} address."
    return "" if target.is_secure else "Without TLS anybody on the way reads it: use https."


def _tunnelled(address: Address) -> Iterator[Address]:
    """Yield the IPv4 addresses that an IPv6 address carries a packet to."""
    if isinstance(address, IPv4Address):
        return
    if address.sixtofour is not None:
        yield address.sixtofour
    if address.teredo is not None:
        yield from address.teredo
    if address in _NAT64:
        yield IPv4Address(int(address) & 0xFFFFFFFF)


def _kind_of(address: Address) -> str:
    for kind, is_one in (
        ("a loopback", address.is_loopback),
        ("a link-local", address.is_link_local),
        ("a multicast", address.is_multicast),
        ("an unspecified", address.is_unspecified),
        ("a private", address.is_private),
        ("a reserved", address.is_reserved or not address.is_global),
        ("a reserved", any(address in network for network in _RESERVED)),
        ("a private", isinstance(address, IPv6Address) and address.is_site_local),
    ):
        if is_one:
            return kind
    return ""
