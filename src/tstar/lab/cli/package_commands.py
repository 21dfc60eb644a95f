"""``tstar demo``, ``calculator`` and ``atlas``: what the package brings."""

from __future__ import annotations

import os
from importlib.util import find_spec
from pathlib import Path
from typing import Annotated

import typer

from tstar.lab.cli.app import RESEARCH, USE, app
from tstar.lab.cli.options import Output, Where, about
from tstar.lab.cli.terminal import progress, tell

_COLUMNS = (
    *("atlas", "dataset", "model", "num_features", "num_classes", "optimizer", "lr"),
    *("steps", "norm", "temperature", "seed", "test_accuracy"),
)


@app.command(rich_help_panel=USE)
def demo(
    output: Output = Path("tstar-demo.png"),
    seeds: Annotated[int, about("Trainings with and without the advice.", min=2)] = 4,
    workers: Annotated[int, about("Trainings at once.", min=1)] = min(2, os.cpu_count() or 1),
) -> None:
    """Train a small network with and without the advice, in under a minute; no download.

    Example: tstar demo
    """
    from tstar.lab import demo as story

    draws = all(map(find_spec, ("matplotlib", "pandas")))
    if draws:
        from tstar.lab.report.style import format_of

        format_of(output)  # asked before the training
    tell(
        f"A small network learns {story.TRAIN_IMAGES} handwritten digits with noisy pixels "
        f"and {story.WRONG:.0%} wrong labels, as it comes and as tstar.recommend advises."
    )
    with progress("training") as update:
        result = story.run(seeds, workers, lambda done, total: update(done, total, "training"))
    if draws:
        story.draw(result, output)
    figure = f"Figure: {output}" if draws else "With a figure: pip install 'tstar[lab]'"
    tell(f"\n{result.advice}\n\n{result.sentence}\n{figure}")


@app.command(rich_help_panel=USE)
def calculator(output: Output = Path("tstar-calculator.html")) -> None:
    """Write a page that shows T for any case, under every formula and rule; it works offline.

    Example: tstar calculator -o calculator.html
    """
    from tstar.lab.calculator import write

    typer.echo(write(output))


@app.command(rich_help_panel=RESEARCH)
def atlas(
    where: Where = None,
    csv: Annotated[bool, about("Print every run and column as CSV.", "--csv")] = False,
) -> None:
    """Print the runs of the atlases: each case, its temperature and its accuracy.

    Example: tstar atlas --where "atlas == 2 and optimizer == 'sgd' and steps > 1000" --csv
    """
    from tstar.lab.evidence import atlas as read
    from tstar.lab.sweep.transfer import choose

    runs = choose(read(), where, None)
    if csv:
        typer.echo(runs.to_csv(index=False), nl=False)
        return
    text = runs[[*_COLUMNS]].to_string(index=False, max_rows=20)
    tell(f"{text}\n{len(runs):,} runs; --csv prints all of them, with every column.")
