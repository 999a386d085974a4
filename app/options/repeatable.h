#pragma once

#include <CLI/CLI.hpp>

namespace plexaura {

// An option that takes one value each time it is given, and may be given again.
inline CLI::Option* repeatable(CLI::Option* option) {
  return option->allow_extra_args(false)->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
}

}  // namespace plexaura
