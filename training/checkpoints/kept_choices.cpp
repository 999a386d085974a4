#include "training/checkpoints/kept_choices.h"

#include <algorithm>
#include <charconv>
#include <fmt/format.h>
#include <system_error>
#include <utility>
#include <vector>

#include "core/base/error.h"
#include "training/files/cache_file.h"
#include "training/files/file.h"

namespace plexaura {

namespace {

namespace fs = std::filesystem;

constexpr std::string_view title_of_choices = "plexaura choices 1";
constexpr std::size_t most_choices = 1000;
constexpr std::uint64_t most_bytes_of_choices = 1 << 20;

using Choice = std::pair<std::uint64_t, std::string>;

// Removes the first line of the text and returns it.
std::string_view take_choice_line(std::string_view& text) {
  const std::size_t end = std::min(text.find('\n'), text.size());
  const std::string_view line = text.substr(0, end);
  text.remove_prefix(std::min(end + 1, text.size()));
  return line;
}

// Returns the choices in the order in which they were made. Damaged lines are left out.
std::vector<Choice> parse_choices(std::string_view text) {
  std::vector<Choice> choices;
  if (take_choice_line(text) != title_of_choices) return choices;
  while (!text.empty()) {
    const std::string_view line = take_choice_line(text);
    std::uint64_t key = 0;
    const auto [end, error] = std::from_chars(line.data(), line.data() + line.size(), key, 16);
    const auto digits = static_cast<std::size_t>(end - line.data());
    if (error == std::errc() && digits + 1 < line.size() && line[digits] == ' ')
      choices.emplace_back(key, line.substr(digits + 1));
  }
  return choices;
}

std::vector<Choice> read_choices(const fs::path& file) {
  std::error_code error;
  if (file.empty() || !fs::exists(file, error)) return {};
  try {
    return parse_choices(read_text_file(file, most_bytes_of_choices));
  } catch (const Error&) {
    return {};
  }
}

}  // namespace

std::string kept_choice(const fs::path& file, std::uint64_t key) {
  for (const auto& [known, choice] : read_choices(file))
    if (known == key) return choice;
  return {};
}

std::string keep_choice(const fs::path& file, std::uint64_t key, std::string_view choice) {
  if (file.empty()) return "it is not kept, because neither XDG_CACHE_HOME nor HOME names a folder";
  try {
    const FileDescriptor lock = lock_cache(file);
    std::vector<Choice> choices = read_choices(file);
    std::erase_if(choices, [&](const Choice& known) { return known.first == key; });
    choices.emplace_back(key, choice);
    if (choices.size() > most_choices) choices.erase(choices.begin());
    std::string text = fmt::format("{}\n", title_of_choices);
    for (const auto& [known, kept] : choices) text += fmt::format("{:016x} {}\n", known, kept);
    AtomicFile out(file);
    out.write(text);
    out.commit();
    return {};
  } catch (const Error& failure) {
    return fmt::format("it is not kept: {}", failure.what());
  }
}

}  // namespace plexaura
