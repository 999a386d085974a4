#include "backends/cpu/fast/copy/strided_copy.h"

#include <algorithm>
#include <cstddef>
#include <doctest/doctest.h>
#include <utility>

namespace plexaura::testing::strided_copy_test {

namespace {

using fast::CopyLoop;

constexpr std::size_t middle = 4000;  // where the copy begins, in arrays of twice as many elements

// Copies element by element.
void copy_plainly(const std::vector<CopyLoop>& loops, std::size_t loop, std::size_t element_bytes,
                  const std::byte* src, std::byte* dst) {
  if (loop == loops.size()) {
    std::copy_n(src, element_bytes, dst);
    return;
  }
  const auto bytes = static_cast<std::int64_t>(element_bytes);
  for (std::int64_t i = 0; i < loops[loop].extent; ++i)
    copy_plainly(loops, loop + 1, element_bytes, src + i * loops[loop].from * bytes,
                 dst + i * loops[loop].to * bytes);
}

void check_copy(const std::vector<CopyLoop>& loops) {
  for (const std::size_t element_bytes : {1, 2, 4, 8}) {
    CAPTURE(element_bytes);
    std::vector<std::byte> src(2 * middle * element_bytes);
    for (std::size_t i = 0; i < src.size(); ++i) src[i] = static_cast<std::byte>(i * 7 % 251 + 1);
    std::vector<std::byte> expected(src.size());
    std::vector<std::byte> found(src.size());
    const std::size_t begin = middle * element_bytes;
    copy_plainly(loops, 0, element_bytes, src.data() + begin, expected.data() + begin);
    fast::StridedCopy(loops, element_bytes).run(src.data() + begin, found.data() + begin);
    CHECK(found == expected);
  }
}

}  // namespace

TEST_CASE("a strided copy follows each pair of steps along a line") {
  for (const std::int64_t extent : {1, 5, 16, 37})
    for (const std::int64_t from : {-3, -1, 0, 1, 2})
      for (const std::int64_t to : {-2, -1, 1, 3}) {
        CAPTURE(extent);
        CAPTURE(from);
        CAPTURE(to);
        check_copy({{extent, from, to}});
      }
}

TEST_CASE("a strided copy exchanges axes, and turns some of them around") {
  check_copy({{9, 1, 40}, {35, 9, 1}});
  check_copy({{35, 1, -20}, {17, -40, 1}});
  check_copy({{70, -1, 9}, {9, 70, -1}});
  check_copy({{3, 40, 1}, {4, 1, 60}, {5, -130, 3}});
  check_copy({{2, 1, 8}, {0, 5, 1}});
}

}  // namespace plexaura::testing::strided_copy_test
