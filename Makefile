# make help    what there is to do

BINARY = $(or $(CARGO_TARGET_DIR),target)/release/wakescope
PREFIX = /usr/local
DESTDIR =
ROOT = $(DESTDIR)$(PREFIX)

.PHONY: help setup build guest-arm64 run test test-lab test-browser check bench score simulate install clean

help:
	@echo 'make run        measure for 10 s under the loads find, launch and file-move, and make a page of it'
	@echo 'make test       every test and lint, but for'
	@echo 'make test-lab   the tests that boot many guests, which take long'
	@echo 'make test-browser'
	@echo '                the tests that look at pages in a browser, which is installed if there is none'
	@echo 'make build      the command: $(BINARY)'
	@echo '                and what guests of the lab run: $(BINARY)-guest'
	@echo 'make check      formatting and lints only'
	@echo 'make guest-arm64'
	@echo '                what guests of the lab for arm64 run: target/guest/wakescope-aarch64'
	@echo 'make bench      what it costs, against cyclictest, jitterdebugger, bpftrace and perf; the lab against QEMU'
	@echo 'make score      how often explain blames the right cause, by lateness that was injected'
	@echo 'make simulate   how often compare and trend are right and wrong, on machines that are made up'
	@echo 'make install    the command, its man pages and completions, under PREFIX=$(PREFIX)'
	@echo 'make clean      remove what was built'
	@echo
	@echo 'What is missing (Rust, a linker, clang) is installed with apt on Debian and Ubuntu, and named elsewhere.'

setup:
	@scripts/setup

build: setup
	scripts/cargo release

guest-arm64:
	@scripts/guest-arm64

RUN := runs/$(shell date -u +%Y-%m-%dT%H-%M-%S)

run: build
	$(BINARY) measure --duration 10s --load find,launch,file-move --out $(RUN)
	@$(BINARY) report $(RUN) -o $(RUN)/report.html
	@echo "to look at it: $(abspath $(RUN))/report.html"

check: setup
	scripts/cargo lint

# Guests of the lab run a static program, which tests' own builds are not.
WITH_GUEST = WAKESCOPE_GUEST_AMD64="$${WAKESCOPE_GUEST_AMD64:-$(abspath $(BINARY))-guest}"

test: check build
	@if command -v python3 >/dev/null; \
	then python3 -B -m unittest discover -q benches; \
	else echo 'skipped: arithmetic of the benchmark: python3 is not installed' >&2; fi
	$(WITH_GUEST) scripts/cargo test --locked --workspace --no-fail-fast

# One after the other: each uses every CPU.
test-lab: build
	$(WITH_GUEST) WAKESCOPE_TEST_LAB=1 scripts/cargo test --locked --package wakescope-cli --test lab_long -- --test-threads 1

test-browser:
	@scripts/setup browser
	scripts/cargo test --locked --package wakescope-cli --test browser

bench:
	@scripts/setup bench
	@$(MAKE) build
	scripts/cargo build --locked --release --package wakescope-probe --example feed_recorder
	BINARY=$(BINARY) python3 -B benches/bench.py $(BENCH_ARGS)

score: build
	BINARY=$(BINARY) python3 -B benches/score.py $(SCORE_ARGS)

simulate: setup
	scripts/cargo run --locked --release --package wakescope-core --example simulate -- $(SIMULATE_ARGS)

# Built by `make build` beforehand, so that `sudo make install` compiles nothing as root.
install:
	@test -x $(BINARY) || $(MAKE) build
	install -D -m 755 $(BINARY) $(ROOT)/bin/wakescope
	install -D -m 755 $(BINARY)-guest $(ROOT)/lib/wakescope/wakescope-guest
	install -d $(ROOT)/share/man/man1
	install -m 644 docs/reference/man/*.1 $(ROOT)/share/man/man1
	install -D -m 644 docs/reference/completions/wakescope.bash $(ROOT)/share/bash-completion/completions/wakescope
	install -D -m 644 docs/reference/completions/_wakescope $(ROOT)/share/zsh/site-functions/_wakescope
	install -D -m 644 docs/reference/completions/wakescope.fish $(ROOT)/share/fish/vendor_completions.d/wakescope.fish

clean:
	scripts/cargo clean
