"""The experiments of the papers, over threads of this machine or the machines of a Ray cluster.

    python -m fairpath.lab run olia --quick
    python -m fairpath.lab run all --on ray --out lab-results

An experiment is cut into cells, each a point of a sweep with a seed, which may run anywhere and in any order:

    cut, done = Cut("daimd/table2", quick=True), []
    while (cells := cut.step(done, "lab-results")) is not None:
        done.append([cut.cells(done, cell, 1)[0] for cell in range(cells)])
"""

import argparse
import sys
import tempfile
from pathlib import Path

from ._fairpath import Cut, experiments, keep_reports, run_experiment

__all__ = ["Cut", "main", "run"]


def run(name: str, out: str | Path, *, quick: bool = False, seeds: int | None = None, on: str = "threads") -> Path:
    """Runs an experiment, all of a paper, or `all`; returns the page over the reports, which are in `out`.

    on: `threads`, or `ray`, with some cells of an experiment for each task.
    """
    names = experiments(name)
    out = Path(out)
    keep_reports(str(out))
    if on == "ray":
        from .ray import run_cuts

        done = run_cuts([Cut(each, quick, seeds) for each in names])
    elif on == "threads":
        done = ((at, _files(each, quick, seeds)) for at, each in enumerate(names))
    else:
        raise ValueError(f"on = {on!r}: there are threads and ray")
    for at, files in done:
        for path, content in files.items():
            (out / path).parent.mkdir(parents=True, exist_ok=True)
            (out / path).write_bytes(content)
        print(names[at], flush=True)
    return Path(keep_reports(str(out)))


def _files(name: str, quick: bool, seeds: int | None) -> dict[str, bytes]:
    """The files of the report of an experiment."""
    with tempfile.TemporaryDirectory() as folder:
        run_experiment(name, folder, quick, seeds, 0)
        files = [path for path in Path(folder, name).rglob("*") if path.is_file()]
        return {str(path.relative_to(folder)): path.read_bytes() for path in files}


def main() -> None:
    """The command."""
    arguments = argparse.ArgumentParser(prog="python -m fairpath.lab", description=__doc__.splitlines()[0])
    commands = arguments.add_subparsers(dest="command", required=True)
    given = commands.add_parser("run", help="run an experiment, all of a paper, or all")
    given.add_argument("name")
    given.add_argument("--quick", action="store_true", help="the short form, which takes seconds")
    given.add_argument("--seeds", type=int, help="how many seeds, instead of as many as is meant")
    given.add_argument("--on", choices=["threads", "ray"], default="threads")
    given.add_argument("--out", type=Path, default=Path("lab-results"))
    commands.add_parser("list", help="name the experiments")
    chosen = arguments.parse_args()
    try:
        if chosen.command == "list":
            print("\n".join(experiments("all")))
        else:
            page = run(chosen.name, chosen.out, quick=chosen.quick, seeds=chosen.seeds, on=chosen.on)
            print(f"Page: {page}")
    except ValueError as error:
        sys.exit(f"fairpath.lab: {error}")


if __name__ == "__main__":
    main()
