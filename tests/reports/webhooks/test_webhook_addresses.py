"""Webhooks go to public addresses over https, and to networks that are named: nowhere else."""

import socket

import pytest

from reports.webhooks.addresses import AddressRefused, checked, target_of

INTERNAL = [
    "127.0.0.1",
    "127.1",
    "2130706433",
    "0x7f.1",
    "0177.0.0.1",
    "0",
    "localhost",
    "10.0.0.5",
    "172.16.3.4",
    "192.168.1.1",
    "100.64.0.1",
    "169.254.169.254",
    "192.0.0.8",
    "198.18.0.1",
    "224.0.0.1",
    "240.0.0.1",
    "255.255.255.255",
    "[::1]",
    "[::]",
    "[fe80::1]",
    "[fec0::1]",
    "[fd00::1]",
    "[ff02::1]",
    "[2001:db8::1]",
    "[::ffff:127.0.0.1]",
    "[::ffff:a9fe:a9fe]",
    "[::127.0.0.1]",
    "[64:ff9b::10.0.0.1]",
    "[2002:7f00:1::]",
    "[2001:0:7f00:1::]",
]


@pytest.mark.parametrize("host", INTERNAL)
def test_addresses_inside_a_network_are_refused(host):
    with pytest.raises(AddressRefused, match="leads to"):
        checked(target_of(f"https://{host}/hook"), [])


@pytest.mark.parametrize(
    "url, why",
    [
        ("ftp://example.org/", "https://"),
        ("https:///hook", "names a host"),
        ("example.org/hook", "https://"),
        ("https://user:pass@example.org/", "user's name"),
        ("https://example.org:22/", "Port 22"),
        ("https://example.org:99999/", "no address"),
        ("https://example.org/a\r\nHost: other", "line breaks"),
        ("https://example.org\\@127.0.0.1/", "backslashes"),
        ("https://[::1/", "no address"),
    ],
)
def test_what_is_no_address_is_refused_with_the_reason(url, why):
    with pytest.raises(AddressRefused, match=why):
        target_of(url)


def leads_to(monkeypatch, *addresses):
    """Let every name resolve to these addresses: no network is asked."""
    found = [(socket.AF_INET, socket.SOCK_STREAM, 6, "", (each, 0)) for each in addresses]
    monkeypatch.setattr(socket, "getaddrinfo", lambda *args, **kwargs: found)


def test_one_address_inside_is_enough_to_refuse_a_name(monkeypatch):
    leads_to(monkeypatch, "93.184.216.34", "127.0.0.1")
    with pytest.raises(AddressRefused, match=r"leads to 127\.0\.0\.1, which is a loopback"):
        checked(target_of("https://rebound.example.org/"), [])


def test_public_addresses_take_tls(monkeypatch):
    leads_to(monkeypatch, "93.184.216.34", "2606:2800:220:1::1")
    target = target_of("https://example.org/hook")
    assert checked(target, []) == ["93.184.216.34", "2606:2800:220:1::1"]
    with pytest.raises(AddressRefused, match="use https"):
        checked(target_of("http://example.org/hook"), [])


def test_a_network_that_is_named_is_open_and_no_other():
    allowed = ["127.0.0.0/8"]
    assert checked(target_of("http://[::ffff:127.0.0.1]:8000/"), allowed) == ["::ffff:127.0.0.1"]
    with pytest.raises(AddressRefused, match="private"):
        checked(target_of("http://10.0.0.1/"), allowed)
