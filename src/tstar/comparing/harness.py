"""Every method on every seed: the same data split, the same initial weights, the same batches."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from tstar import methods as registry
from tstar.comparing.statistics import Row, Run, summarise
from tstar.errors import TstarError
from tstar.methods.interface import Facts, Method
from tstar.methods.searching import runs_of, search, searches
from tstar.training import Config, Result, train

if TYPE_CHECKING:
    from torch import Tensor, nn

    from tstar.data import DataSet
    from tstar.methods.calibration import Reliability

OnRun = Callable[[Run], None]
OnEpoch = Callable[[str, int, int, int], None]  # method, seed, epoch, epochs


@dataclass(frozen=True)
class Comparison:
    """The runs of a comparison, and the method that the others are tested against."""

    runs: tuple[Run, ...]
    baseline: str

    def rows(self) -> list[Row]:
        """One row a method: mean, spread, n, cost, and the paired test against the baseline."""
        return summarise(self.runs, self.baseline)


@dataclass(frozen=True)
class Plan:
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


def plan(names: Sequence[str], seeds: int | Sequence[int], baseline: str = "default") -> Plan:
    """Check the names and seeds of a comparison before anything is trained.

    The baseline is put first where it is not among the methods: without it there is no paired test.
    """
    wanted = [name.strip() for name in names if name.strip()]
    if not wanted:
        raise TstarError("At least one method must be named, got none; see tstar.methods.list().")
    if len(set(wanted)) < len(wanted):
        raise TstarError(f"Each method must be named once, got {', '.join(wanted)}.")
    if baseline not in wanted:
        wanted.insert(0, baseline)
    numbers = tuple(range(seeds)) if isinstance(seeds, int) else tuple(seeds)
    if not numbers or len(set(numbers)) < len(numbers):
        raise TstarError(f"seeds must be at least one seed, each once, got {seeds!r}.")
    return Plan({name: registry.get(name) for name in wanted}, numbers, baseline)


def cost(method: Method) -> int:
    """A method's cost in training runs a seed: its search's runs, and its teacher."""
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
    scores, at the last epoch. A run that diverges or cannot be done is recorded with its reason.

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
        csg = measure_csg(data)
    bench = _Bench(data, model, num_features, teacher_features, csg, config, on_epoch)
    runs: list[Run] = []
    for seed in todo.seeds:
        bench.new_seed(seed)
        for name, method in todo.methods.items():
            run = bench.run(name, method)
            runs.append(run)
            if on_run is not None:
                on_run(run)
    return Comparison(tuple(runs), todo.baseline)


def measure_csg(data: DataSet) -> float:
    """The cumulative spectral gradient of the training part."""
    from tstar.difficulty import csg

    return float(csg(data))


class _Bench:
    """What the runs of one comparison share; a teacher is trained once a seed."""

    def __init__(
        self,
        data: DataSet,
        model: str,
        num_features: int | None,
        teacher_features: int | None,
        csg: float | None,
        config: Config,
        on_epoch: OnEpoch | None,
    ) -> None:
        self.data, self.model, self.num_features = data, model, num_features
        self.teacher_features, self.csg, self.config = teacher_features, csg, config
        self.on_epoch = on_epoch
        self.width = _width(self._build(num_features, seed=0))
        self.new_seed(0)

    def new_seed(self, seed: int) -> None:
        self.seed = seed
        self._teacher: nn.Module | None = None
        self._teacher_failed = ""

    def run(self, name: str, method: Method) -> Run:
        """Train a method on the present seed; a failure is a run with its reason."""
        trainings = cost(method)
        try:
            if searches(method):
                result, temperature = self._searched(name, method)
            else:
                result, temperature = self._trained(name, method), None
        except TstarError as error:
            return Run(name, self.seed, "failed", trainings=trainings, error=str(error))
        learned = result.extra.get("temperature", temperature)
        return Run(
            name,
            self.seed,
            result.status,
            test_accuracy=result.test_accuracy,
            val_accuracy=result.val_accuracy,
            nll=result.nll,
            ece=result.ece,
            trainings=trainings,
            seconds=result.seconds,
            temperature=learned,
            error="" if result.status == "done" else "the loss became NaN or infinite",
            reliability=result.extra.get("reliability"),
        )

    def _searched(self, name: str, method: Method) -> tuple[Result, float]:
        results: list[Result] = []

        def score(candidate: Method) -> float | None:
            results.append(self._trained(name, candidate))
            return results[-1].val_accuracy  # None where it diverged

        found = search(method, score, seed=self.seed)
        best = results[found.trials.index(found.best)]
        seconds = sum(result.seconds for result in results)
        return replace(best, seconds=seconds), found.best.temperature

    def _trained(self, name: str, method: Method) -> Result:
        facts = Facts(
            num_features=self.width,
            num_classes=self.data.num_classes,
            csg=self.csg,
            epochs=self.config.epochs,
            label_smoothing=self.config.label_smoothing,
            teacher=self.teacher() if "teacher" in method.needs else None,
            validation=self.validation() if "validation" in method.needs else None,
        )
        recipe = method.prepare(self._build(self.num_features, self.seed), facts)
        result = train(
            recipe, self.data, self.config, seed=self.seed, progress=self._progress(name)
        )
        if result.status != "done":
            return result
        return replace(
            result, extra={**result.extra, "reliability": self._reliability(recipe.model)}
        )

    def _reliability(self, model: nn.Module) -> Reliability:
        """The reliability diagram's data of a trained model, on the test set."""
        from tstar.methods.calibration import reliability
        from tstar.training.parts import make_parts
        from tstar.training.scores import predict

        parts = make_parts(self.data, self.config, self.seed)
        logits = predict(model, parts.x_test, prepare=parts.ready, amp=self.config.amp)
        return reliability(logits, parts.y_test)

    def teacher(self) -> nn.Module:
        """The same network, wider, trained at T = 1 on the same seed's training part."""
        if self._teacher_failed:
            raise TstarError(self._teacher_failed)
        if self._teacher is None:
            features = self.teacher_features or 2 * self.width
            model = self._build(features, self.seed)
            result = train(
                model, self.data, self.config, seed=self.seed, progress=self._progress("teacher")
            )
            if result.status != "done":
                self._teacher_failed = (
                    f"The teacher of seed {self.seed} must train, but it diverged."
                )
                raise TstarError(self._teacher_failed)
            self._teacher = model.eval().requires_grad_(False)
        return self._teacher

    def validation(self) -> tuple[Tensor, Tensor] | None:
        """The held-out part, as the model sees it in training's own measurements."""
        from tstar.training.parts import make_parts

        return make_parts(self.data, self.config, self.seed).validation

    def _build(self, num_features: int | None, seed: int) -> nn.Module:
        from tstar.models import build

        return build(
            self.model,
            self.data.num_classes,
            num_features=num_features,
            in_channels=self.data.in_channels,
            seed=seed,
        )

    def _progress(self, name: str) -> Callable[[int, int, object], None] | None:
        if self.on_epoch is None:
            return None
        tell, seed = self.on_epoch, self.seed
        return lambda epoch, epochs, record: tell(name, seed, epoch, epochs)


def _width(model: nn.Module) -> int:
    from tstar.surgery.finding import find_head

    return find_head(model).num_features
