"""A containerd with its own folders and socket, and an image of busybox (like tests/support/containerd.cc)."""

import hashlib
import io
import json
import shutil
import subprocess
import tarfile

from eventually import eventually

IMAGE = "kymo.test/busybox:1"
CONFIG = """version = 2
root = '{folder}/root'
state = '{folder}/state'
disabled_plugins = ['io.containerd.grpc.v1.cri']
[grpc]
address = '{folder}/sock'
"""


def why_not():
    """The reason why its containers cannot be made here. Empty if they can."""
    missing = [program for program in ("containerd", "ctr", "runc", "busybox") if not shutil.which(program)]
    return f"{missing[0]} is not installed" if missing else ""


def tar_of(members):
    """A tar archive of members (name, type, content or target of the link)."""
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as tar:
        for name, kind, content in members:
            info = tarfile.TarInfo(name)
            info.type, info.mode = kind, 0o755
            if kind == tarfile.SYMTYPE:
                info.linkname = content
            elif kind == tarfile.REGTYPE:
                info.size = len(content)
            tar.addfile(info, io.BytesIO(content) if kind == tarfile.REGTYPE else None)
    return buffer.getvalue()


def rootfs():
    """The files of a container with busybox, as a tar archive."""
    with open(shutil.which("busybox"), "rb") as busybox:
        program = busybox.read()
    return tar_of([(name, tarfile.DIRTYPE, None) for name in ("bin", "proc", "dev", "sys", "tmp", "etc")] +
                  [("bin/busybox", tarfile.REGTYPE, program)] +
                  [(f"bin/{name}", tarfile.SYMTYPE, "busybox") for name in ("sh", "sleep")])


def image():
    """An image of busybox, as an archive in the OCI image layout."""
    layer = rootfs()
    blobs = []

    def add(content, kind):
        digest = hashlib.sha256(content).hexdigest()
        blobs.append((f"blobs/sha256/{digest}", tarfile.REGTYPE, content))
        return {"mediaType": f"application/vnd.oci.image.{kind}", "digest": f"sha256:{digest}", "size": len(content)}

    def add_json(value, kind):
        return add(json.dumps(value).encode(), kind)

    layers = [add(layer, "layer.v1.tar")]
    config = add_json({"architecture": "amd64", "os": "linux",
                       "config": {"Env": ["PATH=/bin"], "Cmd": ["/bin/sh"]},
                       "rootfs": {"type": "layers", "diff_ids": [layers[0]["digest"]]}}, "config.v1+json")
    manifest = add_json({"schemaVersion": 2, "config": config, "layers": layers}, "manifest.v1+json")
    manifest["annotations"] = {"io.containerd.image.name": IMAGE}
    index = json.dumps({"schemaVersion": 2, "manifests": [manifest]}).encode()
    return tar_of([("blobs", tarfile.DIRTYPE, None), ("blobs/sha256", tarfile.DIRTYPE, None), *blobs,
                   ("index.json", tarfile.REGTYPE, index),
                   ("oci-layout", tarfile.REGTYPE, b'{"imageLayoutVersion": "1.0.0"}')])


class Server:
    """A daemon that logs to `folder`/log. Its _begin() raises OSError if it does not start, and then leaves nothing."""

    def __init__(self, folder):
        self.folder = folder

    def begin(self):
        try:
            self._begin()
        except (OSError, subprocess.SubprocessError):
            self.close()
            raise

    def log(self):
        return (self.folder / "log").read_text(errors="replace")[-500:]


class Containerd(Server):
    """`environment` must have the folder of criu first on its PATH. Raises OSError if the daemon does not start."""

    def __init__(self, folder, environment):
        super().__init__(folder)
        self.address = folder / "sock"
        folder.mkdir()
        (folder / "config.toml").write_text(CONFIG.format(folder=folder))
        with open(folder / "log", "ab") as log:
            self.server = subprocess.Popen(["containerd", "--config", folder / "config.toml"], stdout=log, stderr=log,
                                           env=environment, start_new_session=True)
        self.begin()

    def _begin(self):
        if not eventually(lambda: self.ctr("version").returncode == 0, 20):
            raise OSError(f"containerd does not start: {self.log()}")
        (self.folder / "image.tar").write_bytes(image())
        imported = self.ctr("images", "import", self.folder / "image.tar")
        if imported.returncode != 0:
            raise OSError(f"containerd takes no image: {imported.stderr}")

    def ctr(self, *words):
        return subprocess.run(["ctr", "--address", self.address, *words], stdin=subprocess.DEVNULL,
                              capture_output=True, text=True, check=False, timeout=60)

    def file_of(self, name):
        """The path of a file at the top of a container's root, in containerd's folders. None if there is none."""
        return next(iter(self.folder.glob(f"root/io.containerd.snapshotter.v1.*/snapshots/*/fs/{name}")), None)

    def close(self):
        for name in self.ctr("containers", "list", "-q").stdout.split():
            self.ctr("tasks", "delete", "--force", name)
            self.ctr("containers", "delete", name)
        self.server.terminate()
        try:
            self.server.wait(timeout=20)
        except subprocess.TimeoutExpired:
            self.server.kill()
            self.server.wait()
