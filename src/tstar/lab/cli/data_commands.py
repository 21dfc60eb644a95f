"""``tstar data``: the data sets that have a name, which are on disk, and ``.npz`` copies."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from tstar.errors import TstarError
from tstar.lab.cli.app import RESEARCH, app
from tstar.lab.cli.options import AsJson, DataName, DataRoot, Seed, Size, about
from tstar.lab.cli.terminal import show, tell, tell_json

data = typer.Typer(
    help="List and show data sets, and copy one to an .npz file.", no_args_is_help=True
)
app.add_typer(data, name="data", rich_help_panel=RESEARCH)

Download = Annotated[bool, about("Download the data if they are not on disk.", "--download")]


@data.command("ls")
def list_data(data_root: DataRoot = None, as_json: AsJson = False) -> None:
    """List the data sets that have a name, and whether they are on disk.

    Example: tstar data ls
    """
    from tstar.lab.data.catalogue import CATALOGUE
    from tstar.lab.data.loading import default_root

    base = data_root or default_root()
    rows = [
        {
            **{"name": entry.name, "classes": entry.num_classes, "pixels": entry.pixels},
            **{"test": entry.test, "on_disk": entry.present(base), "folder": entry.folder},
        }
        for entry in CATALOGUE.values()
    ]
    if as_json:
        tell_json({"root": str(base), "data": rows})
        return
    show(rows)
    tell(f"\nRoot: {base}\nSuffixes for CIFAR-100: @10, -easy1, -easy2, -hard1, -hard2.")


@data.command("export")
def export_data(
    name: DataName,
    output: Annotated[Path, typer.Argument(help="The .npz file to write.")],
    data_root: DataRoot = None,
    size: Size = None,
    train: Annotated[int | None, about("Keep this many training samples.")] = None,
    test: Annotated[int | None, about("Keep this many test samples.")] = None,
    seed: Seed = 0,
    download: Download = False,
) -> None:
    """Write a data set, or a part of it, to one .npz file, which loads faster.

    Example: tstar data export flowers102 flowers102_32.npz --size 32
    """
    from tstar.lab.data import load
    from tstar.lab.data.files import write_npz

    if output.suffix != ".npz":
        raise TstarError(f"The output must end in .npz, got {output}.")
    found = load(name, root=data_root, size=size, download=download).subset(train, test, seed=seed)
    write_npz(found, output)
    typer.echo(f"{output}: {found!r}")
