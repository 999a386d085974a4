#include "distributed/wire/texts.h"

#include <charconv>
#include <fmt/format.h>
#include <string_view>
#include <utility>

#include "core/base/error.h"

namespace plexaura {

namespace {

[[noreturn]] void throw_no_list() {
  throw DeviceError(
      "another process has sent something other than a list of texts; start all processes from the same "
      "build of Plexaura");
}

// Removes the first text, which has the form "LENGTH:TEXT", and returns it.
std::string_view take_text_from(std::string_view& rest) {
  std::size_t length = 0;
  const auto [colon, error] = std::from_chars(rest.data(), rest.data() + rest.size(), length);
  rest.remove_prefix(static_cast<std::size_t>(colon - rest.data()));
  if (error != std::errc() || !rest.starts_with(':') || length > rest.size() - 1) throw_no_list();
  const std::string_view text = rest.substr(1, length);
  rest.remove_prefix(1 + length);
  return text;
}

}  // namespace

std::string pack(const std::vector<std::string>& texts) {
  std::string packed;
  for (const std::string& text : texts) packed += fmt::format("{}:{}", text.size(), text);
  return packed;
}

std::vector<std::string> unpack(const std::string& packed) {
  std::vector<std::string> texts;
  for (std::string_view rest = packed; !rest.empty();) texts.emplace_back(take_text_from(rest));
  return texts;
}

std::string pack_facts(const std::map<std::string, std::string>& facts) {
  std::string packed;
  for (const auto& [name, value] : facts) packed += pack({name, value});
  return packed;
}

std::map<std::string, std::string> unpack_facts(const std::string& packed) {
  std::map<std::string, std::string> facts;
  for (std::string_view rest = packed; !rest.empty();) {
    std::string name(take_text_from(rest));
    if (rest.empty()) throw_no_list();
    facts.insert_or_assign(std::move(name), std::string(take_text_from(rest)));
  }
  return facts;
}

}  // namespace plexaura
