"""How large the product is: `make stats`, with what a stranger meets (`bench.readability`)."""

from __future__ import annotations

import ast
import tomllib
from importlib.metadata import Distribution, PackageNotFoundError, distribution
from pathlib import Path

from packaging.requirements import Requirement

from bench.lib.report import figure
from bench.readability import modules_of

ROOT = Path(__file__).parents[1]
LONG_LINE = 200


def main() -> None:
    modules = dict(modules_of())
    trees = [ast.parse(text) for text in modules.values()]
    nodes = [node for tree in trees for node in ast.walk(tree)]
    templates = [
        line
        for path in ROOT.glob("templates/**/*")
        if path.is_file()
        for line in path.read_text().splitlines()
    ]
    lines = sum(len(text.splitlines()) for text in modules.values())
    figure("product Python without migrations and demo", lines, "lines")
    statements = sum(isinstance(node, ast.stmt) for node in nodes)
    figure("statements in it", statements, "statements")
    figure("modules that are not empty", len(modules), "modules")
    figure("import contracts", contract_names(), "names", "40")
    figure("mappings of Any or object", sum(map(is_of_anything, nodes)), "types", "60")
    kinds = sum(
        asks_for_kind(node)
        for name, tree in zip(modules, trees, strict=True)
        if not name.endswith(("/kinds.py", "/models.py"))
        for node in ast.walk(tree)
    )
    figure("questions about a kind outside voting.items.kinds and models", kinds, "places", "15")
    tests = sum(len(path.read_text().splitlines()) for path in (ROOT / "tests").rglob("*.py"))
    figure("test lines", tests, "lines")
    long = sum(len(line) > LONG_LINE for line in templates)
    figure(f"template lines over {LONG_LINE} characters", long, "lines", "0")
    size = sum(map(installed_bytes, installed_packages(ROOT / "requirements.txt")))
    figure("what `make run` installs", size / 1e6, "MB", "540")


def installed_packages(requirements: Path) -> list[Distribution]:
    """Return the packages of a requirements file and all that these need, each once."""
    lines = [line.partition("#")[0].strip() for line in requirements.read_text().splitlines()]
    waiting = [Requirement(line) for line in lines if line]
    packages: dict[str, Distribution] = {}
    seen = set()
    while waiting:
        requirement = waiting.pop()
        if str(requirement) in seen:
            continue
        seen.add(str(requirement))
        try:
            package = distribution(requirement.name)
        except PackageNotFoundError:
            # Needed on another system or by another Python.
            continue
        packages[package.metadata["Name"].lower()] = package
        extras = requirement.extras or {""}
        waiting += [
            need
            for need in map(Requirement, package.requires or [])
            if not need.marker or any(need.marker.evaluate({"extra": extra}) for extra in extras)
        ]
    return list(packages.values())


def installed_bytes(package: Distribution) -> int:
    """Return the size of a package's files, without the bytecode that Python writes beside them."""
    paths = [Path(str(file.locate())) for file in package.files or []]
    return sum(path.stat().st_size for path in paths if path.suffix != ".pyc" and path.is_file())


def contract_names() -> int:
    """Count the modules that the import contracts list, several in one layer each by itself."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    listed = [
        name
        for contract in project["tool"]["importlinter"]["contracts"]
        for value in contract.values()
        if isinstance(value, list)
        for name in value
    ]
    return sum(len(name.replace("|", " ").replace(":", " ").split()) for name in listed)


def is_of_anything(node: ast.AST) -> bool:
    """Whether it is `dict[str, Any]` and the like: a type that says nothing of its values."""
    if not (isinstance(node, ast.Subscript) and isinstance(node.slice, ast.Tuple)):
        return False
    of = ast.unparse(node.value).rpartition(".")[2]
    last = ast.unparse(node.slice.elts[-1])
    return of in ("dict", "Mapping", "MutableMapping") and last in ("Any", "object")


def name_of(node: ast.AST) -> str | None:
    """Return the identifier that a node of the syntax tree reads or binds."""
    match node:
        case ast.Name(id=name) | ast.Attribute(attr=name) | ast.arg(arg=name):
            return name
        case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.ClassDef(name=name):
            return name
        case ast.keyword(arg=name):
            return name
        case ast.alias(name=name, asname=asname):
            return asname or name.rpartition(".")[2]
    return None


def asks_for_kind(node: ast.AST) -> bool:
    if isinstance(node, ast.Constant):
        return node.value == "comparison"
    return name_of(node) in ("is_single", "is_pair")


if __name__ == "__main__":
    main()
