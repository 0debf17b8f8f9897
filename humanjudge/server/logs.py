"""What is logged, as lines for people or as JSON, without what nobody may learn from a log."""

import json
import logging
import os
import re
from datetime import UTC, datetime
from typing import Final

from django.conf import settings

HIDDEN: Final = "[hidden]"
# Keys of this product and of providers, credentials in addresses and headers, cookies, links.
_PATTERNS: Final = (
    (re.compile(r"\b(?:hj|gj_sk|gj_pat)_[\w-]{8,}|\bsk-[\w-]{8,}"), HIDDEN),
    (re.compile(r"(?i)\b(bearer|basic)\s+[\w.~+/=-]+"), rf"\1 {HIDDEN}"),
    (re.compile(r"(://[^/\s:@]*):[^/\s@]+@"), rf"\1:{HIDDEN}@"),
    (re.compile(r"(/(?:join|ballot)/)[\w.:=-]+"), rf"\1{HIDDEN}"),
    (
        re.compile(
            r"(?i)([\"']?[\w-]*(?:api[_-]?key|secret|token|password|passwd|cookie|sessionid)[\w-]*"
            r"[\"']?\s*[=:]\s*)(?:\"[^\"]*\"|'[^']*'|[^\s,;&)}\]]+)"
        ),
        rf"\1{HIDDEN}",
    ),
)
# What is shorter may stand anywhere by chance.
_LEAST: Final = 8


def without_secrets(text: str) -> str:
    """Return a text without keys, tokens, passwords, cookies and the secrets of this machine."""
    keys = [value for name, value in os.environ.items() if name.endswith("_API_KEY")]
    for secret in (settings.SECRET_KEY, settings.METRICS_TOKEN, *keys):
        text = text.replace(secret, HIDDEN) if len(secret) >= _LEAST else text
    for pattern, instead in _PATTERNS:
        text = pattern.sub(instead, text)
    return text


class Lines(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        return without_secrets(super().format(record))


class Json(logging.Formatter):
    """One JSON object a line: time, level, logger, message, and the traceback if there is one."""

    def format(self, record: logging.LogRecord) -> str:
        fields: dict[str, str | int | None] = {
            "time": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname,
            "logger": record.name,
            "message": without_secrets(record.getMessage()),
            "process": record.process,
        }
        if record.exc_info:
            fields["traceback"] = without_secrets(self.formatException(record.exc_info))
        return json.dumps(fields, ensure_ascii=False)
