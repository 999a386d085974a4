#pragma once

#include <CLI/CLI.hpp>

namespace plexaura {

// Lets an option be given several times, with one value each time.
inline CLI::Option* repeatable(CLI::Option* option) {
  return option->allow_extra_args(false)->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
}

}  // namespace plexaura
