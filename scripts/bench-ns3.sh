#!/bin/sh
# Runs the dumbbell of `cargo bench -p fairpath-sim` in ns-3: in the one that the system has
# installed, and in the one below $NS3_PREFIX, a build of one's own, where that is set:
#   cmake -S ns-3 -B build -DCMAKE_BUILD_TYPE=release -DCMAKE_INSTALL_PREFIX=$HOME/ns3 && cmake --build build --target install
#   NS3_PREFIX=$HOME/ns3 make bench-sim
set -eu
cd "$(dirname "$0")/.."

compiler=${CXX:-c++}

build() {
    "$compiler" -std="$1" -O3 scripts/ns3/dumbbell.cc -o "$program" \
        $(pkg-config --cflags ns3-core) $libraries -Wl,-rpath,"$directory"
}

# measure WHOSE SECONDS: by what pkg-config finds now
measure() {
    if ! command -v pkg-config >/dev/null || ! pkg-config --exists ns3-core || ! command -v "$compiler" >/dev/null; then
        echo "ns-3, $1: skipped, it is not there (Debian: apt-get install libns3-dev g++ pkg-config)"
        return
    fi
    directory=$(pkg-config --variable=libdir ns3-core)
    libraries=
    for module in core network internet point-to-point applications traffic-control; do
        # The version is part of the name in builds of one's own. What the packages say besides
        # names development files of other libraries.
        libraries="$libraries $(ls "$directory"/libns3*-$module.so | head -n 1)"
    done
    mkdir -p target/ns3
    program=target/ns3/dumbbell-$(pkg-config --modversion ns3-core)
    if [ ! -x "$program" ] || [ scripts/ns3/dumbbell.cc -nt "$program" ] || [ "$directory" -nt "$program" ]; then
        # ns-3 is written in the C++ of its year.
        build c++17 2>/dev/null || build c++23
    fi
    echo "ns-3 $(pkg-config --modversion ns3-core), $1"
    "$program" "$2"
}

measure "of the system" "${1:-100}"
if [ -n "${NS3_PREFIX:-}" ]; then
    PKG_CONFIG_LIBDIR=$NS3_PREFIX/lib/pkgconfig:$NS3_PREFIX/lib64/pkgconfig
    export PKG_CONFIG_LIBDIR
    measure "below $NS3_PREFIX" "${1:-100}"
fi
