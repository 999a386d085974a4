#pragma once

#include <string>
#include <vector>

#include "models/config/keys.h"

namespace plexaura {

// The description of a key.
struct KeyText {
  std::string path;       // such as "training.optimizer.momentum"
  std::string rule;       // such as "a number >= 0 and < 1"
  bool required;          // true if the key has no default
  std::string otherwise;  // the default as YAML; empty if there is none to show
  std::string needs;      // such as "only with optimizer.name sgd or lars"; may be empty
  std::string meaning;    // text in Markdown
};

// Returns the descriptions of the keys of a section, in their order. The defaults are LateDefault::shown, or the
// present values of their members.
std::vector<KeyText> texts_of(const std::string& section, const std::vector<Key>& keys);

// Returns text for a terminal. A Markdown link is replaced by its words.
std::string to_text(const std::vector<KeyText>& keys);
// Returns a Markdown table.
std::string to_markdown(const std::vector<KeyText>& keys);

}  // namespace plexaura
