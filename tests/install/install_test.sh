#!/usr/bin/env bash
# Installs the build to a temporary prefix, and uses it as another project would.
#   install_test.sh BUILD_DIR CONSUMER_DIR CXX cmake|pkg-config|dlopen|bridge|unbuilt|service|data
set -euo pipefail
build=$1 consumer=$2 cxx=$3 way=$4
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
prefix="$scratch/prefix"

# The demo builds only some targets.
if [ "$way" = unbuilt ]; then
  source=$(sed -n 's/^CMAKE_HOME_DIRECTORY:INTERNAL=//p' "$build/CMakeCache.txt")
  cmake -S "$source" -B "$scratch/build" -G Ninja -DCMAKE_CXX_COMPILER="$cxx" -DKYMO_BUILD_TESTS=OFF >"$scratch/cmake.log" ||
    { cat "$scratch/cmake.log"; exit 1; }
  cmake --install "$scratch/build" --prefix "$prefix" >"$scratch/install.log" 2>&1 ||
    { cat "$scratch/install.log"; exit 1; }
  for name in libkymo kymod kymo-view; do
    grep -q "Not built, so not installed: $name.*--target" "$scratch/install.log" ||
      { cat "$scratch/install.log"; echo "it does not say that $name is not installed"; exit 1; }
  done
  # Headers and package files without their library must not be installed: other builds would find them and fail.
  found=$(find "$prefix" -type f -not -path '*/share/*' 2>/dev/null || true)
  [ -z "$found" ] || { echo "installed without being built: $found"; exit 1; }
  exit 0
fi

if [ "$way" = data ]; then
  cmake --install "$build" --prefix "$prefix" >"$scratch/install.log" 2>&1 || { cat "$scratch/install.log"; exit 1; }
  for file in alerts.yml grafana/kymo.json scripts/kymo_recording.py; do
    [ -s "$prefix/share/kymo/$file" ] || { echo "share/kymo/$file is not installed"; exit 1; }
  done
  for name in estimate_downtime find_slowest plot_recording; do
    help=$(cd / && "$prefix/share/kymo/scripts/$name.py" --help) || { echo "$name.py does not run where it is installed"; exit 1; }
    [[ "$help" == usage:* ]] || { echo "$name.py --help: $help"; exit 1; }
  done
  # The paths must be those that the documents name.
  source=$(sed -n 's/^CMAKE_HOME_DIRECTORY:INTERNAL=//p' "$build/CMakeCache.txt")
  grep -q 'PREFIX/share/kymo/alerts.yml' "$source/docs/metrics.md"
  grep -q 'PREFIX/share/kymo/scripts' "$source/docs/export.md"
  exit 0
fi

if [ "$way" = service ]; then
  cmake --install "$build" --prefix "$prefix" >"$scratch/install.log" 2>&1 || { cat "$scratch/install.log"; exit 1; }
  unit="$prefix/lib/systemd/system/kymod.service"
  program=$(sed -n 's/^ExecStart=//p' "$unit")
  [ "$program" = "$prefix/bin/kymod" ] || { echo "the unit starts $program"; exit 1; }
  "$program" --version
  command -v systemd-analyze >/dev/null || exit 0
  systemd-analyze verify --man=no "$unit"
  exit 0
fi

cmake --install "$build" --component library --prefix "$prefix" >"$scratch/install.log" || { cat "$scratch/install.log"; exit 1; }
pc=$(find "$prefix" -name kymo.pc)
libdir=$(dirname "$(dirname "$pc")")

configure_consumer() {
  cmake -S "$consumer" -B "$scratch/build" -G Ninja -DCMAKE_BUILD_TYPE=Release \
    -DCMAKE_PREFIX_PATH="$prefix" -DCMAKE_CXX_COMPILER="$cxx" "$@" >"$scratch/cmake.log" &&
    cmake --build "$scratch/build" >>"$scratch/cmake.log" || { cat "$scratch/cmake.log"; exit 1; }
}

