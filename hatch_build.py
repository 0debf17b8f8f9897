"""Builds the wheel: what it requires, and where the files that no package holds stand in it."""

from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface
from hatchling.metadata.plugin.interface import MetadataHookInterface


class Requirements(MetadataHookInterface):
    """One list of pins for servers and for the package."""

    def update(self, metadata: dict[str, Any]) -> None:
        lines = Path(self.root, "requirements.txt").read_text(encoding="utf-8").splitlines()
        metadata["dependencies"] = [line for line in lines if line and not line.startswith("#")]


class Files(BuildHookInterface):
    """Templates and static files become those of an app; a checkout reads them where they are."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        if version != "editable":
            both = ("templates", "static")
            build_data["force_include"] = {each: f"humanjudge/{each}" for each in both}
