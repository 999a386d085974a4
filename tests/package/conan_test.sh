#!/bin/bash
# Creates the package of tools/deploy/conanfile.py in a new cache of conan, trains with it, and builds a project of a user.
# Keeps conan in build-conan/venv.
set -euo pipefail
cd "$(dirname "$0")/../.."
venv=$PWD/build-conan/venv
[ -x "$venv/bin/conan" ] || { python3 -m venv "$venv" && "$venv/bin/pip" install --quiet "conan>=2,<3"; }
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
export CONAN_HOME=$folder/conan PATH=$venv/bin:$PATH

conan profile detect
conan create tools/deploy/conanfile.py --no-remote
conan install tests/package --no-remote --output-folder="$folder/mine" -c tools.cmake.cmaketoolchain:user_presets=""
set +u  # for conan's scripts
. "$folder/mine/conanrun.sh"
set -u
prefix=$(dirname "$(dirname "$(command -v mlp)")")
tests/package/use_package.sh "$prefix" "$folder" -D CMAKE_TOOLCHAIN_FILE="$folder/mine/conan_toolchain.cmake"
echo "the package of conan works"
