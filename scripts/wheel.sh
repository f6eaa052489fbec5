#!/bin/sh
# Builds the Python package: a wheel for Python 3.10 and later, and the source package, in target/wheels.
# maturin comes from PyPI into a virtual environment below target.
set -eu

cd "$(dirname "$0")/.."
PATH="${CARGO_HOME:-${HOME:-/root}/.cargo}/bin:$PATH"
export PATH

venv=$PWD/target/wheel/venv
if [ ! -x "$venv/bin/maturin" ]; then
    if ! python3 -c 'import sys; sys.exit(sys.version_info < (3, 10))' 2>/dev/null || ! python3 -m venv "$venv"; then
        echo "wheel: Python 3.10 or later with venv is needed (Debian: apt-get install python3-venv)" >&2
        exit 1
    fi
    if ! "$venv/bin/pip" install --quiet 'maturin>=1.9,<2'; then
        echo "wheel: maturin cannot be had from PyPI" >&2
        exit 1
    fi
fi

rm -rf target/wheels
"$venv/bin/maturin" build --manifest-path crates/py/Cargo.toml --out target/wheels
"$venv/bin/maturin" sdist --manifest-path crates/py/Cargo.toml --out target/wheels
ls -l target/wheels
