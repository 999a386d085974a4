#!/bin/bash
# Builds the module of tools/deploy/Plexaura-0.1.0.eb by EasyBuild, loads it with Lmod, trains with it, and builds a project of a user.
# Returns 77 (skipped) without Lmod. Keeps EasyBuild in build-easybuild/venv.
set -euo pipefail
cd "$(dirname "$0")/../.."
export LMOD_CMD=/usr/share/lmod/lmod/libexec/lmod
[ -x $LMOD_CMD ] || { echo "skipped: Lmod is not installed"; exit 77; }
venv=$PWD/build-easybuild/venv
[ -x "$venv/bin/eb" ] || { python3 -m venv "$venv" && "$venv/bin/pip" install --quiet "easybuild-framework<6" "easybuild-easyblocks<6"; }
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT

# Archives the working tree, as far as git knows its files. Without changes, stash prints nothing.
changes=$(git stash create)
git archive --prefix=plexaura-0.1.0/ --output="$folder/plexaura-0.1.0.tar.gz" "${changes:-HEAD}"

set +u  # for Lmod's scripts
. /usr/share/lmod/lmod/init/bash
options=(--prefix="$folder/prefix" --sourcepath="$folder" --tmpdir="$folder" --modules-tool=Lmod --module-syntax=Lua)
[ "$(id -u)" != 0 ] || options+=(--allow-use-as-root-and-accept-consequences)
PATH=$venv/bin:$PATH eb tools/deploy/Plexaura-0.1.0.eb "${options[@]}"
module use "$folder/prefix/modules/all"
module load Plexaura/0.1.0
set -u

tests/package/use_package.sh "$EBROOTPLEXAURA" "$folder"
module unload Plexaura
if command -v mlp; then echo "mlp is there without the module"; exit 1; fi
echo "the module works"
