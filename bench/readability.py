"""What a stranger meets in the code: names that nobody can search for, imports, small functions.

python -m bench.readability [--since COMMIT]  the figures, beside those of a commit
python -m bench.readability --hold            fails where a held figure is above the recorded one
python -m bench.readability --record          records the figures: they may only fall

The product alone is counted: no tests, migrations or demo. A figure is there to be honest with: a
name that only gets past the list of particles helps nobody.
"""

from __future__ import annotations

import argparse
import ast
import io
import json
import re
import subprocess
import sys
import tarfile
import tokenize
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath

from bench.lib.report import figure

ROOT = Path(__file__).parents[1]
RECORD = Path(__file__).with_suffix(".json")
APPS = ("humanjudge", "voting", "judge_eval", "reports")
SKIPPED = {"migrations", "tests", "demo"}
PARTICLES = set(
    "given seen kept taken held made got standing whole further each it told asked found said known"
    " stated wanted shown brought begun chosen written used met lacking so far own one some every"
    " other such here there then what which who whose why how where when of by at on in as for with"
    " from to".split()
)
# Names that Django gives a class in every file.
USUAL_CLASSES = {"Meta", "Command", "State", "Kind", "Migration"}
FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)

UNCLEAR = "unclear names (%)"
IMPORTS = "import statements a file"
DENSITY = "functions per 1,000 code lines"
ONCE = "private functions used once"
AIMS = {
    UNCLEAR: 1,
    IMPORTS: 9,
    DENSITY: 88,
    ONCE: 350,
    "lines of a function, 95 of 100": 35,
    "lines of the longest function": 80,
    "modules above 500 lines": 0,
    "docstrings (% of lines)": 9,
    "class names defined twice": 10,
    "packed literals as arguments": 0,
}
# A change that raises one of these is refused by `make check`.
HELD = (UNCLEAR, IMPORTS, DENSITY, ONCE)


@dataclass
class Tally:
    """What is counted in all modules."""

    files: int = 0
    lines: int = 0
    blank_lines: int = 0
    comment_lines: int = 0
    docstring_lines: int = 0
    import_lines: int = 0
    imports: int = 0
    packed: int = 0
    large_modules: int = 0
    function_lengths: list[int] = field(default_factory=list)
    defined_names: Counter[str] = field(default_factory=Counter)
    used_names: Counter[str] = field(default_factory=Counter)
    classes: Counter[str] = field(default_factory=Counter)
    private_functions: Counter[str] = field(default_factory=Counter)

    def add_module(self, text: str) -> None:
        tree, lines = ast.parse(text), text.splitlines()
        self.files += 1
        self.lines += len(lines)
        self.large_modules += len(lines) > 500
        self.blank_lines += sum(not line.strip() for line in lines)
        for token in tokenize.generate_tokens(io.StringIO(text).readline):
            alone = lines[token.start[0] - 1].strip().startswith("#") if token.string else False
            self.comment_lines += token.type == tokenize.COMMENT and alone
        for node in ast.walk(tree):
            self._add_docstring(node)
            self._add_node(node)

    def _add_docstring(self, node: ast.AST) -> None:
        if isinstance(node, (ast.Module, ast.ClassDef, *FUNCTIONS)):
            first = node.body[0] if node.body else None
            if first and ast.get_docstring(node, clean=False) is not None:
                self.docstring_lines += line_count(first)

    def _add_node(self, node: ast.AST) -> None:
        match node:
            case ast.Import() | ast.ImportFrom():
                self.imports += 1
                self.import_lines += line_count(node)
            case ast.FunctionDef() | ast.AsyncFunctionDef():
                self._add_function(node)
            case ast.ClassDef(name=name):
                self.classes[name] += 1
            case ast.Name(id=name):
                self.used_names[name] += 1
                self.defined_names[name] += isinstance(node.ctx, ast.Store)
            case ast.Attribute(attr=name):
                self.used_names[name] += 1
            case ast.Call(args=arguments):
                self.packed += sum(map(is_packed, arguments))

    def _add_function(self, node: ast.FunctionDef | ast.AsyncFunctionDef) -> None:
        self.function_lengths.append(line_count(node))
        self.defined_names[node.name] += 1
        for argument in node.args.args + node.args.kwonlyargs:
            self.defined_names[argument.arg] += 1
        if node.name.startswith("_") and not node.name.startswith("__"):
            self.private_functions[node.name] += 1

    def figures(self) -> dict[str, float]:
        other_lines = self.blank_lines + self.comment_lines + self.docstring_lines
        code_lines = self.lines - other_lines - self.import_lines
        unclear = sum(count for name, count in self.defined_names.items() if is_unclear(name))
        lengths = sorted(self.function_lengths)
        once = [
            name
            for name, count in self.private_functions.items()
            if count == self.used_names[name] == 1
        ]
        twice = [
            name for name, count in self.classes.items() if count > 1 and name not in USUAL_CLASSES
        ]
        return {
            UNCLEAR: round(100 * unclear / self.defined_names.total(), 2),
            IMPORTS: round(self.imports / self.files, 1),
            DENSITY: round(1000 * len(lengths) / code_lines),
            ONCE: len(once),
            "lines of a function, 95 of 100": lengths[int(0.95 * len(lengths))],
            "lines of the longest function": lengths[-1],
            "modules above 500 lines": self.large_modules,
            "docstrings (% of lines)": round(100 * self.docstring_lines / self.lines, 1),
            "class names defined twice": len(twice),
            "packed literals as arguments": self.packed,
        }


