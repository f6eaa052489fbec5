"""The package as a user sees it. `FAIRPATH` names the program, whose results must be the same to the byte."""

import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import nanoarrow
import numpy as np
import pytest

import fairpath as fp

EXAMPLE = Path(os.environ["FAIRPATH_SCENARIOS"]) / "two_separate_links.toml"


@pytest.fixture
def short():
    return fp.Scenario.from_toml(EXAMPLE).replace({"duration": "3s", "warm_up": "1s"})


def test_a_run_is_what_the_program_writes(short, tmp_path):
    file = tmp_path / "short.toml"
    file.write_text(short.to_toml())
    by_program = tmp_path / "program"
    subprocess.run(
        [os.environ["FAIRPATH"], "sim", file, "--seed", "7", "--out", by_program], check=True, stdout=subprocess.DEVNULL
    )
    fp.Scenario.from_toml(str(file)).run(seed=7).save(tmp_path / "python")
    names = sorted(path.name for path in by_program.iterdir())
    assert names == ["links.ndjson", "links.parquet", "paths.ndjson", "paths.parquet", "picture.svg", "summary.json"]
    for name in names:
        assert (by_program / name).read_bytes() == (tmp_path / "python" / name).read_bytes(), name


def test_a_sweep_is_what_the_program_writes(short, tmp_path):
    table = short.sweep({"link.wifi.rate": ["10Mbit/s", "20Mbit/s"]}, seeds=2)
    file = tmp_path / "swept.toml"
    swept = short.replace({"link.wifi.rate": "${rate}", "sweep.rate": ["10Mbit/s", "20Mbit/s"]})
    file.write_text(swept.to_toml())
    subprocess.run(
        [os.environ["FAIRPATH"], "sim", file, "--seeds", "2", "--out", tmp_path / "out"],
        check=True,
        stdout=subprocess.DEVNULL,
    )
    assert table.to_csv().replace("link_wifi_rate", "rate") == (tmp_path / "out" / "table.csv").read_text()
    assert table.summary["points"][1]["values"] == {"link_wifi_rate": "20Mbit/s"}


def test_time_series_are_arrays_and_arrow(short):
    result = short.run()
    paths = result.paths
    assert len(paths) == len(paths["time_ns"]) > 0
    assert set(paths["path"]) == {0, 1} and set(paths["flow"]) == {"download"}
    known = paths["srtt_ns"][~np.isnan(paths["srtt_ns"])]
    assert known.min() >= 20e6
    table = nanoarrow.Array(result.links)
    assert len(table) == len(result.links)
    assert [field.name for field in table.schema.fields] == result.links.columns
    with pytest.raises(KeyError, match="srtt_ns"):
        paths["srtt"]
    # 30 and 20 Mbit/s, of which headers take a part, and what waited in queues before.
    assert 35e6 < result.goodput_bps("download") < 55e6
    assert result.summary["flows"][0]["goodput_bps"] == result.goodput_bps("download")


def test_the_rows_of_a_sweep_are_arrow_too(short):
    table = short.sweep({"flow.download.paths": [1, 2]}, seeds=2)
    rows = table.rows
    assert list(rows["flow_download_paths"][:1]) == [1.0]
    whole = (rows["kind"] == "flows") & (rows["quantity"] == "goodput_mbps")
    one, two = rows["mean"][whole]
    assert two > 1.3 * one
    assert len(nanoarrow.Array(table)) == len(rows) == len(table)
    assert isinstance(table, fp.Frame) and (table["mean"] == rows["mean"]).all()


def test_keywords_make_the_same_as_a_file():
    ends = {"from": "a", "to": "b"}
    made = fp.Scenario(
        duration="2s",
        links=[{"name": "line", "rate": "10Mbit/s", "delay": "10ms", **ends}],
        flows=[{"name": "tcp", "congestion": "cubic", **ends}],
    )
    again = fp.Scenario.from_toml(made.to_toml())
    assert made.run(seed=3).summary == again.run(seed=3).summary
    assert made.run(seed=3).summary == made.run(seed=3, threads=2).summary


