"""A server that sends back what it receives. A process that is dumped with a connection is connected to it."""

import socketserver
import threading


class _Client(socketserver.StreamRequestHandler):
    def handle(self):
        self.server.connections += 1
        for line in self.rfile:
            self.wfile.write(line)


class Echo(socketserver.ThreadingTCPServer):
    """Serves on a port of 127.0.0.1, in threads, until close(). `connections` is the number of connections so far."""
    daemon_threads = True

    def __init__(self):
        super().__init__(("127.0.0.1", 0), _Client)
        self.connections = 0
        threading.Thread(target=self.serve_forever, daemon=True).start()

    @property
    def port(self):
        return self.server_address[1]

    def close(self):
        self.shutdown()
        self.server_close()
