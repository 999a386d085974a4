#!/bin/bash
# Uses clang's libFuzzer to find letters that break a server of jobs, under the address sanitizer.
#   letters.sh BUILD_FOLDER [SECONDS]
# The default is 600 seconds. BUILD_FOLDER has a build of the library plexaura_core. BUILD_FOLDER/fuzz gets
# the failures, and the inputs from which the next run continues. Returns 77 (skipped) without clang 16 or
# libsodium.
set -euo pipefail
root=$(cd "$(dirname "$0")/../.." && pwd)
build=$(realpath "${1:?a build folder}") seconds=${2:-600} fuzzer=letters
. "$root/tests/fuzz/common.sh"
require_fuzzer /usr/include/sodium.h

cd "$root"
shopt -s extglob
compile_sources tests/fuzz/letters_fuzzer.cpp tests/distributed/servers/jobs/storm.cpp distributed/wire/texts.cpp \
  distributed/node/reduce.cpp distributed/seal/*.cpp distributed/servers/*.cpp distributed/servers/jobs/!(visiting).cpp
run_fuzzer "$seconds" -lsodium -rss_limit_mb=1000 -timeout=20
