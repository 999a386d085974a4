#!/bin/bash
# Uses clang's libFuzzer to find letters that break a server of jobs, under the address sanitizer.
#   letters.sh BUILD_FOLDER [SECONDS]
# The default is 600 seconds. BUILD_FOLDER has a build of the library plexaura_core. BUILD_FOLDER/fuzz gets
# the failures, and the inputs from which the next run continues. Returns 77 (skipped) without clang 16 or
# libsodium.
set -euo pipefail
root=$(cd "$(dirname "$0")/../.." && pwd)
build=$(realpath "${1:?a build folder}") seconds=${2:-600}
compiler=${CLANG:-clang++-16}
folder=$build/fuzz
mkdir -p "$folder/objects" "$folder/inputs"

if ! command -v "$compiler" > /dev/null || [ ! -e /usr/include/sodium.h ]; then
  echo "letters.sh: skipped, for it needs clang 16 and libsodium (tools/install_packages fuzz)" >&2
  exit 77
fi

cd "$root"
shopt -s extglob
sources=(tests/fuzz/letters_fuzzer.cpp tests/distributed/servers/jobs/storm.cpp distributed/wire/texts.cpp distributed/node/reduce.cpp
  distributed/seal/*.cpp distributed/servers/*.cpp distributed/servers/jobs/!(visiting).cpp)
objects=()
for source in "${sources[@]}"; do
  object=$folder/objects/${source//\//_}.o
  objects+=("$object")
  "$compiler" -std=c++20 -O1 -g1 -fsanitize=fuzzer-no-link,address,undefined -fno-sanitize-recover=undefined -DPLEXAURA_HAS_SODIUM \
    -I. -I"$build/core/include" -c "$source" -o "$object"
done
"$compiler" -fsanitize=fuzzer,address,undefined "${objects[@]}" -L"$build/core" -lplexaura_core -Wl,-rpath,"$build/core" -lfmt -lsodium \
  -o "$folder/letters"

cd "$folder"
exec ./letters -max_total_time="$seconds" -max_len=4096 -rss_limit_mb=1000 -timeout=20 -print_final_stats=1 inputs
