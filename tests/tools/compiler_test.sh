#!/bin/bash
# Checks what cmake/PlexauraCompiler.cmake reports about a compiler.
#   compiler_test.sh FOLDER COMPILER     FOLDER contains PlexauraCompiler.cmake
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
mkdir "$folder/empty"
touch "$folder/empty/source_location"
cat > "$folder/CMakeLists.txt" <<END
cmake_minimum_required(VERSION 3.25)
project(Compiler LANGUAGES CXX)
set(CMAKE_CXX_STANDARD 20)
include($1/PlexauraCompiler.cmake)
END
# configure ARGUMENTS...: prints what CMake reports, as one line
configure() {
  cmake -S "$folder" -B "$folder/build" --fresh -DCMAKE_CXX_COMPILER="$2" "${@:3}" 2>&1 | paste -sd " " | tr -s " " || true
}
fail() { echo "$1"; echo "$said"; exit 1; }

said=$(configure "$@")
[[ $said != *"Plexaura"* && $said == *"Configuring done"* ]] || fail "a compiler that has everything is not taken silently"

# A header without std::source_location replaces that of the standard library, as clang 14 sees it.
said=$(configure "$@" -DCMAKE_CXX_FLAGS="-isystem $folder/empty")
[[ $said == *"which has no std::source_location"*"Plexaura needs g++ 12 or clang 16"* ]] || fail "an old compiler is not rejected"
