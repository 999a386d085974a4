#!/bin/bash
# pkg_config_test.sh PREFIX LIBRARY_FOLDER COMPILER: builds a program by the pkg-config file of an installed package.
set -euo pipefail
command -v pkg-config > /dev/null || { echo "skipped: there is no pkg-config"; exit 77; }
export PKG_CONFIG_PATH=$1/$2/pkgconfig
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
read -ra flags <<< "$(pkg-config --cflags --libs plexaura)"
"$3" -O0 "$(dirname "$0")/use_plexaura.cpp" -o "$folder/use_plexaura" "${flags[@]}" "-Wl,-rpath,$1/$2"
cd "$1/share/plexaura"
"$folder/use_plexaura"
