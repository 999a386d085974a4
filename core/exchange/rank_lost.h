#pragma once

#include <string>
#include <vector>

#include "core/base/error.h"
#include "core/base/export.h"
#include "core/exchange/collective.h"

namespace plexaura {

// The error after the loss of ranks: they died, stopped, or cannot be reached. Calls that include them never
// complete.
class PLEXAURA_API RankLost : public DeviceError {
 public:
  RankLost(const std::string& text, std::vector<int> ranks, std::string call, bool is_outlived = false);
  ~RankLost() override;

  // The lost ranks, in the numbering of the start, ascending. All remaining ranks get the same list.
  const std::vector<int>& ranks() const { return ranks_; }
  // The call in which this rank waited for the lost ranks: "'bucket 3 of step 17' (sum of 4096 float32)".
  const std::string& call() const { return call_; }
  // True if the ranks have died and the library survives that, so that the remaining ranks can continue
  // together.
  bool is_outlived() const { return is_outlived_; }

 private:
  std::vector<int> ranks_;
  std::string call_;
  bool is_outlived_;
};

// The error on a rank that must not print it, because `reporting_rank` does.
template <>
class Remote<RankLost> final : public RankLost, public RemoteError {
 public:
  Remote(int reporting_rank, const RankLost& error) : RankLost(error), RemoteError(reporting_rank) {}
};

}  // namespace plexaura
