"""``tstar csg``: how hard a data set is, and the temperatures that follow from it."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console
from rich.table import Table

from tstar.cli.app import USE, app
from tstar.cli.options import DATA, AsJson, DataRoot, OldPlot
from tstar.cli.printing import tell, tell_json

if TYPE_CHECKING:
    from tstar.difficulty import Csg
    from tstar.formula.equation import Explanation

_WIDTHS = (64, 128, 256, 512, 768, 1024, 2048)


@app.command(rich_help_panel=USE)
def csg(
    path: Annotated[str, typer.Argument(help=DATA)],
    samples: Annotated[int, typer.Option(help="Draw at most this many samples per class.")] = 250,
    neighbors: Annotated[int, typer.Option(help="Nearest neighbors of each sample.")] = 5,
    seed: Annotated[int, typer.Option(help="Seed of the draw.")] = 0,
    size: Annotated[
        int, typer.Option(help="Resize images to SIZE×SIZE pixels; 0 leaves them as they are.")
    ] = 32,
    repeats: Annotated[
        int, typer.Option(help="Draws of samples; more than one gives the spread over draws.")
    ] = 1,
    data_root: DataRoot = None,
    as_json: AsJson = False,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="Save a figure (.png, .pdf, .svg).")
    ] = None,
    skip_unreadable: Annotated[
        bool, typer.Option("--skip-unreadable", help="Skip files that cannot be read.")
    ] = False,
    plot: OldPlot = None,
) -> None:
    """The difficulty of a data set (cumulative spectral gradient), and T for common widths.

    Example: tstar csg path/to/images -o csg.png
    """
    from tstar.difficulty import csg as measure

    result = measure(
        path,
        samples=samples,
        neighbors=neighbors,
        seed=seed,
        size=size or None,
        repeats=repeats,
        skip_unreadable=skip_unreadable,
        root=data_root,
    )
    rows = _temperatures(result)
    figure = plot or output
    if figure is not None:
        result.plot(figure)
    if as_json:
        tell_json(_as_dict(result, rows))
    else:
        _show(result, rows, figure)


def _temperatures(result: Csg) -> list[tuple[int, Explanation]]:
    """T for common widths, as ``tstar temperature`` says."""
    from tstar.formula.equation import explain

    return [(M, explain(M, result.num_classes, result.value)) for M in _WIDTHS]


def _as_dict(result: Csg, rows: list[tuple[int, Explanation]]) -> dict[str, Any]:
    return {
        **result.to_dict(),
        "hardest_pairs": [[str(p.a), str(p.b), p.similarity] for p in result.hardest_pairs()],
        "variant": rows[0][1].variant,
        "reason": rows[0][1].reason,
        "temperatures": {str(M): why.temperature for M, why in rows},
    }


def _show(result: Csg, rows: list[tuple[int, Explanation]], plot: Path | None) -> None:
    head, *rest = str(result).splitlines()
    tell(head, "bold")
    tell("\n".join(rest))
    variant = rows[0][1].variant
    table = Table(box=None, pad_edge=False)
    table.add_column("M")
    for M, _ in rows:
        table.add_column(str(M), justify="right")
    table.add_row("T*", *(f"{why.temperature:.2f}" for _, why in rows))
    title = (
        f"\nThe paper's T* by M, the width of the output layer's input (coefficients: {variant}), for SGD at 0.1 over 200 epochs; "
        "for another training: tstar recommend"
    )
    tell(title)
    Console().print(table)
    tell(rows[0][1].reason, "dim")
    if plot is not None:
        tell(f"figure: {plot}")
