#!/bin/sh
# Tries the example of hq-interop against aioquic, each as client and as server, over loopback.
#
# aioquic comes from PyPI into a virtual environment below target. Where there is no Python or no PyPI, it is skipped.
set -u

cd "$(dirname "$0")/.." || exit 1
PATH="${CARGO_HOME:-${HOME:-/root}/.cargo}/bin:$PATH"
export PATH

place=target/interop
port=${INTEROP_PORT:-24433}
running=

skip() {
    printf 'interop: skipped: %s\n' "$*" >&2
    exit 0
}

fail() {
    printf 'interop: %s\n' "$*" >&2
    exit 1
}

# The processes that were started here, and no others.
stop() {
    for process in $running; do kill "$process" 2>/dev/null; done
    running=
}
trap stop EXIT
trap 'exit 1' HUP INT TERM

command -v python3 >/dev/null 2>&1 || skip 'there is no python3'
mkdir -p "$place" || exit 1
[ -x "$place/venv/bin/python" ] || python3 -m venv "$place/venv" || skip 'python3 makes no virtual environment'
"$place/venv/bin/python" -c 'import aioquic' 2>/dev/null ||
    "$place/venv/bin/pip" install --quiet 'aioquic==1.*' || skip 'aioquic cannot be installed from PyPI'
python=$place/venv/bin/python
cargo build --quiet -p fairpath-quic-core --example hq_interop || exit 1
ours=${CARGO_TARGET_DIR:-target}/debug/examples/hq_interop

rm -rf "$place/root" "$place/out"
mkdir -p "$place/root"
head -c 3000 /dev/urandom >"$place/root/small"
head -c 10000000 /dev/urandom >"$place/root/large"
"$python" - "$place" <<'END' || fail 'no certificate could be made'
import datetime, sys
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
place, now = sys.argv[1], datetime.datetime.now(datetime.timezone.utc)
key = ec.generate_private_key(ec.SECP256R1())
name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "interop")])
builder = x509.CertificateBuilder().subject_name(name).issuer_name(name).public_key(key.public_key())
builder = builder.serial_number(1).not_valid_before(now).not_valid_after(now + datetime.timedelta(days=2))
pem = serialization.Encoding.PEM
with open(f"{place}/cert.pem", "wb") as file:
    file.write(builder.sign(key, hashes.SHA256()).public_bytes(pem))
with open(f"{place}/key.pem", "wb") as file:
    file.write(key.private_bytes(pem, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()))
END

# Starts a server in the background, and gives it a moment.
start() {
    "$@" 2>"$place/server.log" &
    running="$running $!"
    sleep 2
}

# Whether both files came as they are.
same() {
    for file in small large; do
        cmp -s "$place/root/$file" "$place/out/$file" || fail "$1: $file came damaged, or not at all"
    done
    printf 'interop: %s: as it should\n' "$1"
    rm -rf "$place/out"
}

for retry in '' --retry; do
    mkdir -p "$place/out"
    start "$ours" server --listen "127.0.0.1:$port" --root "$place/root" $retry
    timeout 120 "$python" scripts/interop.py client "$port" "$place/out" small large || fail "aioquic's client failed"
    stop
    same "aioquic's client, our server $retry"
done

start "$python" scripts/interop.py server "$port" "$place/cert.pem" "$place/key.pem" "$place/root"
timeout 120 "$ours" client --case transfer --bind 127.0.0.1 --bind 127.0.0.2 --out "$place/out" \
    "https://127.0.0.1:$port/small" "https://127.0.0.1:$port/large" 2>"$place/client.log" ||
    fail "our client failed: $(cat "$place/client.log")"
grep -q 'the peer offers one path' "$place/client.log" || fail "our client says nothing of the one path that there was"
stop
same "our client, aioquic's server, which asks for a Retry and has no multipath"

start "$python" scripts/interop.py server "$port" "$place/cert.pem" "$place/key.pem" "$place/root" h3
timeout 60 "$ours" client --case handshake --bind 127.0.0.1 --out "$place/out" "https://127.0.0.1:$port/small" \
    2>"$place/client.log" && fail 'our client took a server that speaks another protocol'
grep -q "'hq-interop' was offered (ALPN)" "$place/client.log" ||
    fail "our client does not name the protocol: $(cat "$place/client.log")"
stop
printf 'interop: a server of another protocol: named\n'
