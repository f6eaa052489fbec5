#!/bin/sh
# Checks that everything is there to build and test Fairpath, and is silent when it is.
# As root, on a system with apt-get, it installs what is missing; otherwise it says what that is
# and how to get it, and ends with 1.
# usage: setup.sh [PROGRAM…], with further programs that are needed, each of the package of its name
set -u

RUST_MINOR_MIN=88 # as rust-version in Cargo.toml
PATH="${CARGO_HOME:-${HOME:-/root}/.cargo}/bin:$PATH"
export PATH

has() { command -v "$1" >/dev/null 2>&1; }
say() { printf 'setup: %s\n' "$*" >&2; }

may_install=no
if [ "$(id -u)" = 0 ] && has apt-get; then may_install=yes; fi

apt_is_fresh=no
apt_install() {
    if [ "$apt_is_fresh" = no ]; then
        apt-get update -qq >/dev/null || return 1
        apt_is_fresh=yes
    fi
    DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "$@" >/dev/null
}

rust_is_new_enough() {
    has cargo && has rustc || return 1
    version=$(rustc --version 2>/dev/null | cut -d ' ' -f 2)
    major=${version%%.*}
    rest=${version#*.}
    minor=${rest%%.*}
    case "$major$minor" in '' | *[!0-9]*) return 1 ;; esac
    [ "$major" -gt 1 ] || [ "$minor" -ge "$RUST_MINOR_MIN" ]
}

has_components() { cargo fmt --version >/dev/null 2>&1 && cargo clippy --version >/dev/null 2>&1; }

install_rust() {
    if has rustup; then
        say "updating Rust with rustup (needs the network)"
        rustup toolchain install stable --profile minimal --component rustfmt --component clippy &&
            rustup default stable
        return
    fi
    has curl || apt_install curl ca-certificates || return 1
    say "installing Rust with rustup from https://sh.rustup.rs (needs the network)"
    curl --proto '=https' --tlsv1.2 -sSf https://sh.rustup.rs |
        sh -s -- -y --profile minimal --component rustfmt --component clippy
}

missing=0
lacks() {
    say "missing: $1"
    say "    $2"
    missing=1
}

# A C compiler: the cryptography library has parts in C.
if ! has cc && [ "$may_install" = yes ]; then
    say "installing a C compiler (needs the network)"
    apt_install build-essential
fi
has cc || lacks "a C compiler (cc)" "Debian, Ubuntu: apt-get install build-essential · Fedora: dnf install gcc"

if ! rust_is_new_enough && [ "$may_install" = yes ]; then
    install_rust
fi
if ! rust_is_new_enough; then
    lacks "Rust 1.$RUST_MINOR_MIN or later (cargo and rustc)" \
        "https://rustup.rs, or: curl https://sh.rustup.rs -sSf | sh (needs the network)"
elif ! has_components; then
    has rustup && rustup component add rustfmt clippy
    has_components || lacks "rustfmt and clippy" "rustup component add rustfmt clippy (needs the network)"
fi

# Only tests that build networks of their own, as root, need these.
if ! { has ip && has tc; } && [ "$may_install" = yes ]; then
    say "installing iproute2 (needs the network)"
    apt_install iproute2
fi
if ! { has ip && has tc; }; then
    say "note: ip and tc (package iproute2) are not there; the tests that need them will be skipped"
fi

for program in "$@"; do
    if ! has "$program" && [ "$may_install" = yes ]; then
        say "installing $program (needs the network)"
        apt_install "$program"
    fi
    has "$program" || lacks "$program" "Debian, Ubuntu: apt-get install $program · Fedora: dnf install $program"
done

exit "$missing"
