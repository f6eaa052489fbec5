"""Sweeps and experiments over the machines of a Ray cluster: `scenario.sweep(…, on="ray")`. `pip install fairpath[ray]`.

Where `ray.init` was not called, it is called here: it joins the cluster that `RAY_ADDRESS` names, or makes one of
this machine. The package must be on all machines, in the same version, and files that the scenario names must be
there under the same path.
"""

import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import ray

from ._fairpath import Cut, SweepPlan, Table

__all__ = ["run_cuts", "sweep"]

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
    part = _remote(_part)
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


def run_cuts(cuts: Sequence[Cut]) -> Iterator[tuple[int, dict[str, bytes]]]:
    """The files of the reports of experiments, each with its place, as they come. A task has cells of one of them."""
    _begin()
    running = [_Running(at, cut) for at, cut in enumerate(cuts)]
    waiting: dict[ray.ObjectRef, _Running] = {}
    try:
        while running:
            free = _window() - len(waiting)
            for one in running:
                while free > 0 and (task := one.begin()) is not None:
                    waiting[task] = one
                    free -= 1
            for task in ray.wait(list(waiting), num_returns=1)[0]:
                one = waiting.pop(task)
                files = one.take(ray.get(task))
                if files is not None:
                    running.remove(one)
                    yield one.at, files
    except BaseException:
        for task in waiting:
            ray.cancel(task, force=True)
        raise


class _Running:
    """An experiment under way: the sweeps that are done, and how far the next one is."""

    def __init__(self, at: int, cut: Cut):
        self.at, self.cut = at, cut
        self.done: list[list[bytes]] = []
        self.shared = ray.put(self.done)
        self.stepping = False
        self.results: list[bytes | None] | None = None
        self.first, self.missing, self.size = 0, 0, 1
        self.overhead = 0.0

    def begin(self) -> "ray.ObjectRef | None":
        """The next task of it; None where nothing can be begun before others have come back."""
        if self.results is None:
            if self.stepping:
                return None
            self.stepping = True
            return _remote(_step).remote(self.cut, self.shared)
        count = min(self.size, len(self.results) - self.first)
        if count == 0:
            return None
        self.first += count
        return _remote(_cells).remote(self.cut, self.shared, self.first - count, count)

    def take(self, result: tuple[Any, ...]) -> dict[str, bytes] | None:
        """Takes what a task has given; the files of the report, where it is over."""
        if self.stepping:
            cells, files, self.overhead = result
            self.stepping = False
            if files is not None:
                return files
            self.results, self.first, self.missing, self.size = [None] * cells, 0, cells, 1
        else:
            first, cells, took = result
            self.results[first : first + len(cells)] = cells
            self.missing -= len(cells)
            # To come to the sweep again takes each task as long as it took this one, and shall be a small part of it.
            each = max((took - self.overhead) / len(cells), 1e-6)
            fits = max(1, int(max(TASK_SECONDS, 4 * self.overhead) / each))
            self.size = min(fits, max(1, (len(self.results) - self.first) // _window()))
        if self.missing == 0:
            self.done.append(self.results)
            self.shared, self.results = ray.put(self.done), None
        return None


def _step(cut: Cut, done: list[list[bytes]]) -> tuple[int, dict[str, bytes] | None, float]:
    begun = time.monotonic()
    with tempfile.TemporaryDirectory() as folder:
        cells = cut.step(done, folder)
        took = time.monotonic() - begun
        if cells is not None:
            return cells, None, took
        files = [path for path in Path(folder, cut.name).rglob("*") if path.is_file()]
        return 0, {str(path.relative_to(folder)): path.read_bytes() for path in files}, took


def _cells(cut: Cut, done: list[list[bytes]], first: int, count: int) -> tuple[int, list[bytes], float]:
    begun = time.monotonic()
    return first, cut.cells(done, first, count), time.monotonic() - begun


def _remote(call: Callable[..., Any]) -> Any:
    return ray.remote(num_cpus=1, max_retries=RETRIES)(call)


def _part(plan: SweepPlan, first: int, count: int) -> tuple[bytes, float]:
    begun = time.monotonic()
    result = plan.part(first, count)
    return result, time.monotonic() - begun


def _begin() -> None:
    if not ray.is_initialized():
        ray.init(log_to_driver=False)


def _window() -> int:
    return WINDOW * max(1, int(ray.cluster_resources().get("CPU", 1)))
