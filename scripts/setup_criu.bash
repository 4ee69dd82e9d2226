# Installs the CRIUs of scripts/setup, which sources this file. The CRIU of Debian 12 does not start on new kernels. So
# two CRIUs are taken from later suites. Each is unpacked with its libraries into a folder below .deps, and not
# installed.
#
#   .deps/bin/criu       from forky, CRIU 4.2: what kymod uses (--criu)
#   .deps/fallback/criu  from trixie, CRIU 4.1: reads old images, and shows what kymod does with an old one
#
# criu.pins has the versions that were current when this was written: suite, package, version, architecture, sha256.
# To renew it: cat .deps/criu-*/packages.txt >scripts/criu.pins

# Linux 6.16 removed a socket option that CRIU before 4.2 needs to dump any process with an internet socket.
needs_newer_sockets() {
  local major minor
  IFS=.- read -r major minor _ < <(uname -r)
  [ "$major" -gt 6 ] || { [ "$major" -eq 6 ] && [ "$minor" -ge 16 ]; }
}

# criu_complaint PATH: why it does not pass its own check.
criu_complaint() {
  local said
  said=$(as_root "$1" check 2>&1) || true
  grep -m1 -a Error <<<"$said" || echo "it does not start"
}

criu_version() { as_root "$1" --version 2>/dev/null | sed -n 's/^Version: //p'; }

# criu_works PATH: whether it passes its own check on the running kernel.
criu_works() { as_root "$1" check 2>&1 | grep -q 'Looks good'; }

# criu_serves PATH: whether it works and can dump sockets on the running kernel.
criu_serves() {
  criu_works "$1" || return 1
  ! needs_newer_sockets || [ "$(printf '4.2\n%s\n' "$(criu_version "$1")" | sort -V | head -1)" = 4.2 ]
}

# Lists a CRIU that passed its own check, but then did not dump and restore a process: path, version and kernel, one
# per line.
distrusted="$deps/criu-distrusted"
line_of() { printf '%s %s %s\n' "$1" "$(criu_version "$1")" "$(uname -r)"; }
is_distrusted() { [ -s "$distrusted" ] && grep -qxF -e "$(line_of "$1")" "$distrusted"; }

find_criu() {
  local candidate
  for candidate in "$(command -v criu || true)" /usr/sbin/criu /usr/local/sbin/criu "$deps/bin/criu"; do
    if [ -n "$candidate" ] && [ -x "$candidate" ] && criu_serves "$candidate" && ! is_distrusted "$candidate"; then
      printf '%s\n' "$candidate"
      return
    fi
  done
  return 1
}

find_fallback() {
  [ -x "$deps/fallback/criu" ] && criu_works "$deps/fallback/criu" && printf '%s\n' "$deps/fallback/criu"
}

# Prints the mirror and the signing key that this machine uses for Debian, as two lines.
debian_source() {
  local format uri key
  # shellcheck disable=SC2016  # apt fills these in, not the shell
  format='$(ORIGIN)|$(LABEL)|$(REPO_URI)|$(SIGNED_BY)'
  IFS='|' read -r _ _ uri key < <(apt-get indextargets --format "$format" 'Created-By: Packages' |
    grep '^Debian|Debian|' | sort -u | head -1) || true
  [ -n "${uri:-}" ] || return 1
  # If the key is given by its fingerprint or inline, the keyring of Debian's package is used instead.
  [ -r "${key:-}" ] || key=/usr/share/keyrings/debian-archive-keyring.gpg
  printf '%s\n%s\n' "$uri" "$key"
}

