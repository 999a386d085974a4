#include "core/device/backend.h"

#include <algorithm>
#include <doctest/doctest.h>

#include "core/device/evaluate.h"
#include "core/device/transfer.h"
#include "core/ops/batch_norm.h"
#include "core/ops/conv2d.h"
#include "tests/support/backend.h"
#include "tests/support/backend_fixture.h"

namespace plexaura::testing::backend_test {

TEST_CASE("the region of one node takes its inputs as they stand and gives all outputs") {
  Graph graph;
  const Node x = graph.input("x", {DType::float32, {2, 3, 4, 4}});
  const Node s = graph.input("s", {DType::float32, {3}});
  const Region region = single(graph, normalise_grad(x, s, s, s, x).x.id());
  CHECK(region.kind == "normalise_grad");
  CHECK(region.inputs == std::vector<Value>{x.value(), s.value(), s.value(), s.value(), x.value()});
  CHECK(region.outputs.size() == 5);
}

TEST_CASE("evaluate computes one node, whatever layouts its kernel wants") {
  Graph graph;
  const Node x = graph.input("x", {DType::float32, {1, 3, 4, 4}});
  const Node w = graph.input("w", {DType::float32, {2, 3, 3, 3}});
  const Node y = conv2d(x, w);
  const std::vector<Tensor> inputs{counting(x.type()), counting(w.type())};
  const auto here = evaluate(test_backend(), graph, y.id(), inputs);
  const auto expected = evaluate(oracle(), graph, y.id(), inputs);
  REQUIRE(here.size() == 1);
  const auto left = here[0].to_doubles();
  const auto right = expected[0].to_doubles();
  for (std::size_t i = 0; i < left.size(); ++i) CHECK(left[i] == doctest::Approx(right[i]).epsilon(1e-5));
}

TEST_CASE("blocking copies bring back what they brought there") {
  Backend& backend = test_backend();
  const auto memory = backend.allocate(256, MemoryUse::device);
  std::vector<std::byte> bytes(256);
  for (std::size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<std::byte>(i);
  copy_to_device(backend, memory->address(), bytes.data(), bytes.size());
  std::vector<std::byte> back(256);
  copy_to_host(backend, back.data(), memory->address(), back.size());
  CHECK(back == bytes);
  copy_to_host(backend, nullptr, memory->address(), 0);
  drain(backend);
}

TEST_CASE("zeros fill what they were asked to, and no more") {
  Backend& backend = test_backend();
  for (const std::size_t bytes : {0, 1, 1000, 65536, 65537, 300001}) {
    CAPTURE(bytes);
    std::vector<std::byte> expected(bytes + 2, std::byte{7});
    const auto memory = backend.allocate(expected.size(), MemoryUse::device);
    copy_to_device(backend, memory->address(), expected.data(), expected.size());
    write_zeros(backend, memory->address() + 1, bytes);
    std::vector<std::byte> found(expected.size());
    copy_to_host(backend, found.data(), memory->address(), found.size());
    std::fill(expected.begin() + 1, expected.end() - 1, std::byte{0});
    CHECK(found == expected);
  }
}

TEST_CASE("memory of any size has an address of its own") {
  for (const MemoryUse use : {MemoryUse::device, MemoryUse::staging}) {
    const auto nothing = test_backend().allocate(0, use);
    const auto something = test_backend().allocate(1, use);
    CHECK(nothing->bytes() == 0);
    CHECK(nothing->address() != nullptr);
    CHECK(nothing->address() != something->address());
  }
}

TEST_CASE("a value comes back from any layout, behind zeros where the layout pads") {
  Backend& backend = test_backend();
  const Tensor value = counting({DType::float32, {2, 3, 2, 2}});
  const Layout layout({0, 2, 3, 1}, {{1, 8}});
  const auto bytes = static_cast<std::size_t>(layout.bytes(value.type()));
  const auto memory = backend.allocate(bytes, MemoryUse::device);
  write_value(backend, memory->address(), layout, value);
  CHECK(read_value(backend, memory->address(), value.type(), layout) == value);
  std::vector<float> physical(bytes / sizeof(float), 1);
  copy_to_host(backend, reinterpret_cast<std::byte*>(physical.data()), memory->address(), bytes);
  CHECK(std::ranges::count(physical, 0.0F) == 2 * 2 * 2 * 5);
}

TEST_CASE("one staging memory serves copies of different sizes, both ways") {
  Backend& backend = test_backend();
  const auto memory = backend.allocate(256, MemoryUse::device);
  StagedCopy staging(backend, 256);
  for (const std::size_t bytes : {256, 64, 0}) {
    std::fill_n(staging.host(), 256, static_cast<std::byte>(bytes + 1));
    staging.to_device(memory->address(), bytes);
    std::fill_n(staging.host(), 256, std::byte{0});
    staging.to_host(memory->address(), bytes);
    CHECK(std::all_of(staging.host(), staging.host() + bytes,
                      [&](std::byte byte) { return byte == static_cast<std::byte>(bytes + 1); }));
  }
}

}  // namespace plexaura::testing::backend_test
