#!/bin/sh
# Measures again what docs/evidence says, and makes its pages anew: the experiments of `fairpath lab` and the benches.
# QUICK=1 takes the short forms and leaves the benches out, which need a release build each. ONLY=NAME takes one
# experiment, or all of a paper. SEEDS=N takes that many seeds. What was interrupted goes on where it was.
set -eu

name=${ONLY:-all}
profile=--release
quick=
if [ -n "${QUICK:-}" ]; then
    profile=
    quick=--quick
fi
seeds=${SEEDS:+--seeds $SEEDS}

# Results of their own for each choice: what an earlier one left would become pages again.
results=target/evidence/$(echo "$name$quick$seeds" | tr '/ ' '__')
# shellcheck disable=SC2086
cargo run --quiet $profile -p fairpath-cli -- lab run "$name" $quick $seeds --out "$results" --resume
benches=
if [ -z "$quick" ] && [ "$name" = all ]; then
    # A page of an older result would name the commit of today.
    rm -rf target/evidence-benches
    for crate in cc sbd rate engine net; do
        CRITERION_HOME="$PWD/target/evidence-benches/$crate" cargo bench -p "fairpath-$crate"
    done
    figures="$PWD/target/evidence-benches"
    FAIRPATH_GOODPUT_JSON="$figures/goodput.json" cargo bench -p fairpath-quic --bench goodput -- loopback
    FAIRPATH_DETECTION_JSON="$figures/detection.json" cargo bench -p fairpath-faults --bench tables -- detection
    FAIRPATH_ABLATION_JSON="$figures/ablation.json" cargo bench -p fairpath-faults --bench tables -- ablation
    FAIRPATH_HEALTH_JSON="$figures/health.json" cargo bench -p fairpath-faults --bench tables -- health
    FAIRPATH_STREAMS_JSON="$figures/streams.json" cargo bench -p fairpath-faults --bench tables -- streams
    FAIRPATH_PACKET_ORDER_JSON="$figures/packet_order.json" cargo test --quiet -p fairpath-proxy --lib sensitivity
    FAIRPATH_PAUSES_JSON="$figures/pauses.json" cargo test --quiet -p fairpath-faults --test all pauses:: -- --ignored
    benches="--criterion target/evidence-benches"
fi
# shellcheck disable=SC2086
cargo run --quiet $profile -p fairpath-cli -- lab pages --from "$results" $benches
