"""The difficulty of a data set: its cumulative spectral gradient (csg), step by step.

samples → matrix → drawn samples → neighbors → volumes → expectation S → similarity W → Laplacian →
eigenvalues → gradient, and an interval. Reference: Branchaud-Charron, Achkar & Jodoin, "Spectral
metric for dataset complexity assessment", CVPR 2019.

The protocol (250 samples per class, 5 neighbors, Euclidean, pixels in [0, 1], 32×32 images) was
found by measuring: it comes within 0.17 of the printed ln(csg) on seven of the paper's data sets.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterable, Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tstar import samples as labeled
from tstar.errors import TstarError, guarded, whole
from tstar.neighbors import nearest
from tstar.text import printable, tracked

Array = NDArray[Any]
F64 = NDArray[np.float64]
Ints = NDArray[np.int64]
FLOOR = 1e-4  # the smallest volume of the reference implementation, against a division by zero
_LARGEST = 1e100  # squares of larger numbers leave float64's range
_BLOCK = 1 << 22  # numbers looked at or gathered at a time
_FEW = 5.0  # fewer deciding samples than this make a row of S an accident
_TOKENS = (
    "Samples must be numbers whose distance means something, but {} token ids; pass the data set "
    "before tokenize(), the vectors of a text encoder, or floats if they are quantities."
)
_RESAMPLES, _MANY_CLASSES, _FEW_RESAMPLES = 200, 256, 50


@guarded("csg() failed while reading your data or labels")
def csg(
    data: Any,
    labels: Any = None,
    *,
    samples: int = 250,
    neighbors: int = 5,
    seed: int = 0,
    size: int | None = 32,
) -> Csg:
    """The cumulative spectral gradient of a data set: how hard its classes are to tell apart.

    0 for perfectly separated classes, up to K − 1 for indistinguishable ones.

    Args:
        data: an array or tensor (N, D), (N, H, W), (N, H, W, C) or (N, C, H, W); a ``Dataset`` or
            ``DataLoader`` of (sample, label), also of PIL images; or what
            ``tstar.lab.data.open_data`` makes of a name, folder, file or table.
        labels: one hashable value per sample, unless the data bring them.
        samples: m, the most samples of a class whose neighbors are looked at.
        neighbors: k.
        seed: of the draw. Random transforms in the data draw on the process's generators.
        size: images are brought to size×size by area averaging; ``None`` leaves them as they are.

    Returns:
        The value with its interval and its reasons; ``float(result)`` is the value.

    >>> import numpy as np
    >>> x = np.repeat(np.eye(3), 20, axis=0) + np.random.default_rng(0).normal(0, 0.05, (60, 3))
    >>> float(csg(x, np.repeat(["ant", "bee", "cat"], 20)))    # far apart
    0.0
    """
    samples = whole("samples", samples, least=1)
    neighbors = whole("neighbors", neighbors, least=1)
    seed = whole("seed", seed, least=0, most=2**64 - 1)
    size = None if size is None else whole("size", size, least=1, most=4096)
    matrix = read(labeled.open_samples(data, labels), size)
    counts = np.bincount(matrix.codes)
    if len(counts) < 2 or counts.min() < 2 or neighbors >= len(matrix.codes):
        few = [repr(c) for c, n in zip(matrix.classes, counts, strict=True) if n < 2]
        raise TstarError(
            "data must have at least two classes with at least two samples each, and more samples "
            f"than neighbors; got {len(matrix.codes)} samples of {len(counts)} classes for "
            f"neighbors={neighbors}" + (f"; alone: {', '.join(few[:5])}." if few else ".")
        )
    return _measure(matrix, draw(matrix.codes, samples, seed), neighbors, seed)


@dataclass(frozen=True, eq=False, repr=False)
class Csg:
    """The cumulative spectral gradient of a data set, and why it is what it is.

    ``float(result)`` is the value. ``interval`` is 95 %, from a bootstrap of the drawn samples.
    ``expectation`` is S (K×K), the share of class j among the neighbors of class i; ``similarity``
    W = 1 − BrayCurtis of its rows; ``spectrum`` the eigenvalues of W's Laplacian. ``samples`` and
    ``indices`` say how many samples of each class were used, and which. ``floored`` is the share of
    box volumes at their floor; ``effective_samples`` the fewest that decide a row of S.
    """

    value: float
    interval: tuple[float, float]
    expectation: F64
    similarity: F64
    spectrum: F64
    classes: tuple[Hashable, ...]
    indices: tuple[Ints, ...]
    num_samples: int
    neighbors: int
    seed: int
    floored: float
    effective_samples: float
    notes: tuple[str, ...] = ()

    @property
    def num_classes(self) -> int:
        return len(self.classes)

    @property
    def samples(self) -> tuple[int, ...]:
        return tuple(map(len, self.indices))

    @property
    def regime(self) -> str:
        """``"floored"`` (only the neighbors' classes count), ``"volumes"`` or ``"mixed"``."""
        return "floored" if self.floored == 1 else "mixed" if self.floored > 0 else "volumes"

    def hardest_pairs(self, n: int = 10) -> list[tuple[Hashable, Hashable, float]]:
        """The n pairs of classes that are most alike, and how alike they are, from 0 to 1."""
        rows, columns = np.triu_indices(self.num_classes, 1)
        order = np.argsort(-self.similarity[rows, columns], kind="stable")[:n]
        pairs = zip(rows[order], columns[order], strict=True)
        return [(self.classes[i], self.classes[j], float(self.similarity[i, j])) for i, j in pairs]

    def __float__(self) -> float:
        return self.value

    def __repr__(self) -> str:
        low, high = self.interval
        return f"Csg({self.value:.4g}, interval=({low:.4g}, {high:.4g}), K={self.num_classes})"

    def __str__(self) -> str:
        low, high = self.interval
        few, many = min(self.samples), max(self.samples)
        used = f"{few}" if few == many else f"{few}–{many}"
        regime = f"{self.regime} ({self.floored:.0%} of the box volumes are at their floor)"
        if self.effective_samples < min(_FEW, *self.samples):
            regime += f"; {self.effective_samples:.1f} samples decide a class: of little use"
        lines = [
            f"csg = {self.value:.4g}   (95 %: {low:.4g}–{high:.4g}, bootstrap)",
            f"  {self.num_classes} classes, {self.num_samples} samples; {used} of each class drawn "
            f"with seed {self.seed}, {self.neighbors} neighbors",
            f"  regime: {regime}",
            *(f"  note: {note}" for note in self.notes),
            "  most alike:",
            *(f"    {a} – {b}: {alike:.3f}" for a, b, alike in self.hardest_pairs(5)),
        ]
        return "\n".join(map(printable, lines))

    def to_dict(self) -> dict[str, Any]:
        """The result as plain JSON types, without S and the positions."""
        names = [c if isinstance(c, int | float | str) else str(c) for c in self.classes]
        plain = ("regime", "num_samples", "neighbors", "seed", "floored", "effective_samples")
        return {
            "csg": self.value,
            "interval": list(self.interval),
            "spectrum": self.spectrum.tolist(),
            "similarity": self.similarity.tolist(),
            "classes": names,
            "samples": list(self.samples),
            "notes": list(self.notes),
            **{name: getattr(self, name) for name in plain},
        }


class Matrix(NamedTuple):
    """N samples of D numbers, with classes coded 0 … K−1 in the order of their first sample."""

    values: Array
    codes: Ints
    classes: tuple[Hashable, ...]
    scale: float = 1.0  # from a difference of values to the unit of box volumes
    notes: tuple[str, ...] = ()


def read(source: labeled.Samples, size: int | None = 32) -> Matrix:
    """Step 1. The samples as rows of numbers: features as they are, images as pixels."""
    if source.tokens:
        raise TstarError(_TOKENS.format(f"{source.name} holds"))
    labels, images = list[Any](), False

    def rows() -> Iterator[Array]:
        nonlocal images
        for sample, label in tracked(source.read(), "csg: samples read", source.samples):
            labels.append(label)
            array, tensor = sample_array(sample)
            images = images or is_image(array)
            yield image_rows(array, size, tensor) if is_image(array) else array.reshape(1, -1)

    if source.x is None:
        values = stacked(rows())
    else:
        x, labels, images = source.x, source.y, is_image(source.x)
        step = max(1, _BLOCK // max(x[0].size, 3 * (size or 0) ** 2))
        blocks = (x[start : start + step] for start in range(0, len(x), step))
        if images:
            values = stacked(image_rows(block, size, source.tensor) for block in blocks)
        else:
            values = x.reshape(len(x), -1)
            check_values(values)
    codes, classes = labeled.encode(labels)
    scale, notes = _unit(values, images)
    return Matrix(values, codes, _named(classes, source.names), scale, notes)


def is_image(batch: Array) -> bool:
    """(N, H, W) of whole numbers, or 4 axes. Float (N, A, B) may be anything: taken as it is."""
    return batch.ndim == 4 or (batch.ndim == 3 and batch.dtype.kind in "iu")


def sample_array(sample: Any) -> tuple[Array, bool]:
    """One sample as a batch of one, and whether it was a tensor."""
    picture = hasattr(sample, "getbands")  # of PIL
    array = from_pil(sample) if picture else labeled.as_array(sample, "A sample")
    if array is None:
        raise TstarError(f"A sample must be an image or an array, got {type(sample).__name__}.")
    array = labeled.numbers(array, "A sample")[None]
    if labeled.looks_like_tokens(array.shape[1:], array.dtype):
        raise TstarError(_TOKENS.format("rows of whole numbers look like"))
    known = is_image(array) or array.dtype in (np.uint8, np.float32, np.float64)
    return array if known else array.astype(np.float64), labeled.is_tensor(sample)


def image_rows(images: Array, size: int | None, tensor: bool = False) -> Array:
    """(N, D) uint8 or float32 pixels of a batch (N, H, W), (N, H, W, C) or (N, C, H, W).

    Whole numbers are 8-bit. Floats within [0, 1] are rounded to 8 bits, so that ``ToTensor()`` and
    the file itself give the same pixels; other floats (normalized images) stay float32.
    """
    batch = images[:, None] if images.ndim == 3 else channels_first(images, tensor)
    if batch.dtype.kind in "iu":
        if batch.dtype != np.uint8 and (batch.min() < 0 or batch.max() > 255):
            raise TstarError(
                f"Whole-number images must lie within 0–255, got {batch.dtype} from {batch.min()} "
                f"to {batch.max()}; scale them to [0, 1] as floats."
            )
        batch = batch.astype(np.uint8, copy=False)
    else:
        batch = batch.astype(np.float32)
        inside = ((batch >= 0) & (batch <= 1)).reshape(len(batch), -1).all(axis=1)
        batch[inside] = np.rint(batch[inside] * 255) / np.float32(255)
        if inside.all():
            batch = np.rint(batch * 255).astype(np.uint8)
    batch = batch if size is None else area_resize(batch, size)
    return np.ascontiguousarray(batch).reshape(len(batch), -1)


def channels_first(batch: Array, tensor: bool) -> Array:
    """(N, C, H, W), with C = 1, 3 or 4; if both ends could be C, tensors have it first."""
    first, last = batch.shape[1] in (1, 3, 4), batch.shape[-1] in (1, 3, 4)
    if not first and not last:
        raise TstarError(
            f"Images must have 1, 3 or 4 channels first or last, got samples of shape "
            f"{batch.shape[1:]}; flatten them to (N, D) to compare them as they are."
        )
    return batch if first and (not last or tensor) else np.moveaxis(batch, -1, 1)


def from_pil(image: Any) -> NDArray[np.uint8]:
    """(H, W, 3) 8-bit RGB. 16-bit grays are reduced; their conversion by PIL would clip them."""
    if image.mode.startswith("I;16"):
        gray = (np.asarray(image) >> 8).astype(np.uint8)
        return np.repeat(gray[:, :, None], 3, axis=2)
    if image.mode in ("I", "F"):
        raise TstarError(
            f"An image must be 8- or 16-bit, got mode {image.mode!r}; convert it first."
        )
    return np.asarray(image if image.mode == "RGB" else image.convert("RGB"))


def area_resize(images: Array, size: int) -> Array:
    """Images …×H×W as …×size×size: each pixel is the mean of the area it covers.

    8-bit images stay so, and their sums are whole numbers that the float type holds exactly: the
    result does not depend on batches, threads or machine. Other aspect ratios are squashed.
    """
    height, width = images.shape[-2:]
    if (height, width) == (size, size):
        return images
    bytes_ = images.dtype == np.uint8
    dtype: Any = np.float32 if bytes_ and 255 * height * width < 2**24 else np.float64
    rows, columns = overlap(height, size).astype(dtype), overlap(width, size).astype(dtype).T
    result = np.empty((*images.shape[:-2], size, size), images.dtype)
    strip = max(1, _BLOCK // width)
    for place in np.ndindex(images.shape[:-2]):
        total = np.zeros((size, size), dtype)
        for top in range(0, height, strip):
            part = images[place][top : top + strip].astype(dtype)
            total += rows[:, top : top + strip] @ (part @ columns)
        total /= height * width
        result[place] = np.rint(total) if bytes_ else total
    return result


def overlap(old: int, new: int) -> Ints:
    """(new×old): the length that new pixel i and old pixel j share, in 1/new of an old pixel."""
    start, pixel = np.arange(new)[:, None] * old, np.arange(old) * new
    shared = np.minimum(start + old, pixel + new) - np.maximum(start, pixel)
    return np.asarray(np.maximum(shared, 0))


def stacked(rows: Iterable[Array]) -> Array:
    """One matrix of rows, 8-bit if all are; it must fit into memory."""
    parts, size, count = list[Array](), 0, 0
    for part in rows:
        check_values(part, count)
        if parts and part.shape[1] != parts[0].shape[1]:
            raise TstarError(
                f"All samples must have the same number of values, but sample {count} has "
                f"{part.shape[1]} and those before it {parts[0].shape[1]}; pass size=32 to bring "
                "images to one size."
            )
        size, count = size + part.nbytes, count + len(part)
        if size > (limit := labeled.memory_limit()):
            raise TstarError(
                f"The data must fit into {limit >> 20:,} MB, but {count:,} samples of "
                f"{part.shape[1]:,} values do not; pass a smaller size, or set {labeled.MEMORY} to "
                "more."
            )
        parts.append(part)
    if len({part.dtype for part in parts}) > 1:  # floats may lie between images that were rounded
        parts = [p / np.float32(255) if p.dtype == np.uint8 else p for p in parts]
    return np.concatenate(parts) if parts else np.empty((0, 0), np.uint8)


def check_values(rows: Array, first: int = 0) -> None:
    """NaN, infinity and numbers that float64 cannot square or hold are errors."""
    if rows.dtype.itemsize == 1:
        return
    most: Any = 2**53
    if rows.dtype.kind == "f":
        most = rows.dtype.type(min(_LARGEST, float(np.finfo(rows.dtype).max)))
    step = max(1, _BLOCK // max(1, rows.shape[1]))
    for start in range(0, len(rows), step):
        part = rows[start : start + step]
        for row, column in np.argwhere(~((part <= most) & (part >= -most)))[:1]:
            raise TstarError(
                f"Every value must be a finite number, below {most:.4g} in size, but sample "
                f"{first + start + row} has {part[row, column]!r}; remove or repair such samples."
            )


def _named(classes: tuple[Hashable, ...], names: Any) -> tuple[Hashable, ...]:
    """Integer classes by the names that a data set lists for them, if it lists enough."""
    list(map(str, classes))  # a label that cannot be shown is refused here, not when it is printed
    distinct = names is not None and len(set(map(str, names))) == len(names)
    known = distinct and all(isinstance(c, int) and 0 <= c < len(names) for c in classes)
    return tuple(str(names[c]) for c in classes) if known else classes


def _unit(values: Array, images: bool) -> tuple[float, tuple[str, ...]]:
    """What one unit of a box's side is: [0, 1] for pixels; for features, the features' own."""
    if values.dtype == np.uint8 or not images:
        return (1 / 255 if values.dtype == np.uint8 else 1.0), ()
    low, high = float(values.min()), float(values.max())
    if low >= 0 and high <= 1:
        return 1.0, ()
    note = f"pixels from {low:.4g} to {high:.4g} were measured relative to that range"
    return 1 / (high - low), (note,)


def draw(codes: Ints, samples: int, seed: int) -> list[Ints]:
    """Step 2. Up to ``samples`` positions of every class, in the order of the class codes.

    Every position gets one random 64-bit key; a class takes its smallest keys. So renaming classes,
    or more data after the last sample, changes no key. PCG64's bits are the same in every NumPy.
    """
    samples = min(samples, len(codes))
    keys = np.random.PCG64(np.random.SeedSequence((seed, 0))).random_raw(len(codes))
    by_key = np.argsort(keys, kind="stable")
    by_class = by_key[np.argsort(codes[by_key], kind="stable")]
    starts = np.searchsorted(codes[by_class], np.arange(codes.max() + 2))
    return [np.sort(by_class[start : min(start + samples, end)]) for start, end in pairwise(starts)]


def _measure(matrix: Matrix, drawn: list[Ints], k: int, seed: int) -> Csg:
    """Steps 3 to 8, and the record."""
    K, queries = len(matrix.classes), np.concatenate(drawn)
    neighbors = nearest(matrix.values, queries, k)
    volumes = log_volumes(matrix.values, queries, neighbors, matrix.scale)
    owners = np.repeat(np.arange(K), [len(rows) for rows in drawn])
    weights = sample_weights(volumes, owners, K)
    codes = matrix.codes[neighbors]
    S, W, eigenvalues = spectrum_of(codes, owners, weights, K)
    value = float(cumulative_gradient(eigenvalues))
    total = np.bincount(owners, weights, K)
    try:  # only the record is sorted: names play no part in what is computed
        order = sorted(range(K), key=matrix.classes.__getitem__)  # type: ignore[arg-type]
    except TypeError:
        order = list(range(K))
    return Csg(
        value=value,
        interval=bootstrap(value, codes, owners, weights, K, seed),
        expectation=S[np.ix_(order, order)],
        similarity=W[np.ix_(order, order)],
        spectrum=eigenvalues,
        classes=tuple(matrix.classes[i] for i in order),
        indices=tuple(drawn[i] for i in order),
        num_samples=len(matrix.codes),
        neighbors=k,
        seed=seed,
        floored=float(np.mean(volumes <= math.log(FLOOR))),
        effective_samples=float((total**2 / np.bincount(owners, weights**2, K)).min()),
        notes=matrix.notes,
    )


def log_volumes(data: Array, queries: Ints, neighbors: Ints, scale: float = 1.0) -> F64:
    r"""Step 4. ln V of each query's Parzen box: V = max(Π_d 2·max_j \|x_{j,d} − q_d\|, 1e-4).

    The product runs over thousands of dimensions and would underflow on [0, 1] pixels; its
    logarithm does not. ``queries`` (Q,) and ``neighbors`` (Q, k) are positions in data (N, D).
    """
    out = np.full(len(queries), math.log(FLOOR))
    if (data.min(axis=0) == data.max(axis=0)).any():
        return out  # a side of every box has length 0
    step = max(1, _BLOCK // data.shape[1])
    for start in range(0, len(queries), step):
        here = data[queries[start : start + step]].astype(np.float64)
        reach = np.zeros_like(here)
        for column in neighbors[start : start + step].T:
            np.maximum(reach, np.abs(data[column] - here), out=reach)
        with np.errstate(divide="ignore"):  # a side of length 0 makes the volume 0: floored below
            out[start : start + step] = np.log(reach * (2 * scale)).sum(axis=1)
    return np.asarray(np.maximum(out, math.log(FLOOR)))


def sample_weights(log_volumes: F64, owners: Ints, num_classes: int) -> F64:
    """1/V of each drawn sample, relative to the largest of its class, which cancels in S."""
    least = np.full(num_classes, np.inf)
    np.minimum.at(least, owners, log_volumes)
    tiny = 1e-290  # keeps a resample without the heaviest samples from summing to nothing
    return np.asarray(np.maximum(np.exp(least[owners] - log_volumes), tiny))


def expectation(neighbor_codes: Ints, owners: Ints, weights: F64, num_classes: int) -> F64:
    """Step 5. S (K×K), rows summing to one: S_ij = E over samples of class i of p(j | sample).

    p(j | x) is the share of class j among the k neighbors of x, ``neighbor_codes`` (Q, k), divided
    by the box volume V(x). ``owners`` (Q,) are the classes of the samples, ``weights`` (Q,) 1/V up
    to a factor for each class, times how often the sample counts.
    """
    K, cells = num_classes, owners[:, None] * num_classes + neighbor_codes
    each = np.repeat(weights, neighbor_codes.shape[1])
    sums = np.bincount(cells.ravel(), weights=each, minlength=K * K).reshape(K, K)
    return np.asarray(sums / sums.sum(axis=1, keepdims=True))


def similarity(S: F64) -> F64:
    """Step 6. W_ij = 1 − BrayCurtis(S_i, S_j) = Σ_c min(S_ic, S_jc), since rows of S sum to one."""
    return np.stack([np.minimum(row, S).sum(axis=1) for row in S])


def laplacian(W: F64) -> F64:
    """Step 7. L = D − W with D_ii = Σ_{j≠i} W_ij; a class's weight to itself cancels."""
    L = -W
    np.fill_diagonal(L, 0.0)
    np.fill_diagonal(L, -L.sum(axis=1))
    return L


def cumulative_gradient(spectrum: F64) -> Any:
    """Step 8. csg = Σ_i max_{j≤i} d_j, d_j = (λ_{j+1} − λ_j)/(K − j), j = 0 … K−2."""
    K = len(spectrum)
    return np.maximum.accumulate(np.diff(spectrum) / (K - np.arange(K - 1))).sum()


def spectrum_of(
    neighbor_codes: Ints, owners: Ints, weights: F64, num_classes: int
) -> tuple[F64, F64, F64]:
    """S, W and the eigenvalues of the Laplacian, ascending."""
    S = expectation(neighbor_codes, owners, weights, num_classes)
    W = similarity(S)
    return S, W, np.linalg.eigvalsh(laplacian(W)).astype(np.float64)


def bootstrap(
    value: float, neighbor_codes: Ints, owners: Ints, weights: F64, num_classes: int, seed: int
) -> tuple[float, float]:
    """A 95 % interval around ``value`` from resampling each class's drawn samples.

    Resampling makes rows of S noisier and so lowers csg a little: the spread of the resampled
    values around their own mean is used. No neighbor is searched again.
    """
    rng = np.random.default_rng((seed, 0xB007))
    even = [np.full(n, 1 / n) for n in np.bincount(owners, minlength=num_classes)]
    draws = np.empty(_RESAMPLES if num_classes <= _MANY_CLASSES else _FEW_RESAMPLES)
    for i in range(len(draws)):
        counts = np.concatenate([rng.multinomial(len(p), p) for p in even])
        *_, spectrum = spectrum_of(neighbor_codes, owners, weights * counts, num_classes)
        draws[i] = cumulative_gradient(spectrum)
    low, high = np.quantile(draws, [0.025, 0.975]) - draws.mean()
    return max(value + low, 0.0), min(value + high, num_classes - 1.0)
