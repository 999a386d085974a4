#!/bin/bash
# Uses clang's libFuzzer to find ONNX files that break their reader, under the address sanitizer.
#   onnx.sh BUILD_FOLDER [SECONDS]
# The default is 300 seconds. BUILD_FOLDER has a build of the library plexaura_core.
# BUILD_FOLDER/fuzz gets the failures, and the inputs from which the next run continues. It begins with the models of the
# standard's tests, if they are installed. Returns 77 (skipped) without clang 16.
set -euo pipefail
root=$(cd "$(dirname "$0")/../.." && pwd)
build=$(realpath "${1:?a build folder}") seconds=${2:-300} fuzzer=onnx
. "$root/tests/fuzz/common.sh"
require_fuzzer

cd "$root"
compile_sources tests/fuzz/onnx_fuzzer.cpp onnx/{model,runner}.cpp onnx/format/*.cpp onnx/ops/*.cpp \
  training/files/{file,shortage,wire_writer}.cpp
seeds=()
suite=/usr/share/libonnx-testdata/data/node
[ ! -d $suite ] || seeds=("$suite")
run_fuzzer "$seconds" "" -rss_limit_mb=4000 -timeout=60 "${seeds[@]}"
