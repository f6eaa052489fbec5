#!/bin/sh
# The figures of the proxy, with curl over described links in network namespaces, and their pages in docs/evidence. Needs
# root, ip and curl. QUICK=1 takes the short form (three minutes once built), ONLY=outage,fair these tables, SEEDS=N that
# many runs. Peers are measured where their programs are on the PATH: ssserver and sslocal, sing-box.
set -eu

export FAIRPATH_FIGURES="$PWD/target/proxy-figures"
quick=${QUICK:-}
# The whole form measures the program as people install it. Never in the short form: it takes ten minutes to build.
profile=--release
[ -z "$quick" ] || profile=
# Old results would become pages again.
rm -rf "$FAIRPATH_FIGURES" target/proxy-pages

# shellcheck disable=SC2086
cargo test $profile -p fairpath-cli --test namespaces --no-run
# In a session of its own, so that all that it started ends with it.
# shellcheck disable=SC2086
setsid cargo test --quiet $profile -p fairpath-cli --test namespaces tables_of_the_proxy -- --ignored --nocapture &
measuring=$!
clean() {
    kill -KILL "-$measuring" 2>/dev/null || true
    for name in $(ip netns list 2>/dev/null | cut -d ' ' -f 1 | grep '^fairpath-[0-9]*-described-'); do
        owner=${name#fairpath-}
        owner=${owner%%-*}
        # Those of another run stay.
        patience=10
        while [ -e "/proc/$owner" ] && [ "$patience" -gt 0 ]; do
            sleep 1
            patience=$((patience - 1))
        done
        [ "$patience" -gt 0 ] || continue
        ip netns pids "$name" | xargs -r kill -KILL 2>/dev/null || true
        ip netns delete "$name"
        rm -rf "/dev/shm/fairpath-namespaces-$owner-"* "/tmp/fairpath-namespaces-$owner-"*
    done
}
trap clean EXIT
trap 'exit 130' INT TERM HUP
wait "$measuring"

# Without root there are no figures, and no pages.
[ -d "$FAIRPATH_FIGURES" ] || exit 0
# shellcheck disable=SC2086
cargo run --quiet $profile -p fairpath-cli -- lab pages --from target/proxy-pages --criterion "$FAIRPATH_FIGURES" \
    --to "${PAGES:-docs/evidence}"
