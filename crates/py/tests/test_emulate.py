"""Links in real time around sockets of this process."""

import socket
import time

import pytest

import fairpath as fp

ENDS = {"from": "a", "to": "b"}
SCENARIO = fp.Scenario(
    duration="10s",
    links=[
        {"name": "near", "rate": "10Mbit/s", "delay": "10ms", **ENDS},
        {"name": "far", "rate": "10Mbit/s", "delay": "40ms", **ENDS},
    ],
    flows=[{"name": "f", "via": [["near"], ["far"]], **ENDS}],
)


def udp():
    made = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    made.bind(("127.0.0.1", 0))
    made.settimeout(5)
    return made


def send(client, address, data):
    host, port = address.rsplit(":", 1)
    client.sendto(data, (host, int(port)))


def test_datagrams_take_as_long_as_their_links():
    server, client = udp(), udp()
    with fp.emulate(SCENARIO, f"127.0.0.1:{server.getsockname()[1]}") as emulation:
        assert len(emulation.addresses) == 2
        for address, one_way in zip(emulation.addresses, (0.010, 0.040), strict=True):
            begun = time.monotonic()
            send(client, address, b"hello")
            data, relay = server.recvfrom(100)
            there = time.monotonic() - begun
            server.sendto(data[::-1], relay)
            assert client.recv(100) == b"olleh"
            # A machine may be late, and never early.
            assert there >= one_way and time.monotonic() - begun >= 2 * one_way
        links = {link["name"]: link for link in emulation.stats["links"]}
        assert links["near"]["delivered_packets"] == links["far.back"]["delivered_packets"] == 1
    with pytest.raises(fp.ScenarioError, match="with"):
        emulation.addresses


def test_links_change_as_the_scenario_says():
    server, client = udp(), udp()
    server.settimeout(0.3)
    away = SCENARIO.replace("change", [{"at": "0s", "link": "near", "up": False}])
    with fp.emulate(away, f"127.0.0.1:{server.getsockname()[1]}", flow="f") as emulation:
        time.sleep(0.1)
        near, far = emulation.addresses
        send(client, near, b"lost")
        send(client, far, b"comes")
        assert server.recv(100) == b"comes"
        with pytest.raises(TimeoutError):
            server.recv(100)
    later = SCENARIO.replace({"duration": "2h", "change": [{"at": "1h", "link": "near", "up": False}]})
    begun = time.monotonic()
    with fp.emulate(later, "127.0.0.1:9"):
        pass
    assert time.monotonic() - begun < 5, "nobody waits for a change that is to come"


def test_what_cannot_be_emulated_is_told():
    with pytest.raises(fp.DataError, match="127.0.0.1:4433"):
        fp.emulate(SCENARIO, "nowhere")
    with pytest.raises(fp.ScenarioError, match="it has f"):
        fp.emulate(SCENARIO, "127.0.0.1:9", flow="g")
