"""Measures the Python package, and writes JSON.

    python scripts/python-figures.py all --program target/release/fairpath --out figures.json

Each figure has the load of the machine when it was measured. What is compared runs in turns. Where others use the
machine, too, processor time says what wall time does not: it is measured of this process and of those that it began.
"""

import argparse
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import fairpath as fp

ENDS = {"from": "a", "to": "b"}


def timed(call):
    """Wall time and processor time of a call, in seconds."""
    before = time.perf_counter(), _processor()
    call()
    return time.perf_counter() - before[0], _processor() - before[1]


def _processor():
    """Processor time of this process and of those that it began and that have ended."""
    children = resource.getrusage(resource.RUSAGE_CHILDREN)
    return time.process_time() + children.ru_utime + children.ru_stime


def in_turns(calls, rounds):
    """The times of each, in turns, so that a load that comes and goes meets all of them."""
    took = {name: {"wall": [], "processor": []} for name in calls}
    for _ in range(rounds):
        for name, call in calls.items():
            wall, processor = timed(call)
            took[name]["wall"].append(wall)
            took[name]["processor"].append(processor)
    return took


def ratio(took, one, other):
    """How many times as long one takes as the other, by the least of each."""
    return {kind: min(took[one][kind]) / min(took[other][kind]) for kind in ("wall", "processor")}


def dumbbell(flows, seconds, rate="100Mbit/s"):
    return fp.Scenario(
        duration=f"{seconds}s",
        warm_up="1s",
        links=[{"name": "line", "rate": rate, "delay": "10ms", "queue": "50ms", **ENDS}],
        flows=[{"name": "f", "count": flows, "congestion": "reno", "start_jitter": "1s", **ENDS}],
    )


def run_cost(given):
    """`run` beside the program: 60 s of 30 flows, with all files."""
    scenario = dumbbell(30, 60)
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder, "dumbbell.toml")
        file.write_text(scenario.to_toml())
        program = [given.program, "sim", file, "--out", Path(folder, "program")]
        took = in_turns(
            {
                "program": lambda: subprocess.run(program, check=True, stdout=subprocess.DEVNULL),
                "python": lambda: scenario.run().save(Path(folder, "python")),
            },
            given.rounds,
        )
    return {**took, "python_over_program": ratio(took, "python", "program")}


