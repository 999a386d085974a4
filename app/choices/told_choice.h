#pragma once

#include <string>
#include <vector>

#include "training/files/json_log.h"

namespace plexaura {

// What a person is told of something that a run has chosen by itself, and the log; both empty where nothing was chosen.
struct ToldChoice {
  std::string sentence = {};
  std::vector<JsonField> fields = {};
};

}  // namespace plexaura
