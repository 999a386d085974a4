#pragma once

#include <algorithm>
#include <string>
#include <vector>

#include "training/files/json_log.h"

namespace plexaura {

// The report of a choice: a sentence, and the fields of a line in the log. Both are empty if there is nothing
// to report.
struct ChoiceReport {
  std::string sentence = {};
  std::vector<JsonField> fields = {};
};

// A choice that all ranks make together before the first step, for example of a compression. make() is the
// protocol, and a choice overrides its steps. Each step may be collective, so all ranks call make() together.
template <class Candidate>
class RankChoice {
 public:
  virtual ~RankChoice() = default;

  // Makes the choice. Afterwards all ranks use the same candidate. Returns an empty report if there was
  // nothing to choose.
  ChoiceReport make() {
    const std::vector<Candidate> all = candidates();
    if (all.size() < 2) return {};
    const auto found =
        std::ranges::find(all, kept_name(), [&](const Candidate& one) { return name_of(one); });
    const bool is_kept = found != all.end();
    const bool judges = !is_kept || judges_again();
    const Candidate best = judges ? judge() : *found;
    const Candidate& taken = is_kept ? *found : best;
    take(taken);
    if (judges) keep(name_of(taken));
    return report(taken);
  }

 private:
  // Returns the candidates, the same on all ranks. If there are fewer than two, nothing is chosen.
  virtual std::vector<Candidate> candidates() = 0;
  virtual std::string name_of(const Candidate& candidate) const = 0;
  // Returns the name of the candidate that an earlier run has chosen and stored, the same on all ranks. A name that no
  // candidate has counts as none.
  virtual std::string kept_name() { return {}; }
  // True if the candidates are judged even if an earlier run has stored its choice, so that the report can
  // compare the two.
  virtual bool judges_again() const { return false; }
  // Estimates or measures the candidates and returns the best one. All ranks agree on it.
  virtual Candidate judge() = 0;
  // Writes the candidate into the options of the run, and sets up the objects that use it.
  virtual void take(const Candidate& candidate) = 0;
  // Stores the name of the candidate for later runs. Called only if judge() was called.
  virtual void keep(const std::string&) {}
  virtual ChoiceReport report(const Candidate& taken) = 0;
};

}  // namespace plexaura
