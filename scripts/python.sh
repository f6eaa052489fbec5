#!/bin/sh
# The long tests of the Python package: all notebooks, a Ray cluster of which a node is killed, the papers' experiments
# over Ray. Needs Python 3.10 or later and PyPI. FIGURES=1 measures, too, and needs the program and the package in
# release form (`make release`, `make wheel`).
set -eu
cd "$(dirname "$0")/.."
folder=target/python-long
[ -x "$folder/bin/python" ] || python3 -m venv "$folder"
"$folder/bin/pip" install --quiet pytest nanoarrow 'numpy>=1.24' 'gymnasium>=1.0' nbclient ipykernel 'ray>=2.40' ns.py
if [ "${FIGURES:-}" ]; then
    "$folder/bin/pip" install --quiet --force-reinstall --no-deps target/wheels/fairpath-*.whl
    exec "$folder/bin/python" scripts/python-figures.py all --out target/python-figures.json
fi
cargo build -p fairpath-py -p fairpath-cli
package=target/python-long/package
rm -rf "$package"
mkdir -p "$package"
cp -r crates/py/python/fairpath "$package"
cp target/debug/lib_fairpath.so "$package/fairpath/_fairpath.abi3.so"
PYTHONPATH="$PWD/$package" PYTHONDONTWRITEBYTECODE=1 PATH="$PWD/$folder/bin:$PATH" FAIRPATH="$PWD/target/debug/fairpath" \
    FAIRPATH_SCENARIOS="$PWD/scenarios" FAIRPATH_ALL_NOTEBOOKS=1 \
    "$folder/bin/python" -m pytest -p no:cacheprovider crates/py/tests
