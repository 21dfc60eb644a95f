"""``tstar temperature``, ``recommend``, ``recipes``, ``csg`` and ``check``.

The first imports neither torch nor NumPy.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

from tstar.errors import TstarError
from tstar.lab.cli import options
from tstar.lab.cli.app import USE, app
from tstar.lab.cli.options import about, with_fields
from tstar.lab.cli.terminal import answer, progress, show, tell, tell_json
from tstar.training import Training

_WIDTHS = (64, 128, 256, 512, 768, 1024, 2048)


@app.command(rich_help_panel=USE)
def temperature(
    features: Annotated[int, about("M, the width of the output layer's input.")],
    classes: Annotated[int | None, about("K, the number of classes.")] = None,
    csg: Annotated[float | None, about("Difficulty of the data, from tstar csg.")] = None,
    variant: Annotated[str | None, about("A formula of the paper: base, csg, cn or csgcn.")] = None,
    coefficients: Annotated[Path | None, about("JSON file with coefficients of your own.")] = None,
    as_json: options.AsJson = False,
) -> None:
    """Compute the paper's T*, and print its terms.

    Example: tstar temperature --features 2048 --classes 8 --csg 3.85
    """
    from tstar.formula import explain

    answer(explain(features, classes, csg, variant=variant, coefficients=coefficients), as_json)


@app.command(rich_help_panel=USE)
@with_fields(Training)
def recommend(
    model: options.Model,
    data: Annotated[str | None, about(options.DATA)] = None,
    classes: Annotated[int | None, about("K, if no data are given.")] = None,
    features: options.Features = None,
    head: options.Head = None,
    loss: Annotated[str | None, about("Your loss: cross_entropy, nll_loss, …")] = None,
    data_root: options.DataRoot = None,
    accumulate: Annotated[int, about("Batches per step; --batch-size is then of one.")] = 1,
    as_json: options.AsJson = False,
    **training: Any,
) -> None:
    """Advise how to train a model: what to do, what to expect, and the main risk.

    Example: tstar recommend --model timm/resnet50 --data path/to/images --optimizer sgd --lr 0.1
    """
    from tstar.advice import recommend as advise
    from tstar.lab.data import open_data
    from tstar.lab.models import build
    from tstar.samples import count_classes

    if (data is None) == (classes is None):
        raise TstarError("Pass either --data PATH or --classes K.")
    source = None if data is None else open_data(data, size=32, root=data_root)
    network = build(model, classes or count_classes(source) or 0, num_features=features)
    known: dict[str, Any] = {"head": head, "loss": loss, "accumulate": accumulate}
    answer(advise(network, source, **known, **training), as_json)


@app.command(rich_help_panel=USE)
def recipes() -> None:
    """Print the table behind recommend: a recipe for each way of training, and its gain.

    Example: tstar recipes
    """
    from tstar.recipes import cells

    header, *rows = cells()
    show([dict(zip(header, row, strict=True)) for row in rows])


@app.command(rich_help_panel=USE)
def csg(
    path: options.DataName,
    samples: Annotated[int, about("Draw at most this many samples per class.")] = 250,
    neighbors: Annotated[int, about("Nearest neighbors of each sample.")] = 5,
    seed: options.Seed = 0,
    size: Annotated[int, about("Resize images to SIZE×SIZE pixels; 0: as they are.")] = 32,
    data_root: options.DataRoot = None,
    as_json: options.AsJson = False,
) -> None:
    """Measure how hard a data set is (cumulative spectral gradient), and print T* by width.

    Example: tstar csg path/to/images
    """
    from tstar.difficulty import csg as measure
    from tstar.formula import explain
    from tstar.lab.data import open_data

    source = open_data(path, size=size or None, root=data_root)
    how: Any = {"samples": samples, "neighbors": neighbors, "seed": seed}
    result = measure(source, size=size or None, **how)
    found = {M: explain(M, result.num_classes, result.value) for M in _WIDTHS}
    variant = found[64].variant
    if as_json:
        pairs = [[str(a), str(b), s] for a, b, s in result.hardest_pairs()]
        temperatures = {str(M): why.temperature for M, why in found.items()}
        told = {"hardest_pairs": pairs, "variant": variant}
        tell_json({**result.to_dict(), **told, "temperatures": temperatures})
        return
    first, *rest = str(result).splitlines()
    tell(first, "bold")
    tell("\n".join(rest))
    tell(
        f"\nThe paper's T* by M, the width of the output layer's input (coefficients: {variant}), "
        "for SGD at 0.1 over 200 epochs; for another training ask tstar recommend"
    )
    show([{"M": "T*", **{str(M): f"{why.temperature:.2f}" for M, why in found.items()}}])


@app.command(rich_help_panel=USE)
@with_fields(Training)
def check(
    model: options.Model,
    data: options.Data,
    features: options.Features = None,
    head: options.Head = None,
    budget: Annotated[float, about("Minutes for the whole check.")] = 10.0,
    seeds: Annotated[int, about("Trainings of each way, if they fit.", min=2)] = 3,
    size: options.Size = None,
    data_root: options.DataRoot = None,
    as_json: options.AsJson = False,
    **training: Any,
) -> None:
    """Train a model plain and as advised, as far as the budget allows, and compare.

    Example: tstar check --model resnet10 --features 64 --data digits --epochs 10 --budget 2
    """
    from tstar.advice import recommend as advise
    from tstar.lab.checking import check as compare
    from tstar.lab.data import load
    from tstar.lab.models import fitting_model

    loaded = load(data, root=data_root, size=size)

    def make_model() -> Any:  # the check seeds it
        return fitting_model(model, loaded, features, None)

    advice = advise(make_model(), loaded, head=head, **training)
    if not as_json:
        answer(advice, as_json)
    with progress() as update:
        found = compare(make_model, loaded, advice, budget=budget, seeds=seeds, progress=update)
    answer(found, as_json)