# Separate lists and a separate cache, so that the system's apt does not see the other suites. The proxies and
# credentials of the system are used, its preferences are not.
write_apt_config() {
  local dir=$1 suite=$2 uri=$3 key=$4
  mkdir -p "$dir/none" "$dir/lists/partial" "$dir/cache/archives/partial"
  printf 'Types: deb\nURIs: %s\nSuites: %s\nComponents: main\nSigned-By: %s\n' "$uri" "$suite" "$key" \
    >"$dir/criu.sources"
  cat >"$dir/apt.conf" <<CONF
Dir::Etc::sourcelist "$dir/criu.sources";
Dir::Etc::sourceparts "$dir/none";
Dir::Etc::preferences "$dir/none/file";
Dir::Etc::preferencesparts "$dir/none";
Dir::State::lists "$dir/lists";
Dir::State::status "/dev/null";
Dir::Cache "$dir/cache";
APT::Default-Release "";
APT::Sandbox::User "";
CONF
}

# Writes a script of two lines that runs the program with the loader and libraries of its folder, and with none of the
# system.
write_wrapper() {
  local prefix=$1 name=$2 file=$3 loader arch
  loader=$(cd "$prefix" && find . -name 'ld-linux*.so.*' | sort | head -1)
  arch=$(cd "$prefix/usr/lib" && find . -maxdepth 1 -name '*-linux-gnu*' | head -1)
  if [ -z "$loader" ] || [ -z "$arch" ]; then die "Debian's libc6 has no loader where it was expected"; fi
  # shellcheck disable=SC2016  # expanded when the wrapper runs
  printf '#!/bin/sh\np="${0%%/*}/../%s"; exec "$p/%s" --library-path "$p/usr/lib/%s" "$p/usr/sbin/criu" "$@"\n' \
    "$name" "${loader#./}" "${arch#./}" >"$file"
  chmod +x "$file"
}