@pytest.mark.parametrize(
    ("do", "says"),
    [
        (lambda s: s.replace("link.wifi.rate", "fast"), "rate"),
        (lambda s: s.replace("link.fibre.rate", "1Mbit/s"), "wifi, lte"),
        (lambda s: s.replace("link.wifi.speed", "1Mbit/s"), "speed"),
        (lambda s: s.replace("link.wifi.rate", float("nan")), "link.wifi.rate"),
        (lambda s: s.replace("", "1s"), "empty key"),
        (lambda s: s.sweep({"link.wifi.rate": []}), "empty"),
        (lambda s: s.sweep({"link.wifi.rate": "10Mbit/s"}), "list"),
        (lambda s: s.sweep(seeds=0), "seeds = 0"),
        (lambda s: s.sweep(seeds=10**9), "100000"),
        (lambda s: s.run(threads=0), "threads"),
        (lambda s: fp.Scenario(duration="2s", links=[], link=[]), "links"),
        (lambda s: fp.Scenario.from_toml("duration = 'never'\n"), "duration"),
    ],
)
def test_what_cannot_be_meant_is_one_error_that_names_it(short, do, says):
    with pytest.raises(fp.ScenarioError, match=says) as raised:
        do(short)
    assert isinstance(raised.value, ValueError) and isinstance(raised.value, fp.Error)


def test_other_wrong_values_are_the_errors_of_python(short, tmp_path):
    with pytest.raises(OSError, match="missing.toml"):
        fp.Scenario.from_toml(tmp_path / "missing.toml")
    with pytest.raises(TypeError, match="link.wifi.rate"):
        short.replace("link.wifi.rate", object())
    with pytest.raises(OverflowError):
        short.run(seed=-1)
    with pytest.raises(KeyError, match="download"):
        short.run().goodput_bps("upload")


def test_progress_is_told_and_an_exception_in_it_ends_the_sweep(short):
    told = []
    short.sweep(seeds=4, progress=lambda done, of: told.append((done, of)))
    assert told[-1][1] == 4 and told == sorted(told)

    def fails(done, of):
        raise RuntimeError("enough")

    with pytest.raises(RuntimeError, match="enough"):
        short.sweep(seeds=40, progress=fails)


def interrupt_after(seconds):
    def interrupt():
        time.sleep(seconds)
        os.kill(os.getpid(), signal.SIGINT)

    threading.Thread(target=interrupt).start()


@pytest.fixture
def ctrl_c():
    # A process that a shell started in the background ignores it.
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


def test_ctrl_c_ends_a_run_and_a_sweep(short, ctrl_c):
    long = short.replace("duration", "3000s")
    for act in (long.run, lambda: short.sweep(seeds=50_000, progress=False)):
        interrupt_after(0.3)
        begun = time.monotonic()
        with pytest.raises(KeyboardInterrupt):
            act()
        # A part of a run is a two-hundredth of it; a machine may be busy.
        assert time.monotonic() - begun < 30


def test_other_threads_of_python_go_on_during_a_run(short):
    count, stop = [0], threading.Event()

    def work():
        while not stop.is_set():
            count[0] += 1
            time.sleep(0.001)

    thread = threading.Thread(target=work)
    thread.start()
    short.replace("duration", "20s").run()
    stop.set()
    thread.join()
    assert count[0] > 5


def test_pictures_are_shown_and_written(short, tmp_path):
    result = short.run()
    picture = result.plot(tmp_path / "picture.svg")
    assert (tmp_path / "picture.svg").read_text() == picture.svg == picture._repr_svg_()
    assert picture.svg.startswith("<svg") and "<svg" in result._repr_html_()
    assert "download" in str(result) and "<pre>" in result._repr_html_()
    with pytest.raises(OSError, match="nowhere"):
        result.plot(tmp_path / "nowhere" / "picture.svg")


