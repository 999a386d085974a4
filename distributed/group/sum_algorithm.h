#pragma once

#include <cstddef>
#include <string_view>

#include "distributed/group/call_signature.h"

namespace plexaura {

// How the ranks of a communicator add up arrays of `call.count` elements, and hand parts of them to each other: part
// r is that of part_of(call.count, call.dtype, r, ranks). All ranks are known to be here and to mean the same call.
//
// Each element is added in the order of ranks, whatever it is cut into: where two ranks mean the same array their
// bits are the same in every run, and with every algorithm.
class SumAlgorithm {
 public:
  virtual ~SumAlgorithm();

  // Afterwards this rank's part holds the sums, and the rest of `data` anything.
  virtual void reduce_scatter(const CallSignature& call, std::byte* data) = 0;
  // Copies this rank's part to all others, and theirs here. Of bytes, whatever the type.
  virtual void all_gather(const CallSignature& call, std::byte* data) = 0;
  // Both, one after the other, where there is no shorter way.
  virtual void sum(const CallSignature& call, std::byte* data);
};

}  // namespace plexaura