def line_count(node: ast.stmt) -> int:
    return (node.end_lineno or node.lineno) - node.lineno + 1


def is_packed(argument: ast.expr) -> bool:
    """Whether it is a literal whose parts are handed over as arguments: `f(*("a", "b"))`."""
    return isinstance(argument, ast.Starred) and isinstance(argument.value, (ast.Tuple, ast.List))


def is_unclear(name: str) -> bool:
    """Whether a name is made only of particles and participles."""
    parted = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", name).lower()
    words = [word for word in parted.split("_") if word]
    return bool(words) and PARTICLES.issuperset(words)


def modules_of(commit: str | None = None) -> Iterator[tuple[str, str]]:
    """Yield names and texts of the product's modules, of a commit or as they are in this folder."""
    if commit is None:
        for path in sorted(path for app in APPS for path in (ROOT / app).rglob("*.py")):
            name = str(path.relative_to(ROOT))
            if is_counted(name) and (text := path.read_text("utf-8")).strip():
                yield name, text
        return
    archive = ["git", "archive", commit, *APPS]
    tree = subprocess.run(archive, cwd=ROOT, capture_output=True, check=True).stdout
    with tarfile.open(fileobj=io.BytesIO(tree)) as tar:
        for member in tar:
            if is_counted(member.name) and (file := tar.extractfile(member)):
                text = file.read().decode()
                if text.strip():
                    yield member.name, text


def is_counted(name: str) -> bool:
    return name.endswith(".py") and not SKIPPED & set(PurePosixPath(name).parts)


def measure(commit: str | None = None) -> dict[str, float]:
    """Return the figures by their names, of a commit or of this folder."""
    tally = Tally()
    for _, text in modules_of(commit):
        tally.add_module(text)
    return tally.figures()


def show(current: dict[str, float], earlier: dict[str, float], commit: str) -> None:
    print(f"What a stranger meets, beside {commit}")
    for name, value in current.items():
        figure(name, value, f"(was {earlier[name]:,})", f"{AIMS[name]:,}")


def hold(current: dict[str, float], allowed: dict[str, float]) -> int:
    """Say which held figures are above the recorded ones."""
    raised = [name for name in HELD if current[name] > allowed[name]]
    for name in raised:
        print(f"{name}: {current[name]:,}, and {allowed[name]:,} are allowed: {RECORD.name}")
    return 1 if raised else 0


def record(current: dict[str, float], commit: str) -> None:
    document = {"commit": commit, "figures": current}
    RECORD.write_text(json.dumps(document, indent=2) + "\n", encoding="utf-8")


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m bench.readability", description=__doc__)
    parser.add_argument("--since", help="a commit to compare with; else what is recorded")
    parser.add_argument("--hold", action="store_true", help="fail where a held figure has risen")
    parser.add_argument("--record", action="store_true", help="record the figures of today")
    options = parser.parse_args(arguments)
    current = measure()
    document = json.loads(RECORD.read_text("utf-8"))
    if options.hold:
        return hold(current, document["figures"])
    if options.record:
        head = ["git", "rev-parse", "--short", "HEAD"]
        commit = subprocess.run(head, cwd=ROOT, capture_output=True, text=True, check=True).stdout
        record(current, commit.strip())
        return 0
    commit = options.since or document["commit"]
    show(current, measure(options.since) if options.since else document["figures"], commit)
    return 0


if __name__ == "__main__":
    sys.exit(main())
