#include "models/config/yaml_tree.h"

#include <algorithm>
#include <fmt/format.h>
#include <map>
#include <optional>
#include <sstream>
#include <string_view>
#include <utility>
#include <yaml-cpp/eventhandler.h>
#include <yaml-cpp/exceptions.h>
#include <yaml-cpp/parser.h>

#include "core/base/error.h"
#include "core/base/print.h"

namespace plexaura {
namespace {

using Kind = YamlValue::Kind;

constexpr std::size_t deepest_nesting = 64;
constexpr std::string_view byte_order_mark = "\xef\xbb\xbf";

[[noreturn]] void fail(const YamlPosition& position, std::string_view what) {
  throw UserError(fmt::format("{}: {}", to_string(position), what));
}

// Builds the tree from the parser's events. The parser's own tree would resolve aliases.
class TreeBuilder final : public YAML::EventHandler {
 public:
  TreeBuilder(std::string_view text, const std::string& name) : text_(text), name_(name) {}

  YamlValue take() { return std::move(root_); }

  void OnDocumentStart(const YAML::Mark& mark) override { root_.position = place(mark); }
  void OnDocumentEnd() override {}
  void OnNull(const YAML::Mark& mark, YAML::anchor_t anchor) override {
    add(begin(Kind::empty, mark, "", anchor));
  }
  void OnAlias(const YAML::Mark& mark, YAML::anchor_t) override { refuse_anchor(mark); }
  void OnAnchor(const YAML::Mark& mark, const std::string&) override { refuse_anchor(mark); }
  void OnScalar(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                const std::string& text) override {
    YamlValue value = begin(Kind::scalar, mark, tag, anchor);
    if (tag == "!") check_closed(mark);
    if (text.find('\0') != std::string::npos)
      fail(value.position,
           "the text contains the character 0, which no name and no path can contain; remove it");
    value.text = text;
    add(std::move(value));
  }
  void OnSequenceStart(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                       YAML::EmitterStyle::value) override {
    open(begin(Kind::list, mark, tag, anchor));
  }
  void OnSequenceEnd() override { close(); }
  void OnMapStart(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                  YAML::EmitterStyle::value) override {
    open(begin(Kind::map, mark, tag, anchor));
  }
  void OnMapEnd() override { close(); }

 private:
  struct Level {
    YamlValue value;                            // the list or map that is under construction
    std::optional<YamlMember> pending;          // a key whose value has not been read yet
    std::map<std::string, YamlPosition> taken;  // position of each key that the map has so far
  };

  YamlPosition place(const YAML::Mark& mark) const { return {name_, mark.line + 1, mark.column + 1}; }

  [[noreturn]] void refuse_anchor(const YAML::Mark& mark) const {
    fail(place(mark), "anchors and aliases (& and *) are not supported; write the value out");
  }

  // Throws if the closing quote is missing. The parser would read such a text up to the end of the file.
  void check_closed(const YAML::Mark& mark) const {
    const std::size_t start =
        static_cast<std::size_t>(mark.pos) + (text_.starts_with(byte_order_mark) ? 3 : 0);
    const char quote = start < text_.size() ? text_[start] : ' ';
    if (quote != '"' && quote != '\'') return;
    for (std::size_t at = start + 1; at < text_.size(); ++at) {
      const bool escapes = text_[at] == (quote == '"' ? '\\' : '\'') && at + 1 < text_.size();
      if (escapes && (quote == '"' || text_[at + 1] == quote))
        ++at;
      else if (text_[at] == quote)
        return;
    }
    fail(place(mark), "a text in quotes has no closing quote");
  }

  YamlValue begin(Kind kind, const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor) const {
    if (anchor != YAML::NullAnchor) refuse_anchor(mark);
    // The parser's tag is "?" for a plain value and "!" for a quoted one.
    if (!tag.empty() && tag != "?" && tag != "!")
      fail(place(mark), fmt::format("the tag {} is not supported; leave it out", quoted_for_error(tag)));
    YamlValue value;
    value.kind = kind;
    value.position = place(mark);
    return value;
  }

