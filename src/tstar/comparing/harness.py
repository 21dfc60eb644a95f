"""Every method on every seed: the same data split, the same initial weights, the same batches."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from tstar import methods as registry
from tstar.comparing.statistics import Row, Run, summarize
from tstar.difficulty import csg as measure_csg
from tstar.errors import TstarError, shown
from tstar.methods.calibration import reliability
from tstar.methods.interface import Method
from tstar.methods.searching import runs_of
from tstar.models.fitting import fitting_model
from tstar.numbers import whole
from tstar.surgery.finding import find_head
from tstar.surgery.layers import is_output_layer
from tstar.training import Config, predict
from tstar.training.parts import make_parts
from tstar.training.running import Trained, run

if TYPE_CHECKING:
    from torch import nn

    from tstar.data import DataSet

OnRun = Callable[[Run], None]
OnEpoch = Callable[[str, int, int, int], None]  # method, seed, epoch, epochs


@dataclass(frozen=True)
class Comparison:
    """The runs of a comparison, and the method that the others are tested against."""

    runs: tuple[Run, ...]
    baseline: str

    def rows(self) -> list[Row]:
        """One row per method: mean, spread, n, cost, and the paired test against the baseline."""
        return summarize(self.runs, self.baseline)


@dataclass(frozen=True)
class Lineup:
    """What a comparison will do: the methods by the names they were asked for, seeds, trainings."""

    methods: dict[str, Method]
    seeds: tuple[int, ...]
    baseline: str

    @property
    def trainings(self) -> int:
        """How many models are trained; a teacher is shared by the methods that need one."""
        one_seed = sum(
            cost(method) - ("teacher" in method.needs) for method in self.methods.values()
        )
        teachers = any("teacher" in method.needs for method in self.methods.values())
        return len(self.seeds) * (one_seed + teachers)


def plan(names: Sequence[str], seeds: int | Sequence[int], baseline: str = "default") -> Lineup:
    """Check the names and seeds of a comparison before anything is trained.

    The baseline is put first where it is not among the methods: without it there is no paired test.
    """
    wanted = [name.strip() for name in names if name.strip()]
    if not wanted:
        raise TstarError("Name at least one method; see tstar.methods.list().")
    if len(set(wanted)) < len(wanted):
        raise TstarError(f"Each method must be named once, got {', '.join(wanted)}.")
    if baseline not in wanted:
        wanted.insert(0, baseline)
    if isinstance(seeds, Sequence):
        numbers = tuple(whole("A seed", seed, least=0) for seed in seeds)
    else:
        numbers = tuple(range(whole("seeds", seeds, least=1)))
    if not numbers or len(set(numbers)) < len(numbers):
        raise TstarError(f"seeds must be one or more different seeds, got {shown(seeds)}.")
    return Lineup({name: registry.get(name) for name in wanted}, numbers, baseline)


def cost(method: Method) -> int:
    """A method's cost in training runs per seed: its search's runs, and its teacher."""
    return runs_of(method) + ("teacher" in method.needs)


def compare_methods(
    data: DataSet,
    model: str,
    methods: Sequence[str],
    *,
    seeds: int | Sequence[int] = 5,
    num_features: int | None = None,
    teacher_features: int | None = None,
    csg: float | None = None,
    config: Config | None = None,
    baseline: str = "default",
    on_run: OnRun | None = None,
    on_epoch: OnEpoch | None = None,
) -> Comparison:
    """Train every method on every seed.

    Runs are paired by seed: the same held-out part, initial weights and order of batches for every
    method. Validation data chooses (temperature check, temperature scaling, meta-kd), test data
    scores, at the last epoch. A run that diverges counts as chance, 1/K; one that cannot be done is left out. Both are
    recorded with the reason.

    Args:
        data: a data set in memory.
        model: a network's name for ``tstar.models.build``.
        methods: names for ``tstar.methods.get``.
        seeds: how many (0, 1, …), or which.
        num_features: M; the network's own by default.
        teacher_features: M of the teacher, the same network trained at T = 1; twice M by default.
        csg: the data set's cumulative spectral gradient; measured if a method needs it.
        config: the training protocol.
        baseline: the method that the others are tested against; added if it is not named.
        on_run: called with each run as it ends. on_epoch: called after each epoch.
    """
    todo = plan(methods, seeds, baseline)
    config = config or Config()
    needs = frozenset[str]().union(*(method.needs for method in todo.methods.values()))
    if "validation" in needs and config.val_fraction == 0:
        which = ", ".join(n for n, m in todo.methods.items() if "validation" in m.needs)
        raise TstarError(
            f"val_fraction > 0 must hold for {which}, which need validation data, but got 0."
        )
    if "csg" in needs and csg is None:
        csg = float(measure_csg(data))
    bench = _Bench(data, model, num_features, teacher_features, csg, config, on_epoch)
    runs: list[Run] = []
    for seed in todo.seeds:
        bench.new_seed(seed)
        for name, method in todo.methods.items():
            runs.append(bench.run(name, method))
            if on_run is not None:
                on_run(runs[-1])
    return Comparison(tuple(runs), todo.baseline)


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
        self._teacher: nn.Module | None = None
        self._teacher_failed = ""

    def run(self, name: str, method: Method) -> Run:
        """Train a method on the present seed; a failure is a run with its reason."""
        try:
            trained = self._train(name, method, self.num_features)
        except TstarError as error:
            return Run(name, self.seed, "failed", trainings=cost(method), error=str(error))
        result = trained.result
        logits = predict(
            trained.model, trained.parts.x_test, prepare=trained.parts.ready, amp=self.config.amp
        )
        done = result.status == "done"
        val_accuracy, test_accuracy = result.accuracies(self.data.num_classes)
        temperature, norm = _trained_at(trained)
        return Run(
            name,
            self.seed,
            result.status,
            test_accuracy=test_accuracy,
            val_accuracy=val_accuracy,
            nll=result.nll,
            ece=result.ece,
            trainings=cost(method),
            seconds=result.seconds,
            temperature=temperature,
            norm=norm,
            lr_factor=float(result.extra.get("lr_factor", 1.0)),
            left=bool(result.extra.get("left", False)),
            error="" if done else "the loss became NaN or infinite",
            reliability=reliability(logits, trained.parts.y_test) if done else None,
        )

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
        if self._teacher_failed:
            raise TstarError(self._teacher_failed)
        if self._teacher is None:
            width = self.teacher_features or 2 * self._width()
            trained = self._train("teacher", registry.get("default"), width)
            if trained.result.status != "done":
                self._teacher_failed = f"The teacher of seed {self.seed} diverged."
                raise TstarError(self._teacher_failed)
            self._teacher = trained.model.eval().requires_grad_(False)
        return self._teacher

    def _width(self) -> int:
        model = fitting_model(self.model, self.data, self.num_features, self.seed)
        return find_head(model, self.parts.ready(self.parts.x[:2]).cpu()).num_features


def _trained_at(trained: Trained) -> tuple[float | None, str]:
    """T at the end, ``None`` where there is no single one; and the norm inserted before the output layer."""
    head = dict(trained.model.named_modules()).get(trained.facts.head or "")
    tempered = hasattr(head, "temperature")
    kind = type(getattr(head, "norm", None)).__name__ if tempered else ""
    norm = next((word for word in ("batch", "layer") if kind.lower().startswith(word)), "none")
    T = trained.result.extra.get("temperature", trained.temperature)
    if T is None and tempered:
        T = float(head.temperature)  # type: ignore[union-attr]
    elif T is None and head is not None and is_output_layer(head):
        T = 1.0
    return T, norm
