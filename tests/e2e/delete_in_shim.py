#!/usr/bin/python3
"""Asks the shim of a containerd container to delete its task, as containerd does, but without containerd.

    delete_in_shim.py BUNDLE ID

BUNDLE is the container's folder in containerd's state; its file `address` names the shim's socket. The request is one
message of ttrpc (https://github.com/containerd/ttrpc/blob/main/PROTOCOL.md): ten bytes of header, then a Request.
"""
import pathlib
import socket
import struct
import sys


def field(number, data):
    """A field of a protobuf message, of less than 128 bytes."""
    return bytes([number << 3 | 2, len(data)]) + data


def main(bundle, container):
    address = pathlib.Path(bundle, "address").read_text().removeprefix("unix://")
    request = field(1, b"containerd.task.v2.Task") + field(2, b"Delete") + field(3, field(1, container.encode()))
    with socket.socket(socket.AF_UNIX) as shim:
        shim.connect(address)
        shim.sendall(struct.pack(">IIBB", len(request), 1, 1, 0) + request)
        length, _, kind, _ = struct.unpack(">IIBB", shim.recv(10, socket.MSG_WAITALL))
        answer = shim.recv(length, socket.MSG_WAITALL)
    if kind != 2:
        sys.exit(f"delete_in_shim: the shim answered with a message of kind {kind}")
    print(answer)


main(*sys.argv[1:])