  void open(YamlValue value) {
    if (levels_.size() == deepest_nesting)
      fail(value.position, fmt::format("values are nested more than {} deep", deepest_nesting));
    levels_.push_back({std::move(value), {}, {}});
  }

  void close() {
    YamlValue value = std::move(levels_.back().value);
    levels_.pop_back();
    add(std::move(value));
  }

  void add(YamlValue value) {
    if (levels_.empty()) {
      root_ = std::move(value);
      return;
    }
    Level& level = levels_.back();
    if (level.value.kind == Kind::list) {
      level.value.items.push_back(std::move(value));
    } else if (!level.pending) {
      start_member(level, std::move(value));
    } else {
      check_colon(*level.pending, value);
      level.pending->value = std::move(value);
      level.value.members.push_back(std::move(*level.pending));
      level.pending.reset();
    }
  }

  static void start_member(Level& level, YamlValue key) {
    if (key.kind != Kind::scalar) fail(key.position, "a key must be a word");
    const auto [first, is_new] = level.taken.emplace(key.text, key.position);
    if (!is_new)
      fail(key.position, fmt::format("the key {} is given twice, first at {}:{}; remove one of them",
                                     quoted_for_error(key.text), first->second.line, first->second.column));
    level.pending = YamlMember{std::move(key.text), std::move(key.position), {}};
  }

  // Throws if a key lacks a blank after its colon: YAML reads {a:1} as a key "a:1" without a value.
  static void check_colon(const YamlMember& key, const YamlValue& value) {
    const std::size_t colon = key.key.find(':');
    if (value.kind != Kind::empty || colon == std::string::npos || colon + 1 == key.key.size()) return;
    fail(key.position,
         fmt::format("{} has no space after the colon; write {}", quoted_for_error(key.key),
                     quoted_for_error(key.key.substr(0, colon) + ": " + key.key.substr(colon + 1))));
  }

