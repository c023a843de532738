# make help    what there is to do

BINARY = $(or $(CARGO_TARGET_DIR),target)/release/wakescope
PREFIX = /usr/local
DESTDIR =
ROOT = $(DESTDIR)$(PREFIX)

.PHONY: help setup build run test check bench install clean

help:
	@echo 'make run        measure for 10 s under the loads find, launch and file-move'
	@echo 'make test       every test and lint'
	@echo 'make build      the command: $(BINARY)'
	@echo 'make check      formatting and lints only'
	@echo 'make bench      what it costs, against cyclictest and jitterdebugger; the lab against QEMU'
	@echo 'make install    the command, its man pages and completions, under PREFIX=$(PREFIX)'
	@echo 'make clean      remove what was built'
	@echo
	@echo 'What is missing (Rust, a linker) is installed with apt on Debian and Ubuntu, and named elsewhere.'

setup:
	@scripts/setup

build: setup
	scripts/cargo release

run: build
	$(BINARY) measure --duration 10s --load find,launch,file-move

check: setup
	scripts/cargo lint

test: check
	@if command -v python3 >/dev/null; \
	then python3 -B -m unittest discover -q benches; \
	else echo 'skipped: arithmetic of the benchmark: python3 is not installed' >&2; fi
	scripts/cargo test --locked --workspace --no-fail-fast

bench:
	@scripts/setup bench
	@$(MAKE) build
	scripts/cargo build --locked --release --package wakescope-probe --example feed_recorder
	BINARY=$(BINARY) python3 -B benches/bench.py $(BENCH_ARGS)

# Built by `make build` beforehand, so that `sudo make install` compiles nothing as root.
install:
	@test -x $(BINARY) || $(MAKE) build
	install -D -m 755 $(BINARY) $(ROOT)/bin/wakescope
	install -d $(ROOT)/share/man/man1
	install -m 644 docs/reference/man/*.1 $(ROOT)/share/man/man1
	install -D -m 644 docs/reference/completions/wakescope.bash $(ROOT)/share/bash-completion/completions/wakescope
	install -D -m 644 docs/reference/completions/_wakescope $(ROOT)/share/zsh/site-functions/_wakescope
	install -D -m 644 docs/reference/completions/wakescope.fish $(ROOT)/share/fish/vendor_completions.d/wakescope.fish

clean:
	scripts/cargo clean
