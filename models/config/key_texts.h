#pragma once

#include <string>
#include <vector>

#include "models/config/keys.h"

namespace plexaura {

// A key as text.
struct KeyText {
  std::string path;       // "training.optimizer.momentum"
  std::string rule;       // "a number >= 0 and < 1"
  bool required;          // then it has no default
  std::string otherwise;  // the default as YAML, or empty
  std::string needs;      // "only with optimizer.name sgd or lars", or empty
  std::string meaning;    // in Markdown
};

// The texts of the keys of a section, in their order, with the defaults that stand in their members.
std::vector<KeyText> texts_of(const std::string& section, const std::vector<Key>& keys);

// For a terminal. Of a link in Markdown the words are left.
std::string to_text(const std::vector<KeyText>& keys);
// A table.
std::string to_markdown(const std::vector<KeyText>& keys);

}  // namespace plexaura
