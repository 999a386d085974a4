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

// What one call of all ranks moves in an exchange.
struct Crossing {
  enum class Call : std::uint8_t {
    sum_in_windows,  // of arrays in memory that the ranks of a host share, where they can
    sum,             // of arrays that each rank has for itself
    blocks           // each rank has a block for each other one
  };
  Call call = Call::blocks;
  std::int64_t bytes = 0;  // of a rank's array, or of one block
};

// How gradients are summed over ranks with fewer bytes than they have. What does not cross is not lost: a rank owes it, and
// brings it again with its next gradients (error feedback).
class Compression {
 public:
  virtual ~Compression();

  // Once, before the first exchange. The placement must outlive this.
  virtual void begin(const Placement& /*placement*/, std::span<const Bucket> /*buckets*/) {}

  // Collective, for a bucket of trainables. `owed` is what this rank has to bring; behind the call it is what has not
  // crossed. `sums` are the sums over all ranks of what has, with the same bits on each of them. `what` names the bucket.
  virtual void exchange(std::size_t bucket, std::span<float> owed, std::span<float> sums,
                        std::string_view what) = 0;

  // What one exchange of a bucket of so many elements moves between so many ranks that compress, call by call. Behind
  // begin().
  virtual std::vector<Crossing> crossings(std::size_t bucket, std::int64_t elements, int ranks) const = 0;

  // The bytes that this rank has sent to other hosts, through communicators that belong to this object.
  virtual std::int64_t bytes_sent() const { return 0; }

  // What a checkpoint keeps of it, beside what is owed; and one of these parts back.
  virtual void keep(std::vector<StrategyState>& /*state*/) const {}
  virtual void take(const StrategyState& /*part*/) {}
};

struct CompressionOptions {
  std::string name = "none";
  double ratio = 0.01;    // of `top-k`: the share of the elements that cross
  std::int64_t rank = 2;  // of `powersgd`: of the matrices that cross
};

// Whether the ranks of each host add what they owe before it is compressed: where there are several hosts, and one of
// them at least has several ranks.
bool hosts_add_first(int hosts, int ranks);

// The values of distributed.compression, but for `auto`, which stands for one of them (choose_compression.h): from the one that
// changes gradients least to the one that changes them most.
const std::vector<std::string>& compression_names();

//   fp16, bf16  each element crosses in 16 bits
//   top-k       a few elements cross, those of largest magnitude
//   powersgd    of each matrix one of low rank crosses, as two factors
// Where hosts_add_first(), one rank of each host compresses for all of them (host_compression.h).
// Null for `none`. Collective. The communicator must outlive it. Throws UserError for an unknown name.
std::unique_ptr<Compression> make_compression(const CompressionOptions& options, Communicator& communicator);
// The same, but one rank compresses for each host wherever the ranks run.
std::unique_ptr<Compression> make_host_compression(const CompressionOptions& options,
                                                   Communicator& communicator);

}  // namespace plexaura
