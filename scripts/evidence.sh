#!/bin/sh
# Measures again what docs/evidence says, and makes its pages anew: the experiments of `fairpath lab` and the benches.
# QUICK=1 takes the short forms and leaves the benches out, which need a release build each. ONLY=NAME takes one
# experiment, or all of a paper. SEEDS=N takes that many seeds.
set -eu

results=target/evidence
name=${ONLY:-all}
profile=--release
quick=
if [ -n "${QUICK:-}" ]; then
    profile=
    quick=--quick
fi
seeds=${SEEDS:+--seeds $SEEDS}

# Old results would become pages again.
rm -rf "$results"
# shellcheck disable=SC2086
cargo run --quiet $profile -p fairpath-cli -- lab run "$name" $quick $seeds --out "$results"
if [ -z "$quick" ] && [ "$name" = all ]; then
    for crate in cc sbd rate engine net; do
        CRITERION_HOME="$PWD/target/evidence-benches/$crate" cargo bench -p "fairpath-$crate"
    done
    figures="$PWD/target/evidence-benches"
    FAIRPATH_GOODPUT_JSON="$figures/goodput.json" cargo bench -p fairpath-quic --bench goodput -- loopback
    FAIRPATH_DETECTION_JSON="$figures/detection.json" cargo bench -p fairpath-faults --bench tables -- detection
    FAIRPATH_ABLATION_JSON="$figures/ablation.json" cargo bench -p fairpath-faults --bench tables -- ablation
    FAIRPATH_STREAMS_JSON="$figures/streams.json" cargo bench -p fairpath-faults --bench tables -- streams
fi
# shellcheck disable=SC2086
cargo run --quiet $profile -p fairpath-cli -- lab pages --from "$results" --criterion target/evidence-benches
