"""The cases of `make interop`: the example of hq-interop against aioquic and picoquic, over loopback.

    interop.py PLACE OURS AIOQUIC PICOQUIC [--only WORD] [--outage SECONDS]...

PLACE is a directory for files. OURS is the example's program, AIOQUIC the script of its end, PICOQUIC the program
picoquicdemo; '-' stands for one that is not there. Each case says what was compared. The exit code is 1 where one failed.
"""

import argparse
import datetime
import os
import re
import select
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time

SMALL, LARGE, HUGE = 3_000, 10_000_000, 40_000_000
MBPS = 1_000_000 / 8


class Failed(Exception):
    pass


class Relay(threading.Thread):
    """Forwards datagrams to a server, each client address on a way of its own.

    The way of the second address carries nothing for a while. To the client, each way has 20 Mbit/s.
    """

    def __init__(self, port, server, outage):
        super().__init__(daemon=True)
        self.front = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self.front.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 20)
        self.front.bind(("127.0.0.1", port))
        self.server, self.outage = ("127.0.0.1", server), outage
        self.ways = []
        self.is_over = False

    def way_of(self, client):
        for way in self.ways:
            if way["client"] == client:
                return way
        back = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        back.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 20)
        back.connect(self.server)
        now = time.monotonic()
        way = dict(client=client, back=back, begun=now, free=now, queue=[], before=0, after=0, back_at=None)
        self.ways.append(way)
        return way

    def phase(self, way, now):
        """Whether it is before the outage of a way, in it, or after it."""
        if self.ways.index(way) != 1 or now < way["begun"] + 2:
            return "before"
        return "in" if now < way["begun"] + 2 + self.outage else "after"

    def deliver(self, way, now):
        while way["queue"] and way["queue"][0][0] <= now:
            _, data = way["queue"].pop(0)
            phase = self.phase(way, now)
            if phase == "in":
                continue
            way[phase] += len(data)
            if phase == "after" and way["after"] > 500_000 and way["back_at"] is None:
                way["back_at"] = now - (way["begun"] + 2 + self.outage)
            self.front.sendto(data, way["client"])

    def run(self):
        while not self.is_over:
            sockets = [self.front] + [way["back"] for way in self.ways]
            ready, _, _ = select.select(sockets, [], [], 0.002)
            now = time.monotonic()
            if self.front in ready:
                data, client = self.front.recvfrom(65_536)
                way = self.way_of(client)
                if self.phase(way, now) != "in":
                    way["back"].send(data)
            for way in self.ways:
                if way["back"] in ready:
                    try:
                        data = way["back"].recv(65_536)
                    except ConnectionRefusedError:
                        continue
                    # A queue of 100 ms.
                    if way["free"] < now + 0.1:
                        way["free"] = max(way["free"], now) + len(data) / (20 * MBPS)
                        way["queue"].append((way["free"], data))
                self.deliver(way, now)


