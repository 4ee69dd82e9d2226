#!/usr/bin/env bash
# Installs the build to a temporary prefix, and uses it as another project would.
#   install_test.sh BUILD_DIR CONSUMER_DIR CXX cmake|pkg-config|dlopen|bridge
set -euo pipefail
build=$1 consumer=$2 cxx=$3 way=$4
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
prefix="$scratch/prefix"
cmake --install "$build" --component library --prefix "$prefix" >"$scratch/install.log" || { cat "$scratch/install.log"; exit 1; }
pc=$(find "$prefix" -name kymo.pc)
libdir=$(dirname "$(dirname "$pc")")

configure_consumer() {
  cmake -S "$consumer" -B "$scratch/build" -G Ninja -DCMAKE_BUILD_TYPE=Release \
    -DCMAKE_PREFIX_PATH="$prefix" -DCMAKE_CXX_COMPILER="$cxx" "$@" >"$scratch/cmake.log" &&
    cmake --build "$scratch/build" >>"$scratch/cmake.log" || { cat "$scratch/cmake.log"; exit 1; }
}

# links_only FILE NAME...: what the loader brings in for FILE is these and the kernel's own.
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
    # shellcheck disable=SC2046  # flags are words
    "$cxx" -O2 -o "$scratch/consumer" "$consumer/consumer.cc" $(pkg-config --define-prefix --cflags --libs kymo)
    links_only "$scratch/consumer" libkymo libzstd
    LD_LIBRARY_PATH="$libdir" "$scratch/consumer" "$scratch/run.tsv"
    ;;
  dlopen)
    configure_consumer
    links_only "$scratch/build/host"
    "$scratch/build/host" "$(find "$scratch/build" -name 'libplugin.so')"
    ;;
  bridge)
    configure_consumer -DWITH_BRIDGE=ON
    "$scratch/build/bridge"
    ;;
  *) echo "unknown way '$way'" >&2; exit 2 ;;
esac
