# The front door. `make` builds; `make demo` and `make test` also install what they need first.

SHELL := /bin/bash
JOBS ?= $(shell nproc)
PREFIX ?= /usr
DESTDIR ?=
# A fresh clone in another folder finds the objects of the last one.
export CCACHE_BASEDIR := $(CURDIR)
export CCACHE_NOHASHDIR := 1
CTEST := ctest --output-on-failure -j $(JOBS)

.PHONY: build deps demo test test-arm test-all sanitize bench fuzz stress interop tsan format check-format tidy install clean

build:
	@[ -f build/build.ninja ] || cmake --preset dev
	cmake --build build -j $(JOBS)

deps:
	./deps/install.sh

demo: deps build
	./demo/run.sh build/bin

# Everything that a change must pass: all tests, then what parses once more under the sanitizers.
test: deps check-format build
	$(CTEST) --test-dir build
	$(MAKE) --no-print-directory sanitize

# Address and undefined-behaviour sanitizers over the code that reads what strangers wrote: the golden checkpoints,
# the fuzz seeds, and 20 seconds of each fuzz target. Quantizing the goldens once more would only take long.
SANITIZED := schema_tests validate_tests quantize_tests tokenizer_tests golden_convert golden_variants fuzz_replay fuzzers
sanitize:
	@[ -f build-asan-ubsan/build.ninja ] || cmake --preset asan-ubsan
	cmake --build build-asan-ubsan -j $(JOBS) --target $(SANITIZED)
	$(CTEST) --test-dir build-asan-ubsan -L '^(schema|validate|quantize)$$' -E 'golden quantize'

# The kernels for 64-bit ARM, by a cross compiler and in qemu.
test-arm:
	./deps/install.sh debian-arm.txt
	./tests/arm/get_sysroot.sh build-arm
	@[ -f build-arm/build.ninja ] || cmake -G Ninja -S tests/arm -B build-arm -DCMAKE_BUILD_TYPE=Release \
	  -DCMAKE_CXX_FLAGS_RELEASE=-O2 -DMODELD_SYSROOT=$(CURDIR)/build-arm/sysroot \
	  -DCMAKE_TOOLCHAIN_FILE=$(CURDIR)/cmake/aarch64.cmake
	cmake --build build-arm -j $(JOBS)
	$(CTEST) --test-dir build-arm

# A worker under this sanitizer does not fit into its limit on memory; so nothing that starts one.
tsan:
	@[ -f build-tsan/build.ninja ] || cmake --preset tsan
	cmake --build build-tsan -j $(JOBS)
	TSAN_OPTIONS=suppressions=$(CURDIR)/tests/tsan.supp $(CTEST) --test-dir build-tsan -LE 'interop|ground|e2e' \
	  -E 'the sandbox bounds memory'

bench:
	@[ -f build-bench/build.ninja ] || cmake --preset bench
	cmake --build build-bench -j $(JOBS) --target benches
	./tests/bench/run.sh build-bench/bin

# The store's work from several threads at once, random histories against a model, and real kills at random moments.
stress: build
	./build/bin/store_stress --at-once 20000 --steps 100000 --kills 1000

# Real clients and runtimes, with a network; PyTorch is installed, and a real Ollama is built, which takes minutes and needs go.
interop: build
	$(CTEST) --test-dir build -L interop
	./deps/install.sh debian-interop.txt
	./tests/interop/transformers_test.sh build/bin build/interop/transformers
	ollama=$$(./tests/interop/get_ollama.sh build/interop/ollama) && ./tests/interop/ollama_test.sh build/bin "$$ollama"

# Parsers under the sanitizers, each for MODELD_FUZZ_SECONDS; then kernels against the definition, some blocks of each
# type under the sanitizers and ten million at full speed.
fuzz:
	@[ -f build-asan-ubsan/build.ninja ] || cmake --preset asan-ubsan
	@[ -f build-bench/build.ninja ] || cmake --preset bench
	cmake --build build-asan-ubsan -j $(JOBS) --target fuzzers kernels_differential
	cmake --build build-bench -j $(JOBS) --target kernels_differential
	./tests/fuzz/run.sh build-asan-ubsan/bin $${MODELD_FUZZ_SECONDS:-3600}
	build-asan-ubsan/bin/kernels_differential 20000
	build-bench/bin/kernels_differential $${MODELD_FUZZ_BLOCKS:-10000000}

SOURCES = $(shell git ls-files '*.hpp' '*.cpp')
format:
	clang-format-14 -i $(SOURCES)

check-format:
	@clang-format-14 --dry-run --Werror $(SOURCES)

tidy:
	@[ -f build-tidy/build.ninja ] || cmake --preset tidy
	cmake --build build-tidy -j $(JOBS)

# The units name the programs' path, so the prefix is part of the build.
install: build
	cmake -DCMAKE_INSTALL_PREFIX=$(PREFIX) build >/dev/null
	cmake --build build -j $(JOBS)
	DESTDIR=$(DESTDIR) cmake --install build

clean:
	rm -rf build build-*
