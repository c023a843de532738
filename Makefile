# make help    what there is to do

# `quick` compiles in a fraction of the time, and is for tests.
PROFILE = release
BINARY = $(or $(CARGO_TARGET_DIR),target)/$(PROFILE)/wakescope
PREFIX = /usr/local
DESTDIR =
ROOT = $(DESTDIR)$(PREFIX)

# Paths may hold blanks: $(call quoted,PATH) is one word to a shell, and $(call absolute,PATH) does not
# divide it at them, as make's own functions do.
quoted = '$(subst ','\'',$1)'
absolute = $(if $(filter /%,$(firstword $1)),$1,$(CURDIR)/$1)
WAKESCOPE = $(call quoted,$(BINARY))

.PHONY: help setup command build guest-arm64 run test test-oldest test-fresh test-lab test-browser test-prometheus test-service pictures test-sections test-hunting test-module fuzz check bench results page-free score score-rtla score-predict score-break score-scope oracle simulate install uninstall clean

help:
	@echo 'make run        measure for 10 s under the loads find, launch and file-move, and make a page of it'
	@echo 'make test       every test and lint, but for'
	@echo 'make test-lab   the tests that boot many guests, which take long'
	@echo 'make test-oldest'
	@echo '                make run, and a look at all tests, with the oldest supported Rust, which is'
	@echo '                fetched from Debian 13 if the machine has another'
	@echo 'make test-fresh make run in fresh roots of Debian 12, Debian 13 and Ubuntu 24.04; as root'
	@echo 'make test-browser'
	@echo '                the tests that look at pages in a browser, which is installed if there is none'
	@echo 'make test-prometheus'
	@echo '                a real Prometheus scrapes a watch; it is installed if there is none; as root'
	@echo 'make test-service'
	@echo '                the unit of a watch under the systemd of a Debian in an emulator; as root'
	@echo 'make pictures   the pictures of docs/watch.md again: causes are planted, and must be named; as root'
	@echo 'make test-sections'
	@echo '                builds a kernel that shows where sections with interrupts or preemption'
	@echo '                off begin and end, and tests in guests that explain tells their lengths'
	@echo 'make test-hunting'
	@echo '                builds a kernel that hunts for bugs (KASAN, lockdep, kmemleak, fault injection), and runs'
	@echo '                the self-test of the kernel module in its guests'
	@echo 'make test-module'
	@echo '                style and builds of the kernel module, with DKMS, in fresh roots of Debian 12'
	@echo '                and Debian 13; as root'
	@echo 'make fuzz       up to 40,000 damaged files for each reader of files, other ones each time'
	@echo 'make build      the command: '$(WAKESCOPE)
	@echo '                and what guests of the lab run: '$(WAKESCOPE)-guest
	@echo 'make check      formatting and lints only'
	@echo 'make guest-arm64'
	@echo '                what guests of the lab for arm64 run: target/guest/wakescope-aarch64'
	@echo 'make bench      what it costs, against cyclictest, jitterdebugger, bpftrace and perf; the lab against QEMU;'
	@echo '                explain in instructions, with BENCH_ARGS="--only tracer"'
	@echo 'make results    the measurements of docs/results again; PARTS="stimuli matrix" only some'
	@echo 'make page-free  the scenarios page-free-6.1 and page-free-7.2 again, from guests of the lab'
	@echo 'make score      how often explain blames the right cause, by lateness that was injected'
	@echo 'make score-rtla the same of rtla, on sections of the kernel module in a guest with the timerlat tracer'
	@echo 'make score-predict'
	@echo '                how right predict is: models predicted from cells of others, on six kernels; takes an hour'
	@echo 'make score-break'
	@echo '                the same of a preemption point that a kernel is really built with'
	@echo 'make score-scope'
	@echo '                how often explain blames first what the emulator saw from outside of a guest'
	@echo 'make oracle     how often the blame of explain is true, on simulated kernels'
	@echo 'make simulate   how often compare and trend are right and wrong, on machines that are made up'
	@echo 'make install    what make build made, man pages and completions, under PREFIX='$(call quoted,$(PREFIX))
	@echo 'make uninstall  remove what make install put there'
	@echo 'make clean      remove what was built'
	@echo
	@echo 'What is missing (Rust, a linker, clang) is installed with apt on Debian and Ubuntu, and named elsewhere.'

setup:
	@scripts/setup

command: setup
	scripts/cargo program $(PROFILE) wakescope

build: setup
	scripts/cargo program $(PROFILE) wakescope wakescope-guest

guest-arm64:
	@scripts/guest-arm64

RUN := runs/$(shell date -u +%Y-%m-%dT%H-%M-%S)

run: command
	$(WAKESCOPE) measure --duration 10s --load find,launch,file-move --out $(call quoted,$(RUN))
	@$(WAKESCOPE) report $(call quoted,$(RUN)) -o $(call quoted,$(RUN)/report.html)
	@echo 'to look at it: '$(call quoted,$(call absolute,$(RUN))/report.html)

check: setup
	scripts/cargo lint

# Guests of the lab run a static program, which tests' own builds are not. What files may cost is tested
# with what users have.
WITH_GUEST = export WAKESCOPE_OPTIMISED=$(call quoted,$(call absolute,$(BINARY))) && \
	guest=$(call quoted,$(call absolute,$(BINARY))-guest) && \
	export WAKESCOPE_GUEST_AMD64="$${WAKESCOPE_GUEST_AMD64:-$$guest}" &&

test: build
	$(WITH_GUEST) scripts/test