# links_only FILE NAME...: checks that FILE needs only these libraries and the kernel's own.
links_only() {
  local file=$1 allowed loaded
  shift
  allowed=$(printf '%s\n' "$@" linux-vdso ld-linux-x86-64 ld-linux-aarch64 libc libstdc++ libm libgcc_s | sort -u)
  loaded=$(LD_LIBRARY_PATH="$libdir" ldd "$file" | awk '{print $1}' | sed 's|.*/||; s|\.so.*||' | sort -u)
  extra=$(comm -13 <(echo "$allowed") <(echo "$loaded"))
  [ -z "$extra" ] || { echo "$(basename "$file") also links: ${extra//$'\n'/ }"; exit 1; }
  echo "$(basename "$file") links: ${loaded//$'\n'/ }"
}

case "$way" in
  cmake)
    configure_consumer
    links_only "$scratch/build/consumer" libkymo libzstd
    links_only "$libdir/libkymo.so" libzstd
    "$scratch/build/consumer" "$scratch/run.tsv"
    ;;
  pkg-config)
    export PKG_CONFIG_PATH="$libdir/pkgconfig"
    said=$(realpath "$(pkg-config --variable=prefix kymo)")
    [ "$said" = "$(realpath "$prefix")" ] || { echo "kymo.pc says that the prefix is $said, it is $prefix"; exit 1; }
    # shellcheck disable=SC2046  # flags are words
    "$cxx" -std=c++20 -O2 -o "$scratch/consumer" "$consumer/consumer.cc" $(pkg-config --cflags --libs kymo)
    links_only "$scratch/consumer" libkymo libzstd
    LD_LIBRARY_PATH="$libdir" "$scratch/consumer" "$scratch/run.tsv"
    # The user chooses the C++ standard. The flags of kymo.pc come last, so they would override the choice.
    case "$(pkg-config --cflags kymo)" in *-std=*) echo "kymo.pc sets the standard"; exit 1 ;; esac
    for header in "$prefix"/include/kymo/*.h; do
      case "$header" in */version.h | */prometheus.h) continue ;; esac
      # shellcheck disable=SC2046
      "$cxx" -std=c++17 -fsyntax-only -Wfatal-errors -x c++ "$header" $(pkg-config --cflags kymo) >"$scratch/std.log" 2>&1 &&
        { echo "$header compiles as C++17, where half of it is missing"; exit 1; }
      grep -q "kymo's headers need C++20 or later" "$scratch/std.log" || { cat "$scratch/std.log"; exit 1; }
    done
    ;;
  dlopen)
    configure_consumer
    links_only "$scratch/build/host"
    "$scratch/build/host" "$(find "$scratch/build" -name 'libplugin.so')"
    ;;
  bridge)
    configure_consumer -DWITH_BRIDGE=ON
    "$scratch/build/bridge"
    # If prometheus-cpp is not found, libkymo is installed without the bridge. A project that needs the bridge gets an
    # error that says what to do.
    no_prometheus=(-DCMAKE_PREFIX_PATH="$prefix" -DCMAKE_CXX_COMPILER="$cxx" -DCMAKE_DISABLE_FIND_PACKAGE_prometheus-cpp=ON)
    cmake -S "$consumer" -B "$scratch/without" -G Ninja "${no_prometheus[@]}" >"$scratch/cmake.log" 2>&1 ||
      { cat "$scratch/cmake.log"; exit 1; }
    if cmake -S "$consumer" -B "$scratch/asked" -G Ninja "${no_prometheus[@]}" -DASK_FOR_BRIDGE=ON >"$scratch/cmake.log" 2>&1; then
      echo "it was configured without prometheus-cpp"
      exit 1
    fi
    tr -s ' \n' ' ' <"$scratch/cmake.log" | grep -q "no kymo::prometheus: prometheus-cpp was not found: install it" ||
      { cat "$scratch/cmake.log"; exit 1; }
    ;;
  *) echo "unknown way '$way'" >&2; exit 2 ;;
esac