  std::string_view text_;
  std::string name_;
  YamlValue root_;
  std::vector<Level> levels_;
};

void check_character(char c, const YamlPosition& position) {
  if ((static_cast<unsigned char>(c) < 0x20 && c != '\t' && c != '\n' && c != '\r') || c == 0x7f)
    fail(position,
         fmt::format("the control character 0x{:02x}, but a configuration is plain text; remove it", int{c}));
}

// Throws for characters that the parser accepts silently, or rejects with an unclear error.
void check_characters(std::string_view text, const std::string& name) {
  YamlPosition position{name, 1, 1};
  bool in_indentation = true;
  for (const char c : text) {
    if (c == '\t' && in_indentation)
      fail(position, "a tab in the indentation; YAML allows only spaces there");
    check_character(c, position);
    in_indentation = c == '\n' || (in_indentation && c == ' ');
    position.column = c == '\n' ? 1 : position.column + 1;
    position.line += c == '\n' ? 1 : 0;
  }
}

void move_to(YamlValue& value, const YamlPosition& position) {
  value.position = position;
  for (YamlValue& item : value.items) move_to(item, position);
  for (YamlMember& member : value.members) {
    member.position = position;
    move_to(member.value, position);
  }
}

// Returns the value in `parent` to which `step`, one part of an override's path, leads. Creates it if that is
// permitted.
YamlValue& descend(YamlValue& parent, const std::string& step, const YamlPosition& position) {
  if (parent.kind == Kind::list) {
    const bool is_number =
        step.size() < 10 && std::ranges::all_of(step, [](char c) { return c >= '0' && c <= '9'; });
    if (!is_number || std::stoul(step) >= parent.items.size())
      fail(position, fmt::format("{} names no element of the list of {} at {}", quoted_for_error(step),
                                 parent.items.size(), to_string(parent.position)));
    return parent.items[std::stoul(step)];
  }
  if (parent.kind == Kind::scalar)
    fail(position, fmt::format("there is no {} within the value {} at {}", quoted_for_error(step),
                               quoted_for_error(parent.text), to_string(parent.position)));
  if (parent.kind == Kind::empty) parent.kind = Kind::map;
  if (YamlMember* member = parent.find(step)) return member->value;
  YamlMember made{step, position, {}};
  made.value.position = position;
  return parent.members.emplace_back(std::move(made)).value;
}

// Parses the right side of an override. It is YAML only if it begins with a bracket, a brace or a quote, or
// has several lines. Otherwise it is a text, also if it begins with a character that has a meaning in YAML,
// such as '@' or '%'.
YamlValue parse_assigned(const std::string& text, const YamlPosition& position) {
  const std::size_t first = text.find_first_not_of(' ');
  const bool is_yaml =
      first != std::string::npos && (std::string_view("[{\"'").find(text[first]) != std::string_view::npos ||
                                     text.find('\n') != std::string::npos);
  if (is_yaml) return parse_yaml(text, position.file);
  for (const char c : text) check_character(c, position);
  YamlValue value;
  value.kind = Kind::scalar;
  if (first != std::string::npos) value.text = text.substr(first, text.find_last_not_of(' ') + 1 - first);
  return value;
}

std::vector<std::string> split_path(const std::string& path, const YamlPosition& position) {
  std::vector<std::string> steps;
  std::istringstream stream(path);
  for (std::string step; std::getline(stream, step, '.');) steps.push_back(step);
  const bool is_whole = !path.empty() && path.back() != '.';
  if (!is_whole || std::ranges::count(steps, "") != 0 || steps.size() > deepest_nesting)
    fail(position, "the part before '=' must be a path of keys such as training.batch_size");
  return steps;
}

}  // namespace

std::string to_string(const YamlPosition& position) {
  if (position.line == 0) return position.file;
  return fmt::format("{}:{}:{}", position.file, position.line, position.column);
}

const YamlMember* YamlValue::find(std::string_view key) const {
  const auto found = std::ranges::find(members, key, &YamlMember::key);
  return found == members.end() ? nullptr : &*found;
}

YamlMember* YamlValue::find(std::string_view key) {
  return const_cast<YamlMember*>(std::as_const(*this).find(key));
}

YamlValue parse_yaml(const std::string& text, const std::string& name) {
  check_characters(text, name);
  try {
    std::istringstream stream(text);
    YAML::Parser parser(stream);
    TreeBuilder builder(text, name);
    if (!parser.HandleNextDocument(builder)) return {Kind::empty, {name, 1, 1}, {}, {}, {}};
    TreeBuilder second(text, name);
    if (parser.HandleNextDocument(second))
      fail(second.take().position, "a second document; a configuration is one document");
    return builder.take();
  } catch (const YAML::Exception& error) {
    fail({name, error.mark.line + 1, error.mark.column + 1},
         fmt::format("this is not valid YAML: {}", error.msg));
  }
}

void apply_override(YamlValue& root, const std::string& assignment) {
  const YamlPosition position{fmt::format("--set {}", assignment), 0, 0};
  const std::size_t equals = assignment.find('=');
  if (equals == std::string::npos) fail(position, "an override is written as key=value");
  YamlValue value = parse_assigned(assignment.substr(equals + 1), position);
  move_to(value, position);
  YamlValue* target = &root;
  for (const std::string& step : split_path(assignment.substr(0, equals), position))
    target = &descend(*target, step, position);
  *target = std::move(value);
}

std::string quoted_for_error(std::string_view text) {
  constexpr std::size_t longest = 60;
  std::size_t end = std::min(text.size(), longest);
  while (end < text.size() && (static_cast<unsigned char>(text[end]) & 0xc0) == 0x80)
    --end;  // moves back to the beginning of a character
  return fmt::format("'{}{}'", printable(text.substr(0, end)), end < text.size() ? "…" : "");
}

}  // namespace plexaura
