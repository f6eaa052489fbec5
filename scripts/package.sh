#!/bin/sh
# The crates that are to be published, packed and built from their packages; and their interfaces beside those of a
# commit (BASE; the last tag where none is named), where cargo-semver-checks is installed.
set -eu

# What is not published is not packed: faults and house look at the workspace, py becomes a wheel.
unpublished="--exclude fairpath-faults --exclude fairpath-fuzz --exclude fairpath-house --exclude fairpath-py"

# Each is built from its package, as a user's cargo would, with the others from their packages. A package knows no profile
# of the workspace: what is built here is of no use there, and lies in a folder of its own.
# shellcheck disable=SC2086
CARGO_TARGET_DIR="$PWD/target/packages" CARGO_PROFILE_DEV_DEBUG=0 cargo package --workspace --locked $unpublished

base=${BASE:-$(git describe --tags --abbrev=0 2>/dev/null || true)}
if ! cargo semver-checks --version >/dev/null 2>&1; then
	echo "package: interfaces not compared, cargo-semver-checks is missing (cargo install cargo-semver-checks --locked)"
elif [ -z "$base" ]; then
	echo "package: interfaces not compared, there is no release yet (BASE=COMMIT names something to compare with)"
else
	# shellcheck disable=SC2086
	cargo semver-checks --workspace $unpublished --baseline-rev "$base"
fi
