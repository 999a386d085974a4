# shellcheck shell=bash
# Functions of the scripts in this folder, which use clang's libFuzzer. Sourced by them, with `build` and
# `fuzzer` (the name of the fuzzer) set.
: "${build:?}" "${fuzzer:?}"
compiler=${CLANG:-clang++-16}
folder=$build/fuzz
mkdir -p "$folder/objects" "$folder/inputs-$fuzzer"

# Ends the script with 77 (skipped) unless the compiler and the given file are there.
require_fuzzer() {
  if ! command -v "$compiler" > /dev/null || { [ $# -gt 0 ] && [ ! -e "$1" ]; }; then
    echo "$fuzzer.sh: skipped, for it needs clang 16 and libsodium (tools/install_packages fuzz)" >&2
    exit 77
  fi
}

object_of() { echo "$folder/objects/${1//\//_}.o"; }

compile_source() {
  "$compiler" -std=c++20 -O1 -g1 -fsanitize=fuzzer-no-link,address,undefined -fno-sanitize-recover=undefined -DPLEXAURA_HAS_SODIUM \
    -I. -I"$build/core/include" -c "$1" -o "$(object_of "$1")"
}

# Compiles the sources with the address sanitizer, as many at once as there are processors. Sets `objects`.
compile_sources() {
  objects=()
  local source
  for source in "$@"; do objects+=("$(object_of "$source")"); done
  export compiler folder build
  export -f object_of compile_source
  # shellcheck disable=SC2016
  printf '%s\0' "$@" | xargs -0 -n 1 -P "$(nproc)" bash -c 'compile_source "$1"' compile_source
}

# Links the objects with the given libraries, and runs the fuzzer for so many seconds. Further arguments are those of
# libFuzzer. The next run continues from the inputs that this one finds.
run_fuzzer() {
  local seconds=$1 libraries=$2
  shift 2
  # shellcheck disable=SC2086
  "$compiler" -fsanitize=fuzzer,address,undefined "${objects[@]}" $libraries -L"$build/core" -lplexaura_core \
    -Wl,-rpath,"$build/core" -lfmt -o "$folder/$fuzzer"
  cd "$folder" || exit
  exec "./$fuzzer" -max_total_time="$seconds" -max_len=4096 -print_final_stats=1 "inputs-$fuzzer" "$@"
}
