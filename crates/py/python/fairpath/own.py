"""Controllers and schedulers of one's own, for trying: each event calls Python, which costs microseconds.

    class Aimd(fp.Controller):
        def __init__(self):
            self.cwnd = {}

        def on_open(self, path):
            self.cwnd[path.id] = 10 * path.max_datagram_bytes

        def on_ack(self, path, ack):
            self.cwnd[path.id] += path.max_datagram_bytes * ack.bytes / self.cwnd[path.id]

        def on_loss(self, path, loss):
            self.cwnd[path.id] /= 2

        def window(self, path):
            return self.cwnd[path.id]

    scenario.run(controllers={"download": Aimd})
"""

from collections.abc import Mapping, Sequence

from ._fairpath import Ack, Connection, Loss, Path

__all__ = ["Controller", "Scheduler"]


class Controller:
    """The congestion control of one connection over all its paths. An exception in it ends the run.

    `paths` has all open paths by their numbers. Paths, acknowledgements and losses can only be read.
    """

    paths: Mapping[int, Path]

    def on_open(self, path: Path) -> None:
        """A path was opened."""

    def on_close(self, path: Path) -> None:
        """A path is gone."""

    def on_sent(self, path: Path, bytes: int, now_ns: int) -> None:
        """A packet left. Called only where a class has a method of its own."""

    def on_ack(self, path: Path, ack: Ack) -> None:
        """A packet was acknowledged."""

    def on_loss(self, path: Path, loss: Loss) -> None:
        """Packets were lost, all at one moment, or came marked."""

    def window(self, path: Path) -> float:
        """How much may be in flight on the path, in bytes; less than two packets are two.

        It is asked of every path after each acknowledgement and each loss.
        """
        raise NotImplementedError(f"{type(self).__name__} has no method `window`")

    def pacing_rate(self, path: Path) -> float | None:
        """How fast the path may send, in bit/s; `None`: as its window allows."""
        return None


class Scheduler:
    """Chooses the path of each packet of one connection. An exception in it ends the run."""

    def pick(self, connection: Connection, paths: Sequence[Path]) -> Path | int | None:
        """The path for the next packet, of those that work; at least one of them has room.

        One without room: nothing is sent until it has some. `None`: nothing is sent until an acknowledgement comes.
        It may be asked several times for one packet.
        """
        raise NotImplementedError(f"{type(self).__name__} has no method `pick`")

    def on_sent(self, path: Path, bytes: int) -> None:
        """A packet left. Called only where a class has a method of its own."""

    def on_ack(self, path: Path, bytes: int) -> None:
        """So much was acknowledged. Called only where a class has a method of its own."""

    def on_loss(self, path: Path, bytes: int) -> None:
        """A packet was lost."""
