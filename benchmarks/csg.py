"""csg of tstar and of spectral-metric, side by side in one process on the same samples.

    python benchmarks/csg.py                         # CIFAR-10's shape: 50,000 × 3072, 10 classes
    python benchmarks/csg.py --classes 100 --reference-classes 3
    python benchmarks/csg.py --rows 100000 --classes 200 --reference-classes 3
    python benchmarks/csg.py --data photographs      # 5,000 real images, mirrored, shifted, with a little noise
    python benchmarks/csg.py --data whole --source DATA/cifar10_whole.npz --classes 100 --reference-classes 1
    python benchmarks/csg.py --data noise            # nothing to prune by: the worst case

Most data are synthetic and need no download: random fields whose power falls off with frequency as that
of photographs, with a pattern for each class and varying contrast (``--slope 1.4``: as compressible as
CIFAR-10; a smaller slope is harder), or white noise. Both sides get the same drawn samples. The
reference gets what a user may give it: pixels in [0, 1] as float32 or float64, or
plain uint8. It treats one class after the other, so with ``--reference-classes n`` only n are run and
the time is scaled up; the values are then not compared.

Times are CPU seconds of the process (what a busy machine leaves comparable; set OMP_NUM_THREADS=1) and
wall seconds. "product" is the float32 matrix product of samples and data alone, in one call a block.
"""

from __future__ import annotations

import argparse
import json
import os
import threading
import time
from collections.abc import Callable
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np


def fields(rows: int, classes: int, slope: float, seed: int = 0) -> tuple[Any, Any]:
    """(rows, 3072) uint8 images with power ∝ frequency^(−2·slope), and labels."""
    rng = np.random.default_rng(seed)
    side = 32
    frequency = np.hypot(np.fft.fftfreq(side)[:, None], np.fft.fftfreq(side))
    frequency[0, 0] = 1 / side
    amplitude = (frequency**-slope).astype(np.float32)

    def draw(n: int) -> Any:
        noise = rng.standard_normal((n, 4, side, side), dtype=np.float32)
        smooth = np.fft.ifft2(np.fft.fft2(noise) * amplitude).real.astype(np.float32)
        smooth /= smooth.std()
        return smooth[:, :1] + 0.25 * smooth[:, 1:]  # channels share most of their variation

    patterns = 0.6 * draw(classes)
    labels = rng.permutation(np.arange(rows) % classes)
    data = np.empty((rows, 3 * side * side), np.uint8)
    for start in range(0, rows, 1000):
        part = labels[start : start + 1000]
        contrast = np.exp(0.35 * rng.standard_normal((len(part), 1, 1, 1), dtype=np.float32))
        images = (patterns[part] + draw(len(part))) * contrast * 48 + 120
        data[start : start + 1000] = np.clip(np.rint(images), 0, 255).reshape(len(part), -1)
    return data, labels


def photographs(rows: int, classes: int, source: Path, seed: int = 0) -> tuple[Any, Any]:
    """Real images of 32×32, mirrored, shifted by up to 2 pixels and with a little noise (σ = 4) until there are enough."""
    with np.load(source) as stored:
        kept = stored["y_train"] < classes
        images, labels = stored["x_train"][kept], stored["y_train"][kept].astype(np.int64)
    rng = np.random.default_rng(seed)
    data = np.empty((rows, 3072), np.uint8)
    for start in range(0, rows, len(images)):
        part = images[: rows - start]
        n = len(part)
        part = np.where(rng.random((n, 1, 1, 1)) < 0.5, part[:, :, ::-1], part)
        padded = np.pad(part, ((0, 0), (2, 2), (2, 2), (0, 0)), mode="edge")
        down, right = rng.integers(0, 5, (2, n, 1)) + np.arange(32)
        part = padded[np.arange(n)[:, None, None], down[:, :, None], right[:, None, :]]
        part = part + 4 * rng.standard_normal(part.shape, dtype=np.float32)
        rounded = np.clip(np.rint(part), 0, 255).astype(np.uint8)
        data[start : start + n] = rounded.transpose(0, 3, 1, 2).reshape(n, -1)
    return data, np.resize(labels, rows)


