#pragma once

#include <functional>
#include <string_view>

#include "core/ranks/collective.h"

namespace plexaura {

// Work of rank 0 for which the others wait: all leave as together() does. However long it takes, nobody's
// deadline ends the run, for rank 0 tells the others every second that it is at work. With several ranks the
// work runs on a thread of its own.
void on_rank_0(Collective& ranks, std::string_view what, const std::function<void()>& work);

}  // namespace plexaura
