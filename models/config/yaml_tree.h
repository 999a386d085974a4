#pragma once

#include <string>
#include <vector>

namespace plexaura {

// Where a value of a configuration was written. Line and column count from 1; line 0 means that `file` alone
// names the place (an override given on the command line).
struct YamlPosition {
  std::string file;
  int line = 0;
  int column = 0;

  bool operator==(const YamlPosition&) const = default;
};

std::string to_string(const YamlPosition& position);  // "models/iris.yaml:7:3"

struct YamlMember;

// A value of a YAML document, with its place. Scalars keep their text: its meaning is for the reader.
struct YamlValue {
  enum class Kind { empty, scalar, list, map };

  Kind kind = Kind::empty;
  YamlPosition position;
  std::string text;                 // of a scalar
  std::vector<YamlValue> items;     // of a list
  std::vector<YamlMember> members;  // of a map, in the order written; no key twice

  YamlMember* find(std::string_view key);
  const YamlMember* find(std::string_view key) const;
};

struct YamlMember {
  std::string key;
  YamlPosition position;  // of the key
  YamlValue value;
};

// The one document in `text`; `name` stands for the file in positions and errors. Throws UserError with a
// position for what is not YAML, and for what a configuration has no use for: a key twice in a map, tabs as
// indentation, control characters, anchors and aliases, tags, keys that are not scalars, a second document,
// nesting deeper than 64.
YamlValue parse_yaml(const std::string& text, const std::string& name);

// Sets one value: "training.batch_size=8", "model.layers.0.units=30" or "training.optimizer={name: sgd,
// learning_rate: 0.1}", which replaces the whole of what was there. The right side is YAML where it begins with a
// bracket, a brace or a quote, and otherwise a text as it stands, without the blanks around it. Maps on the
// way are made where they are missing. The new value's position is "--set " and the assignment. Throws
// UserError for a malformed assignment and for a path that leads through a scalar or past the end of a list.
void apply_override(YamlValue& root, const std::string& assignment);

// `text` for use within an error: in quotes, on one line, not at any length.
std::string quoted_for_error(std::string_view text);

}  // namespace plexaura
