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
  off,     // nothing is measured; estimates choose the kernels
  cached,  // kernels without known times are measured
  measure  // everything is measured once, also if its time is known
};

// Returns a text of device, library, processor, threads and the build of the kernels. Measured times are
// valid for backends with the same text.
PLEXAURA_API std::string where_times_hold(const BackendInfo& info);

// Measures how long kernels take if a backend offers several for one region. The times can be saved as text:
// in a file, in a checkpoint and for other ranks. With the same times, compile() chooses the same kernels.
// Only one thread at a time may use a Tuner.
class PLEXAURA_API Tuner {
 public:
  explicit Tuner(Tuning tuning) : tuning_(tuning) {}

  // Returns the seconds of each candidate, and measures them now if they are not known. They are infinite for
  // a candidate whose kernel fails. Returns an empty vector if nothing is known and nothing may be measured.
  // The candidates must differ in implementation or layouts. Throws if the kernels of all candidates fail.
  std::vector<double> seconds(Backend& backend, const RegionQuery& query,
                              std::span<const Candidate> candidates);

  // Forbids all further measurements.
  void freeze() { frozen_ = true; }
  // Returns how many sets of candidates were measured by this object, or by another rank for it; see
  // add_own().
  std::size_t measured() const { return count(Part::own); }
  double seconds_spent() const { return seconds_spent_; }  // seconds that this object has spent on measuring
  // Returns how many sets of candidates have known times that compile() has asked for.
  std::size_t used() const { return count(Part::used); }

  enum class Part : std::uint8_t {
    all,
    own,  // sets of candidates that this object has measured, or another rank for it: see add_own()
    // Sets of candidates that compile() has asked for; their times suffice to choose the same kernels again.
    used
  };
  std::string to_text(Part part = Part::all) const;
  // Reads a text that to_text() returned, here or elsewhere. It does not replace times that this object has
  // measured. Returns false, and changes nothing, if to_text() cannot have written the text.
  bool add(std::string_view text) { return add(text, false); }
  // Does the same as add() with a text of times that another rank has measured for this object.
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
  // The key is a hash of device, library, threads, the kernels' build, the graph's mode and the candidates' texts.
  std::map<std::uint64_t, Times> known_;
};

}  // namespace plexaura
