#include "core/params/placement.h"

#include <doctest/doctest.h>

#include "core/base/error.h"
#include "tests/support/error_text.h"

namespace plexaura::testing::placement_test {

namespace {

Placement example(DType dtype = DType::float32) {
  Placement placement;
  placement.types = ArenaTypes::all(dtype);
  placement.append("layer1.0.conv1.weight", {dtype, {17, 3, 3, 3}}, ParameterRole::trainable,
                   Layout({0, 1, 2, 3}, {{0, 16}, {1, 4}}));
  placement.append("bias", {dtype, {17}}, ParameterRole::trainable, Layout::row_major(1));
  placement.append("scalar", {dtype, {}}, ParameterRole::trainable, Layout());
  placement.append("empty", {dtype, {0, 4}}, ParameterRole::trainable, Layout::row_major(2));
  placement.append("mean", {dtype, {17}}, ParameterRole::buffer, Layout::row_major(1));
  placement.append("still", {dtype, {3, 5}}, ParameterRole::frozen, Layout({1, 0}));
  return placement;
}

}  // namespace

TEST_CASE("entries begin at granules, with room for padding, and roles stand in order") {
  const Placement placement = example();
  std::int64_t next = 0;
  for (const Placement::Entry& entry : placement.entries) {
    CAPTURE(entry.name);
    CHECK(entry.offset == next);
    CHECK(entry.offset % 16 == 0);  // a multiple of 64 bytes in float32
    CHECK(entry.count >= entry.layout.elements(entry.type.shape));
    next = entry.offset + entry.count;
  }
  CHECK(placement.find("layer1.0.conv1.weight")->count == 32 * 4 * 9);
  CHECK(placement.value_count() == next);
  CHECK(placement.tail_offset() == placement.find("still")->offset);
  CHECK(placement.gradient_count() == placement.tail_offset() + tail_count);
  CHECK(placement.count(ParameterRole::buffer) == 32);
  CHECK(placement.find("nothing") == nullptr);
}

TEST_CASE("entries begin at multiples of 64 bytes in every arena, at the same element") {
  Placement placement;
  placement.types = {DType::float32, DType::bfloat16, DType::float64, DType::bfloat16};
  for (const ParameterRole role : {ParameterRole::trainable, ParameterRole::buffer, ParameterRole::frozen})
    for (const std::int64_t count : {1, 17, 64})
      placement.append(std::to_string(count) + std::to_string(static_cast<int>(role)),
                       {DType::float32, {count}}, role, Layout::row_major(1));
  for (const Placement::Entry& entry : placement.entries)
    for (const ArenaKind arena : {ArenaKind::value, ArenaKind::gradient, ArenaKind::state, ArenaKind::shadow})
      CHECK(placement.bytes_before(arena, entry.offset) % 64 == 0);
  const std::int64_t trainables = 32 + 32 + 64;
  CHECK(placement.count(ParameterRole::trainable) == trainables);
  CHECK(placement.bytes(ArenaKind::value) == static_cast<std::size_t>(3 * trainables * 4));
  CHECK(placement.bytes(ArenaKind::shadow) == static_cast<std::size_t>(3 * trainables * 2));
  CHECK(placement.bytes(ArenaKind::state) == static_cast<std::size_t>(trainables * 8));
  // Changes of buffers and the tail have the dtype of values.
  CHECK(placement.bytes(ArenaKind::gradient) ==
        static_cast<std::size_t>(trainables * 2 + (trainables + tail_count) * 4));
  CHECK(placement.dtype(ArenaKind::gradient, ParameterRole::buffer) == DType::float32);
  const auto buckets = make_buckets(placement, 1 << 20);
  CHECK(buckets.front().dtype == DType::bfloat16);
  CHECK(buckets.back().dtype == DType::float32);
  CHECK(parse_placement(to_text(placement)) == placement);
  placement.types.shadow = {};
  CHECK(parse_placement(to_text(placement)).types == placement.types);
  CHECK_THROWS_AS(placement.bytes(ArenaKind::shadow), InternalError);
}

TEST_CASE("a placement goes through its text unchanged") {
  for (const DType dtype : {DType::float32, DType::float64, DType::bfloat16, DType::float16}) {
    const Placement placement = example(dtype);
    CHECK(parse_placement(to_text(placement)) == placement);
  }
  CHECK(parse_placement(to_text(Placement{})) == Placement{});
}

TEST_CASE("damaged texts are refused") {
  const std::string text = to_text(example());
  const auto parse = [](const std::string& damaged) {
    return error_text<InternalError>([&] { parse_placement(damaged); });
  };
  CHECK(!parse("float31\n").empty());
  CHECK(!parse("float32/float32 0\n").empty());
  CHECK(!parse("float32/float32/float32/float32/float32 0\n").empty());
  CHECK(!parse(text.substr(0, text.size() / 2)).empty());
  CHECK(!parse("float32 1\nw 0 2 3").empty());
  CHECK(!parse("float32 1\nw 9 1 3 1 0 0 \n").empty());
  CHECK(!parse("float32 1\nw 0 1 -3 1 0 0 \n").empty());
  CHECK(!parse("float32 1\nw 0 99999999\n").empty());
  CHECK(!parse("float32 1\nw 0 1 3 1 0 2 7 0\n").empty());
  CHECK(!parse(text.substr(0, text.rfind("mean"))).empty());
}

TEST_CASE("an entry of another dtype or out of order is refused") {
  Placement placement = example();
  CHECK(user_error([&] {
          placement.append("x", {DType::float64, {1}}, ParameterRole::frozen, Layout::row_major(1));
        }).find("'x'") != std::string::npos);
  CHECK_THROWS_AS(placement.append("x", {DType::float32, {1}}, ParameterRole::buffer, Layout::row_major(1)),
                  InternalError);
}

TEST_CASE("buckets are slices without gaps, buffers and tail the last") {
  const Placement placement = example();
  for (const std::int64_t bytes : {1, 64, 1000, 1 << 20}) {
    CAPTURE(bytes);
    const auto buckets = make_buckets(placement, bytes);
    std::int64_t next = 0;
    for (const Bucket& bucket : buckets) {
      CHECK(bucket.offset == next);
      next = bucket.offset + bucket.count;
      if (&bucket != &buckets.back() && &bucket + 1 != &buckets.back()) CHECK(bucket.count * 4 >= bytes);
    }
    CHECK(next == placement.gradient_count());
    CHECK(buckets.back().offset == placement.count(ParameterRole::trainable));
  }
  CHECK(make_buckets(placement, 1 << 20).size() == 2);
  Placement nothing;
  CHECK(make_buckets(nothing, 1).size() == 1);
}

}  // namespace plexaura::testing::placement_test
