"""``tstar demo``, ``calculator``, ``info``, ``receipt`` and ``atlas``: what the package brings."""

from __future__ import annotations

import json
import os
from datetime import date
from importlib.metadata import distributions
from importlib.util import find_spec
from pathlib import Path
from typing import Annotated, Any

import typer

from tstar._version import __version__
from tstar.checks import read_json
from tstar.errors import TstarError
from tstar.lab.cli.app import RESEARCH, USE, app
from tstar.lab.cli.options import AsJson, Output, Where, about, given
from tstar.lab.cli.terminal import ERRORS, progress, tell, tell_json

_PACKAGES = (
    *("typer", "rich", "torchvision", "timm", "transformers", "lightning", "pandas", "scipy"),
    *("scikit-learn", "matplotlib", "pyarrow", "ray"),
)
# What later readers need of an advice: the case, and the recipe.
_KEPT = (
    *("num_features", "num_classes", "csg", "training", "action", "temperature", "norm"),
    *("lr", "weight_decay", "head_lr"),
)
_COLUMNS = (
    *("atlas", "dataset", "model", "num_features", "num_classes", "optimizer", "lr"),
    *("steps", "norm", "temperature", "seed", "test_accuracy"),
)


@app.command(rich_help_panel=USE)
def demo(
    output: Output = Path("tstar-demo.png"),
    seeds: Annotated[int, about("Trainings with and without the advice.", min=2)] = 4,
    workers: Annotated[int, about("Trainings at once.", min=1)] = min(2, os.cpu_count() or 1),
    as_json: AsJson = False,
) -> None:
    """The whole story on real data in under a minute; nothing to download.

    Example: tstar demo
    """
    from tstar.lab import demo as story

    draws = all(map(find_spec, ("matplotlib", "pandas")))
    if draws:
        from tstar.lab.report.style import format_of

        format_of(output)  # asked before the training
    tell(
        f"A small network learns {story.TRAIN_IMAGES} handwritten digits with noisy pixels "
        f"and {story.WRONG:.0%} wrong labels, as it comes and as tstar.recommend advises.",
        console=ERRORS if as_json else None,
    )
    with progress("training") as update:
        result = story.run(seeds, workers, lambda done, total: update(done, total, "training"))
    if draws:
        story.draw(result, output)
    if as_json:
        accuracy = {way: result.accuracy(way) for way in story.WAYS}
        found = {"advice": result.advice.to_dict(), "accuracy": accuracy}
        tell_json(found | {"curves": result.curves, "sentence": result.sentence})
    else:
        figure = f"Figure: {output}" if draws else "With a figure: pip install 'tstar[lab]'"
        tell(f"\n{result.advice}\n\n{result.sentence}\n{figure}")


@app.command(rich_help_panel=USE)
def calculator(output: Output = Path("tstar-calculator.html")) -> None:
    """A page to try the formula on: every variant and rule, the curve over M; works offline.

    Example: tstar calculator -o calculator.html
    """
    from tstar.lab.calculator import write

    typer.echo(write(output))


@app.command(rich_help_panel=USE)
def info(as_json: AsJson = False) -> None:
    """Versions, system, threads and the stores' format, for a bug report.

    Example: tstar info
    """
    import torch

    from tstar.lab.sweep.provenance import versions
    from tstar.lab.sweep.store import SCHEMA

    installed = {found.name.lower(): found.version for found in distributions()}
    facts = {
        **versions("cuda" if torch.cuda.is_available() else "cpu"),
        "threads": f"{torch.get_num_threads()} of {os.cpu_count()} cores",
        "store format": SCHEMA,
        **{name: installed.get(name, "not installed") for name in _PACKAGES},
    }
    if as_json:
        tell_json(facts)
    else:
        tell("\n".join(f"{name:<13} {value}" for name, value in facts.items()))


@app.command(rich_help_panel=USE)
def receipt(
    recipe: Annotated[Path | None, given("The advice, as advice.save() wrote it.")] = None,
    accuracy: Annotated[float | None, about("As advised, from 0 to 1.", min=0, max=1)] = None,
    plain: Annotated[float | None, about("The same without, if known.", min=0, max=1)] = None,
    share: Annotated[
        bool, about("Print all receipts for an issue; sends nothing.", "--share")
    ] = False,
) -> None:
    """Keep what an advice predicted and what came of it, in tstar-receipts.jsonl.

    Example: tstar receipt recipe.json --accuracy 0.83 --plain 0.81

    To share them in an issue: tstar receipt --share
    """
    file = Path("tstar-receipts.jsonl")
    if recipe is not None and accuracy is not None:
        entry = make_receipt(recipe, accuracy, plain)
        with file.open("a", encoding="utf-8") as lines:
            lines.write(f"{json.dumps(entry)}\n")
        typer.echo(f"Kept in {file}. To share it: tstar receipt --share")
    elif not share:
        raise TstarError("A receipt needs the recipe and --accuracy; --share prints all of them.")
    if share:
        if not file.is_file():
            raise TstarError(f"There is no receipt in {str(file)!r}; make one first.")
        typer.echo(f"```json\n{file.read_text(encoding='utf-8').strip()}\n```")


def make_receipt(recipe: Path, accuracy: float, plain: float | None) -> dict[str, Any]:
    """One receipt: the case, the recipe, the expectation, and the accuracies as fractions."""
    advice = read_json(recipe, "an advice, as advice.save() writes it")
    if not {"temperature", "action", "training"} <= advice.keys():
        raise TstarError(f"{str(recipe)!r} is not an advice; write it with advice.save().")
    expected = advice.get("expectation") or {}
    return {
        "date": date.today().isoformat(),
        "tstar": __version__,
        **{name: advice.get(name) for name in _KEPT},
        "expected": {name: expected.get(name) for name in ("median", "low", "high")},
        "accuracy": accuracy,
        "plain": plain,
        "gain": None if plain is None else round(100 * (accuracy - plain), 4),
    }


@app.command(rich_help_panel=RESEARCH)
def atlas(
    where: Where = None,
    csv: Annotated[bool, about("Print every run and column as CSV.", "--csv")] = False,
) -> None:
    """Every training of the atlases: the case, the temperature, and what came of it.

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
