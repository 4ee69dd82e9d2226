#!/usr/bin/env bash
# Run by scripts/fresh on a bare Debian, before anything is installed: what scripts/demo says where it cannot work. Each
# time it must end, say why and what to do in one line, and install nothing.
set -uo pipefail
wrong=0
before=$(dpkg-query -W | sort)

# refuses WHAT TEXT COMMAND...: the command fails, and the last line of its messages, the only one that is no progress,
# contains the text.
refuses() {
  local what=$1 text=$2 said lines
  shift 2
  said=$("$@" 2>&1 </dev/null)
  local status=$?
  lines=$(grep -cE '^(setup|demo): ' <<<"$said")
  if [ "$status" -eq 0 ] || ! tail -n 1 <<<"$said" | grep -qE -e "$text" || [ "$lines" -gt "$progress" ]; then
    printf 'WRONG: %s: exit %s, want "%s" in the last of at most %s lines of:\n%s\n' "$what" "$status" "$text" "$progress" "$said"
    wrong=1
  fi
  if [ "$(dpkg-query -W | sort)" != "$before" ]; then
    printf 'WRONG: %s: it has installed something\n' "$what"
    wrong=1
  fi
}
# in_mounts TEXT COMMAND...: runs the command after shell text whose mounts nobody else sees.
in_mounts() { unshare --mount --propagation private bash -c "$1"'; "$@"' "$@"; }

chmod o+x /root # another user may read the clone
progress=1
refuses "no root, and no sudo" 'needs root: run it as root, or install sudo$' \
  setpriv --reuid 65534 --regid 65534 --clear-groups scripts/demo --configure
printf 'PRETTY_NAME="Debian 11"\nID=debian\nVERSION_ID="11"\n' >/tmp/release
refuses "another Debian" 'this is Debian 11, and packages are only known for Debian 12 and 13: use one' \
  in_mounts 'mount --bind /tmp/release /etc/os-release' scripts/demo --configure
refuses "no Debian" 'this is an unknown system, .* install by hand' in_mounts 'mount --bind /dev/null /etc/os-release' \
  scripts/demo --configure
refuses "a wrong argument" 'usage: scripts/demo' scripts/demo --all

refuses "no room for downloads" 'cannot download packages, so nothing was installed: .*free space' \
  in_mounts 'mount -t tmpfs -o size=20m none /var/cache/apt/archives' scripts/setup --for build
refuses "no room for the build" 'CRIU and the build need 2GB, and [0-9]+ MB are free in .*: make room' \
  in_mounts 'mount -t tmpfs -o size=64m none /mnt; cp -r scripts /mnt; cd /mnt' scripts/setup --for build

# CRIU is looked for first, since the demo is nothing without it.
progress=3
refuses "no network" 'cannot (reach|read) .*(resolv|connect).*check the network' unshare --net scripts/demo --configure
mkdir -p .deps/bin
printf '#!/bin/sh\necho "Error (criu/kerndat.c:1): the kernel is too old"\nexit 1\n' >.deps/bin/criu
chmod +x .deps/bin/criu
refuses "a kernel that CRIU does not know" 'the kernel is too old.*run this on another kernel' scripts/demo --configure
rm -r .deps/bin
exit "$wrong"
