"""An exporter that says of the wiring whatever a test wants it to.

Making a real guard suspicious takes sixty rounds of rows that are wrong in the right way; what dashboards and alerts
make of its metrics is known exactly when the metrics are given.
"""

import http.server
import threading


class WiringExporter:
    """Serves the samples in `samples`, {series: value}, as they are at the moment. Use as a context manager."""

    def __init__(self, samples):
        self.samples = dict(samples)
        exporter = self

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_GET(self):
                body = "".join(f"{series} {value}\n" for series, value in exporter.samples.items()).encode()
                self.send_response(200)
                self.send_header("Content-Type", "text/plain; version=0.0.4")
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *_):
                pass

        self._server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.address = f"127.0.0.1:{self._server.server_port}"
        self._thread = threading.Thread(target=self._server.serve_forever, daemon=True)
        self._thread.start()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()
