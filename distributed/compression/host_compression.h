#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "distributed/communicator/communicator.h"
#include "distributed/compression/compression.h"

namespace plexaura {

// Compresses the data that hosts send to each other, for hosts with several ranks. The ranks of a host add
// what they owe in float32. The first of them compresses the sum, exchanges it with the first ranks of the
// other hosts, and sends the results to the other ranks of its host. The first rank owes what is not
// transmitted; the other ranks owe nothing.
class HostCompression final : public Compression {
 public:
  // Makes the compression between the first ranks of all hosts. Must not return null.
  using Make = std::function<std::unique_ptr<Compression>(Communicator& first_ranks)>;

  // Collective. `ranks` must outlive this object.
  HostCompression(Communicator& ranks, const Make& make);

  void begin(const Placement& placement, std::span<const Bucket> buckets) override;
  void exchange(std::size_t bucket, std::span<float> owed, std::span<float> sums,
                std::string_view what) override;
  std::vector<Crossing> crossings(std::size_t bucket, std::int64_t elements, int ranks) const override;
  std::int64_t bytes_sent() const override;
  void keep(std::vector<StrategyState>& state) const override;
  void take(const StrategyState& part) override;

 private:
  bool is_first() const { return host_->rank() == 0; }
  void await_first(std::string_view what);

  std::unique_ptr<Communicator> host_;  // all ranks of this host
  // The ranks with this rank's number on each host. Only the first ranks of the hosts use it.
  std::unique_ptr<Communicator> peers_;
  std::unique_ptr<Compression> compression_;  // compresses between the ranks of peers_
};

}  // namespace plexaura
