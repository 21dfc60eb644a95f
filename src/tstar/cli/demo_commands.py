"""``tstar demo``: the whole story on real data."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console
from rich.table import Table

from tstar.cli.app import USE, app
from tstar.cli.options import AsJson, OldOut
from tstar.cli.printing import tell, tell_json
from tstar.cli.progress import progress

if TYPE_CHECKING:
    from tstar.demo import Demo, Point


@app.command(rich_help_panel=USE)
def demo(
    output: Annotated[Path, typer.Option("--output", "-o", help="File for the figure.")] = Path(
        "tstar-demo.png"
    ),
    seeds: Annotated[int, typer.Option(min=1, help="Trainings per temperature and width.")] = 3,
    workers: Annotated[
        int, typer.Option(min=1, help="Trainings at once, each in a process.")
    ] = min(2, os.cpu_count() or 1),
    as_json: AsJson = False,
    out: OldOut = None,
) -> None:
    """The whole story on real data in about a minute; nothing to download.

    Example: tstar demo
    """
    from tstar import demo as story
    from tstar.report.style import format_of

    output = out or output
    format_of(output)
    console = Console(stderr=as_json)
    console.print(
        f"Training a small convolutional network (VGG9) on {story.TRAIN_IMAGES} handwritten digits with noisy pixels and "
        f"{story.WRONG:.0%} wrong labels (made hard, so that temperature matters): plain, and with BatchNorm at T = 1, at the "
        "recommended T and over a grid.",
        highlight=False,
    )
    with progress(Console(stderr=True), "training") as update:
        result = story.run(
            seeds=seeds,
            workers=workers,
            progress=lambda done, total: update(done, total, "training"),
        )
    story.draw(result, str(output))
    if as_json:
        tell_json(_as_dict(result))
        return
    console.print(_table(result))
    for notice in result.notices:
        tell(f"  {notice}", "dim", console=console)
    tell(f"Figure: {output}", console=console)


def _table(result: Demo) -> Table:
    n = next(iter(result.points.values())).n
    of = f"mean ± standard deviation of n = {n} seeds" if n > 1 else "one seed"
    table = Table(title=f"Test accuracy in %: {of}")
    for heading in ("M", "plain", "BN, T = 1", "BN, recommended T", "best T on the grid*"):
        table.add_column(heading, justify="right")
    for M, T in result.recommended.items():
        best_T, best = result.best(M)
        table.add_row(
            str(M),
            _cell(result.plain(M)),
            _cell(result.points[M, 1.0, "batch"]),
            f"T = {T:.3g}: [bold]{_cell(result.advised(M))}[/]",
            f"T = {best_T:.3g}: {_cell(best)}",
        )
    table.caption = "* chosen with hindsight on the test set: a bound, not a method"
    return table


def _cell(point: Point) -> str:
    return f"{point.mean:.1f}" + (f" ± {point.spread:.1f}" if point.n > 1 else "")


def _as_dict(result: Demo) -> dict[str, Any]:
    return {
        "recommended": {str(M): T for M, T in result.recommended.items()},
        "points": [
            {"num_features": M, "temperature": T, "norm": norm, **vars(point)}
            for (M, T, norm), point in sorted(
                result.points.items(), key=lambda item: (*item[0][:2], item[0][2] or "")
            )
        ],
    }
