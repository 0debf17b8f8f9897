"""Installs the package of tests/extension_package as pip would, without a network."""

import shutil
import tomllib
from pathlib import Path

PACKAGE = Path(__file__).resolve().parents[1] / "extension_package"


def install(folder, **more):
    """Put the package into a folder for `sys.path`; `more` are further entry points."""
    project = tomllib.loads((PACKAGE / "pyproject.toml").read_text())["project"]
    for module in (each for each in PACKAGE.iterdir() if (each / "__init__.py").exists()):
        shutil.copytree(module, folder / module.name, ignore=shutil.ignore_patterns("__pycache__"))
    name, version = project["name"], project["version"]
    about = folder / f"{name.replace('-', '_')}-{version}.dist-info"
    about.mkdir()
    (about / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n")
    for group, entries in project["entry-points"].items():
        lines = [f"{key} = {value}" for key, value in (entries | more).items()]
        (about / "entry_points.txt").write_text("\n".join([f"[{group}]", *lines, ""]))
    return folder