def whole(classes: int, source: Path) -> tuple[Any, Any]:
    """All images of a file as they are; with another number of classes than its own, random ones."""
    with np.load(source) as stored:
        images, labels = stored["x_train"], stored["y_train"].astype(np.int64)
    if len(np.unique(labels)) != classes:
        labels = np.random.default_rng(0).permutation(np.arange(len(labels)) % classes)
    return images.transpose(0, 3, 1, 2).reshape(len(images), -1).copy(), labels


def noise(rows: int, classes: int, seed: int = 0) -> tuple[Any, Any]:
    rng = np.random.default_rng(seed)
    return rng.integers(0, 256, (rows, 3072), dtype=np.uint8), np.arange(rows) % classes


class Peak:
    """The most resident memory above the start, sampled every 5 ms; with CPU and wall time."""

    def __enter__(self) -> Peak:
        self._stop = threading.Event()
        self._base = self._top = self._resident()
        self._thread = threading.Thread(target=self._watch)
        self._thread.start()
        self._cpu, self._wall = time.process_time(), time.perf_counter()
        return self

    def __exit__(self, *_: object) -> None:
        self.cpu = time.process_time() - self._cpu
        self.wall = time.perf_counter() - self._wall
        self._stop.set()
        self._thread.join()
        self.megabytes = (self._top - self._base) / 2**20

    def _watch(self) -> None:
        while not self._stop.wait(0.005):
            self._top = max(self._top, self._resident())

    @staticmethod
    def _resident() -> int:
        return int(Path("/proc/self/statm").read_text(encoding="utf-8").split()[1]) * os.sysconf(
            "SC_PAGE_SIZE"
        )


