#include "testing/padding.h"

#include <doctest/doctest.h>

#include "core/device/transfer.h"
#include "tests/support/backend.h"
#include "tests/support/pattern.h"

namespace plexaura::testing::padding_test {

TEST_CASE("something in the padding is seen, whatever the elements are") {
  const Layout layout({0, 1}, {{1, 8}});
  const Tensor value = pattern({2, 3}).cast(DType::float32);
  std::vector<std::byte> bytes(static_cast<std::size_t>(layout.bytes(value.type())));
  reorder(value.data(), Layout::row_major(2), bytes.data(), layout, value.type());
  const auto memory = test_backend().allocate(bytes.size(), MemoryUse::device);
  const auto is_zero = [&] {
    copy_to_device(test_backend(), memory->address(), bytes.data(), bytes.size());
    return padding_is_zero(test_backend(), memory->address(), layout, value.type());
  };
  CHECK(is_zero());
  for (const std::size_t element : {3, 7, 11, 15}) {  // positions in rows of eight with three elements each
    bytes[element * sizeof(float)] = std::byte{1};
    CHECK(!is_zero());
    bytes[element * sizeof(float)] = std::byte{0};
  }
  CHECK(is_zero());
}

}  // namespace plexaura::testing::padding_test
