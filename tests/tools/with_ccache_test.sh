#!/bin/bash
# with_ccache_test.sh WITH_CCACHE COMPILER: checks that a precompiled header is made from the present contents
# of its headers, also if one was there before, as after a change that was undone.
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

# check VALUE [COMMENT]: builds, and checks that the program prints VALUE
check() {
  local value=$1 found=0
  printf '#pragma once\n// %s\nconstexpr int value = %d;\n' "${2:-}" "$value" > value.h
  "$with_ccache" "$compiler" -MD -MF all.d -x c++-header -include ./all.hxx -o all.hxx.gch -c all.cxx
  "$compiler" -Winvalid-pch -include ./all.hxx program.cpp -o program
  ./program || found=$?
  [ "$found" = "$value" ] || { echo "the precompiled header has the value $found instead of $value"; exit 1; }
}

check 1
cp all.hxx.gch first.gch
check 2
cp first.gch all.hxx.gch
check 3
# A header with another comment is another file, which #pragma once would not recognise in the old precompiled header.
check 3 "another comment"

# Two builds of one project by Ninja share their compiled files and precompiled headers. Errors name sources
# relative to the project's root.
project=$folder/project
mkdir -p "$project/cmake" "$project/core"
cp "$with_ccache" "$project/cmake/with_ccache"
echo 'inline const char* header() { return __FILE__; }' > "$project/core/name.h"
printf '#include "core/name.h"\n#include <cstdio>\nint main() { std::printf("%%s %%s", header(), __FILE__); }\n' > "$project/core/name.cpp"
count() { ccache --print-stats | sed -nE "s/^$1\t//p"; }

for build in first second; do
  mkdir "$project/$build"
  cd "$project/$build"
  touch build.ninja all.cxx
  echo '#include <vector>' > all.hxx
  missed=$(count cache_miss)
  options=(-I"$project" -fmacro-prefix-map="$project/=" -fmacro-prefix-map=../=)
  "$project/cmake/with_ccache" "$compiler" "${options[@]}" -x c++-header -include "$PWD/all.hxx" -o all.hxx.gch -c "$PWD/all.cxx"
  "$project/cmake/with_ccache" "$compiler" "${options[@]}" -Winvalid-pch -include "$PWD/all.hxx" -o name.o -c "$project/core/name.cpp"
  "$compiler" name.o -o name
  found=$(./name)
  [ "$found" = "core/name.h core/name.cpp" ] || { echo "the $build build names its sources '$found'"; exit 1; }
done
[ "$(count cache_miss)" = "$missed" ] || { echo "the second build found nothing of the first one in the cache"; exit 1; }
