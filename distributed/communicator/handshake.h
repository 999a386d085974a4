#pragma once

#include <map>
#include <string>
#include <string_view>

#include "core/exchange/collective.h"

namespace plexaura {

// Checks, before any training data moves, that all ranks are about to do the same. Each rank passes named facts (hashes
// or short texts), such as {"seed", …}, {"the plan", …} and {"initial weights", …}. If the ranks differ, throws a
// UserError on all of them, which one rank prints (see speaks()). The error names the first fact in alphabetical order
// that differs, the value of most ranks (that of rank 0 if no other has more ranks), and the ranks with other values.
// Collective; exchanges short texts once.
void check_agreement(Collective& collective, const std::map<std::string, std::string>& facts);

// Checks that either all ranks or no rank found what they looked for. Otherwise throws a UserError on all of
// them, which one rank prints: "rank 0 found a checkpoint in runs and ranks 1 and 2 did not: ...". `found` is
// true if this rank found it. Collective.
void check_all_or_none(Collective& collective, bool found, std::string_view what);

// Compares a fact that may differ between ranks. Returns the sentence with which an error of
// check_agreement() begins, "the ranks differ in ...: rank 1 has ..., but ranks 0 and 2 have ...", or an
// empty text if the ranks agree. Collective.
std::string find_difference(Collective& collective, std::string_view name, const std::string& value);

}  // namespace plexaura
