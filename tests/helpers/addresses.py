"""The addresses of the product's pages, as Django knows them."""

from django.urls import URLPattern, get_resolver


def page_addresses(patterns=None, prefix=""):
    """Yield each pattern with its whole address, but for the admin and the APIs."""
    for pattern in get_resolver().url_patterns if patterns is None else patterns:
        address = f"{prefix}{pattern.pattern}"
        if isinstance(pattern, URLPattern):
            yield address, pattern
        elif not pattern.namespace:
            yield from page_addresses(pattern.url_patterns, address)
