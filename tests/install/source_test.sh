#!/usr/bin/env bash
# Builds libkymo from the source tree as other projects would.
#   source_test.sh SOURCE CXX fetch|static|tools
set -euo pipefail
source=$1 cxx=$2 way=$3
here=$(dirname "$(realpath "$0")")
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
# Speed does not matter here, so the build is a quick one.
quick=(-G Ninja -DCMAKE_CXX_COMPILER="$cxx" -DCMAKE_BUILD_TYPE=Debug -DCMAKE_CXX_FLAGS_DEBUG=-O0
  -DCMAKE_UNITY_BUILD=ON -DCMAKE_UNITY_BUILD_BATCH_SIZE=16)

run_or_show() {
  "$@" >"$scratch/log" 2>&1 || { cat "$scratch/log"; exit 1; }
}

links_libkymo() { ldd "$1" | grep -q 'libkymo\.so'; }

case "$way" in
  fetch)
    run_or_show cmake -S "$here/fetch" -B "$scratch/build" "${quick[@]}" -DKYMO_SOURCE="$source"
    # A warning of a newer compiler must not stop another project's build.
    if grep -q -e -Werror "$scratch/build/build.ninja"; then echo "its warnings are errors"; exit 1; fi
    run_or_show cmake --build "$scratch/build"
    links_libkymo "$scratch/build/consumer" || { echo "it is not linked with libkymo.so"; exit 1; }
    "$scratch/build/consumer" "$scratch/shared.tsv"
    run_or_show cmake "$scratch/build" -DKYMO_STATIC=ON
    run_or_show cmake --build "$scratch/build"
    if links_libkymo "$scratch/build/consumer"; then echo "it is linked with libkymo.so"; exit 1; fi
    "$scratch/build/consumer" "$scratch/static.tsv"
    # What the table in docs/library.md says about the Python module, the project's own installation and the command.
    modules=$(sed -n 's/^modules=//p' "$scratch/build/modules")
    run_or_show env PYTHONPATH="$modules" PYTHONDONTWRITEBYTECODE=1 python3 -c 'import importlib.util, sys
sys.exit(importlib.util.find_spec("kymo_recording") is None)'
    run_or_show cmake --install "$scratch/build" --prefix "$scratch/prefix"
    for file in bin/consumer include/kymo/registry.h share/kymo/scripts/kymo_recording.py; do
      [ -s "$scratch/prefix/$file" ] || { echo "$file is not installed"; exit 1; }
    done
    find "$scratch/prefix" -name kymoConfig.cmake | grep -q . || { echo "the package is not installed"; exit 1; }
    "$scratch/prefix/bin/consumer" "$scratch/installed.tsv"
    run_or_show cmake "$scratch/build" -DKYMO_BUILD_TOOLS=ON -DKYMO_WEB=OFF
    run_or_show ninja -C "$scratch/build" -n kymo_reader
    if grep -q -e -Werror "$scratch/build/build.ninja"; then echo "the command's warnings are errors"; exit 1; fi
    ;;
  static)
    run_or_show cmake -S "$source" -B "$scratch/build" "${quick[@]}" -DKYMO_BUILD_PROGRAMS=OFF \
      -DKYMO_BUILD_TESTS=OFF -DKYMO_BUILD_EXAMPLES=OFF -DKYMO_BUILD_PROMETHEUS=OFF -DKYMO_STATIC=ON
    run_or_show cmake --build "$scratch/build"
    run_or_show cmake --install "$scratch/build" --prefix "$scratch/prefix"
    shared=$(find "$scratch/prefix" -name '*.so*')
    [ -z "$shared" ] || { echo "shared libraries are installed: $shared"; exit 1; }
    # A program must find the libraries that the static archive needs, both by CMake and by
    # pkg-config.
    run_or_show cmake -S "$here/consumer" -B "$scratch/consumer" "${quick[@]}" -DCMAKE_PREFIX_PATH="$scratch/prefix"
    run_or_show cmake --build "$scratch/consumer" --target consumer
    "$scratch/consumer/consumer" "$scratch/cmake.tsv"
    export PKG_CONFIG_PATH
    PKG_CONFIG_PATH=$(dirname "$(find "$scratch/prefix" -name kymo.pc)")
    # shellcheck disable=SC2046  # flags are words
    run_or_show "$cxx" -std=c++20 -o "$scratch/by-pkg-config" "$here/consumer/consumer.cc" $(pkg-config --cflags --libs kymo)
    "$scratch/by-pkg-config" "$scratch/pkg-config.tsv"
    # Loads the Python module from the folder that the documents name.
    run_or_show env PYTHONPATH="$scratch/prefix/share/kymo/scripts" python3 -c 'import importlib.util, sys
sys.exit(importlib.util.find_spec("kymo_recording") is None)'
    grep -q 'PYTHONPATH=PREFIX/share/kymo/scripts' "$source/docs/export.md" "$source/docs/library.md"
    ;;
  tools)
    # A kymo without gRPC must build without the packages that CRIU, gRPC and BPF need.
    without=()
    for package in gRPC LibArchive prometheus-cpp LibLZMA BZip2; do
      without+=("-DCMAKE_DISABLE_FIND_PACKAGE_$package=ON")
    done
    run_or_show cmake -S "$source" -B "$scratch/build" "${quick[@]}" "${without[@]}" -DKYMO_CLANG=missing-NOTFOUND \
      -DKYMO_BUILD_PROGRAMS=OFF -DKYMO_BUILD_TESTS=OFF -DKYMO_BUILD_PROMETHEUS=OFF -DKYMO_BUILD_TOOLS=ON
    run_or_show ninja -C "$scratch/build" -n kymo_reader
    if grep -q 'grpc\|criu\|bpf' "$scratch/build/build.ninja"; then echo "it is built of gRPC, CRIU or BPF"; exit 1; fi
    ;;
  *) echo "unknown way '$way'" >&2; exit 2 ;;
esac
