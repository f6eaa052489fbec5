"""Sweeps over the machines of a Ray cluster: `scenario.sweep(…, on="ray")`. `pip install fairpath[ray]`.

Where `ray.init` was not called, it is called here: it joins the cluster that `RAY_ADDRESS` names, or makes one of
this machine. The package must be on all machines, in the same version, and files that the scenario names must be
there under the same path.
"""

import time
from collections.abc import Callable, Iterator
from typing import Any

import ray

from ._fairpath import SweepPlan, Table

__all__ = ["map_on", "sweep"]

#: A task is to have so much work, so that what Ray adds to each does not count.
TASK_SECONDS = 0.5
#: So many tasks for each processor of the cluster are under way at once; more would only wait.
WINDOW = 2
#: So often a task is begun again elsewhere where its machine or its process has gone.
RETRIES = 20


def sweep(plan: SweepPlan, progress: Callable[[int, int], object] | None = None) -> Table:
    """The table of all runs of a plan, the same to the byte as over threads."""
    plan.check()
    runs = len(plan)
    _begin()
    shared = ray.put(plan)
    part = ray.remote(num_cpus=1, max_retries=RETRIES)(_part)
    parts, done, size = [], 0, 1
    first, waiting = 0, {}
    try:
        while waiting or first < runs:
            while first < runs and len(waiting) < _window():
                count = min(size, runs - first)
                waiting[part.remote(shared, first, count)] = count
                first += count
            ready, _ = ray.wait(list(waiting), num_returns=1)
            for task in ready:
                count = waiting.pop(task)
                result, took = ray.get(task)
                parts.append(result)
                done += count
                # As many runs as take long enough, by the newest of them; and at most a share, so that no machine is
                # waited for in the end.
                fits = max(1, int(TASK_SECONDS / max(took / count, 1e-6)))
                size = min(fits, max(1, (runs - first) // _window()))
                if progress is not None:
                    progress(done, runs)
    except BaseException:
        for task in waiting:
            ray.cancel(task, force=True)
        raise
    return plan.join(parts)


def map_on(call: Callable[..., Any], arguments: list[tuple[Any, ...]]) -> Iterator[tuple[int, Any]]:
    """The results of calls with these arguments, each with its place, as they come."""
    _begin()
    task = ray.remote(num_cpus=1, max_retries=RETRIES)(call)
    waiting = {task.remote(*each): at for at, each in enumerate(arguments)}
    while waiting:
        for ready in ray.wait(list(waiting), num_returns=1)[0]:
            yield waiting.pop(ready), ray.get(ready)


def _part(plan: SweepPlan, first: int, count: int) -> tuple[bytes, float]:
    begun = time.monotonic()
    result = plan.part(first, count)
    return result, time.monotonic() - begun


def _begin() -> None:
    if not ray.is_initialized():
        ray.init(log_to_driver=False)


def _window() -> int:
    return WINDOW * max(1, int(ray.cluster_resources().get("CPU", 1)))
