#!/bin/sh
# The faults by name, with other seeds than their own (SEED_SHIFTS of them): a test may owe it to its seed that it passes.
# What fails is told with the command that repeats it.
set -u
shifts=${SEED_SHIFTS:-20}
cargo test --quiet --release -p fairpath-faults --test all named:: --no-run || exit 1
failed=0
for i in $(seq 1 "$shifts"); do
	shift_by=$((i * 1000))
	log=$(FAIRPATH_SEED_SHIFT=$shift_by cargo test --release -p fairpath-faults --test all named:: 2>/dev/null) && state=passed || state=FAILED
	printf 'seeds + %d: %s\n' "$shift_by" "$state"
	if [ "$state" = FAILED ]; then
		failed=1
		printf '%s\n' "$log" | sed -n '/^failures:/,$p'
		printf 'again: FAIRPATH_SEED_SHIFT=%d cargo test --release -p fairpath-faults --test all named::\n' "$shift_by"
	fi
done
exit $failed
