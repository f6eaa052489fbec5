#!/bin/sh
# The crates that are to be published, packed and built from their packages; and their interfaces beside those of a
# commit (BASE; the last tag where none is named), where cargo-semver-checks is installed.
set -eu

unpublished="--exclude fairpath-faults --exclude fairpath-fuzz --exclude fairpath-house"

# shellcheck disable=SC2086
cargo package --workspace $unpublished

base=${BASE:-$(git describe --tags --abbrev=0 2>/dev/null || true)}
if ! cargo semver-checks --version >/dev/null 2>&1; then
	echo "package: interfaces not compared, cargo-semver-checks is missing (cargo install cargo-semver-checks --locked)"
elif [ -z "$base" ]; then
	echo "package: interfaces not compared, there is no release yet (BASE=COMMIT names something to compare with)"
else
	# shellcheck disable=SC2086
	cargo semver-checks --workspace $unpublished --baseline-rev "$base"
fi
