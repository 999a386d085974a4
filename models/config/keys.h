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

// Words of a file that stand for values of a program: see one_of().
struct Words {
  std::vector<std::string> words;
  std::function<std::size_t()> chosen;  // the index of the word for the present value
  std::function<void(std::size_t)> choose;
};

// `one_of(options.overlap, {{"on", Overlap::on}, {"off", Overlap::off}})`: each word sets `into` to its value, and the value
// that stands in `into` before is the default.
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

// The member that a key fills. Its type is the type of the key, and the value that stands there before is the default;
// a key whose std::optional is empty has none.
using KeyTarget =
    std::variant<bool*, int*, std::int64_t*, double*, std::string*, std::filesystem::path*,
                 std::vector<std::int64_t>*, std::vector<double>*, std::vector<std::string>*,
                 std::optional<std::int64_t>*, std::optional<double>*, std::optional<std::string>*,
                 std::optional<std::vector<std::int64_t>>*, Words, std::vector<Section>*>;

// A key may need another one, which stands before it in its table, to have an effect: with one of these values, or, where
// there are none, with any.
struct Need {
  std::string key = {};
  std::vector<std::string> values = {};
  std::string why = {};  // may follow a value that does not fit: "which sums no gradients"
};

// A default that depends on the keys before.
struct LateDefault {
  std::string shown = {};          // for descriptions, as YAML; empty: the key has no default there
  std::function<void()> set = {};  // into the member
};

// A key of a section, by which it is read, refused where it has no effect, described by --describe and documented. Several
// keys of a table may have one name, where each needs something else.
struct Key {
  std::string name;  // within the section; "optimizer.momentum" lies in the section `optimizer` within it
  KeyTarget into;
  NumberRange range = {};               // of a number, or of each of a list
  std::function<double()> most = {};    // a further upper end, which depends on the keys before
  std::vector<std::string> words = {};  // of a text: those that it may be; empty: any
  std::string word = {};                // of a std::optional: the word that empties it
  bool required = false;
  LateDefault late_default = {};
  Need needs = {};
  std::string rule =
      {};  // what the value must be, in errors and descriptions, where the type alone does not say it
  std::string meaning = {};
};

// Reads the keys in their order into their members. Throws UserError with the line and column for a value that is wrong, for
// a required key that is missing, and for a key that is written and lacks what it needs. Keys that are in no table are
// found by Config::check_all_used.
void read_keys(const Section& section, const std::vector<Key>& keys);

// The present value of the key's member as YAML; empty where it has none.
std::string value_of(const Key& key);

}  // namespace plexaura
