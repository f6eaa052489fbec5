"""Round-trip times, detectors, theory and rates, beside what the program says."""

import gzip
import json
import os
import subprocess
from pathlib import Path

import numpy as np
import pytest

import fairpath as fp

SCENARIOS = Path(os.environ["FAIRPATH_SCENARIOS"])


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    """Two paths over one bottleneck, beside somebody who comes and goes."""
    ends = {"from": "a", "to": "b"}
    scenario = fp.Scenario(
        duration="25s",
        sample_every="50ms",
        links=[
            {"name": "line", "rate": "20Mbit/s", "delay": "10ms", "queue": "100ms", **ends},
            {"name": "other", "rate": "20Mbit/s", "delay": "15ms", "queue": "100ms", **ends},
        ],
        flows=[
            {"name": "both", "congestion": "reno", "via": [["line"], ["other"]], **ends},
            {"name": "more", "congestion": "cubic", "via": [["line"]], **ends},
        ],
    )
    folder = tmp_path_factory.mktemp("run")
    scenario.run(seed=1).save(folder)
    return folder


def by_program(*arguments):
    said = subprocess.run([os.environ["FAIRPATH"], "detect", *arguments, "--json"], check=True, capture_output=True)
    return json.loads(said.stdout)


def without_kind(summary):
    for one in summary["series"]:
        del one["format"]
    return summary


def csv(path, series, pack=False):
    lines = ["time_s,rtt_ms"] + [f"{t / 1e9:.9f},{d / 1e6:.6f}" for t, d in zip(*series, strict=True)]
    text = "\n".join(lines).encode() + b"\n"
    path.write_bytes(gzip.compress(text) if pack else text)
    return path


@pytest.mark.parametrize("options", [{}, {"detector": "trendline", "hold_s": 1.5}])
def test_a_verdict_is_what_the_program_says(run, options):
    file = run / "paths.ndjson"
    series = fp.read_rtt(file)
    assert set(series) == {f"{file}:both/path0", f"{file}:both/path1", f"{file}:more"} or len(series) == 3
    found = fp.detect(series, **options)
    arguments = ["--detector", options.get("detector", "concordance"), "--hold", f"{options.get('hold_s', 0)}s"]
    assert without_kind(found.summary) == without_kind(by_program(file, *arguments))
    assert sum(found.groups, []) == sum(found.summary["groups"], [])
    assert "bottleneck" in repr(found) and found.plot().svg.startswith("<svg") and "<svg" in found._repr_html_()


def test_arrays_frames_and_files_say_the_same(run, tmp_path):
    series = fp.read_rtt(run / "paths.ndjson")
    one, two = [(frame["time_ns"], frame["rtt_ns"]) for frame in list(series.values())[:2]]
    files = [csv(tmp_path / "one.csv", one), csv(tmp_path / "two.csv.gz", two, pack=True)]
    read = fp.read_rtt(files[0]) | fp.read_rtt(files[1])
    assert list(read) == [str(file) for file in files]
    assert (read[str(files[1])]["rtt_ns"] == two[1]).all()
    expected = without_kind(by_program(*files))
    names = [str(file) for file in files]
    arrays = fp.detect({name: (t / 1e9, d / 1e9) for name, (t, d) in zip(names, (one, two), strict=True)})
    backwards = fp.detect({name: (t[::-1] / 1e9, d[::-1] / 1e9) for name, (t, d) in zip(names, (one, two), strict=True)})
    for found in (fp.detect(read), arrays):
        assert without_kind(found.summary) == expected
    assert backwards.groups == arrays.groups


def test_a_file_of_no_known_kind_is_an_error_and_bad_lines_are_warnings(tmp_path):
    (tmp_path / "bytes").write_bytes(bytes(range(100)))
    with pytest.raises(fp.DataError, match="no known kind"):
        fp.read_rtt(tmp_path / "bytes")
    with pytest.raises(OSError, match="missing"):
        fp.read_rtt(tmp_path / "missing")
    (tmp_path / "empty").write_bytes(b"")
    with pytest.raises(fp.DataError, match="empty"):
        fp.read_rtt(tmp_path / "empty")
    (tmp_path / "bad.csv").write_text("time_s,rtt_ms\n1,20\n2,x\n3,21\n")
    with pytest.warns(UserWarning, match="line 3"):
        assert len(fp.read_rtt(tmp_path / "bad.csv")[str(tmp_path / "bad.csv")]) == 2


