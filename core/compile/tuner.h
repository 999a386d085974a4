#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/export.h"
#include "core/device/backend.h"

namespace plexaura {

enum class Tuning : std::uint8_t {
  off,     // kernels are chosen by estimates
  cached,  // measured where no time is known
  measure  // measured anew, each once
};

// Names device, library, processor, threads and the build of the kernels. Times hold where it is equal.
PLEXAURA_API std::string where_times_hold(const BackendInfo& info);

// How long kernels take where several are offered for one region, found by running them. What was measured is
// kept as text, for a file, a checkpoint and other ranks; with the same times compile chooses the same kernels.
// One thread at a time.
class PLEXAURA_API Tuner {
 public:
  explicit Tuner(Tuning tuning) : tuning_(tuning) {}

  // The seconds of each candidate: known, or measured now; infinite for one whose kernel fails. Empty where
  // nothing is known and nothing may be measured. The candidates differ in implementation or layouts. Throws
  // where all of their kernels fail.
  std::vector<double> seconds(Backend& backend, const RegionQuery& query,
                              std::span<const Candidate> candidates);

  // From now on nothing is measured.
  void freeze() { frozen_ = true; }
  // How many things were measured by this object, or for it.
  std::size_t measured() const { return count(Part::own); }
  double seconds_spent() const { return seconds_spent_; }  // by this object on measuring
  // How many things have known times that were asked for.
  std::size_t used() const { return count(Part::used); }

  enum class Part : std::uint8_t {
    all,
    own,  // measured by this object, or for it
    used  // asked for: with these alone compile chooses the same kernels again
  };
  std::string to_text(Part part = Part::all) const;
  // Takes over what to_text() gave, here or elsewhere, but for what this object has measured itself. False for
  // a text that it cannot have given, which changes nothing.
  bool add(std::string_view text) { return add(text, false); }
  // The same for what others have measured for this object.
  bool add_own(std::string_view text) { return add(text, true); }

 private:
  struct Times {
    std::vector<std::int64_t> nanoseconds = {};
    bool own = false;
    bool used = false;
    bool belongs_to(Part part) const { return part == Part::all || (part == Part::own ? own : used); }
  };

  bool add(std::string_view text, bool own);
  std::size_t count(Part part) const;
  const Times* known_times(std::uint64_t key, std::size_t candidates) const;
  void measure_now(std::uint64_t key, Backend& backend, const RegionQuery& query,
                   std::span<const Candidate> candidates);

  Tuning tuning_;
  bool frozen_ = false;
  double seconds_spent_ = 0;
  // By a hash of device, library, threads, the build of the kernels, and the candidates' texts.
  std::map<std::uint64_t, Times> known_;
};

}  // namespace plexaura
