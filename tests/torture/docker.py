"""A dockerd with its own folders, socket and containerd, and an image of busybox (like tests/support/docker.cc)."""

import json
import os
import pathlib
import shutil
import subprocess

import containerd
from eventually import eventually

IMAGE = "kymo-torture-busybox"
# The arguments of docker run. There is no network, because some machines refuse one.
RUN = ["--network", "none", "--security-opt", "seccomp=unconfined", IMAGE]


def why_not():
    """The reason why its containers cannot be made here. Empty if they can."""
    missing = [program for program in ("dockerd", "docker") if not shutil.which(program)]
    return f"{missing[0]} is not installed" if missing else containerd.why_not()


def root_in(data, container):
    """The folder of the files that a container writes. `container` is its description from `docker container inspect`."""
    if container["Driver"] == "vfs":
        mount = data / "image/vfs/layerdb/mounts" / container["Id"] / "mount-id"
        return data / "vfs/dir" / mount.read_text()
    return pathlib.Path(container["GraphDriver"]["Data"]["UpperDir"])


class Docker(containerd.Server):
    """`environment` must have the folder of criu first on its PATH. Raises OSError if the daemon does not start."""

    def __init__(self, folder, environment):
        super().__init__(folder)
        self.address = f"unix://{folder}/sock"
        self.server = None
        for name in ("data", "exec", "tmp"):
            (folder / name).mkdir(parents=True)
        # If Docker's containerd is killed, it leaves copies of images in the folder for temporary files.
        self.environment = {**environment, "TMPDIR": str(folder / "tmp")}
        self.environment.pop("XDG_RUNTIME_DIR", None)  # its folder would be used instead
        self.containerd = containerd.Containerd(folder / "containerd", self.environment)
        self.begin()

    def _begin(self):
        config = self.folder / "daemon.json"  # instead of the configuration of the machine
        config.write_text(json.dumps({"experimental": True}))
        with open(self.folder / "log", "ab") as log:
            self.server = subprocess.Popen(
                ["dockerd", "--config-file", config, "--containerd", self.containerd.address,
                 "--data-root", self.folder / "data", "--exec-root", self.folder / "exec",
                 "--pidfile", self.folder / "pid", "--host", self.address,
                 "--bridge=none", "--iptables=false", "--ip6tables=false"],
                stdout=log, stderr=log, env=self.environment, start_new_session=True)
        eventually(lambda: self.server.poll() is not None or self.docker("info").returncode == 0, 60)
        if self.server.poll() is not None or self.docker("info").returncode != 0:
            raise OSError(f"dockerd does not start: {self.log()}")
        imported = self.docker("import", "-", IMAGE, given=containerd.rootfs())
        if imported.returncode != 0:
            raise OSError(f"Docker takes no image: {imported.stderr.decode()}")

    def docker(self, *words, given=b""):
        return subprocess.run(["docker", "--host", self.address, *words], input=given, capture_output=True, check=False,
                              timeout=60)

    def file_of(self, name, file):
        """The path of a file at the top of the container's root, in Docker's folders. None if there is none."""
        seen = self.docker("container", "inspect", name)
        if seen.returncode != 0:
            return None
        path = root_in(self.folder / "data", json.loads(seen.stdout)[0]) / file
        return path if path.exists() else None

    def close(self):
        if self.server:
            for name in self.docker("ps", "--all", "--quiet").stdout.decode().split():
                self.docker("rm", "--force", name)
            self.server.terminate()
            try:
                self.server.wait(timeout=20)
            except subprocess.TimeoutExpired:
                self.server.kill()
                self.server.wait()
            # dockerd makes this folder a mount point.
            if os.path.ismount(self.folder / "data"):
                subprocess.run(["umount", "--lazy", self.folder / "data"], check=False)
        self.containerd.close()
