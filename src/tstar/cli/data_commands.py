"""``tstar data`` and ``tstar models``: what has a name, what is on disk, and ``.npz`` copies."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.table import Table

from tstar.cli.app import RESEARCH, app
from tstar.cli.options import DATA, AsJson, DataRoot, Size
from tstar.cli.printing import tell, tell_json

data = typer.Typer(
    help="Data sets: which are known by name or on disk, and .npz copies.", no_args_is_help=True
)
models = typer.Typer(help="Networks that are known by name.", no_args_is_help=True)
app.add_typer(data, name="data", rich_help_panel=RESEARCH)
app.add_typer(models, name="models", rich_help_panel=RESEARCH)

Download = Annotated[
    bool, typer.Option("--download", help="Download the data if they are not on disk.")
]


@data.command("ls")
def list_data(data_root: DataRoot = None, as_json: AsJson = False) -> None:
    """List the data sets that are known by name, and whether they are on disk.

    Example: tstar data ls
    """
    from tstar.data.catalogue import CATALOGUE
    from tstar.data.loading import default_root

    base = data_root or default_root()
    rows = [
        {
            "name": entry.name,
            "classes": entry.num_classes,
            "pixels": entry.pixels,
            "test": entry.test,
            "on_disk": entry.present(base),
            "folder": entry.folder,
        }
        for entry in CATALOGUE.values()
    ]
    if as_json:
        tell_json({"root": str(base), "data": rows})
        return
    table = Table("name", "classes", "pixels", "test part", "on disk", box=None)
    table.add_column("below the root", overflow="fold")
    for row in rows:
        here = "[green]yes[/]" if row["on_disk"] else "no"
        table.add_row(
            *(str(row[k]) for k in ("name", "classes", "pixels", "test")), here, str(row["folder"])
        )
    console = Console()
    console.print(table)
    tell(
        f"\nRoot: {base}\nSuffixes for CIFAR-100: @10, -easy1, -easy2, -hard1, -hard2. Also any .npz, "
        "image folder, CSV of text."
    )


@data.command("show")
def show_data(
    name: Annotated[str, typer.Argument(help=DATA)],
    data_root: DataRoot = None,
    size: Size = None,
    download: Download = False,
    as_json: AsJson = False,
) -> None:
    """Show the shape, classes and checksum of a data set.

    Example: tstar data show digits
    """
    from tstar.data import load

    found = load(name, root=data_root, size=size, download=download)
    counts = found.y_train.bincount(minlength=found.num_classes).tolist()
    if as_json:
        facts = {
            "name": found.name,
            "domain": found.domain,
            "train": list(found.x_train.shape),
            "test": list(found.x_test.shape),
            "classes": dict(zip(found.classes, counts, strict=True)),
            "checksum": found.checksum(),
        }
        tell_json(facts)
        return
    typer.echo(repr(found))
    typer.echo(f"training samples per class: {min(counts)} to {max(counts)}")
    typer.echo(f"sha256 {found.checksum()}")


@data.command("export")
def export_data(
    name: Annotated[str, typer.Argument(help=DATA)],
    output: Annotated[Path, typer.Argument(help="The .npz file to write.")],
    data_root: DataRoot = None,
    size: Size = None,
    train: Annotated[int | None, typer.Option(help="Keep this many training samples.")] = None,
    test: Annotated[int | None, typer.Option(help="Keep this many test samples.")] = None,
    seed: Annotated[int, typer.Option(help="Seed of the samples that are kept.")] = 0,
    download: Download = False,
) -> None:
    """Write a data set as one .npz file, smaller if you like; it then loads at once.

    Example: tstar data export flowers102 flowers102_32.npz --size 32
    """
    from tstar.data import load
    from tstar.data.files import write_npz
    from tstar.errors import TstarError

    if output.suffix != ".npz":
        raise TstarError(f"The output must end in .npz, but got {output}.")
    found = load(name, root=data_root, size=size, download=download).subset(train, test, seed=seed)
    write_npz(found, output)
    typer.echo(f"{output}: {found!r}")


@models.command("ls")
def list_models(
    features: Annotated[
        int,
        typer.Option(
            help="M, the width of the output layer's input, for which parameters are counted."
        ),
    ] = 512,
    as_json: AsJson = False,
) -> None:
    """List the networks of this package, with their number of parameters.

    Example: tstar models ls --features 64
    """
    import torch

    from tstar.models import build, names

    rows = []
    for name in names():
        with torch.device("meta"):
            parameters = build(name, 10, num_features=features).parameters()
        rows.append(
            {
                "name": name,
                "num_features": features,
                "parameters": sum(p.numel() for p in parameters),
            }
        )
    if as_json:
        tell_json(rows)
        return
    table = Table("name", "M", "parameters (K = 10)", box=None)
    for row in rows:
        table.add_row(str(row["name"]), str(row["num_features"]), f"{row['parameters']:,}")
    console = Console()
    console.print(table)
    console.print(
        "\nAlso torchvision/NAME, timm/NAME, transformers/NAME-or-folder.", highlight=False
    )
