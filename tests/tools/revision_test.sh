#!/bin/bash
# Checks that cmake/Revision.cmake distinguishes two states of the sources, and works without git.
#   revision_test.sh Revision.cmake
set -eu
script=$1
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
source=$folder/source
mkdir "$source"
export GIT_AUTHOR_NAME=a GIT_AUTHOR_EMAIL=a@b GIT_COMMITTER_NAME=a GIT_COMMITTER_EMAIL=a@b

revision() {
  cmake -D SOURCE="$source" -D OUTPUT="$folder/revision.cpp" -P "$script"
  sed -n 's/.*return "\(.*\)".*/\1/p' "$folder/revision.cpp"
}
git_here() { git -C "$source" -c init.defaultBranch=main "$@"; }
fail() { echo "revision_test.sh: $1"; exit 1; }

echo one > "$source/file"
[ "$(revision)" = "" ] || fail "no checkout, and yet a revision"
command -v git > /dev/null || exit 0

git_here init -q
git_here add file
git_here commit -q -m one
first=$(revision)
[ "$first" = "$(git_here rev-parse --short=12 HEAD)" ] || fail "'$first' is not the commit"

touch -d '2001-01-01' "$folder/revision.cpp"
revision > /dev/null
[ "$(stat -c %Y "$folder/revision.cpp")" = "$(date -d '2001-01-01' +%s)" ] || fail "written though nothing had changed"

echo two > "$source/file"
second=$(revision)
echo three > "$source/file"
third=$(revision)
git_here commit -q -a -m three
fourth=$(revision)
[ "$(printf '%s\n' "$first" "$second" "$third" "$fourth" | sort -u | wc -l)" -eq 4 ] || fail "the same: $first $second $third $fourth"
case $second in "$first"+*) ;; *) fail "'$second' does not begin with the commit" ;; esac

mkdir "$source/part"
source=$source/part
[ "$(revision)" = "" ] || fail "a folder within another project's checkout has that one's revision"
