#pragma once

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "models/config/config.h"

namespace plexaura {

// The words that a key permits, and the member that they set: see one_of().
struct Words {
  std::vector<std::string> words;
  std::function<std::size_t()> chosen;  // returns the index of the word for the member's present value
  std::function<void(std::size_t)> choose;
};

// `one_of(options.overlap, {{"on", Overlap::on}, {"off", Overlap::off}})`: each word sets `into` to its
// value. The value that `into` has before is the default.
template <class T>
Words one_of(T& into, std::vector<std::pair<std::string, T>> meanings) {
  Words made;
  for (const auto& [word, value] : meanings) made.words.push_back(word);
  made.chosen = [&into, meanings] {
    const auto found =
        std::ranges::find_if(meanings, [&](const auto& meaning) { return meaning.second == into; });
    return static_cast<std::size_t>(found - meanings.begin());
  };
  made.choose = [&into, meanings](std::size_t index) { into = meanings[index].second; };
  return made;
}

// The member that a key sets. The member's type is the type of the key, and its value before reading is the
// default. An empty std::optional means Key::word, or without a word no default.
using KeyTarget =
    std::variant<bool*, int*, std::int64_t*, double*, std::string*, std::filesystem::path*,
                 std::vector<std::int64_t>*, std::vector<double>*, std::vector<std::string>*,
                 std::optional<std::int64_t>*, std::optional<double>*, std::optional<std::string>*,
                 std::optional<std::vector<std::int64_t>>*, std::optional<std::vector<double>>*,
                 std::optional<std::vector<std::string>>*, Words, std::vector<Section>*>;

// A condition for the effect of a key: another key, which precedes it in its table, must have one of these
// values, or, if `values` is empty, any value.
struct Need {
  std::string key = {};
  std::vector<std::string> values = {};
  // A clause for the error message. It follows the value of the other key and says why this value does not
  // fit, such as "which sums no gradients". May be empty.
  std::string why = {};
};

// A default that depends on the values of earlier keys.
struct LateDefault {
  std::string shown = {};          // the default as YAML, for descriptions; empty: descriptions show none
  std::function<void()> set = {};  // function that sets the member to the default
};

// A key of a section. It serves to read the key, to refuse it if it has no effect, to describe it in --describe, and to
// document it. Several keys of a table may have the same name if they have different needs.
struct Key {
  std::string name;  // path within the section: "optimizer.momentum" is in the inner section `optimizer`
  KeyTarget into;
  NumberRange range = {};               // range of a number, or of each number of a list
  std::function<double()> most = {};    // returns a further maximum, which depends on earlier keys
  std::vector<std::string> words = {};  // words that a text may be; empty: any text
  std::string word = {};                // the word that empties a std::optional
  bool required = false;
  LateDefault late_default = {};
  Need needs = {};
  // The rule for the value, in errors and descriptions. Empty: the rule follows from the type.
  std::string rule = {};
  std::string meaning = {};
};

// Reads the keys in their order into their members. Throws UserError with line and column for a wrong value,
// for a required key that is missing, and for a key that is given although its need is not met.
// Config::check_all_used() finds keys that are in no table.
void read_keys(const Section& section, const std::vector<Key>& keys);

// Returns the present value of the key's member as YAML; empty if it has none.
std::string value_of(const Key& key);

}  // namespace plexaura
