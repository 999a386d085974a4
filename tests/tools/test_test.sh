#!/bin/bash
# Tests what tools/test builds and tests, and in which order. Scripts replace cmake, ctest and the other
# tools.
#   test_test.sh TOOLS_TEST
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
mkdir -p "$folder/tools" "$folder/dev" "$folder/bin" "$folder/tests/fuzz" "$folder/tests/package/debian" "$folder/tests/programs"
cp "$1" "$folder/tools/test"
export PATH=$folder/bin:$PATH LOG=$folder/log
unset PLEXAURA_FAULT_LOG  # of the run that this test is part of
cd "$folder"

stand_in() { printf '#!/bin/bash\n%s\n' "$2" > "$1" && chmod +x "$1"; }
stand_in dev/check 'echo "checks" >> "$LOG"'
stand_in tools/install_packages 'echo "install $*" >> "$LOG"; [ "${UNREACHABLE:-}" != "$1" ] || { echo "install_packages: pip could not" >&2; exit 1; }'
stand_in tests/fuzz/letters.sh 'echo "fuzz $*" >> "$LOG"'
stand_in tests/fuzz/onnx.sh 'echo "fuzz onnx $*" >> "$LOG"'
stand_in tests/fuzz/data.sh 'echo "fuzz data $*" >> "$LOG"'
stand_in tests/package/debian/packages_test.sh 'echo packages >> "$LOG"'
stand_in tests/package/easybuild_test.sh 'echo easybuild >> "$LOG"; [ -z "${LACKS_LMOD-}" ] || { echo "skipped: Lmod is not installed"; exit 77; }'
stand_in tests/package/conan_test.sh 'echo conan >> "$LOG"'
echo 'import os; print("kills", os.environ["PLEXAURA_FAULT_SEEDS"], file=open(os.environ["LOG"], "a"))' > tests/programs/packing.py
stand_in bin/cmake '
if [ "$1" != --build ]; then echo "${LACKING:-configured}"; exit; fi
echo "begin $3" >> "$LOG"
echo "end $3" >> "$LOG"
[ "${FAILS:-}" != "$3" ]'
stand_in bin/ctest '
echo "test $2" >> "$LOG"
[ -z "${PLEXAURA_FAULT_LOG:-}" ] || printf "%s\n" "a rank dies  passed" "a rank stops  FAILED" "a disk is full  passed" >> "$PLEXAURA_FAULT_LOG"
echo " 1/3 Test  #7: ops_tests .................   Passed   17.25 sec"
echo " 2/3 Test  #9: ops_tests.far .............***Failed    3.50 sec"
echo " 3/3 Test  #8: core_tests ................   Passed   20.00 sec"
echo "100% tests passed, 0 tests failed out of 3"'

fail() { echo "$1"; cat said log; exit 1; }
# check STATUS ARGUMENTS...: runs tools/test, and writes its output to the file `said`
check() {
  local expected=$1 status=0
  shift
  : > log
  tools/test "$@" > said 2>&1 || status=$?
  [ "$status" = "$expected" ] || fail "tools/test $* ended with status $status instead of $expected"
}
# done_of PATTERN: prints the matching actions in order
done_of() { grep -E "$1" log | paste -sd ' '; }
expect() { [ "$1" = "$2" ] || fail "there was '$1' instead of '$2'"; }

stand_in bin/lscpu 'echo "Flags: sse2 avx2 ${NEWER_FLAGS-avx512f}"'

# Presets are built and tested one after another, after the checks.
check 0 --ci
expect "$(done_of '^install build|^checks|release')" "install build checks onnx checks begin release end release test release"
expect "$(done_of '^(begin|test) ')" "begin release test release begin asan test asan begin cuda test cuda begin tsan test tsan begin avx2 test avx2"
expect "$(done_of ' (cuda|tsan)$')" "install cuda begin cuda end cuda test cuda begin tsan end tsan test tsan"
expect "$(tail -1 said)" "21 passed, 0 failed"
expect "$(grep -c "^    20.8 s  all tests of ops$" said)" 5  # one of each preset

# Without AVX-512 another preset would test the kernels that release has tested.
NEWER_FLAGS="" check 0 --ci
expect "$(done_of test)" "test release test asan test cuda test tsan"
grep -q "^avx2  *not run: this processor has no AVX-512" said || fail "nobody says that a preset is left out"

# A slow machine tests what people use, and says what it leaves out.
PLEXAURA_CI_SECONDS=-1 check 0 --ci
expect "$(done_of test)" "test release"
expect "$(grep -c "not run: it would have taken until minute 0; run tools/test --preset" said)" 4

# A failed build is reported, and its preset is not tested. The others continue.
FAILS=asan check 1 --ci
expect "$(done_of test)" "test release test cuda test tsan test avx2"
grep -q "^asan-build  *FAILED " said || fail "the build that failed is not in the table"

FAILS=release check 1 --preset release --preset asan --preset tsan
expect "$(done_of 'begin|test')" "begin release begin asan test asan begin tsan test tsan"

# The faults that tests make happen are listed and counted, for one run only.
for _ in 1 2; do check 0 --faults --preset release; done
grep -q "^release-faults 2 of 3 faults ended as promised$" said || fail "the faults are not counted"
grep -q "^a rank stops  FAILED$" said || fail "the faults are not listed"

# --extended writes its date and its result to a file. The folder for Python has pyarrow already.
mkdir -p build-baseline/venv/{bin,lib/python3/site-packages/pyarrow}
stand_in build-baseline/venv/bin/python 'echo "parquet $*" >> "$LOG"'
check 0 --extended
expect "$(head -1 log)" "install build fuzz deb easybuild clang aarch64"
expect "$(done_of '^(begin|test|fuzz|parquet|kills) |^(packages|easybuild|conan)$')" "begin baseline test baseline begin clang test clang begin aarch64 test aarch64 fuzz build-baseline 600 fuzz onnx build-baseline 300 fuzz data build-baseline 180 begin baseline parquet tests/tools/pack_parquet_test.py . build-baseline packages easybuild conan begin baseline kills 20"
expect "$(tail -1 build/test-logs/extended.log)" "20 passed, 0 failed"
grep -qE "^$(date -u +%Y)-[0-9-]+T[0-9:]+Z " build/test-logs/extended.log || fail "there is no date"

# What is skipped is neither a success nor a failure.
LACKS_LMOD=1 check 0 --extended
grep -q "^easybuild  *not run: Lmod is not installed$" said || fail "nobody says what was skipped"
expect "$(tail -1 said)" "19 passed, 0 failed"

# The plugin for CUDA must be complete.
LACKING="-- The plugin for GPUs is built without NCCL, so that it is found missing" check 1 --preset cuda
expect "$(done_of 'begin|test')" ""
grep -q "^test: the preset cuda lacks what CMake has named above$" said || fail "nobody says why"

# If something cannot be installed, everything ends at once.
UNREACHABLE=build check 1 --ci
expect "$(cat said log | paste -sd ' ')" "install_packages: pip could not install build checks onnx"

# What only the preset for CUDA needs is installed when its turn comes.
UNREACHABLE=cuda check 1 --ci
expect "$(done_of 'test|begin cuda')" "test release test asan test tsan test avx2"
grep -q "^cuda-build  *FAILED " said || fail "nobody says that the toolkit is missing"

check 2 --preset none_such
expect "$(cat said)" "test: no preset 'none_such'; there are release debug asan tsan no-mpi mpich no-onednn onednn3 avx2 baseline clang aarch64 cuda"