def test_the_stubs_name_what_there_is():
    stubs = (Path(fp.__file__).parent / "_fairpath.pyi").read_text()
    for kind in (fp.Scenario, fp.Result, fp.Table, fp.Frame, fp.Picture, fp.Shared):
        assert f"class {kind.__name__}" in stubs
        for name in vars(kind):
            if not name.startswith("_"):
                assert f"def {name}(" in stubs, f"{kind.__name__}.{name}"


def test_the_package_is_imported_quickly():
    code = "import time, numpy; t = time.monotonic(); import fairpath; print(time.monotonic() - t)"
    took = [float(subprocess.check_output([sys.executable, "-c", code], text=True)) for _ in range(3)]
    assert min(took) < 0.2, took


def test_parts_of_a_sweep_make_the_same_table_wherever_they_ran(short):
    import pickle

    swept = {"link.wifi.rate": ["10Mbit/s", "20Mbit/s"]}
    plan = short.plan(swept, seeds=3)
    other = pickle.loads(pickle.dumps(plan))
    assert len(other) == 6
    parts = [other.part(4, 2), plan.part(0, 1), other.part(1, 3)]
    whole = short.sweep(swept, seeds=3)
    assert plan.join(parts).to_csv() == whole.to_csv() and plan.join(parts).summary == whole.summary
    for wrong in (parts[:2], [*parts, parts[0]], []):
        with pytest.raises(fp.ScenarioError, match="run"):
            plan.join(wrong)
    with pytest.raises(fp.ScenarioError, match="from 5 to 7"):
        plan.part(5, 2)
    with pytest.raises(fp.Error):
        plan.join([b"nothing"])
    with pytest.raises(fp.ScenarioError, match="on = \"clouds\""):
        short.sweep(seeds=2, on="clouds")


def test_the_experiments_of_the_papers_are_a_module(tmp_path):
    run = [sys.executable, "-m", "fairpath.lab"]
    said = subprocess.run([*run, "list"], check=True, capture_output=True, text=True).stdout.split()
    assert "daimd/table2" in said
    wrong = subprocess.run([*run, "run", "nothing"], capture_output=True, text=True)
    assert wrong.returncode == 1 and wrong.stderr.startswith("fairpath.lab: there is no experiment 'nothing'")


def test_the_cells_of_an_experiment_run_one_by_one_give_the_files_that_threads_give(tmp_path):
    import pickle

    from fairpath.lab import Cut, run

    name = "olia/symmetric"
    cut, done = Cut(name, quick=True, seeds=1), []
    while (cells := cut.step(done, tmp_path / "cells")) is not None:
        other = pickle.loads(pickle.dumps(cut))
        backwards = [other.cells(done, cell, 1)[0] for cell in reversed(range(cells))]
        done.append(backwards[::-1])
    assert len(done) > 1 and len(done[0]) > 1
    run(name, tmp_path / "threads", quick=True, seeds=1)
    files = sorted(path for path in (tmp_path / "threads" / name).rglob("*") if path.is_file())
    assert len(files) > 2
    for file in files:
        assert file.read_bytes() == (tmp_path / "cells" / file.relative_to(tmp_path / "threads")).read_bytes(), file
    with pytest.raises(fp.Error, match="there are none"):
        cut.cells(done[:1], 0, 1000)
    with pytest.raises(fp.Error, match="has 0"):
        cut.step([[]])
    with pytest.raises(fp.DataError, match="one is cut, such as olia/"):
        Cut("olia")
    with pytest.raises(fp.DataError, match="seeds = 0"):
        Cut(name, seeds=0)


def test_the_lines_of_the_readme_run(tmp_path, monkeypatch, capsys):
    readme = (EXAMPLE.parents[1] / "crates/py/README.md").read_text()
    code = readme.split("```python\n")[1].split("```")[0]
    assert len(code.strip().splitlines()) <= 12
    monkeypatch.chdir(tmp_path)
    exec(code, {})
    assert "wifi" in capsys.readouterr().out and (tmp_path / "sweep.svg").exists()
