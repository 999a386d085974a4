#pragma once

#include <string>
#include <vector>

#include "models/config/keys.h"

namespace plexaura {

// The description of a key.
struct KeyText {
  std::string path;       // "training.optimizer.momentum"
  std::string rule;       // "a number >= 0 and < 1"
  bool required;          // true: the key has no default
  std::string otherwise;  // the default as YAML, or empty
  std::string needs;      // "only with optimizer.name sgd or lars", or empty
  std::string meaning;    // in Markdown
};

// Returns the descriptions of the keys of a section, in their order. The defaults are the present values of
// their members.
std::vector<KeyText> texts_of(const std::string& section, const std::vector<Key>& keys);

// Returns text for a terminal. A Markdown link is replaced by its words.
std::string to_text(const std::vector<KeyText>& keys);
// Returns a Markdown table.
std::string to_markdown(const std::vector<KeyText>& keys);

}  // namespace plexaura
