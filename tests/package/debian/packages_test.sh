#!/bin/bash
# Builds the packages for Debian, checks them with lintian, and uses them in a new Debian that holds nothing else.
#   packages_test.sh [FOLDER]
# With FOLDER, tests the packages in it instead of building them. Returns 77 (skipped) without mmdebstrap or lintian.
set -euo pipefail
root=$(cd "$(dirname "$0")/../../.." && pwd)
cd "$root"
for command in mmdebstrap lintian; do
  command -v $command > /dev/null || { echo "skipped: $command is not installed"; exit 77; }
done
fail() { echo "$1"; exit 1; }

[ $# -gt 0 ] || cmake --workflow --preset deb
packages=("${1:-build-deb}"/plexaura{,-dev}_*.deb)
[ ${#packages[@]} = 2 ] || fail "there are other packages than plexaura and plexaura-dev: ${packages[*]}"

# The warnings of lintian that stand, each with its reason. Any other warning and any error fails.
accepted='
initial-upload-closes-no-bugs  the packages are not uploaded to Debian
maintscript-calls-ldconfig     CPack writes these scripts; the trigger that Debian wants is there, too
no-manual-page                 --help of the programs and the pages in /usr/share/doc/plexaura describe them
package-name-doesnt-match-sonames  one package holds the library and its programs, which are of one version
script-not-executable          sbatch reads the batch files
unusual-interpreter            tools/run starts Python with -S, so that Ctrl-C prints no traceback'
found=$(lintian --allow-root --fail-on none "${packages[@]}" 2>&1)
echo "$found"
tags=$(sed -nE 's/^[EW]: [^:]+: ([^ ]+).*/\1/p' <<< "$found" | sort -u)
[ -n "$tags" ] || fail "lintian has checked nothing"
for tag in $tags; do
  grep -q "^$tag " <<< "$accepted" || fail "lintian reports $tag"
done

# The new Debian is of the same release, because the packages need its libraries.
. /etc/os-release
mmdebstrap --variant=minbase --format=null \
  --customize-hook="copy-in ${packages[*]} tests/package/debian/use_packages.sh examples/using_a_model.cpp /tmp" \
  --customize-hook='chroot "$1" bash /tmp/use_packages.sh' "$VERSION_CODENAME" /dev/null