T = np.arange(100) / 10
D = np.full(100, 0.02)


@pytest.mark.parametrize(
    ("series", "says"),
    [
        ({}, "no series"),
        ({"wifi": (T, D)}, "only series"),
        ({"wifi": (T, D), "lte": (T, D[:50])}, "lte: 100 times and 50 delays"),
        ({"wifi": (T, D), "lte": (T, D, D)}, "pair"),
        ({"wifi": (T, D), "lte": (T.reshape(10, 10), D)}, "shape"),
        ({"wifi": (T, D), "lte": ([], [])}, "lte: there is no round-trip time"),
        ({"wifi": (T, D), "lte": (T, np.where(T == 5, np.nan, D))}, "lte: delays: number 50 is nan"),
        ({"wifi": (T, D), "lte": (T, -D)}, "below 0"),
        ({"wifi": (T, D), "lte": (T * 1e12, D)}, "unit"),
        ({"wifi": (T, D), "lte": (["a"], ["b"])}, "numbers"),
        ({"wifi": (T, D), "lte": (T + 1000, D)}, "same time"),
        ({f"path {at}": (T, D) for at in range(201)}, "201"),
    ],
)
def test_wrong_numbers_are_one_error_that_names_them(series, says):
    with pytest.raises(fp.DataError, match=says) as raised:
        fp.detect(series)
    assert isinstance(raised.value, ValueError)


def test_an_unknown_detector_is_told_with_those_there_are():
    with pytest.raises(fp.DataError, match="trendline"):
        fp.detect({"wifi": (T, D), "lte": (T, D)}, detector="guess")


def test_the_fluid_model_has_the_published_rates():
    """Two equal bottlenecks: half a TCP on each, 10 / 5.5 / 2 Mbit/s."""
    links = [{"name": "x", "rate": "10Mbit/s"}, {"name": "y", "rate": "10Mbit/s"}]
    route = [{"links": [name], "rtt": "100ms"} for name in ("x", "y")]
    users = [
        {"congestion": "lia", "routes": route},
        {"congestion": "reno", "count": 5, "routes": route[:1]},
        {"congestion": "reno", "count": 5, "routes": [{"links": [1], "rtt": "100ms"}]},
    ]
    found = fp.theory.fixed_point(links, users)
    assert [round(route["rate_bps"] / 1e4) for route in found["users"][0]["routes"]] == [91, 91]
    assert abs(found["links"][0]["rate_bps"] - 10e6) < 1e4
    for change, says in [
        ({"congestion": "bbr"}, "users.0..congestion"),
        ({"routes": [{"links": ["z"], "rtt": "1ms"}]}, "'?\"?z"),
        ({"routes": [{"links": [7], "rtt": "1ms"}]}, "link 7"),
        ({"routes": [{"links": [0], "rtt": "0ms"}]}, "zero"),
        ({"routes": [{"links": [0], "rtt": 0.1}]}, "string"),
        ({"weight": 2}, "weight"),
        ({"epsilon": float("nan")}, "nan|NaN"),
    ]:
        with pytest.raises(fp.Error, match=says):
            fp.theory.fixed_point(links, [users[0] | change])


def test_the_best_rates_are_those_of_the_example():
    """Three paths with exponential round-trip times, a deadline of 300 ms: the first carries nearly all."""
    paths = [{"loss": loss, "rtt": rtt} for loss, rtt in ((0.1, "20ms"), (0.02, "100ms"), (0.01, "300ms"))]
    found = fp.rate.optimum(paths, "300ms")
    first, second, third = found["rates_per_second"]
    assert first > 190 and second < 16 and third < 16
    apart = fp.rate.optimum(paths, "300ms", groups=[[0], [1], [2]])
    assert apart["goodput_per_second"] > found["goodput_per_second"]
    for change, says in [
        ({"paths": []}, "at least one"),
        ({"paths": [{"loss": 1.5, "rtt": "20ms"}]}, r"paths\[0\].loss = 1.5"),
        ({"paths": [{"loss": 0.0, "rtt": "20ms"}]}, "path"),
        ({"deadline": "soon"}, "deadline"),
        ({"bound": "hope"}, "cantelli"),
        ({"groups": [[0, 1]]}, "groups"),
        ({"margin": -1.0}, "margin"),
    ]:
        with pytest.raises(fp.DataError, match=says):
            fp.rate.optimum(**({"paths": paths, "deadline": "300ms"} | change))
