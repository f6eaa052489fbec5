#!/bin/sh
# Runs the dumbbell of `cargo bench -p fairpath-sim` in ns-3, where that is installed.
set -eu
cd "$(dirname "$0")/.."

modules='ns3-core ns3-network ns3-internet ns3-point-to-point ns3-applications ns3-traffic-control'
compiler=${CXX:-c++}
if ! command -v pkg-config >/dev/null || ! pkg-config --exists $modules || ! command -v "$compiler" >/dev/null; then
    echo "ns-3: skipped, it is not installed (Debian: apt-get install libns3-dev g++ pkg-config)"
    exit 0
fi
mkdir -p target/ns3
program=target/ns3/dumbbell
if [ ! -x "$program" ] || [ scripts/ns3/dumbbell.cc -nt "$program" ]; then
    # By name: what the packages say in full names development files of other libraries too.
    libraries=$(printf -- '-l%s ' $modules)
    "$compiler" -std=c++17 -O2 scripts/ns3/dumbbell.cc -o "$program" $(pkg-config --cflags $modules) $libraries
fi
"$program" "${1:-100}"
