"""A provider as the admin takes it: prices that are prices."""

from __future__ import annotations

from decimal import Decimal, InvalidOperation
from typing import Any

from django import forms

from judge_eval.models import Provider

RATES = {"input", "output"}
PICTURE_TOKENS = "picture_tokens"


class ProviderForm(forms.ModelForm):  # type: ignore[type-arg]
    class Meta:
        model = Provider
        fields = (
            "name",
            "base_url",
            "key_variable",
            "structured_output",
            "timeout_s",
            "concurrency",
            "requests_per_minute",
            "prices",
        )
        # An address without a scheme is refused, not guessed at.
        field_classes = {"base_url": forms.CharField}

    def clean_prices(self) -> dict[str, Any]:
        prices = self.cleaned_data["prices"]
        if prices is None:
            return {}
        if not isinstance(prices, dict):
            raise forms.ValidationError('Must be an object: {"model": {"input": …, "output": …}}.')
        wrong = [f"{model}: {why}" for model, price in prices.items() if (why := _wrong(price))]
        if wrong:
            raise forms.ValidationError(wrong)
        return prices


def _wrong(price: object) -> str:
    """Say why something is no price, an empty text when it is one."""
    if not isinstance(price, dict) or set(price) - {PICTURE_TOKENS} != RATES:
        return 'must be {"input": …, "output": …}, in US dollars a million tokens.'
    tokens = price.get(PICTURE_TOKENS, 0)
    if isinstance(tokens, bool) or not isinstance(tokens, int) or tokens < 0:
        return "picture_tokens must be a whole number of tokens of one picture."
    wrong = [name for name in sorted(RATES) if not _is_amount(price[name])]
    return f"{' and '.join(wrong)} must be a number of 0 or more." if wrong else ""


def _is_amount(value: object) -> bool:
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        return False
    try:
        amount = Decimal(str(value))
    except InvalidOperation:
        return False
    return amount.is_finite() and amount >= 0
