"""A sweep over a cluster of two nodes, of which one is killed. Skipped where Ray is not installed."""

import threading
import time

import pytest

ray = pytest.importorskip("ray")

import fairpath as fp

ENDS = {"from": "a", "to": "b"}
SCENARIO = fp.Scenario(
    duration="20s",
    warm_up="1s",
    links=[{"name": name, "rate": "20Mbit/s", "delay": "10ms", **ENDS} for name in ("x", "y")],
    flows=[
        {"name": "mine", "congestion": "olia", "via": [["x"], ["y"]], **ENDS},
        {"name": "other", "congestion": "cubic", "via": [["x"]], "start_jitter": "1s", **ENDS},
    ],
)
SWEPT = {"link.x.rate": ["10Mbit/s", "20Mbit/s"]}


@pytest.fixture
def cluster():
    from ray.cluster_utils import Cluster

    cluster = Cluster(initialize_head=True, head_node_args={"num_cpus": 1, "include_dashboard": False})
    other = cluster.add_node(num_cpus=1)
    ray.init(address=cluster.address, log_to_driver=False)
    yield cluster, other
    ray.shutdown()
    cluster.shutdown()


def test_a_node_that_is_killed_loses_nothing_and_doubles_nothing(cluster):
    local = SCENARIO.sweep(SWEPT, seeds=12, progress=False)
    cluster, other = cluster
    assert ray.cluster_resources()["CPU"] == 2
    seen, killed = [], threading.Event()

    def progress(done, of):
        seen.append((done, of))
        if done >= 4 and not killed.is_set():
            killed.set()
            cluster.remove_node(other, allow_graceful=False)

    begun = time.monotonic()
    table = SCENARIO.sweep(SWEPT, seeds=12, on="ray", progress=progress)
    print(f"{len(seen)} tasks in {time.monotonic() - begun:.1f} s")
    assert killed.is_set() and seen[-1] == (24, 24)
    # The cluster notices only after some heartbeats that a node has gone.
    gone_by = time.monotonic() + 60
    while [node["Alive"] for node in ray.nodes()].count(True) > 1:
        assert time.monotonic() < gone_by
        time.sleep(0.1)
    assert table.to_csv() == local.to_csv() and table.summary == local.summary


def test_what_cannot_be_meant_is_told_before_anything_runs():
    with pytest.raises(fp.ScenarioError, match="threads"):
        SCENARIO.sweep(seeds=2, on="ray", threads=2)


def test_an_experiment_over_a_cluster_leaves_the_same_files(tmp_path):
    import fairpath.lab

    ray.init(num_cpus=2, include_dashboard=False, log_to_driver=False)
    try:
        fairpath.lab.run("daimd/table2", tmp_path / "ray", quick=True, on="ray")
    finally:
        ray.shutdown()
    fairpath.lab.run("daimd/table2", tmp_path / "local", quick=True)
    files = sorted(path.relative_to(tmp_path / "ray") for path in (tmp_path / "ray").rglob("*") if path.is_file())
    assert len(files) > 2
    for file in files:
        assert (tmp_path / "ray" / file).read_bytes() == (tmp_path / "local" / file).read_bytes(), file
