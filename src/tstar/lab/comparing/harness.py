"""Every method on every seed: the same data split, the same initial weights, the same batches."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from torch import nn

from tstar.checks import whole
from tstar.difficulty import csg as measure_csg
from tstar.errors import TstarError
from tstar.lab import methods as registry
from tstar.lab.comparing.record import Comparison, Run
from tstar.lab.data import load
from tstar.lab.models import fitting_model
from tstar.lab.recipe import Method
from tstar.lab.training import Config
from tstar.lab.training.parts import make_parts
from tstar.lab.training.running import Trained, run
from tstar.output_layer import find_head

if TYPE_CHECKING:
    from tstar.lab.data import DataSet

OnEpoch = Callable[[str, int, int, int], None]  # method, seed, epoch, epochs


@dataclass(frozen=True)
class Lineup:
    """What a comparison will do: the methods by the names they were asked for, and the seeds."""

    methods: dict[str, Method]
    seeds: tuple[int, ...]

    @property
    def trainings(self) -> int:
        """How many models are trained; methods that need a teacher share it."""
        taught = any("teacher" in method.needs for method in self.methods.values())
        return len(self.seeds) * (sum(each.trainings for each in self.methods.values()) + taught)


def plan(names: Sequence[str], seeds: int | Sequence[int], baseline: str = "default") -> Lineup:
    """Check the names and seeds of a comparison before anything is trained.

    The baseline goes first if it is not among the methods: without it there is no paired test.
    """
    wanted = [name.strip() for name in names if name.strip()]
    if baseline not in wanted:
        wanted.insert(0, baseline)
    count = seeds if isinstance(seeds, Sequence) else range(whole("seeds", seeds, least=1))
    numbers = dict.fromkeys(whole("A seed", seed, least=0) for seed in count)
    return Lineup({name: registry.get(name) for name in wanted}, tuple(numbers))


def cost(method: Method) -> int:
    """A method's cost in training runs per seed: its search's runs, and its teacher."""
    return method.trainings + ("teacher" in method.needs)


def compare(
    data: DataSet | str,
    model: str,
    methods: Sequence[str],
    *,
    seeds: int | Sequence[int] = 5,
    num_features: int | None = None,
    teacher_features: int | None = None,
    csg: float | None = None,
    config: Config | None = None,
    baseline: str = "default",
    on_run: Callable[[Run], None] = lambda run: None,
    on_epoch: OnEpoch | None = None,
) -> Comparison:
    """Train every method on every seed.

    Runs are paired by seed: the same held-out part, initial weights and order of batches for every
    method. Validation data choose (temperature check, temperature scaling, meta-kd), test data
    score, at the last epoch. A run that diverges counts as chance, 1/K; one that cannot be done is
    left out. Both are recorded with the reason.

    Args:
        data: a data set in memory, or the name of one.
        model: a network's name for ``tstar.lab.models.build``.
        methods: names for ``tstar.lab.methods.get``.
        seeds: how many (0, 1, …), or which.
        num_features: M; the network's own by default.
        teacher_features: M of the teacher, the same network trained at T = 1; twice M by default.
        csg: the data set's cumulative spectral gradient; measured if a method needs it.
        config: the training protocol.
        baseline: the method that the others are tested against; added if it is not named.
        on_run: called with each run as it ends.
        on_epoch: called after each epoch with method, seed, epoch and epochs.

    Returns:
        The runs, with their table.
    """
    todo, config = plan(methods, seeds, baseline), config or Config()
    choosing = [name for name, method in todo.methods.items() if "validation" in method.needs]
    if choosing and config.val_fraction == 0:
        raise TstarError(
            f"val_fraction > 0 must hold for {', '.join(choosing)}, which need validation data, "
            "but got 0."
        )
    loaded = load(data) if isinstance(data, str) else data
    if csg is None and any("csg" in method.needs for method in todo.methods.values()):
        csg = float(measure_csg(loaded))
    bench = _Bench(loaded, model, num_features, teacher_features, csg, config, on_epoch)
    runs: list[Run] = []
    for seed in todo.seeds:
        bench.new_seed(seed)
        for name, method in todo.methods.items():
            runs.append(bench.run(name, method))
            on_run(runs[-1])
    return Comparison(tuple(runs), baseline)


@dataclass
class _Bench:
    """What the runs of one comparison share; a teacher is trained once per seed."""

    data: DataSet
    model: str
    num_features: int | None
    teacher_features: int | None
    csg: float | None
    config: Config
    on_epoch: OnEpoch | None

    def new_seed(self, seed: int) -> None:
        self.seed, self.parts = seed, make_parts(self.data, self.config, seed)
        self._teacher: Trained | None = None

    def run(self, name: str, method: Method) -> Run:
        """Train a method on the present seed; a failure is a run with its reason."""
        try:
            trained = self._train(name, method, self.num_features)
        except TstarError as error:
            return Run(name, self.seed, "failed", trainings=cost(method), error=str(error))
        result = trained.result
        val, test = result.accuracies(self.data.num_classes)
        scores: dict[str, Any] = {"val_accuracy": val, "test_accuracy": test}
        scores |= {"nll": result.nll, "ece": result.ece, "seconds": result.seconds}
        T, norm = _trained_at(trained)
        made: dict[str, Any] = {"temperature": T, "norm": norm, "trainings": cost(method)}
        made |= {n: result.extra[n] for n in ("lr_factor", "left") if n in result.extra}
        why = "" if result.status == "done" else "the loss became NaN or infinite"
        return Run(name, self.seed, result.status, error=why, **scores, **made)

    def _train(self, name: str, method: Method, num_features: int | None) -> Trained:
        tell, seed = self.on_epoch, self.seed
        return run(
            method,
            lambda: fitting_model(self.model, self.data, num_features, seed),
            self.parts,
            self.config,
            num_classes=self.data.num_classes,
            seed=seed,
            csg=self.csg,
            teacher=self.teacher,
            progress=tell and (lambda epoch, epochs, record: tell(name, seed, epoch, epochs)),
        )

    def teacher(self) -> nn.Module:
        """The same network, wider, trained at T = 1 on the same seed's training part."""
        if self._teacher is None:
            student = fitting_model(self.model, self.data, self.num_features, self.seed)
            example = self.parts.ready(self.parts.x[:2]).cpu()
            width = self.teacher_features or 2 * find_head(student, example).num_features
            self._teacher = self._train("teacher", registry.get("default"), width)
        if self._teacher.result.status != "done":
            raise TstarError(f"The teacher of seed {self.seed} diverged.")
        return self._teacher.model.eval().requires_grad_(False)


def _trained_at(trained: Trained) -> tuple[float | None, str]:
    """T at the end, ``None`` if there is no single one; and the norm before the output layer."""
    head: Any = trained.model.get_submodule(trained.setting.head or "")
    T, norm = 1.0 if isinstance(head, nn.Linear | nn.Conv2d) else None, "none"
    if hasattr(head, "temperature"):
        T, norm = float(head.temperature), "none" if head.norm is None else "batch"
    return trained.result.extra.get("temperature", trained.temperature or T), norm