def sweep(given):
    """1,000 short runs with one thread and with two."""
    scenario = dumbbell(2, 5, "10Mbit/s")
    calls = {f"threads_{n}": lambda n=n: scenario.sweep(seeds=1000, threads=n, progress=False) for n in (1, 2)}
    took = in_turns(calls, max(1, given.rounds // 2))
    found = ratio(took, "threads_1", "threads_2")
    # Two threads that cost no more than one are twice as fast where both processors are theirs.
    return {**took, "speed_up": found["wall"], "speed_up_by_processor_time": 2 * found["processor"]}


def over_ray(given):
    """Tasks of about a second over Ray and over threads, on as many processors."""
    import ray

    ray.init(num_cpus=os.cpu_count(), include_dashboard=False, log_to_driver=False)
    scenario = dumbbell(30, given.ray_seconds)
    one = timed(scenario.run)[0]
    seeds = max(8, round(30 / one))
    scenario.sweep(seeds=4, on="ray", progress=False)
    took = in_turns(
        {
            "threads": lambda: scenario.sweep(seeds=seeds, progress=False),
            "ray": lambda: scenario.sweep(seeds=seeds, on="ray", progress=False),
        },
        max(1, given.rounds // 2),
    )
    ray.shutdown()
    return {"seconds_of_a_run": one, **took, "ray_of_threads": ratio(took, "threads", "ray")["wall"]}


def memory(given):
    """How much memory a sweep takes at most, by how many runs it has; each in a process of its own."""
    most = {}
    for seeds in (100, 1000, 4000):
        script = (
            "import resource, fairpath as fp\n"
            f"fp.Scenario.from_toml({dumbbell(2, 2, '10Mbit/s').to_toml()!r}).sweep(seeds={seeds}, progress=False)\n"
            "print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)"
        )
        said = subprocess.run([sys.executable, "-c", script], check=True, capture_output=True, text=True)
        most[seeds] = int(said.stdout) * 1024
    return {"bytes_by_runs": most, "bytes_for_each_run": (most[4000] - most[100]) / 3900}


def own(given):
    """A controller in Python beside the same one by name: seconds, and microseconds for each packet."""
    links = [{"name": name, "rate": "10Mbit/s", "delay": "20ms", **ENDS} for name in "xy"]
    flow = {"name": "f", "congestion": "reno", "via": [["x"], ["y"]], **ENDS}
    scenario = fp.Scenario(duration="20s", links=links, flows=[flow])

    class Reno(fp.Controller):
        def __init__(self):
            self.cwnd, self.reduced = {}, {}

        def on_open(self, path):
            self.cwnd[path.id], self.reduced[path.id] = 10.0 * path.max_datagram_bytes, -1

        def on_ack(self, path, ack):
            if ack.window_limited and ack.sent_at_ns > self.reduced[path.id]:
                self.cwnd[path.id] += path.max_datagram_bytes * ack.bytes / self.cwnd[path.id]

        def on_loss(self, path, loss):
            if loss.sent_at_ns > self.reduced[path.id]:
                self.cwnd[path.id] /= 2
                self.reduced[path.id] = loss.now_ns

        def window(self, path):
            return self.cwnd[path.id]

    class LeastRtt(fp.Scheduler):
        def pick(self, connection, paths):
            return min((path for path in paths if path.has_room), key=lambda path: path.srtt_ns or 0)

    packets = sum(path["sent_packets"] for path in scenario.run().summary["flows"][0]["paths"])
    took = in_turns(
        {
            "by_name": scenario.run,
            "controller": lambda: scenario.run(controllers={"f": Reno}),
            "scheduler": lambda: scenario.run(schedulers={"f": LeastRtt}),
        },
        given.rounds,
    )
    least = {name: min(took[name]["processor"]) for name in took}
    more = {name: (least[name] - least["by_name"]) / packets * 1e6 for name in ("controller", "scheduler")}
    times = {name: least[name] / least["by_name"] for name in more}
    return {**took, "microseconds_for_each_packet": more, "times_as_long": times}


def steps(given):
    """Decision steps of 100 ms in a second of one processor, by the rate of each of two links."""
    import gymnasium as gym
    import numpy as np

    import fairpath.envs

    found = {}
    for mbps in (1, 2, 5, 10, 20, 50, 100):
        links = [{"name": name, "rate": f"{mbps}Mbit/s", "delay": "20ms", "queue": "100ms", **ENDS} for name in "xy"]
        flow = {"name": "agent", "via": [["x"], ["y"]], **ENDS}
        scenario = fp.Scenario(duration="1s", links=links, flows=[flow])
        rates = {}
        for policy, options in (("steered", None), ("olia", {"policy": "olia"})):
            env = gym.make("fairpath/MultipathCC-v0", scenario=scenario, seconds=200).unwrapped
            env.reset(seed=1, options=options)
            rise, still = np.full(2, 0.25), np.zeros(2)
            # Windows rise to about a bandwidth-delay product and a half.
            for _ in range(max(0, round(4 * np.log2(1.5 * mbps * 1e6 / 8 * 0.04 / 15e3)))):
                env.step(rise)
            # The fastest of some blocks: the others were disturbed.
            took, count = [], 200
            for _ in range(8):
                begun = time.process_time()
                for _ in range(count):
                    facts = env.step(still)[0]
                took.append(time.process_time() - begun)
            rates[policy] = count / min(took)
            rates[f"{policy}_mbps"] = float(facts[0] + facts[6])
        found[mbps] = rates
    return {"steps_per_second_by_mbps": found}


def ns_py(given):
    """The same dumbbell in ns.py: one link, two flows of Reno, the second one 10 ms later.

    Packets are those that the link let in, nearly as many in both. Of theirs most are not new: it sends the packet that
    is missing again with each duplicate acknowledgement, and doubles one timer for each packet that is late. So its
    goodput says nothing, and the time for each packet compares the simulators.
    """
    import simpy
    from ns.demux.fib_demux import FIBDemux
    from ns.flow.cc import TCPReno
    from ns.flow.flow import Flow
    from ns.packet.tcp_generator import TCPPacketGenerator
    from ns.packet.tcp_sink import TCPSink
    from ns.port.port import Port
    from ns.port.wire import Wire

    flows, seconds, bps, size = 2, 20, 10e6, 512
    theirs = {}

    def run_theirs():
        env = simpy.Environment()
        # Both queues have room for 50 packets with the one that is being sent.
        port = Port(env, rate=bps, qlimit=50)
        sinks = [TCPSink(env, rec_waits=False) for _ in range(flows)]
        port.out = FIBDemux(fib={number: number for number in range(flows)}, outs=sinks)
        for number, sink in enumerate(sinks):
            flow = Flow(number, f"s{number}", f"d{number}", start_time=0.01 * number, finish_time=seconds)
            sender = TCPPacketGenerator(env, flow=flow, cc=TCPReno(), element_id=flow.src)
            there, back = Wire(env, lambda: 0.01), Wire(env, lambda: 0.01)
            sender.out, there.out, sink.out, back.out = there, port, back, sender
        env.run(until=seconds)
        theirs["packets"] = port.packets_received - port.packets_dropped
        theirs["mbps"] = sum(sink.next_seq_expected for sink in sinks) * 8e-6 / seconds

    flow = {"congestion": "reno", "transport": {"packet": f"{size}B"}, **ENDS}
    scenario = fp.Scenario(
        duration=f"{seconds}s",
        links=[{"name": "line", "rate": "10Mbit/s", "delay": "10ms", "queue": "50 packets", **ENDS}],
        flows=[{"name": "f0", **flow}, {"name": "f1", "start": "10ms", **flow}],
    )
    ours = scenario.run().summary
    line = next(link for link in ours["links"] if link["name"] == "line")
    packets = {"ns_py": 0, "fairpath": line["offered_packets"] - line["dropped_packets"]}
    goodput = {"ns_py": 0.0, "fairpath": sum(flow["goodput_bps"] for flow in ours["flows"]) * 1e-6}
    times = 20
    took = in_turns({"ns_py": run_theirs, "fairpath": lambda: [scenario.run() for _ in range(times)]}, given.rounds)
    took["fairpath"] = {kind: [value / times for value in values] for kind, values in took["fairpath"].items()}
    packets["ns_py"], goodput["ns_py"] = theirs["packets"], theirs["mbps"]
    each = {name: min(took[name]["processor"]) / count for name, count in packets.items()}
    return {
        **took,
        "packets": packets,
        "goodput_mbps": goodput,
        "microseconds_for_each_packet": {name: 1e6 * value for name, value in each.items()},
        "times_faster_for_each_packet": each["ns_py"] / each["fairpath"],
        "times_faster": ratio(took, "ns_py", "fairpath")["processor"],
    }


FIGURES = {"run": run_cost, "sweep": sweep, "ray": over_ray, "memory": memory, "own": own, "steps": steps, "ns.py": ns_py}


def main():
    arguments = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    arguments.add_argument("figures", nargs="+", choices=[*FIGURES, "all"])
    arguments.add_argument("--program", type=Path, default=Path("target/release/fairpath"))
    arguments.add_argument("--rounds", type=int, default=4)
    arguments.add_argument("--ray-seconds", type=int, default=30, help="virtual seconds of a run over Ray")
    arguments.add_argument("--out", type=Path)
    given = arguments.parse_args()
    found = {"version": fp.__version__, "processors": os.cpu_count()}
    for name in FIGURES if "all" in given.figures else given.figures:
        before = os.getloadavg()[0]
        found[name] = FIGURES[name](given)
        found[name]["load_before_and_after"] = [before, os.getloadavg()[0]]
        print(json.dumps({name: found[name]}, indent=1), flush=True)
    if given.out:
        given.out.write_text(json.dumps(found, indent=1) + "\n")


if __name__ == "__main__":
    main()
