#!/bin/sh
# Fuzzes one target after the other and ends with the first crash.
#
#   scripts/fuzz.sh [TARGET…]   all targets unless some are named
#   FUZZ_SECONDS=60             how long each one runs
#
# libFuzzer is guided by what each input reaches. Stable Rust instruments for it with the flags below;
# a C++ compiler builds libFuzzer itself. What it finds on the way stays in target/fuzz/corpus.
set -u

cd "$(dirname "$0")/.." || exit 1
PATH="${CARGO_HOME:-${HOME:-/root}/.cargo}/bin:$PATH"
export PATH

seconds=${FUZZ_SECONDS:-60}
input_bytes_max=16384
input_seconds_max=10
memory_mb_max=2048
found=target/fuzz

fail() {
    printf 'fuzz: %s\n' "$*" >&2
    exit 1
}

case "$seconds" in
    '' | *[!0-9]* | 0) printf 'fuzz: FUZZ_SECONDS must be a whole number from 1 on, not "%s"\n' "$seconds" >&2; exit 2 ;;
esac
command -v c++ >/dev/null 2>&1 || fail "a C++ compiler (c++) is needed; Debian, Ubuntu: apt-get install g++"

host=$(rustc -vV | sed -n 's/^host: //p')
flags="--cfg fuzzing --cfg fuzzing_libfuzzer -Cpasses=sancov-module \
-Cllvm-args=-sanitizer-coverage-level=4 -Cllvm-args=-sanitizer-coverage-inline-8bit-counters \
-Cllvm-args=-sanitizer-coverage-pc-table -Cllvm-args=-sanitizer-coverage-trace-compares"
# With a target named, what runs while building is not instrumented.
RUSTFLAGS=$flags cargo build --profile fuzz -p fairpath-fuzz --features libfuzzer --target "$host" --target-dir "$found" ||
    fail "the fuzzer cannot be built"
program=$found/$host/fuzz/fairpath-fuzz

names=${*:-$("$program" list | cut -d ' ' -f 1)}
count=$(echo "$names" | wc -w)
number=0
pid=
trap 'test -n "$pid" && kill "$pid"; exit 130' INT TERM

# The last line in which the fuzzer says how far it is.
progress() { grep -a 'cov: ' "$1" | tail -n 1 | sed 's/^#\([0-9]*\).*cov: \([0-9]*\).*exec\/s: \([0-9]*\).*/\1 inputs, \3 in a second, \2 places reached/'; }

for name in $names; do
    number=$((number + 1))
    folders=$("$program" folders "$name") || exit 2
    mkdir -p "$found/corpus/$name" "$found/crashes"
    log=$found/$name.log
    "$program" words "$name" >"$found/$name.dict"
    options="$found/corpus/$name $(echo "$folders" | tr '\n' ' ')-max_total_time=$seconds -max_len=$input_bytes_max \
-timeout=$input_seconds_max -rss_limit_mb=$memory_mb_max -artifact_prefix=$found/crashes/$name-"
    if [ -s "$found/$name.dict" ]; then options="$options -dict=$found/$name.dict"; fi
    printf '%s/%s %s: %s s\n' "$number" "$count" "$name" "$seconds"
    RUST_BACKTRACE=0 BOLERO_LIBFUZZER_ARGS=$options "$program" fuzz "$name" >"$log" 2>&1 &
    pid=$!
    passed=0
    while kill -0 "$pid" 2>/dev/null; do
        sleep 1
        passed=$((passed + 1))
        if [ -t 1 ]; then
            printf '\r\033[K  %s s: %s' "$passed" "$(progress "$log")"
        elif [ $((passed % 20)) = 0 ]; then
            printf '  %s s: %s\n' "$passed" "$(progress "$log")"
        fi
    done
    if [ -t 1 ]; then printf '\r\033[K'; fi
    if wait "$pid"; then
        printf '  nothing found: %s\n' "$(progress "$log")"
    else
        input=$(sed -n 's/.*Test unit written to //p' "$log" | tail -n 1)
        {
            sed -n '/^Error:/,/^=====/p' "$log"
            tail -n 8 "$log"
        } | cut -c 1-2000 >&2
        printf '\nfuzz: %s fails, and so does\n    cargo run -p fairpath-fuzz -- check %s %s\n' "$name" "$name" "${input:-?}" >&2
        exit 1
    fi
    pid=
done
