#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/exchange/strategy.h"
#include "distributed/communicator/communicator.h"

namespace plexaura {

// One collective call of an exchange, with the number of bytes that it moves.
struct Crossing {
  enum class Call : std::uint8_t {
    sum_in_windows,  // sums arrays in memory that the ranks of a host share if they can
    sum,             // sums arrays in private memory
    blocks           // sends a block from each rank to each other rank
  };
  Call call = Call::blocks;
  std::int64_t bytes = 0;  // bytes of a rank's array, or of one block
};

// Sums gradients over ranks, but transmits fewer bytes than the gradients have. The part that is not
// transmitted is not lost: the rank owes it, and adds it to its next gradients (error feedback).
class Compression {
 public:
  virtual ~Compression();

  // Prepares the compression. Called once, before the first exchange. The placement must outlive this object.
  virtual void begin(const Placement& /*placement*/, std::span<const Bucket> /*buckets*/) {}

  // Collective, for a bucket of trainables. Before the call, `owed` contains what this rank contributes;
  // after it, the part that was not transmitted. `sums` gets the sums of the transmitted parts over all
  // ranks, with the same bits on each rank. `what` names the bucket.
  virtual void exchange(std::size_t bucket, std::span<float> owed, std::span<float> sums,
                        std::string_view what) = 0;

  // Returns the collective calls of one exchange of a bucket with this number of elements between `ranks`
  // ranks that compress. Only after begin().
  virtual std::vector<Crossing> crossings(std::size_t bucket, std::int64_t elements, int ranks) const = 0;

  // Returns the bytes that this rank has sent to other hosts through communicators that this object owns.
  virtual std::int64_t bytes_sent() const { return 0; }

  // keep() adds the state of the compression, apart from the owed parts, to a checkpoint's state. take()
  // restores one part of it.
  virtual void keep(std::vector<StrategyState>& /*state*/) const {}
  virtual void take(const StrategyState& /*part*/) {}
};

struct CompressionOptions {
  std::string name = "none";
  double ratio = 0.01;    // share of the elements that `top-k` transmits
  std::int64_t rank = 2;  // rank of the approximations that `powersgd` transmits
};

// True if the ranks of each host add their gradients before one of them compresses the sum. This is the case
// if there are several hosts, and at least one host has several ranks.
bool hosts_add_first(int hosts, int ranks);

// Returns the values of distributed.compression except `auto`, which selects one of them
// (choose_compression.h). They are ordered from the one that changes gradients least to the one that changes
// them most.
const std::vector<std::string>& compression_names();

// Throws UserError, which lists the known names, if the name is not one of compression_names().
void check_compression(const std::string& name);

// Collective. The communicator must outlive the result. Returns null for `none`. Throws UserError for an
// unknown name.
//   fp16, bf16  transmits each element in 16 bits
//   top-k       transmits the few elements of largest magnitude
//   powersgd    transmits a low-rank approximation of each matrix, as two factors
// If hosts_add_first(), one rank of each host compresses for all of them (host_compression.h).
std::unique_ptr<Compression> make_compression(const CompressionOptions& options, Communicator& communicator);
// Makes a compression as make_compression() does, but always lets one rank of each host compress for all ranks of the
// host.
std::unique_ptr<Compression> make_host_compression(const CompressionOptions& options,
                                                   Communicator& communicator);

}  // namespace plexaura