class Interop:
    def __init__(self, args):
        self.place, self.ours, self.only = os.path.abspath(args.place), os.path.abspath(args.ours), args.only
        self.aioquic, self.picoquic = args.aioquic, args.picoquic
        self.port = int(os.environ.get("INTEROP_PORT", "24433"))
        self.root, self.out, self.work = (os.path.join(self.place, name) for name in ("root", "out", "work"))
        self.cert, self.key = os.path.join(self.place, "cert.pem"), os.path.join(self.place, "key.pem")
        self.counts = dict(passed=0, failed=0, skipped=0)
        self.server = None

    def say(self, words):
        print(f"interop: {words}", flush=True)

    def prepare(self):
        for folder in (self.root, self.out, self.work):
            shutil.rmtree(folder, ignore_errors=True)
            os.makedirs(folder)
        for name, size in (("small", SMALL), ("large", LARGE), ("huge", HUGE)):
            with open(os.path.join(self.root, name), "wb") as file:
                file.write(os.urandom(size))
        certify(self.cert, self.key)

    def start(self, *command):
        """Starts a server on a port of its own, and waits until it has it."""
        self.port += 1
        log = open(os.path.join(self.place, "server.log"), "w+b")
        command = [str(self.port) if word == "PORT" else word.replace(":PORT", f":{self.port}") for word in command]
        self.server = subprocess.Popen(command, stdout=log, stderr=subprocess.STDOUT, cwd=self.work)
        for _ in range(100):
            if self.server.poll() is not None:
                raise Failed(f"the server ended with {self.server.returncode}: {self.log()}")
            if is_taken(self.port):
                return self.port
            time.sleep(0.1)
        raise Failed(f"the server does not listen on port {self.port}: {self.log()}")

    def our_server(self, *switches):
        return self.start(self.ours, "server", "--listen", "127.0.0.1:PORT", "--root", self.root, *switches)

    def log(self):
        with open(os.path.join(self.place, "server.log"), errors="replace") as file:
            return file.read().strip()

    def awaited(self, pattern):
        """What the server says within a few seconds."""
        for _ in range(50):
            found = re.search(pattern, self.log())
            if found:
                return found.group(0)
            time.sleep(0.1)
        raise Failed(f"the server does not say '{pattern}', but: {self.log()}")

    def stop(self):
        if self.server:
            self.server.kill()
            self.server.wait()
            self.server = None

    def run(self, *command, fails=False, seconds=120):
        """Runs a client to its end; gives what it says."""
        try:
            done = subprocess.run(command, capture_output=True, timeout=seconds, cwd=self.work, errors="replace")
        except subprocess.TimeoutExpired as expired:
            raise Failed(f"the client goes on after {seconds} s: {expired.stdout}") from None
        said = done.stdout + done.stderr
        if (done.returncode != 0) != fails:
            raise Failed(f"the client ended with {done.returncode}: {said[-2000:]}")
        return said

    def our_client(self, case, port, names, paths=2, **options):
        binds = [word for last in range(1, paths + 1) for word in ("--bind", f"127.0.0.{last}")]
        urls = [f"https://127.0.0.1:{port}/{name}" for name in names]
        return self.run(self.ours, "client", "--case", case, *binds, "--out", self.out, *urls, **options)

    def picoquic_client(self, port, names, *switches, **options):
        files = "".join(f"/{name};" for name in names)
        command = [self.picoquic, *switches, "-a", "hq-interop", "-n", "interop", "-o", self.out]
        return self.run(*command, "127.0.0.1", str(port), files, **options)

    def picoquic_server(self, *switches):
        return self.start(self.picoquic, *switches, "-p", "PORT", "-c", self.cert, "-k", self.key, "-w", self.root)

    def same(self, names):
        """That the files came as they are."""
        for name in names:
            with open(os.path.join(self.root, name), "rb") as sent:
                expected = sent.read()
            path = os.path.join(self.out, name)
            if not os.path.exists(path):
                raise Failed(f"{name} did not come")
            with open(path, "rb") as got:
                if got.read() != expected:
                    raise Failed(f"{name} came damaged: {os.path.getsize(path)} bytes of {len(expected)}")
        total = sum(os.path.getsize(os.path.join(self.root, name)) for name in names)
        return f"{total:,} bytes of {' and '.join(names)} are the same"

    def logs_say(self, words):
        """Whether picoquic wrote this into one of its logs."""
        for name in os.listdir(self.work):
            with open(os.path.join(self.work, name), errors="replace") as file:
                if name.endswith(".qlog") and any(words in line for line in file):
                    return True
        return False

    def case(self, name, is_there, check):
        if self.only and self.only not in name:
            return
        if is_there != "-":
            self.say(f"runs: {name}")
        for folder in (self.out, self.work):
            shutil.rmtree(folder, ignore_errors=True)
            os.makedirs(folder)
        try:
            if is_there == "-":
                result, words = "skipped", "the peer is not there"
            else:
                result, words = "passed", check()
        except (Failed, OSError) as error:
            result, words = "failed", str(error)
        finally:
            self.stop()
        self.counts[result] += 1
        self.say(f"{result}: {name}: {words}")


def certify(cert, key):
    """Makes a certificate: peers that are tried here believe any."""
    from cryptography import x509
    from cryptography.hazmat.primitives import hashes, serialization
    from cryptography.hazmat.primitives.asymmetric import ec

    now, private = datetime.datetime.now(datetime.timezone.utc), ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "interop")])
    builder = x509.CertificateBuilder().subject_name(name).issuer_name(name).public_key(private.public_key())
    builder = builder.serial_number(1).not_valid_before(now).not_valid_after(now + datetime.timedelta(days=2))
    pem = serialization.Encoding.PEM
    with open(cert, "wb") as file:
        file.write(builder.sign(private, hashes.SHA256()).public_bytes(pem))
    with open(key, "wb") as file:
        form = serialization.PrivateFormat.PKCS8
        file.write(private.private_bytes(pem, form, serialization.NoEncryption()))


