#!/bin/bash
# Uses clang's libFuzzer to find files of data that break their readers, under the address sanitizer: arrays of numpy,
# zip archives of these, and packed shards.
#   data.sh BUILD_FOLDER [SECONDS]
# The default is 180 seconds. BUILD_FOLDER has a build of the library plexaura_core.
# BUILD_FOLDER/fuzz gets the failures, and the inputs from which the next run continues. Returns 77 (skipped) without clang 16.
set -euo pipefail
root=$(cd "$(dirname "$0")/../.." && pwd)
build=$(realpath "${1:?a build folder}") seconds=${2:-180} fuzzer=data
. "$root/tests/fuzz/common.sh"
require_fuzzer

cd "$root"
compile_sources tests/fuzz/data_fuzzer.cpp training/data/arrays/*.cpp training/data/shards/shard_index.cpp \
  training/data/{dataset,sample_source}.cpp training/files/{file,shortage}.cpp
run_fuzzer "$seconds" "-lz" -rss_limit_mb=2000 -timeout=20
