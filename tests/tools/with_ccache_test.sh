#!/bin/bash
# with_ccache_test.sh WITH_CCACHE COMPILER: a precompiled header is made of what its headers say now, also beside one that was there
# before, as after a change back and forth.
set -euo pipefail
with_ccache=$1 compiler=$2
command -v ccache > /dev/null || { echo "skipped: no ccache"; exit 77; }
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
export CCACHE_DIR=$folder/cache
echo '#include "value.h"' > all.hxx
touch all.cxx
printf '#include "value.h"\nint main() { return value; }\n' > program.cpp

# check VALUE
check() {
  local value=$1 found=0
  printf '#pragma once\nconstexpr int value = %d;\n' "$value" > value.h
  "$with_ccache" "$compiler" -x c++-header -include ./all.hxx -o all.hxx.gch -c all.cxx
  "$compiler" -Winvalid-pch -include ./all.hxx program.cpp -o program
  ./program || found=$?
  [ "$found" = "$value" ] || { echo "the precompiled header has the value $found instead of $value"; exit 1; }
}

check 1
cp all.hxx.gch first.gch
check 2
cp first.gch all.hxx.gch
check 3
