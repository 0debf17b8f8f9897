"""SVG to PNG through the limited child process, beside the same renderer without a process.

Prints one figure a line: ``name: figure unit``.
"""

import resource
import statistics
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from voting.pictures.child import load_resvg
from voting.pictures.rendering import render, target_size
from voting.pictures.screening import screen

ROOT = Path(__file__).parents[1]
DEMO = ROOT / "judge_eval" / "demo" / "svg"
ROUNDS = 3
WORKERS = 2


def typical(number: int) -> str:
    """A scene of the kind that models draw: gradients, shapes, a shadow, some lettering."""
    hills = "".join(
        f'<path d="M{x} 400 q 60 -{40 + x % 70} 120 0 z" fill="hsl({100 + x % 60} 50% 40%)"/>'
        for x in range(0, 500, 20 + number)
    )
    stars = "".join(
        f'<circle cx="{(number + i) * 53 % 512}" cy="{i * 37 % 200}" r="2" fill="#fff"/>'
        for i in range(60)
    )
    return (
        '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 512 512"><defs>'
        '<linearGradient id="s" x2="0" y2="1"><stop stop-color="#124"/>'
        '<stop offset="1" stop-color="#e95"/></linearGradient>'
        '<filter id="f"><feDropShadow dx="2" dy="3" stdDeviation="3"/></filter></defs>'
        f'<rect width="512" height="512" fill="url(#s)"/>{stars}{hills}'
        '<circle cx="380" cy="120" r="50" fill="#fd6" filter="url(#f)"/>'
        '<text x="256" y="470" font-family="Georgia, serif" font-size="36" fill="#fff" '
        f'text-anchor="middle">Evening {number}</text></svg>'
    )


def median_ms(work: Callable[[str], object], sources: list[str]) -> float:
    times = []
    for source in sources * ROUNDS:
        started = time.perf_counter()
        work(source)
        times.append((time.perf_counter() - started) * 1000)
    return statistics.median(times)


def pictures_per_second(sources: list[str]) -> float:
    started = time.perf_counter()
    with ThreadPoolExecutor(WORKERS) as workers:
        count = sum(1 for _ in workers.map(render, sources * ROUNDS))
    return count / (time.perf_counter() - started)


def processor_ms(sources: list[str]) -> float:
    """Mean processor time of parent and child: the figure that a busy machine changes least."""
    who = (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)
    before = sum(sum(resource.getrusage(each)[:2]) for each in who)
    for source in sources:
        render(source)
    after = sum(sum(resource.getrusage(each)[:2]) for each in who)
    return (after - before) / len(sources) * 1000


def bare_rendering() -> Callable[[str], object]:
    draw = load_resvg(str(ROOT / "voting" / "pictures" / "fonts"))

    def render_here(source: str) -> bytes:
        screened = screen(source)
        return draw(screened.svg.encode(), *target_size(screened.width, screened.height))

    return render_here


def report(name: str, sources: list[str]) -> None:
    for source in sources[:2]:
        render(source)
    child = median_ms(render, sources)
    bare = median_ms(bare_rendering(), sources)
    print(f"{name}, in the limited child: {child:.1f} ms median")
    print(f"{name}, processor time of parent and child: {processor_ms(sources):.1f} ms mean")
    print(f"{name}, in one process without limits: {bare:.1f} ms median")
    print(f"{name}, child to one process: {child / bare:.2f} ratio")
    print(f"{name}, {WORKERS} workers: {pictures_per_second(sources):.1f} pictures/s")


def main() -> None:
    icon = (
        '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 24 24"><path d="M2 2h20v9z"/></svg>'
    )
    scenes = [typical(number) for number in range(20)]
    demo = [path.read_text() for path in sorted(DEMO.rglob("*.svg"))]
    print(f"screening of a scene: {median_ms(screen, scenes):.2f} ms median")
    report("icon", [icon] * 20)
    report("scene", scenes)
    if demo:
        report("demo drawing", demo)


if __name__ == "__main__":
    main()
