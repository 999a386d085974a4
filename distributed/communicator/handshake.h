#pragma once

#include <map>
#include <string>
#include <string_view>

#include "core/exchange/collective.h"

namespace plexaura {

// Makes sure, before any training data moves, that all ranks are about to do the same. Each brings named
// facts (hashes or short texts): {"build", …}, {"configuration", …}, {"seed", …}, {"initial weights", …},
// {"plan", …}. Where the ranks agree it returns; otherwise it throws a UserError on all of them, which one
// rank speaks (see speaks()): it names the first fact in alphabetical order that differs, the ranks that
// differ from most (from rank 0 where there is no majority), and the values. Collective; one exchange of
// short texts.
void check_agreement(Collective& collective, const std::map<std::string, std::string>& facts);

// Makes sure that what this rank looked for was found by all ranks or by none. Otherwise throws a UserError
// on all of them, which one rank speaks: "rank 0 found a checkpoint in runs and ranks 1 and 2 did not: ...".
// Collective.
void check_all_or_none(Collective& collective, bool found, std::string_view what);

// Of what may differ: the sentence that check_agreement() would begin with, "the ranks differ in ...: rank 1
// has ..., but ranks 0 and 2 have ...", and empty where the ranks agree. Collective.
std::string find_difference(Collective& collective, std::string_view name, const std::string& value);

}  // namespace plexaura
