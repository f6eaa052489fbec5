"""Described networks in virtual time: the same engine, the same bytes as the program `fairpath`.

    import fairpath as fp

    scenario = fp.Scenario.from_toml("two_separate_links.toml")
    result = scenario.replace("link.wifi.rate", "20Mbit/s").run(seed=1)
    result.paths["srtt_ns"]          # a numpy array
    table = scenario.sweep({"link.wifi.rate": ["10Mbit/s", "20Mbit/s"]}, seeds=5)

Times are in nanoseconds where a name ends in `_ns`, rates in bits per second where it ends in `_bps`,
and amounts in bytes where it ends in `_bytes`.
"""

from . import own, rate, theory, traces
from ._fairpath import Emulation as emulate
from ._fairpath import Frame, Picture, Result, Scenario, Shared, Table, __version__
from .errors import DataError, Error, ScenarioError
from .own import Controller, Scheduler
from .traces import detect, read_rtt

__all__ = [
    "Controller",
    "DataError",
    "Error",
    "Frame",
    "Picture",
    "Result",
    "Scenario",
    "ScenarioError",
    "Scheduler",
    "Shared",
    "Table",
    "__version__",
    "detect",
    "emulate",
    "own",
    "rate",
    "read_rtt",
    "theory",
    "traces",
]
