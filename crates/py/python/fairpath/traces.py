"""Series of round-trip times, and which of them share a bottleneck."""

import warnings
from collections.abc import Mapping
from os import PathLike
from typing import Any

import numpy as np

from ._fairpath import Frame, Shared, detectors, judge_series, read_series
from .errors import DataError

__all__ = ["detect", "detectors", "read_rtt"]

_NS = {"_ns": 1, "_us": 1_000, "_ms": 1_000_000, "_s": 1_000_000_000}
_TIMES = [f"time{unit}" for unit in _NS]
_DELAYS = [f"{name}{unit}" for name in ("rtt", "delay", "srtt") for unit in _NS]
# Nanoseconds of a hundred years: no clock that counts from 1970 is beyond, and a product with it fits.
_NS_MAX = 100 * 365 * 86_400 * 10**9


def read_rtt(path: str | PathLike[str]) -> dict[str, Frame]:
    """The round-trip times of a file, of every kind that `fairpath detect` reads.

    Returns a frame for each series, by name, with the columns `time_ns` and `rtt_ns`. What was assumed of the
    file, and lines that were skipped, are warnings. `detect` takes the result as it is, and those of several
    files joined by `|`.

    Raises `DataError` where the file has no round-trip times, `OSError` where it cannot be read.
    """
    series, told = read_series(path)
    for warning in told:
        warnings.warn(warning, stacklevel=2)
    return series


def detect(series: Mapping[str, Any], *, detector: str = detectors()[0], hold_s: float = 0.0) -> Shared:
    """Which of these series share a bottleneck, as `fairpath detect` says.

    Each is a pair of arrays `(t, delay)`, both in seconds and by one clock, or a frame (of pandas, polars, pyarrow
    or `read_rtt`) with a column `time_s` and one `rtt_s` or `delay_s`; `_ms`, `_us` and `_ns` do as well.

    detector: one of `fairpath.traces.detectors()`.
    hold_s: what was found together is held for so many seconds longer.

    Raises `DataError` for wrong shapes, NaN, negative numbers, empty arrays, and where nothing can be compared.
    """
    if not isinstance(series, Mapping):
        raise TypeError(f"a dictionary of series by name is needed, not {type(series).__name__}")
    prepared = [(str(name), *_nanoseconds(str(name), one)) for name, one in series.items()]
    hold = _scaled("hold_s", np.asarray([hold_s]), _NS["_s"])
    return judge_series(prepared, detector, int(hold[0]))


def _nanoseconds(name: str, one: Any) -> tuple[bytes, bytes]:
    """Times and delays in order of time, as 64-bit integers."""
    if isinstance(one, tuple | list):
        if len(one) != 2:
            raise DataError(f"{name}: a pair of times and delays is needed, not {len(one)} arrays")
        (times, time_unit), (delays, delay_unit) = ((values, "_s") for values in one)
    else:
        times, time_unit = _column(name, one, _TIMES)
        delays, delay_unit = _column(name, one, _DELAYS)
    t = _scaled(f"{name}: times", times, _NS[time_unit])
    d = _scaled(f"{name}: delays", delays, _NS[delay_unit])
    if len(t) != len(d):
        raise DataError(f"{name}: {len(t)} times and {len(d)} delays; each delay has its time")
    if len(t) == 0:
        raise DataError(f"{name}: there is no round-trip time")
    order = np.argsort(t, kind="stable")
    return t[order].astype("<u8").tobytes(), d[order].astype("<u8").tobytes()


def _column(name: str, frame: Any, wanted: list[str]) -> tuple[Any, str]:
    """The first of these columns that is there, and its unit."""
    columns = getattr(frame, "column_names", None)  # of pyarrow, whose `columns` are the values
    columns = list(frame.columns if columns is None else columns) if hasattr(frame, "columns") else None
    if columns is None:
        kind = type(frame).__name__
        raise TypeError(f"{name}: a pair of arrays or a frame is needed, not {kind}")
    for column in wanted:
        if column in columns:
            return frame[column], column[column.rindex("_") :]
    raise DataError(f"{name}: no column is called {' or '.join(wanted)}; there are {', '.join(map(str, columns))}")


def _scaled(what: str, values: Any, scale: int) -> np.ndarray[Any, Any]:
    values = np.asarray(values)
    if values.ndim != 1:
        raise DataError(f"{what}: one dimension is needed, not the shape {values.shape}")
    if values.size and values.dtype.kind not in "iuf":
        raise DataError(f"{what}: numbers are needed, not {values.dtype}")
    if values.dtype.kind == "f" and not np.isfinite(values).all():
        at = int(np.flatnonzero(~np.isfinite(values))[0])
        raise DataError(f"{what}: number {at} is {values[at]}; leave out what was not measured")
    if (values < 0).any():
        at = int(np.flatnonzero(values < 0)[0])
        raise DataError(f"{what}: number {at} is {values[at]}; none can be below 0")
    if (values > _NS_MAX / scale).any():
        at = int(np.flatnonzero(values > _NS_MAX / scale)[0])
        raise DataError(f"{what}: number {at} is {values[at]}, more than a hundred years; is the unit right?")
    if values.dtype.kind == "f":
        return np.rint(values * float(scale)).astype(np.int64)
    return values.astype(np.int64) * scale
