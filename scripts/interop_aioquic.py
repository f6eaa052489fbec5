"""An end of hq-interop made of aioquic: HTTP/0.9 over the streams of QUIC.

    interop_aioquic.py server PORT CERT KEY ROOT [ALPN]   gives out the files of ROOT
    interop_aioquic.py client PORT OUT NAME...            fetches files from 127.0.0.1
"""

import asyncio
import os
import ssl
import sys

from aioquic.asyncio import QuicConnectionProtocol, connect, serve
from aioquic.quic.configuration import QuicConfiguration
from aioquic.quic.events import StreamDataReceived


class Server(QuicConnectionProtocol):
    root = "."

    def __init__(self, *args, **kwargs):
        super().__init__(*args, **kwargs)
        self.requests = {}

    def quic_event_received(self, event):
        if not isinstance(event, StreamDataReceived):
            return
        request = self.requests.get(event.stream_id, b"") + event.data
        self.requests[event.stream_id] = request
        if event.end_stream:
            name = os.path.basename(request.decode().split()[1])
            with open(os.path.join(self.root, name), "rb") as file:
                self._quic.send_stream_data(event.stream_id, file.read(), end_stream=True)
            self.transmit()


async def give(port, cert, key, root, alpn):
    Server.root = root
    configuration = QuicConfiguration(is_client=False, alpn_protocols=[alpn])
    configuration.load_cert_chain(cert, key)
    await serve("127.0.0.1", port, configuration=configuration, create_protocol=Server, retry=True)
    await asyncio.Future()


async def fetch(port, out, names):
    configuration = QuicConfiguration(alpn_protocols=["hq-interop"], verify_mode=ssl.CERT_NONE)
    async with connect("127.0.0.1", port, configuration=configuration) as client:
        for name in names:
            reader, writer = await client.create_stream()
            writer.write(f"GET /{name}\r\n".encode())
            writer.write_eof()
            with open(os.path.join(out, name), "wb") as file:
                file.write(await asyncio.wait_for(reader.read(), 60))


if sys.argv[1] == "server":
    port, cert, key, root, *alpn = sys.argv[2:]
    asyncio.run(give(int(port), cert, key, root, *(alpn or ["hq-interop"])))
else:
    port, out, *names = sys.argv[2:]
    asyncio.run(fetch(int(port), out, names))