# What only the oldest supported toolchain can show: that it compiles the command and every test, and
# that what it compiles works.
OLDEST = $(CURDIR)/target/oldest
WITH_OLDEST = cargo=$$(scripts/oldest-rust) && export CARGO="$$cargo" CARGO_TARGET_DIR=$(call quoted,$(OLDEST)) &&
test-oldest: setup
	$(WITH_OLDEST) $(MAKE) run PROFILE=quick RUN=$(call quoted,$(OLDEST)/$(RUN))
	$(WITH_OLDEST) scripts/cargo check --locked --profile quick --workspace --all-targets

test-fresh:
	scripts/test-fresh

# One after the other: each uses every CPU. The whole command is in a guest of its own, for it is too large for
# what guests run otherwise.
WHOLE_GUESTS = watch_guest gpio_guest
EXAMPLES = $(call quoted,$(call absolute,$(or $(CARGO_TARGET_DIR),target)/quick/examples))
test-lab: build
	-scripts/old-kernels
	for guest in $(WHOLE_GUESTS); do \
		scripts/cargo rustc --locked --profile quick --package wakescope-cli --example "$$guest" -- -C target-feature=+crt-static || exit; \
	done
	$(WITH_GUEST) export WAKESCOPE_TEST_WATCH=$(EXAMPLES)/watch_guest WAKESCOPE_TEST_GPIO=$(EXAMPLES)/gpio_guest && \
	WAKESCOPE_TEST_LAB=1 scripts/cargo test --locked --package wakescope-cli --test lab_long -- --test-threads 1

test-browser:
	@scripts/setup browser
	scripts/cargo test --locked --package wakescope-cli --test browser

test-prometheus:
	@scripts/setup prometheus
	WAKESCOPE_TEST_PROMETHEUS=1 scripts/cargo test --locked --package wakescope-cli --test watch_prometheus

test-service: build
	BINARY=$(WAKESCOPE) scripts/test-service

# One after the other: each plants what takes a CPU.
pictures: setup
	WAKESCOPE_PICTURES=$(call quoted,$(CURDIR)/docs/images) scripts/cargo test --locked --profile quick --package wakescope-cli --test watch -- in_the_live_view --test-threads 1

test-sections: build
	@scripts/sections-kernel
	$(WITH_GUEST) WAKESCOPE_TEST_SECTIONS=$(call quoted,$(CURDIR)/target/sections) scripts/cargo test --locked --package wakescope-cli --test lab_long -- sections --test-threads 1

test-hunting: build
	@scripts/hunting-kernel
	$(WITH_GUEST) WAKESCOPE_TEST_HUNTING=$(call quoted,$(CURDIR)/target/hunting) scripts/cargo test --locked --package wakescope-cli --test lab_long -- hunts_for_bugs --test-threads 1

test-module:
	scripts/test-module bookworm trixie

# Readers that take long get a part of them (fuzz_fewer). A failure prints its seed: `make fuzz FUZZ_SEED=…` repeats it.
FUZZ_CASES = 40000
FUZZ_SEED := $(shell od -An -N4 -tu4 /dev/urandom)
fuzz: setup
	FUZZ_CASES=$(FUZZ_CASES) FUZZ_SEED=$(strip $(FUZZ_SEED)) \
	scripts/cargo test --locked --profile quick --workspace --no-fail-fast -- fuzz_

# Always optimised, whatever the profile of all else.
TRACER_GUEST = $(or $(CARGO_TARGET_DIR),target)/release/examples/tracer_guest
bench:
	@scripts/setup bench
	@$(MAKE) build
	scripts/cargo build --locked --release --package wakescope-probe --example feed_recorder
	scripts/cargo build --locked --release --package wakescope-model --example speed
	scripts/cargo rustc --locked --release --package wakescope-trace --example tracer_guest -- -C target-feature=+crt-static
	BINARY=$(WAKESCOPE) TRACER_GUEST=$(call quoted,$(call absolute,$(TRACER_GUEST))) python3 -B benches/bench.py $(BENCH_ARGS)

results: build
	BINARY=$(WAKESCOPE) python3 -B scripts/results $(PARTS)

page-free: build
	BINARY=$(WAKESCOPE) python3 -B scripts/page-free

score: build
	BINARY=$(WAKESCOPE) python3 -B benches/score.py $(SCORE_ARGS)

score-rtla: build
	scripts/cargo rustc --locked --profile quick --package wakescope-cli --example rtla_guest -- -C target-feature=+crt-static
	BINARY=$(WAKESCOPE) GUEST=$(EXAMPLES)/rtla_guest python3 -B benches/score_rtla.py $(SCORE_ARGS)

# Cells and predictions stay in target/score-predict: it goes on where it was ended.
score-predict: build
	BINARY=$(WAKESCOPE) python3 -B benches/score_predict.py $(SCORE_ARGS)

score-break: build
	@scripts/broken-kernel
	BINARY=$(WAKESCOPE) python3 -B benches/score_break.py $(SCORE_ARGS)

score-scope: build
	BINARY=$(WAKESCOPE) python3 -B benches/score_scope.py $(SCORE_ARGS)

# Scenarios under each model, 500 wakeups each: 340 are a million wakeups.
ORACLE_ARGS = 340
oracle: setup
	scripts/cargo run --locked --release --package wakescope-oracle --example score -- $(ORACLE_ARGS)

simulate: setup
	scripts/cargo run --locked --release --package wakescope-stats --example simulate -- $(SIMULATE_ARGS)

# Neither builds anything: `make build` comes first, so that `sudo make install` compiles nothing as root.
install:
	@BINARY=$(WAKESCOPE) ROOT=$(call quoted,$(ROOT)) scripts/install

uninstall:
	@ROOT=$(call quoted,$(ROOT)) scripts/install remove

clean:
	scripts/cargo clean
