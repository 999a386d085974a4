#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/device/backend.h"
#include "core/export.h"

namespace plexaura {

enum class Tuning : std::uint8_t {
  off,     // kernels are chosen by estimates
  cached,  // measured where no time is known
  measure  // measured anew, each once
};

// How long kernels take where several are offered for one region, found by running them. What was measured is
// kept as text, for a file and for other ranks; with the same times compile chooses the same kernels. One
// thread at a time.
class PLEXAURA_API Tuner {
 public:
  explicit Tuner(Tuning tuning) : tuning_(tuning) {}

  // The seconds of each candidate: known, or measured now. Empty where nothing is known and nothing may be
  // measured. The candidates differ in implementation or layouts.
  std::vector<double> seconds(Backend& backend, const RegionQuery& query,
                              std::span<const Candidate> candidates, bool accumulate);

  // From now on nothing is measured.
  void freeze() { frozen_ = true; }
  // How many things were measured, since this object was made.
  std::size_t measured() const { return measured_; }

  std::string to_text() const;
  // Takes over what to_text() gave, here or elsewhere. False for a text that it cannot have given, which
  // changes nothing.
  bool add(std::string_view text);

 private:
  struct Times {
    std::vector<std::int64_t> nanoseconds;
    bool own = false;  // measured by this object
  };

  Tuning tuning_;
  bool frozen_ = false;
  std::size_t measured_ = 0;
  std::map<std::uint64_t, Times> known_;  // by a hash of device, library, threads, and the candidates' texts
};

}  // namespace plexaura
