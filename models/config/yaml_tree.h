#pragma once

#include <string>
#include <vector>

namespace plexaura {

// The place where a value of a configuration was written. Line and column count from 1. If the line is 0, `file` alone
// is the place (an override on the command line).
struct YamlPosition {
  std::string file;
  int line = 0;
  int column = 0;

  bool operator==(const YamlPosition&) const = default;
};

std::string to_string(const YamlPosition& position);  // such as "models/iris.yaml:7:3"

struct YamlMember;

// A value of a YAML document and its position. A scalar keeps its text; the reader interprets it.
struct YamlValue {
  enum class Kind { empty, scalar, list, map };

  Kind kind = Kind::empty;
  YamlPosition position;
  std::string text;                 // text of a scalar
  std::vector<YamlValue> items;     // elements of a list
  std::vector<YamlMember> members;  // members of a map, in the order of the file; no key occurs twice

  YamlMember* find(std::string_view key);
  const YamlMember* find(std::string_view key) const;
};

struct YamlMember {
  std::string key;
  YamlPosition position;  // position of the key
  YamlValue value;
};

// Returns the one document in `text`; `name` replaces the file's name in positions and errors. Throws
// UserError with a position for invalid YAML, and for YAML that a configuration may not contain: a key given
// twice in a map, tabs as indentation, control characters, anchors and aliases, tags, keys that are not
// scalars, a second document, and nesting deeper than 64.
YamlValue parse_yaml(const std::string& text, const std::string& name);

// Sets one value: "training.batch_size=8", "model.layers.0.units=30" or "training.optimizer={name: sgd,
// learning_rate: 0.1}", which replaces the whole former value. The right side is YAML if it begins with a
// bracket, a brace or a quote, or has several lines; otherwise it is a text without the surrounding blanks.
// Missing maps on the path are created. The position of the new value is "--set " and the assignment. Throws
// UserError for an invalid assignment, and for a path through a scalar or past the end of a list.
void apply_override(YamlValue& root, const std::string& assignment);

// Returns `text` for an error: quoted, on one line, and shortened if it is long.
std::string quoted_for_error(std::string_view text);

}  // namespace plexaura
