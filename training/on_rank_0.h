#pragma once

#include <functional>
#include <string_view>

#include "core/ranks/collective.h"

namespace plexaura {

// Work of some ranks, or of all, those that say so, for which the others wait: all leave as together() does. However
// long it takes, no deadline of a second or more ends the run, for those at work tell the others so four times a
// second. The work runs on the calling thread and must not call `ranks`: a thread of its own does so meanwhile.
void on_some_ranks(Collective& ranks, bool works, std::string_view what, const std::function<void()>& work);

// The same where rank 0 alone works.
void on_rank_0(Collective& ranks, std::string_view what, const std::function<void()>& work);

}  // namespace plexaura