def is_taken(port):
    """Whether somebody has a UDP port."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        try:
            probe.bind(("127.0.0.1", port))
        except OSError:
            return True
    return False


def against_aioquic(interop):
    names = ["small", "large"]
    python, script = sys.executable, interop.aioquic

    def fetched(*switches):
        port = interop.our_server(*switches)
        interop.run(python, script, "client", str(port), interop.out, *names)
        return interop.same(names)

    def given():
        port = interop.start(python, script, "server", "PORT", interop.cert, interop.key, interop.root)
        said = interop.our_client("transfer", port, names)
        if "the peer offers one path" not in said:
            raise Failed(f"our client says nothing of the one path: {said}")
        return f"{interop.same(names)}, 'the peer offers one path' is said"

    def other_protocol():
        port = interop.start(python, script, "server", "PORT", interop.cert, interop.key, interop.root, "h3")
        said = interop.our_client("handshake", port, ["small"], paths=1, fails=True)
        if "'hq-interop' was offered (ALPN)" not in said:
            raise Failed(f"our client does not name the protocol: {said}")
        return f"our client says: {said.strip()}"

    interop.case("aioquic's client, our server", script, fetched)
    interop.case("aioquic's client, our server with Retry", script, lambda: fetched("--retry"))
    interop.case("our client, aioquic's server with Retry, one path", script, given)
    interop.case("our client, aioquic's server of another protocol", script, other_protocol)


def against_picoquic(interop, outages):
    program = interop.picoquic

    def given(case, *switches):
        port = interop.picoquic_server("-M", *switches)
        said = interop.our_client(case, port, ["huge"])
        return f"{interop.same(['huge'])}; {', '.join(said.strip().splitlines())}"

    for case in ("handshake", "transfer", "abandon", "status"):
        interop.case(f"our client, picoquic's server, {case}", program, lambda case=case: given(case))
    interop.case("our client, picoquic's server with Retry, transfer", program, lambda: given("transfer", "-r"))

    def fetched(switches, said_by_client, names, *of_server):
        port = interop.our_server(*of_server)
        said = interop.picoquic_client(port, names, *switches)
        found = [re.search(pattern, said) for pattern in said_by_client]
        if None in found:
            raise Failed(f"picoquic does not say '{said_by_client[found.index(None)]}', but: {said[-2000:]}")
        return "; ".join([interop.same(names)] + [match.group(0) for match in found])

    two_paths = ["-M", "-A", "0.0.0.0/0"]
    both_carried = [r"Path\[0\], packets sent: \d{3,}", r"Path\[1\], packets sent: \d{3,}"]
    for name, switches, says, names, of_server in (
        ("one path", [], [], ["small", "large"], []),
        ("one path with Retry", [], [], ["small", "large"], ["--retry"]),
        ("two paths", two_paths, both_carried, ["huge"], []),
        ("two paths with Retry", two_paths, both_carried, ["huge"], ["--retry"]),
        ("rebinding", ["-f", "1"], ["Will test NAT rebinding"], ["large"], []),
        ("migration", ["-f", "3"], ["Will test migration"], ["large"], []),
        ("a new connection id", ["-f", "2"], ["new CNXID"], ["large"], []),
        ("a key update", ["-u", "100"], [], ["large"], []),
    ):
        check = lambda s=switches, p=says, n=names, o=of_server: fetched(s, p, n, *o)
        interop.case(f"picoquic's client, our server, {name}", program, check)

    def acted(act):
        same = fetched(two_paths, [], ["huge"], "--act", act)
        return f"{same}; our server says {interop.awaited(act + ': passed: .*')}"

    for act in ("abandon", "status"):
        interop.case(f"picoquic's client, our server does {act}", program, lambda act=act: acted(act))

    def silent(seconds):
        server = interop.our_server()
        interop.port += 1
        relay = Relay(interop.port, server, seconds)
        relay.start()
        try:
            interop.picoquic_client(interop.port, ["huge", "large"], *two_paths, "-q", interop.work)
        finally:
            relay.is_over = True
            relay.join()
        if len(relay.ways) != 2:
            raise Failed(f"there were {len(relay.ways)} ways")
        way, same = relay.ways[1], interop.same(["huge", "large"])
        if way["back_at"] is not None:
            return f"{same}; the path brings data again {way['back_at']:.1f} s after its outage, {way['after']:,} B in all"
        # picoquic gives a path up after ten retransmissions, and its demo does not open it again.
        if interop.logs_say("Too many data retransmits"):
            return f"{same}; picoquic gave the path up by itself"
        raise Failed(f"the path brought {way['before']:,} B before its outage, and {way['after']:,} B after it")

    for seconds in outages:
        name = f"picoquic's client, our server, one path silent for {seconds:g} s"
        interop.case(name, program, lambda seconds=seconds: silent(seconds))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("place")
    parser.add_argument("ours")
    parser.add_argument("aioquic")
    parser.add_argument("picoquic")
    parser.add_argument("--only", help="the cases whose names have this word")
    parser.add_argument("--outage", type=float, action="append", help="seconds without an answer on a path")
    args = parser.parse_args()
    interop = Interop(args)
    # A signal ends the server that runs, too.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    try:
        interop.prepare()
        against_aioquic(interop)
        against_picoquic(interop, args.outage or [2, 10])
    except KeyboardInterrupt:
        return 1
    finally:
        interop.stop()
    interop.say(", ".join(f"{count} {result}" for result, count in interop.counts.items()))
    return 1 if interop.counts["failed"] else 0


if __name__ == "__main__":
    sys.exit(main())
