"""A TCP relay whose address stays while servers behind it come and go, and that can be slow."""

from __future__ import annotations

import socket
import threading


class Relay:
    """Listens on a free port. Without an upstream it refuses by closing what it accepts."""

    def __init__(self):
        self.delay = 0.0  # seconds that each piece on its way back waits
        self._upstream: tuple[str, int] | None = None
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.address = f"127.0.0.1:{self._listener.getsockname()[1]}"
        self._stopped = threading.Event()
        threading.Thread(target=self._accept, daemon=True).start()

    def lead_to(self, address: str | None) -> None:
        host, port = (None, 0) if address is None else address.rsplit(":", 1)
        self._upstream = None if address is None else (host, int(port))

    def close(self) -> None:
        self._stopped.set()
        self._listener.close()

    def _accept(self):
        while True:
            try:
                client, _ = self._listener.accept()
            except OSError:
                return
            try:
                if self._upstream is None:
                    raise ConnectionRefusedError
                server = socket.create_connection(self._upstream, timeout=10)
            except OSError:
                client.close()
                continue
            server.settimeout(None)
            for source, sink, back in ((client, server, False), (server, client, True)):
                sink.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                threading.Thread(target=self._pump, args=(source, sink, back), daemon=True).start()

    def _pump(self, source, sink, back):
        try:
            while data := source.recv(1 << 16):
                if back and self.delay:
                    self._stopped.wait(self.delay)
                sink.sendall(data)
        except OSError:
            pass
        for end in (source, sink):
            try:
                end.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass
            end.close()
