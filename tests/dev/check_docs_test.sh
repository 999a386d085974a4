#!/bin/bash
# Tests each rule of dev/check_docs with a wrong and a right page: check_docs_test.sh PATH/TO/check_docs
set -euo pipefail
check=$1
tree=$(mktemp -d)
trap 'rm -rf "$tree"' EXIT
mkdir "$tree/docs" "$tree/tests"
cat > "$tree/tests/sum_test.cpp" << 'END'
TEST_CASE(
    "sums are "
    "exact") {}
END
echo 'def test_products(self):' > "$tree/tests/product.py"
printf '%s\n' 'mpirun_test(ring_sums_${memory} 2 sums)' 'add_test(NAME tree' '  COMMAND sum)' > "$tree/tests/CMakeLists.txt"

# expect REASON < README: the check must fail with this reason or, if it is empty, pass
expect() {
  local output
  cat > "$tree/README.md"
  if output=$("$check" "$tree"); then
    [ -z "$1" ] || { echo "not found: $1"; exit 1; }
  else
    [ -n "$1" ] && grep -qF "$1" <<< "$output" || { echo "expected '$1' but got: $output"; exit 1; }
  fi
}

quote() { printf '<!-- tests/sum_test.cpp -->\n```cpp\n%s\n```\n' "$1"; }
quote '"exact") {}' | expect ''
quote '"wrong") {}' | expect 'quotes tests/sum_test.cpp otherwise than it is: "wrong") {}'
expect '' <<< '[the pages](docs)'
expect 'links to nowhere.md, which does not exist' <<< '[a page](nowhere.md)'
printf '%s\n' '# A page' '## Sums of `float`, and more' '```' '# no heading' '```' > "$tree/docs/page.md"
expect '' <<< '[sums](docs/page.md#sums-of-float-and-more)'
expect '' <<< $'# Products\n[above](#products)'
expect 'links to docs/page.md#products, and page.md has no such heading' <<< '[products](docs/page.md#products)'
expect 'links to docs/page.md#no-heading, and page.md has no such heading' <<< '[code](docs/page.md#no-heading)'
expect 'links to #sums, and README.md has no such heading' <<< $'# Products\n[sums](#sums)'
expect '' <<< 'See `tests/sum_test.cpp`, or `tests/NAME_test.cpp`.'
expect 'names tests/product_test.cpp, which does not exist' <<< 'See `tests/product_test.cpp`.'
expect '' <<< '| wrong sums | `tests/sum_test.cpp` | `sums are exact` |'
expect '' <<< '| wrong products | `tests/product.py` | `test_products` |'
expect "names 'test_product', which is no test of tests/product.py" <<< '| wrong products | `tests/product.py` | `test_products`, `test_product` |'
expect "names 'sums are fast', which is no test of tests/sum_test.cpp" <<< '| wrong sums | `tests/sum_test.cpp` | `sums are exact`, `sums are fast` |'
expect '' <<< '| wrong rings | `tests/CMakeLists.txt` | `ring_sums_`, `ring_sums_${memory}`, `tree` |'
expect "names 'sums_', which is no test of tests/CMakeLists.txt" <<< '| wrong rings | `tests/CMakeLists.txt` | `sums_` |'
expect "names 'ring', which is no test of tests/CMakeLists.txt" <<< '| wrong rings | `tests/CMakeLists.txt` | `ring` |'
expect "names 'sums', which is no test of tests/CMakeLists.txt" <<< '| wrong rings | `tests/CMakeLists.txt` | `sums` |'
expect 'names tests/lists/CMakeLists.txt, which does not exist' <<< 'See `tests/lists/CMakeLists.txt`.'

expect '' <<< 'At commit 00d79d4, without git.'
command -v git > /dev/null || exit 0
export GIT_{AUTHOR,COMMITTER}_NAME=a GIT_{AUTHOR,COMMITTER}_EMAIL=a@b GIT_{AUTHOR,COMMITTER}_DATE=2001-01-01T00:00:00Z
git_here() { git -C "$tree" -c init.defaultBranch=main "$@"; }
git_here init -q
git_here commit -q --allow-empty -m one
first=$(git_here rev-parse --short HEAD)
expect '' <<< "At commit $first, of 3221225472 bytes."
git_here commit -q --allow-empty --amend -m two
expect "names the commit $first, which is not in the history" <<< "At commit $first."
echo "everything wrong is found, and nothing else"
