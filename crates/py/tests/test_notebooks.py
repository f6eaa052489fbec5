"""The notebooks of the documentation run from top to bottom.

The code of the first one runs here in any case. With FAIRPATH_ALL_NOTEBOOKS all of them run as notebooks, which needs
nbclient and ipykernel; with FAIRPATH_WRITE_NOTEBOOKS what comes out is kept in them.
"""

import json
import os
import sys
import time
from pathlib import Path

import pytest

FOLDER = Path(os.environ["FAIRPATH_SCENARIOS"]).parent / "docs" / "python"
NAMES = ["first_bond", "own_controller", "sweep_with_intervals", "which_share"]
WRITES = "FAIRPATH_WRITE_NOTEBOOKS" in os.environ
AS_NOTEBOOKS = WRITES or "FAIRPATH_ALL_NOTEBOOKS" in os.environ


def test_all_notebooks_are_named_here_and_are_shown_with_what_came_out():
    assert sorted(path.stem for path in FOLDER.glob("*.ipynb")) == NAMES
    for name in NAMES:
        cells = json.loads((FOLDER / f"{name}.ipynb").read_text())["cells"]
        outputs = [out for cell in cells for out in cell.get("outputs", [])]
        assert any("<svg" in "".join(out["data"].get(kind, "")) for out in outputs if "data" in out for kind in out["data"])


def test_the_code_of_the_first_notebook_runs():
    cells = json.loads((FOLDER / f"{NAMES[0]}.ipynb").read_text())["cells"]
    names = {}
    for cell in cells:
        if cell["cell_type"] == "code":
            exec("".join(cell["source"]), names)
    assert names["result"].goodput_bps("download") > names["wifi"].goodput_bps("download")


@pytest.mark.skipif(not AS_NOTEBOOKS, reason="FAIRPATH_ALL_NOTEBOOKS is not set")
@pytest.mark.parametrize("name", NAMES)
@pytest.mark.filterwarnings("ignore")
def test_a_notebook_runs_within_a_minute(name, tmp_path, monkeypatch):
    import nbclient
    import nbformat
    from jupyter_client.kernelspec import KernelSpec
    from jupyter_client.manager import AsyncKernelManager

    # The kernel is this Python, whatever kernels are installed on this machine.
    spec = KernelSpec(argv=[sys.executable, "-m", "ipykernel_launcher", "-f", "{connection_file}"], language="python")
    monkeypatch.setattr(AsyncKernelManager, "kernel_spec", spec)
    monkeypatch.setenv("IPYTHONDIR", str(tmp_path))
    book = nbformat.read(FOLDER / f"{name}.ipynb", 4)
    begun = time.monotonic()
    nbclient.NotebookClient(book, timeout=60, record_timing=False).execute()
    assert time.monotonic() - begun < 60
    if WRITES:
        book.metadata = {"kernelspec": {"name": "python3", "display_name": "Python 3", "language": "python"}}
        nbformat.write(book, FOLDER / f"{name}.ipynb")
