"""The wheel as `make dist` builds it, in an environment that holds nothing else of the product."""

import subprocess
import sys
import sysconfig
from pathlib import Path
from zipfile import ZipFile

from tests.process.up import ROOT
from tests.servers import once


def built(folder: Path) -> Path:
    command = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(folder)]
    subprocess.run(command, cwd=ROOT, check=True, capture_output=True)
    [wheel] = folder.glob("*.whl")
    return wheel


def installed(wheel: Path, environment: Path) -> Path:
    """Install a wheel without a network, beside the packages of this environment; return `bin`."""
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", environment], check=True)
    folder = f"lib/python{sys.version_info.major}.{sys.version_info.minor}/site-packages"
    packages = environment / folder
    # What a .pth file of that folder names is not taken along: no checkout is found through it.
    packages.joinpath("shared.pth").write_text(sysconfig.get_path("purelib"))
    uv = [sys.executable, "-m", "uv", "pip", "install", "--quiet", "--offline", "--no-deps"]
    pip = [sys.executable, "-m", "pip", "--python", environment / "bin" / "python", "install"]
    into = ["--python", environment / "bin" / "python", wheel]
    if subprocess.run([*uv, *into], capture_output=True).returncode:
        subprocess.run([*pip, "--quiet", "--no-deps", "--no-index", wheel], check=True)
    return environment / "bin"


def wheel_and_programs() -> tuple[Path, Path]:
    """The wheel and the programs of an environment with it, made once for all tests of a run."""

    def make(folder: Path) -> tuple[str, str]:
        wheel = built(folder)
        return str(wheel), str(installed(wheel, folder / "with spaces"))

    wheel, programs = once("a wheel", make)
    return Path(wheel), Path(programs)


def files(wheel: Path) -> set[str]:
    return set(ZipFile(wheel).namelist())
