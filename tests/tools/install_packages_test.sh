#!/bin/bash
# Tests when tools/install_packages unpacks the libraries for 64-bit ARM. Scripts replace dpkg-query, which says that all
# packages are installed, and mmdebstrap.
#   install_packages_test.sh TOOLS_INSTALL_PACKAGES
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
mkdir "$folder/tools" "$folder/bin"
cp "$1" "$folder/tools/install_packages"
export PATH=$folder/bin:$PATH
cd "$folder"

cat > bin/dpkg-query << 'END'
#!/bin/bash
echo "${@: -1}" >> asked
echo "install ok installed"
END
cat > bin/mmdebstrap << 'END'
#!/bin/bash
[ -z "${UNREACHABLE:-}" ] || exit 1
for folder; do :; done  # the last argument
mkdir "$folder"
touch "$folder/$(wc -l < asked)"
END
chmod +x bin/*

fail() { echo "install_packages_test.sh: $1"; exit 1; }
install() { : > asked; tools/install_packages "$@" > said 2>&1; }
unpacked="Unpacking libraries for 64-bit ARM into build-aarch64/sysroot"

install build && [ ! -e build-aarch64 ] || fail "the group build unpacks libraries for ARM"
install aarch64 || fail "the group aarch64 fails: $(cat said)"
grep -qx "$unpacked" said || fail "the libraries are not unpacked: $(cat said)"
grep -qx g++-aarch64-linux-gnu asked || fail "the cross compiler is not installed"
install aarch64 && [ ! -s said ] || fail "the libraries are unpacked again: $(cat said)"

# With another list of packages, the libraries are replaced, but only by a whole new folder.
touch build-aarch64/sysroot/old
sed -i 's/doctest-dev"$/doctest-dev libhdf5-dev"/' tools/install_packages
if UNREACHABLE=1 install aarch64; then fail "mmdebstrap fails, and install_packages does not"; fi
[ -e build-aarch64/sysroot/old ] || fail "the old libraries are gone although there are no new ones"
install aarch64 && grep -qx "$unpacked" said || fail "another list of packages unpacks nothing: $(cat said)"
[ ! -e build-aarch64/sysroot/old ] || fail "the old libraries stay"
echo "the libraries for 64-bit ARM are unpacked when they are missing or others are wanted"
