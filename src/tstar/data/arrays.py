"""What counts as an array is decided here: NumPy, torch, pandas, polars, xarray and their kind, by rows."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tstar.errors import TstarError


def is_tensor(value: Any) -> bool:
    import torch

    return isinstance(value, torch.Tensor)


def as_array(value: Any, what: str = "data") -> NDArray[Any] | None:
    """The NumPy array of anything that is an array or a table, one row per sample; else ``None``.

    Tables give their rows, not their columns. Masked arrays are refused, since NumPy forgets a mask
    without a word. Lists count if they hold numbers, or lists of numbers.
    """
    if isinstance(value, np.ma.MaskedArray):
        masked = int(np.ma.getmaskarray(value).sum())
        if masked:
            raise TstarError(
                f"{what} must have no masked values, but {masked} are masked; leave these samples out."
            )
        return np.asarray(value.data)
    if isinstance(value, np.ndarray):
        return np.asarray(value)
    if is_tensor(value):
        return from_tensor(value, what)
    refuse_lazy(value, what)
    if hasattr(value, "toarray") and hasattr(value, "nnz"):
        raise TstarError(f"{what} must be dense, got a sparse matrix; pass {what}.toarray().")
    if hasattr(type(value), "__array__") or _holds_numbers(value):
        try:
            return np.asarray(value)
        except (ValueError, TypeError, RuntimeError) as error:
            raise TstarError(
                f"{what} of type {type(value).__name__} could not be read as an array of rows: {error}"
            ) from error
    return None


def refuse_lazy(value: Any, what: str = "data") -> None:
    """Refuse a frame of polars that is a plan, whose columns polars itself warns of asking for."""
    if hasattr(value, "collect") and hasattr(value, "collect_schema"):
        raise TstarError(f"{what} must be in memory, got a lazy frame; pass {what}.collect().")


def from_tensor(value: Any, what: str = "data") -> NDArray[Any]:
    """A tensor of any device and dtype; what NumPy does not have (bfloat16, float8) becomes float32."""
    import torch

    if value.is_meta:
        raise TstarError(f"{what} must hold values, got a tensor on the meta device.")
    try:
        value = value.detach()
        if value.is_quantized:
            value = value.dequantize()
        if value.layout != torch.strided:
            value = value.to_dense()
        if value.is_floating_point() and value.dtype not in (
            torch.float16,
            torch.float32,
            torch.float64,
        ):
            value = value.float()
        return np.asarray(value.cpu().resolve_conj().resolve_neg().numpy())
    except (RuntimeError, TypeError, NotImplementedError) as error:
        raise TstarError(f"{what} could not be read as an array: {error}") from error


def numbers(array: NDArray[Any], what: str = "data") -> NDArray[Any]:
    """``array`` if it holds real numbers; arrays of Python numbers become float64."""
    if array.dtype.kind == "O":
        try:
            array = array.astype(np.float64)
        except (TypeError, ValueError) as error:
            raise TstarError(f"{what} must hold numbers, but: {error}.") from error
    if array.dtype.kind not in "fiub":
        raise TstarError(f"{what} must hold numbers, got dtype {array.dtype}.")
    return array if array.dtype.isnative else array.astype(array.dtype.newbyteorder("="))


def looks_like_tokens(sample_shape: Sequence[int], dtype: np.dtype[Any]) -> bool:
    """Whether a sample is a row of wide whole numbers, as a tokenizer gives them."""
    return len(sample_shape) == 1 and dtype.kind in "iu" and dtype.itemsize > 1


def label_array(labels: Any) -> Any:
    """Labels as a 1-D array, or as the iterable that they are."""
    array = None if isinstance(labels, list | tuple) else as_array(labels, "labels")
    if array is None:
        if not isinstance(labels, Iterable):
            raise TstarError(f"labels must hold one value per sample, got {type(labels).__name__}.")
        listed = list(labels)
        refuse_real(np.array([label for label in listed if isinstance(label, float)]))
        return listed
    if array.ndim == 2 and array.shape[1] == 1:
        array = array[:, 0]
    if array.ndim != 1:
        raise TstarError(
            f"labels must have one value per sample, got shape {array.shape}; one-hot labels need "
            "an argmax first."
        )
    refuse_real(array)
    return array


def refuse_real(labels: NDArray[Any]) -> None:
    """Refuse targets of samples (the first axis) that are no classes: several real numbers each, or one that hardly recurs.

    Several are those of a regression, or of a sigmoid for each class; several whole numbers may be the classes of
    positions. Real numbers that recur may name classes.
    """
    if labels.dtype.kind != "f" or not labels.size:
        return
    several = labels[0].size
    real = np.unique(labels[np.isfinite(labels) & (labels != np.round(labels))])
    if several > 1 or (len(labels) > 1 and 2 * real.size > len(labels)):
        got = f"{several} real numbers per sample" if several > 1 else f"{real.size} real numbers"
        raise TstarError(
            f"labels must be classes, got {got}. One-hot labels need an argmax first; to a regression, or several labels per "
            "sample, the softmax temperature does not apply."
        )


def encode(labels: Iterable[Any]) -> tuple[NDArray[np.int64], tuple[Hashable, ...]]:
    """Codes by first appearance, and the classes in that order: names play no part in it."""
    if isinstance(labels, np.ndarray) and labels.ndim == 1 and labels.dtype.kind in "biuU":
        names, first, codes = np.unique(labels, return_index=True, return_inverse=True)
        order = np.argsort(first)
        place = np.empty_like(order)
        place[order] = np.arange(len(order))
        return place[codes].astype(np.int64), tuple(names[order].tolist())
    seen: dict[Hashable, int] = {}
    found = [seen.setdefault(plain(label, i), len(seen)) for i, label in enumerate(labels)]
    return np.array(found, dtype=np.int64), tuple(seen)


def plain(label: Any, position: int) -> Hashable:
    """A label as a hashable Python value: arrays and tensors of one value are unpacked."""
    masked = label is np.ma.masked  # whose item is 0.0
    if hasattr(label, "item") and tuple(getattr(label, "shape", ())) in ((), (1,)) and not masked:
        label = label.item()
    if masked or _is_missing(label):
        raise TstarError(
            f"Every sample must have a label, but sample {position} has {label!r}; leave it out."
        )
    if not isinstance(label, Hashable) or hasattr(label, "shape"):
        raise TstarError(
            f"A label must be a single hashable value (a number, a string), but sample {position} "
            f"has one of type {type(label).__name__}; one-hot labels need an argmax first."
        )
    return label


def _is_missing(label: Any) -> bool:
    """None, and what does not equal itself: NaN of any kind, pandas' NaT and NA."""
    if label is None or hasattr(label, "shape"):
        return label is None
    try:
        return bool(label != label)
    except Exception:  # NA is neither true nor false
        return True


def _holds_numbers(value: Any) -> bool:
    """A list of numbers, or of lists of numbers, looked at through its first elements."""
    while isinstance(value, list | tuple) and value:
        value = value[0]
        if isinstance(value, int | float | np.number) and not isinstance(value, bool):
            return True
    return False
