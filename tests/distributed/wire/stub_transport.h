#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include "distributed/wire/transport.h"

namespace plexaura::testing {

// Rank 0 of two without a network. The test decides what happens to messages.
class StubTransport : public Transport {
 public:
  int rank() const override { return 0; }
  int size() const override { return 2; }
  void keep(const Request&, std::shared_ptr<const void>) override {}
  std::unique_ptr<Transport> duplicate() override { return nullptr; }
  std::unique_ptr<Transport> split(int) override { return nullptr; }
  std::unique_ptr<Transport> without(std::span<const int>, double) override { return nullptr; }
  void all_reduce(DType, std::byte*, std::int64_t) override {}
  void abandon() noexcept override {}
  bool abandoned() const noexcept override { return false; }
};

}  // namespace plexaura::testing
