#include "models/config/key_texts.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <regex>
#include <sstream>

#include "models/config/rules.h"

namespace plexaura {
namespace {

// Returns the rule for each type of key, in the words of the errors of Section.
struct Rule {
  const Key& key;

  std::string operator()(const bool* /*into*/) const { return "true or false"; }
  std::string operator()(const int* /*into*/) const { return rule_of("a whole number", key.range); }
  std::string operator()(const std::int64_t* /*into*/) const { return rule_of("a whole number", key.range); }
  std::string operator()(const double* /*into*/) const { return rule_of("a number", key.range); }
  std::string operator()(const std::string* /*into*/) const { return text(); }
  std::string operator()(const std::filesystem::path* /*into*/) const { return "a path"; }
  std::string operator()(const std::vector<std::int64_t>* /*into*/) const {
    return rule_of("a list of whole numbers", key.range);
  }
  std::string operator()(const std::vector<double>* /*into*/) const {
    return rule_of("a list of numbers", key.range);
  }
  std::string operator()(const std::vector<std::string>* /*into*/) const { return "a list of texts"; }
  std::string operator()(const std::optional<std::int64_t>* /*into*/) const {
    return rule_of("a whole number", key.range) + (key.word.empty() ? "" : ", or " + key.word);
  }
  std::string operator()(const std::optional<double>* /*into*/) const {
    return rule_of("a number", key.range);
  }
  std::string operator()(const std::optional<std::string>* /*into*/) const { return text(); }
  std::string operator()(const std::optional<std::vector<std::int64_t>>* /*into*/) const {
    return rule_of("a list of whole numbers", key.range);
  }
  std::string operator()(const std::optional<std::vector<double>>* /*into*/) const {
    return rule_of("a list of numbers", key.range) + (key.word.empty() ? "" : ", or " + key.word);
  }
  std::string operator()(const std::optional<std::vector<std::string>>* /*into*/) const {
    return "a list of texts";
  }
  std::string operator()(const Words& into) const { return joined_with_or(into.words); }
  std::string operator()(const std::vector<Section>* /*into*/) const { return "a list of sections"; }

  std::string text() const {
    if (!key.words.empty()) return joined_with_or(key.words);
    return key.rule.empty() ? "a text" : key.rule;
  }
};

std::string text_of(const Need& needs) {
  if (needs.key.empty()) return {};
  if (needs.values.empty()) return "only with " + needs.key;
  return fmt::format("only with {} {}", needs.key, joined_with_or(needs.values));
}

std::string default_of(const Key& key) {
  return key.late_default.set ? key.late_default.shown : value_of(key);
}

// Wraps the text to lines of at most 100 columns, each indented.
std::string wrapped(const std::string& text) {
  constexpr std::size_t columns = 100;
  std::istringstream words(text);
  std::string lines;
  std::string line;
  for (std::string word; words >> word;) {
    if (!line.empty() && line.size() + word.size() + 5 > columns) {
      lines += fmt::format("    {}\n", line);
      line.clear();
    }
    line += (line.empty() ? "" : " ") + word;
  }
  return lines + (line.empty() ? "" : fmt::format("    {}\n", line));
}

}  // namespace

std::vector<KeyText> texts_of(const std::string& section, const std::vector<Key>& keys) {
  std::vector<KeyText> texts;
  for (const Key& key : keys)
    texts.push_back({.path = section + '.' + key.name,
                     .rule = std::visit(Rule{key}, key.into),
                     .required = key.required,
                     .otherwise = key.required ? "" : default_of(key),
                     .needs = text_of(key.needs),
                     .meaning = key.meaning});
  return texts;
}

std::string to_text(const std::vector<KeyText>& keys) {
  static const std::regex link(R"(\[([^\]]*)\]\([^)]*\))");
  std::string text;
  for (const KeyText& key : keys) {
    const std::string otherwise = key.otherwise.empty() ? "" : "; default " + key.otherwise;
    text += fmt::format("{}: {}{}\n", key.path, key.rule, key.required ? "; required" : otherwise);
    text += wrapped(key.needs);
    text += wrapped(std::regex_replace(key.meaning, link, "$1"));
  }
  return text;
}

std::string to_markdown(const std::vector<KeyText>& keys) {
  std::string table = "| key | value | default | meaning |\n|---|---|---|---|\n";
  for (const KeyText& key : keys) {
    const std::string otherwise = key.otherwise.empty() ? "–" : fmt::format("`{}`", key.otherwise);
    table += fmt::format("| `{}` | {} | {} | {}{}{} |\n", key.path, key.rule,
                         key.required ? "required" : otherwise, key.needs, key.needs.empty() ? "" : ": ",
                         key.meaning);
  }
  return table;
}

}  // namespace plexaura
