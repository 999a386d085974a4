#pragma once

#include <CLI/CLI.hpp>

namespace plexaura {

// Makes an option take one value each time it is given, and lets it be given several times.
inline CLI::Option* repeatable(CLI::Option* option) {
  return option->allow_extra_args(false)->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
}

}  // namespace plexaura
