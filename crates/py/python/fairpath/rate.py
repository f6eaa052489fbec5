"""TCP-friendly rates for streams with deadlines."""

from collections.abc import Mapping, Sequence
from typing import Any

from ._fairpath import best_rates

__all__ = ["optimum"]


def optimum(
    paths: Sequence[Mapping[str, Any]],
    deadline: str,
    *,
    bound: str = "cantelli",
    groups: Sequence[Sequence[int]] | None = None,
    probing: float | None = None,
    margin: float | None = None,
) -> dict[str, Any]:
    """The friendly rates of a stream over several paths that bring the most in time.

    paths: each a dictionary with `loss`, the share of packets lost, `rtt` (such as "20ms"), the mean, and
        `deviation`; without it delays are taken for exponential.
    deadline: what comes later is lost.
    bound: by what the share of late packets is judged: cantelli, chebyshev or exponential.
    groups: the paths that share bottlenecks, by place from 0; without it all do.
    probing: the share of the whole that each path carries at least.
    margin: how far repair is above what is missing on average, in deviations of one packet.

    Returns packets per second: `rates_per_second` on each path, `repair_per_second` of them, `goodput_per_second`
    in all, and `repair_share`.

    Raises `DataError` where that cannot be meant, or a path that loses nothing has no friendly rate.
    """
    keys = {"paths": list(paths), "deadline": deadline, "bound": bound}
    keys["groups"] = None if groups is None else [list(group) for group in groups]
    keys.update(probing=probing, margin=margin)
    return best_rates({key: value for key, value in keys.items() if value is not None})
