"""Where settings are read from and data are kept: in a checkout, or beside an installed wheel."""

import os
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
# A wheel holds templates in a package.
IS_CHECKOUT = (ROOT / "templates").is_dir() and (ROOT / "manage.py").exists()
# What people type here to ask a server, and to start one.
PROGRAM = ".venv/bin/humanjudge" if IS_CHECKOUT else "humanjudge"
START = "make run" if IS_CHECKOUT else "humanjudge up"
# What may stand in a file, as the secrets of containers do; keys of providers, too.
SECRETS = ("SECRET_KEY", "DATABASE_URL", "REDIS_URL", "METRICS_TOKEN", "OIDC_CLIENT_SECRET")


class RefusalError(SystemExit):
    """HumanJudge cannot start here. Python prints it as one line and exits with 1."""

    def __init__(self, message: str) -> None:
        super().__init__(f"humanjudge: {message}")


def load() -> Path:
    """Read settings that stand in files into the environment, and return the data folder.

    A variable that is set wins over `.env`, and over the file that `NAME_FILE` names.
    """
    if IS_CHECKOUT:
        _read(ROOT / ".env")
    data = _data()
    if not IS_CHECKOUT:
        _read(data / ".env")
    for name, path in list(os.environ.items()):
        secret = name.removesuffix("_FILE")
        is_secret = secret in SECRETS or secret.endswith("_API_KEY")
        if name != secret and is_secret and path and not os.environ.get(secret):
            os.environ[secret] = _secret(name, Path(path))
    return data


def _data() -> Path:
    folder = os.environ.get("HUMANJUDGE_DATA")
    if folder or IS_CHECKOUT:
        return (ROOT if IS_CHECKOUT else Path.cwd()) / Path(folder or "var").expanduser()
    if sys.platform == "darwin":
        return Path("~/Library/Application Support/humanjudge").expanduser()
    base = os.environ.get("XDG_DATA_HOME") or "~/.local/share"
    return Path(base).expanduser() / "humanjudge"


def _read(path: Path) -> None:
    # Another user's .env is not for this one.
    if os.access(path, os.R_OK):
        from dotenv import load_dotenv  # few have such a file

        load_dotenv(path)


def _secret(name: str, path: Path) -> str:
    try:
        text = path.read_text(encoding="utf-8").strip()
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "not UTF-8"
        raise RefusalError(f"{name}: cannot read {path}: {reason}") from error
    if not text:
        raise RefusalError(f"{name}: {path} is empty")
    return text