def product(data: Any, queries: Any) -> float:
    """CPU seconds of the bare float32 product, on a tenth of the data, times ten."""
    left = data[queries].astype(np.float32)
    right = data[: len(data) // 10].astype(np.float32)
    start = time.process_time()
    for i in range(0, len(left), 1024):
        left[i : i + 1024] @ right.T
    return 10 * (time.process_time() - start)


def processor() -> str:
    """Its name, and the oneDNN and BLAS settings that limit it."""
    lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    name = next(
        (line.split(":")[1].strip() for line in lines if line.startswith("model name")), "?"
    )
    flags = next((line for line in lines if line.startswith("flags")), "")
    return name + (", VNNI" if "vnni" in flags else "")


def reference(data: Any, labels: Any, drawn: Any, k: int, classes: int) -> tuple[float, Peak]:
    """spectral-metric on samples that were drawn already, on the first so many classes."""
    from spectral_metric.estimator import CumulativeGradientEstimator
    from spectral_metric.lib import compute_expectation_with_monte_carlo

    K = len(drawn)
    with Peak() as peak:
        data = data.copy()  # as its fit() does
        once_cpu, once_wall = time.process_time() - peak._cpu, time.perf_counter() - peak._wall
        some = {c: data[drawn[c]] for c in range(classes)}
        estimator = CumulativeGradientEstimator(M_sample=len(drawn[0]), k_nearest=k)
        estimator.n_class, estimator.class_indices = K, dict(enumerate(drawn))
        if classes == K:
            estimator.compute(data, labels, some)
        else:
            compute_expectation_with_monte_carlo(data, labels, some, estimator.class_indices, K, k)
    peak.cpu = once_cpu + (peak.cpu - once_cpu) * K / classes
    peak.wall = once_wall + (peak.wall - once_wall) * K / classes
    return (float(estimator.csg[0]) if classes == K else float("nan")), peak


INPUTS: dict[str, Callable[[Any], Any]] = {
    "float32": lambda data: data / np.float32(255),
    "float64": lambda data: data / 255.0,
    "uint8": lambda data: data,
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=50_000)
    parser.add_argument("--classes", type=int, default=10)
    parser.add_argument("--samples", type=int, default=250)
    parser.add_argument("--data", default="fields", help="fields, photographs, whole or noise")
    parser.add_argument("--source", type=Path, default="../shared/data/cifar10_32.npz")
    parser.add_argument("--slope", type=float, default=1.4)
    parser.add_argument("--reference-classes", type=int, help="run the reference on so many only")
    parser.add_argument(
        "--runs",
        type=int,
        default=2,
        help="of tstar, before and after the reference; the fastest counts",
    )
    parser.add_argument("--inputs", default="float32,uint8", help="of the reference")
    parser.add_argument("--out", type=Path, help="append a line of JSON")
    args = parser.parse_args()

    import torch

    import tstar

    makers: dict[str, Callable[[], tuple[Any, Any]]] = {
        "fields": lambda: fields(args.rows, args.classes, args.slope),
        "photographs": lambda: photographs(args.rows, args.classes, args.source),
        "whole": lambda: whole(args.classes, args.source),
        "noise": lambda: noise(args.rows, args.classes),
    }
    data, labels = makers[args.data]()
    tstar.csg(data[:2000], labels[:2000], samples=5)  # imports and first calls are not measured

    def measured() -> tuple[Peak, Any]:
        with Peak() as one:
            result = tstar.csg(data, labels, samples=args.samples)
        return one, result

    ours, result = min((measured() for _ in range(args.runs)), key=lambda run: run[0].cpu)
    bare = product(data, np.concatenate(result.indices))
    threads = torch.get_num_threads()
    line: dict[str, Any] = {
        "rows": args.rows, "classes": args.classes, "samples": args.samples, "data": args.data,
        "slope": args.slope if args.data == "fields" else None, "threads": threads,
        "numpy": np.__version__, "torch": torch.__version__, "tstar": tstar.__version__,
        "cpu": torch.backends.cpu.get_cpu_capability(), "blas": os.environ.get("OPENBLAS_CORETYPE"),
        "processor": processor(), "onednn": os.environ.get("ONEDNN_MAX_CPU_ISA"),
        "reference": version("spectral-metric"), "csg": result.value, "tstar_cpu": ours.cpu, "tstar_wall": ours.wall,
        "tstar_megabytes": ours.megabytes, "product_cpu": bare,
    }  # fmt: skip
    print(f"{args.rows} × 3072 uint8 ({args.data}), {args.classes} classes, {threads} thread(s)")
    print(
        f"tstar            cpu {ours.cpu:8.2f} s  wall {ours.wall:8.2f} s  {ours.megabytes:7.0f} MB"
    )
    print(f"product alone    cpu {bare:8.2f} s  (tstar / product = {ours.cpu / bare:.2f})")
    run = args.reference_classes or args.classes
    for name in args.inputs.split(","):
        value, peak = reference(INPUTS[name](data), labels, result.indices, 5, run)
        note = "" if run == args.classes else f"  (scaled from {run} classes)"
        print(
            f"reference {name:7}cpu {peak.cpu:8.2f} s  wall {peak.wall:8.2f} s  {peak.megabytes:7.0f} MB"
            f"  ratio cpu {peak.cpu / ours.cpu:.1f}, memory {peak.megabytes / ours.megabytes:.1f}{note}"
        )
        line |= {f"{name}_cpu": peak.cpu, f"{name}_wall": peak.wall}
        line |= {
            f"{name}_megabytes": peak.megabytes,
            f"{name}_csg": value if run == args.classes else None,
        }
        # In narrower numbers the reference's box volumes overflow.
        if name == "float64" and run == args.classes and abs(value - result.value) > 1e-6:
            raise SystemExit(f"the values differ: tstar {result.value!r}, reference {value!r}")
    line["reference_classes"] = run
    # The load of a machine changes: tstar once more, after the reference.
    line["tstar_cpu_after"] = min(measured()[0].cpu for _ in range(args.runs))
    print(f"tstar once more  cpu {line['tstar_cpu_after']:8.2f} s")
    if args.out:
        with args.out.open("a", encoding="utf-8") as file:
            file.write(json.dumps(line) + "\n")


if __name__ == "__main__":
    main()
