# The two commands that a newcomer needs are `make demo` and `make test`. `make help` lists all.

export PATH := $(HOME)/.cargo/bin:$(PATH)

# The crates that do no I/O also build where there is no operating system; quic-core too, where its cryptography can be compiled.
WASM_TARGET := wasm32-unknown-unknown
WASM_CRATES := core cc sbd sched engine theory rate stream net scenario sim

# The oldest Rust with which everything builds, as rust-version in Cargo.toml says.
MSRV := $(shell sed -n 's/^rust-version = "\(.*\)"/\1/p' Cargo.toml)

.PHONY: help demo release test bench bench-sim evidence faults proxy-figures live fuzz interop package deb wheel python setup fmt lint fmt-check clippy check-least doc fetch unit wasm msrv clean
.DEFAULT_GOAL := help

help: ## this list
	@grep -E '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed 's/:.*## /\t/' | while IFS="$$(printf '\t')" read -r name text; do \
		printf 'make %-13s %s\n' "$$name" "$$text"; done

demo: setup ## fast over two links, fair on one: no root, no network; half a minute once built
	cargo run --profile demo -p fairpath-demo

release: setup ## the program, optimised and small, with its debug information in a file beside it (ten minutes)
	cargo build --release -p fairpath-cli
	objcopy --only-keep-debug target/release/fairpath target/release/fairpath.debug
	objcopy --strip-all --add-gnu-debuglink=target/release/fairpath.debug target/release/fairpath target/release/fairpath.stripped
	mv target/release/fairpath.stripped target/release/fairpath
	@ls -l target/release/fairpath target/release/fairpath.debug

# A first build has nothing to begin from, and what a later one would begin from costs it a part of its time.
test: export CARGO_INCREMENTAL ?= $(if $(wildcard target/debug/incremental),1,0)
test: setup ## all tests (a quarter of an hour on two cores)
	@$(MAKE) --no-print-directory fetch
	@$(MAKE) --no-print-directory unit

bench: setup ## the figures: one acknowledgement, one delay sample, one decision, the emulator's timing, goodput against plain QUIC, how fast virtual time runs, small files against tar
	cargo bench -p fairpath-cc
	cargo bench -p fairpath-sbd
	cargo bench -p fairpath-rate
	cargo bench -p fairpath-engine
	cargo bench -p fairpath-emu
	cargo bench -p fairpath-quic
	cargo bench -p fairpath-faults
	cargo bench -p fairpath-cli

bench-sim: setup ## how fast the simulator is, beside htsim (HTSIM_DUMBBELL) and ns-3 where they are installed
	cargo bench -p fairpath-net
	cargo bench -p fairpath-sim
	@sh scripts/bench-ns3.sh

evidence: setup ## what docs/evidence says, measured again, and its pages (hours; QUICK=1 minutes, ONLY=olia one paper)
	@sh scripts/evidence.sh

faults: setup ## faults drawn from 10,000 seeds, in virtual time; as root, links down for 2 to 25 s too (half an hour)
	cargo run --release -p fairpath-faults -- --seeds $(or $(SEEDS),0..10000)
	cargo run --release -p fairpath-faults -- --streams --seeds $(or $(SEEDS),0..10000)
	cargo run --release -p fairpath-faults -- --files --seeds $(or $(SEEDS),0..10000)
	cargo test --release -p fairpath-faults --test all -- --ignored
	cargo test -p fairpath-cli --test namespaces table_of_outages -- --ignored --nocapture
	@sh scripts/seed-shifts.sh

proxy-figures: setup ## what a proxy's users get, with curl over described links, and its pages; needs root (an hour; QUICK=1 three minutes)
	@sh scripts/proxy-figures.sh

live: ## a picture that ffmpeg sends over two links, of which one goes bad, with and without us (a quarter of an hour; needs ffmpeg)
	@sh scripts/setup.sh ffmpeg
	FAIRPATH_LIVE_OUT=$(CURDIR)/docs/live.svg cargo test -p fairpath-cli --test all live:: -- --ignored --nocapture

package: setup ## the crates that are to be published, packed and built from their packages; BASE=COMMIT compares interfaces (ten minutes)
	@sh scripts/package.sh

deb: ## a package for Debian of the program of `make release`, in target/deb; needs dpkg-deb
	@sh scripts/deb.sh

wheel: setup ## the Python package, a wheel and its sources, in target/wheels; needs Python 3.10 and PyPI (five minutes)
	@sh scripts/wheel.sh

python: setup ## the Python package's long tests: all notebooks, Ray with a node killed (five minutes; FIGURES=1 measures)
	@sh scripts/python.sh

fuzz: setup ## everything that is parsed of others, one minute for each (FUZZ_SECONDS); needs a C++ compiler
	@sh scripts/fuzz.sh

interop: ## the example of hq-interop against other QUIC stacks, aioquic and picoquic; needs Python, PyPI and cmake (five minutes)
	@sh scripts/interop.sh

setup: ## check the tools, and install what is missing where that is possible
	@sh scripts/setup.sh

fmt: ## bring the code into its form
	cargo fmt --all

clean: ## remove what was built
	cargo clean

lint: setup fmt-check clippy check-least doc wasm ## form, clippy, documentation, builds of parts: with `make test`, what must hold before a change lands

fmt-check:
	cargo fmt --all --check

clippy:
	cargo clippy --workspace --all-targets -- -D warnings

# The program without what its features bring.
check-least:
	cargo check -p fairpath-cli --no-default-features

doc:
	RUSTDOCFLAGS="-D warnings" cargo doc --workspace --no-deps --quiet

# The licence check reads the crates of all platforms, where they can be had.
fetch:
	@cargo fetch --quiet || echo "fetch: not all crates could be had; licences are checked for this platform only"

# Tests that wait for the real clock, and beside them those that only compute.
unit:
	cargo run --quiet -p fairpath-house --bin side-by-side -- --workspace

wasm:
	@if [ -d "$$(rustc --print target-libdir --target $(WASM_TARGET) 2>/dev/null)" ]; then \
		command -v clang >/dev/null && with="-p fairpath-quic-core" || \
			echo "wasm: quic-core skipped, its cryptography needs clang (Debian: apt-get install clang)"; \
		set -x; cargo check --target $(WASM_TARGET) $(WASM_CRATES:%=-p fairpath-%) $$with; \
	else \
		echo "wasm: skipped, the target is not installed (rustup target add $(WASM_TARGET))"; \
	fi

# `make lint` is enough from day to day: clippy (incompatible_msrv) already refuses what the standard library did not have then.
msrv: ## everything built with the oldest Rust that Cargo.toml names, as CI does
	@if toolchain=$$(rustup toolchain list 2>/dev/null | grep -o '^$(subst .,\.,$(MSRV))[.0-9]*-[^ ]*' | head -n 1) && [ -n "$$toolchain" ]; then \
		set -x; cargo "+$$toolchain" check --workspace --target-dir target/msrv; \
	else \
		echo "msrv: skipped, Rust $(MSRV) is not installed (rustup toolchain install $(MSRV) --profile minimal)"; \
	fi
