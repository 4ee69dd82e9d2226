#!/usr/bin/python3
"""How fast /metrics and /healthz answer beside 50 event streams whose clients read nothing, and without these, in
turns.

    bench/stalled_streams.py --rounds 3

There are two kymods. One has the stalled clients, each of which has asked for every row of every metric of the last ten
seconds. The other has none. Each round asks both alternately, 120 times. Checked: every answer is complete and has
status 200, and every client got an answer.
"""
import contextlib
import json
import pathlib
import socket
import statistics
import sys
import time
import urllib.request

import common

CLIENTS = 50


class Daemon:
    def __init__(self, folder, options):
        folder.mkdir()
        self.kymod = common.Kymod(options.build, options.criu, folder, "--profiling-metrics=all")
        url = self.kymod.run_kymo("web").strip()
        self.address, self.token = url.split("/")[2], url.split("token=")[1]
        self.clients = []

    def get(self, path):
        request = urllib.request.Request(f"http://{self.address}{path}", headers={"Authorization": f"Bearer {self.token}"})
        with urllib.request.urlopen(request, timeout=60) as reply:
            return reply.read()

    def stall(self):
        """Opens clients that ask for all rows and read nothing."""
        columns = ",".join(column["name"] for column in json.loads(self.get("/api/columns")))
        host, port = self.address.split(":")
        for _ in range(CLIENTS):
            client = socket.socket()
            client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            client.connect((host, int(port)))
            client.sendall(f"GET /api/live?per_second=0&back_ns=10000000000&columns={columns} HTTP/1.1\r\nHost: {self.address}\r\n"
                           f"Authorization: Bearer {self.token}\r\n\r\n".encode())
            self.clients.append(client)
        for client in self.clients:
            client.settimeout(20)
            if not client.recv(1, socket.MSG_PEEK):  # the beginning of a stream, or of status 429
                sys.exit("stalled_streams: a client was not answered")

    def time_of(self, path):
        began = time.monotonic_ns()
        body = self.get(path)  # raises an error unless the status is 200
        took = time.monotonic_ns() - began
        if len(body) < 2:
            sys.exit(f"stalled_streams: {path} is empty")
        return took

    def stop(self):
        for client in self.clients:
            client.close()
        self.kymod.stop()


def main():
    parser = common.parser_of(__doc__)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--requests", type=int, default=60, help="requests for each path in a round")
    parser.add_argument("--build", type=pathlib.Path, default=common.BUILD)
    parser.add_argument("--criu", default=common.CRIU)
    options = parser.parse_args()
    samples = {}
    with common.scratch_folder() as folder, contextlib.ExitStack() as stack:
        daemons = {}
        for name in ("stalled", "without"):
            daemons[name] = Daemon(folder / name, options)
            stack.callback(daemons[name].stop)
        time.sleep(3)  # lets rows gather, for which the stalled streams then ask
        daemons["stalled"].stall()
        for _ in range(options.rounds):
            times = {name: [] for name in daemons}
            for _ in range(options.requests):
                for path in ("/metrics", "/healthz"):
                    for name, daemon in daemons.items():
                        times[name].append(daemon.time_of(path))
            for name, values in times.items():
                samples.setdefault(f"{name}.median", []).append(statistics.median(values))
                samples.setdefault(f"{name}.worst", []).append(max(values))
    common.finish(options, f"{options.rounds} rounds, ns", samples)


if __name__ == "__main__":
    main()
