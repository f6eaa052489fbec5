"""Where window rules settle in the fluid model, without a run."""

from collections.abc import Mapping, Sequence
from typing import Any

from ._fairpath import settle

__all__ = ["fixed_point"]


def fixed_point(
    links: Sequence[Mapping[str, Any]],
    users: Sequence[Mapping[str, Any]],
    *,
    packet: str = "1500B",
    window_least: float = 0.0,
) -> dict[str, Any]:
    """The equilibrium of a network of users over links.

    links: each a dictionary with `rate` (such as "10Mbit/s") and, if it is to be named, `name`. A link loses what
        keeps its load at 1; with `overflow=True` what does not fit, with `loss` that share at any load, with
        `loss_at_capacity` and `exponent` that share times the load to the power of the exponent.
    users: each a dictionary with `congestion` (reno, cubic, lia, olia, balia, coupled, coupled_cubic, ewtcp,
        epsilon), `routes`, and `count`, how many are alike. A route is a dictionary with `links`, by name or by
        place from 0, and `rtt` (such as "100ms"), with the queues as they are in equilibrium. `epsilon` and
        `increase` are parameters of the rules of those names.
    packet: the size of all packets.
    window_least: no window falls below so many packets.

    Returns `users` (each with `rate_bps` and its `routes`: `rate_bps`, `window_packets`, `loss`), `links` (each with
    `rate_bps` and `loss`) and `residual`, the imbalance that is left.

    Raises `DataError` where that is no network, or no equilibrium was found.
    """
    whole = {"links": list(links), "users": list(users), "packet": packet, "window_least": float(window_least)}
    return settle(whole)