# apt_lists DIR SUITE: downloads the package lists of the suite. apt checks their signatures.
apt_lists() {
  local dir=$1 suite=$2
  local -a source
  if ! mapfile -t source < <(debian_source) || [ ${#source[@]} -ne 2 ]; then
    say "this machine has no lists of Debian packages: downloading them"
    run_apt --error-on=any update || apt_failed "cannot reach this machine's Debian mirror, so nothing was installed" "check the network and the sources of apt"
    mapfile -t source < <(debian_source)
    [ ${#source[@]} -eq 2 ] || die "found no Debian mirror in this machine's apt sources to take CRIU from"
  fi
  write_apt_config "$dir" "$suite" "${source[@]}"
  say "taking CRIU from suite $suite into .deps (signatures checked against ${source[1]})"
  read_suite() { APT_CONFIG="$dir/apt.conf" apt-get -q --error-on=any update >"$apt_log" 2>&1; }
  read_suite && return
  if grep -q NO_PUBKEY "$apt_log"; then
    say "updating debian-archive-keyring, because it lacks the key of $suite"
    run_apt install debian-archive-keyring && read_suite && return
  fi
  apt_failed "cannot read suite $suite from this machine's Debian mirror" "check the network and the sources of apt"
}

# compare_with_pins PACKAGES SUITE: a pinned version must have the pinned checksum. Other versions are accepted if the
# archive's signature is right, and one line says so.
compare_with_pins() {
  local packages=$1 suite=$2 package version arch sum pinned pinned_sum moved=
  while read -r _ package version arch sum; do
    read -r pinned pinned_sum < <(awk -v s="$suite" -v p="$package" -v a="$arch" \
      '$1 == s && $2 == p && $4 == a {print $3, $5}' "$root/scripts/criu.pins") || true
    if [ "$version" != "${pinned:-}" ]; then
      moved+="${moved:+, }$package ${pinned:-(none)} -> $version"
    elif [ "$sum" != "$pinned_sum" ]; then
      die "$package $version of suite $suite is not the file that scripts/criu.pins names: nothing was installed"
    fi
  done <"$packages"
  [ -z "$moved" ] || say "warning: suite $suite has moved since scripts/criu.pins was written; taken as Debian signed it: $moved"
}

# fetch_criu SCRATCH SUITE BIN: takes the CRIU of the suite with all its dependencies, as .deps/BIN/criu. Everything is
# made under a temporary name and renamed when it is complete. Fails if that CRIU does not work here.
fetch_criu() {
  local scratch=$1 suite=$2 bin=$3 deb
  local -a wanted
  apt_lists "$scratch" "$suite"
  # This apt believes that no package is installed. So the list has all that CRIU needs, down to libc.
  mapfile -t wanted < <(APT_CONFIG="$scratch/apt.conf" apt-get -s install --no-install-recommends criu |
    awk '$1 == "Inst" {print $2}')
  mkdir "$scratch/debs" "$scratch/prefix" "$scratch/bin"
  if [ ${#wanted[@]} -eq 0 ] ||
    ! (cd "$scratch/debs" && APT_CONFIG="$scratch/apt.conf" apt-get -q download "${wanted[@]}" >"$apt_log" 2>&1); then
    apt_failed "cannot download CRIU's packages from suite $suite" "check the network and the free space"
  fi
  for deb in "$scratch"/debs/*.deb; do
    # shellcheck disable=SC2016  # dpkg-deb fills these in
    printf '%s %s %s\n' "$suite" "$(dpkg-deb -W --showformat '${Package} ${Version} ${Architecture}' "$deb")" \
      "$(sha256sum "$deb" | cut -d' ' -f1)" >>"$scratch/prefix/packages.txt"
    dpkg -x "$deb" "$scratch/prefix"
  done
  compare_with_pins "$scratch/prefix/packages.txt" "$suite"
  ln -s prefix "$scratch/criu-$suite"
  write_wrapper "$scratch/prefix" "criu-$suite" "$scratch/bin/criu"
  criu_works "$scratch/bin/criu" || return 1
  mkdir -p "$deps/$bin"
  rm -rf "$deps/criu-$suite"
  mv "$scratch/prefix" "$deps/criu-$suite"
  mv "$scratch/bin/criu" "$deps/$bin/criu"
}

# Seconds after which a trial of CRIU is ended: on a machine whose hardware breakpoints do not work, a CRIU before 4.2
# waits for ever. kymod tells CRIU not to use breakpoints (fault 130 of CRIU), and the trials do, too.
trial_seconds=60
no_breakpoints=CRIU_FAULT=130

# criu_restores PATH PROGRAM: whether it really dumps and restores a process. The process is one of Perl, which every
# Debian has.
criu_restores() {
  local criu=$1 program=$2 images pid restored=1
  images=$(mktemp -d)
  : >"$images/said"
  # It closes the files that it inherited from set-up, because CRIU may be unable to dump them.
  setsid perl -MPOSIX -MIO::Socket::INET -e 'POSIX::close($_) for 3 .. 255;' \
    -e "$program"' $| = 1; print "ready\n"; sleep 1 while 1' </dev/null >"$images/said" 2>/dev/null &
  pid=$!
  until grep -q ready "$images/said" || ! kill -0 "$pid" 2>/dev/null; do sleep 0.05; done
  if as_root env "$no_breakpoints" timeout -k 5 "$trial_seconds" "$criu" dump --tree "$pid" --images-dir "$images" --log-file log >/dev/null 2>&1; then
    wait "$pid" || true # a dumped process keeps its pid until its parent has reaped it
    as_root env "$no_breakpoints" timeout -k 5 "$trial_seconds" "$criu" restore --restore-detached --images-dir "$images" --log-file log >/dev/null 2>&1 && restored=0
  fi
  [ "$restored" -eq 0 ] || as_root grep -a Error "$images/log" >&2 || true
  as_root kill -KILL "$pid" 2>/dev/null || true
  wait "$pid" 2>/dev/null || true
  as_root rm -rf "$images"
  return "$restored"
}

# criu_restores_container PATH: whether runc can dump and restore a container with it. The container has a read-only root.
criu_restores_container() {
  local criu=$1 bundle restored=1
  bundle=$(mktemp -d)
  mkdir -p "$bundle"/rootfs/{bin,proc,dev,sys,tmp,etc}
  cp "$(command -v busybox)" "$bundle/rootfs/bin/busybox"
  # The container only sleeps. It has no terminal, no network of its own, and no limits, which CRIU would have to
  # exceed.
  (cd "$bundle" && runc spec && perl -0pi -e 's/"terminal": true/"terminal": false/;
    s/"args": \[[^]]*\]/"args": ["\/bin\/busybox", "sleep", "1000"]/; s/"rlimits": \[[^]]*\],//;
    s/\{\s*"type": "network"\s*\},//' config.json)
  with_runc() {
    as_root env "$no_breakpoints" PATH="${criu%/*}:$PATH" timeout -k 5 "$trial_seconds" runc --root "$bundle/state" "$@" </dev/null >/dev/null 2>&1
  }
  if with_runc run --detach --bundle "$bundle" tried &&
    with_runc checkpoint --image-path "$bundle/images" --work-path "$bundle/logs" tried &&
    with_runc restore --detach --image-path "$bundle/images" --work-path "$bundle/logs" --bundle "$bundle" tried; then
    restored=0
  fi
  [ "$restored" -eq 0 ] || as_root grep -ah Error "$bundle"/logs/*.log >&2 || true
  with_runc delete --force tried || true
  as_root rm -rf "$bundle"
  return "$restored"
}

# install_one SUITE BIN: takes the lock, and fetches the CRIU if it is not there yet.
install_one() {
  local suite=$1 bin=$2 scratch
  scratch=$(mktemp -d "$deps/.fetch.XXXXXX")
  if fetch_criu "$scratch" "$suite" "$bin"; then
    rm -rf "$scratch"
    return
  fi
  say "the CRIU of suite $suite does not pass its check on this machine: $(criu_complaint "$scratch/bin/criu")"
  rm -rf "$scratch"
  return 1
}

lock_deps() {
  mkdir -p "$deps"
  exec 9>"$deps/.lock"
  flock 9
  rm -rf "$deps"/.fetch.* # left by a set-up that was killed
  trap 'rm -rf "$deps"/.fetch.*' EXIT
}

listening='IO::Socket::INET->new(Listen => 1, LocalAddr => "127.0.0.1") or die;'

# tell_of NAME PATH PROGRAM: tries this CRIU and prints the result. A container is tried only if set-up has installed
# runc. Fails if it did not dump and restore a process.
tell_of() {
  local restored=0 what
  what="$1: $2 ($(criu_version "$2"))"
  if criu_restores "$2" "$3"; then
    say "$what, check: Looks good, a process was dumped and restored"
  else
    say "$what passes its check, but did not dump and restore a process, see above"
    restored=1
  fi
  [ "$purpose" = all ] || return "$restored"
  if criu_restores_container "$2"; then
    say "$what: a runc container was dumped and restored"
  else
    say "$what did not dump and restore a runc container, see above"
  fi
  return "$restored"
}

# A CRIU that fails the trial is not used. The next one is tried then, and the one of suite forky at last. Fails if
# none is left.
install_criu() {
  local criu
  lock_deps
  rm -f "$distrusted" # left by an earlier trial
  while criu=$(find_criu) || { [ ! -x "$deps/bin/criu" ] && install_one forky bin && criu=$(find_criu); }; do
    if tell_of criu "$criu" "$listening"; then return 0; fi
    line_of "$criu" >>"$distrusted"
  done
  criu=$(command -v "$deps/bin/criu" criu | head -1)
  say "no CRIU here dumps and restores a process on this kernel ($(uname -r))${criu:+: $criu: $(criu_complaint "$criu")}: run this on another kernel, or put a criu that works first in PATH"
  return 1
}

install_fallback() {
  local criu program=$listening
  lock_deps
  if ! criu=$(find_fallback) && ! { install_one trixie fallback && criu=$(find_fallback); }; then
    return
  fi
  criu_serves "$criu" || program=
  tell_of "criu, fallback" "$criu" "$program" || true # only tests of an old CRIU use it
}
