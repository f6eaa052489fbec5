#!/bin/sh
# Tries the example of hq-interop against aioquic and picoquic, each as client and as server, over loopback.
#
# Both come from PyPI: aioquic into a virtual environment below target; picoquic out of the source package of aiopquic,
# which brings it and picotls along, compiled with cmake. What cannot be had is skipped, and said so.
set -u

cd "$(dirname "$0")/.." || exit 1
PATH="${CARGO_HOME:-${HOME:-/root}/.cargo}/bin:$PATH"
export PATH

place=$PWD/target/interop
python=$place/venv/bin/python
aiopquic=aiopquic-0.6.1

say() {
    printf 'interop: %s\n' "$*"
}

skip() {
    say "skipped: $*"
    exit 0
}

# Compiles picoquic's demo, and prints where it is.
picoquic() {
    demo=$place/picoquic/picoquicdemo
    if [ -x "$demo" ]; then
        say "picoquic: $demo" >&2
    else
        compile >"$place/picoquic.log" 2>&1 || {
            say "picoquic is skipped: $(tail -n 1 "$place/picoquic.log"), see $place/picoquic.log" >&2
            demo=-
        }
    fi
    printf '%s\n' "$demo"
}

compile() {
    for tool in cmake cc tar; do
        command -v "$tool" >/dev/null 2>&1 || { printf 'there is no %s\n' "$tool"; return 1; }
    done
    say "picoquic is compiled, which takes about two minutes" >&3
    # pip looks at the package's metadata, for which it wants a newer Python than its C sources do.
    "$python" -m pip download --quiet --no-deps --no-binary aiopquic --ignore-requires-python -d "$place" \
        "aiopquic==${aiopquic#aiopquic-}" || { printf 'aiopquic cannot be had from PyPI\n'; return 1; }
    tar -xzf "$place/$aiopquic.tar.gz" -C "$place" || return 1
    sources=$place/$aiopquic/third_party tls=$place/picotls
    cmake -S "$sources/picotls" -B "$tls" -DCMAKE_BUILD_TYPE=Release -DWITH_FUSION=OFF &&
        cmake --build "$tls" -j 2 --target picotls-core picotls-openssl picotls-minicrypto &&
        cmake -S "$sources/picoquic" -B "$place/picoquic" -DCMAKE_BUILD_TYPE=Release -Dpicoquic_BUILD_TESTS=OFF \
            -DBUILD_PICO_SIM=OFF -DBUILD_PQBENCH=OFF -DBUILD_LOGREADER=OFF \
            "-DPTLS_INCLUDE_DIR=$sources/picotls/include" "-DPTLS_CORE_LIBRARY=$tls/libpicotls-core.a" \
            "-DPTLS_OPENSSL_LIBRARY=$tls/libpicotls-openssl.a" \
            "-DPTLS_MINICRYPTO_LIBRARY=$tls/libpicotls-minicrypto.a" &&
        cmake --build "$place/picoquic" -j 2 --target picoquicdemo && return 0
    printf 'it does not compile (it needs OpenSSL with its headers)\n'
    return 1
}

command -v python3 >/dev/null 2>&1 || skip 'there is no python3'
mkdir -p "$place" || exit 1
[ -x "$python" ] || python3 -m venv "$place/venv" || skip 'python3 makes no virtual environment'
"$python" -c 'import aioquic' 2>/dev/null ||
    "$python" -m pip install --quiet 'aioquic==1.*' || skip 'aioquic cannot be installed from PyPI'
exec 3>&1
demo=$(picoquic)
say 'the example is compiled'
cargo build --quiet -p fairpath-quic-core --example hq_interop || exit 1
exec "$python" scripts/interop.py "$place" "${CARGO_TARGET_DIR:-target}/debug/examples/hq_interop" \
    "$PWD/scripts/interop_aioquic.py" "$demo" "$@"
