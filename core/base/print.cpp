#include "core/base/print.h"

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstdio>
#include <exception>
#include <fmt/format.h>
#include <system_error>

#include "core/base/error.h"
#include "core/base/utf8.h"

namespace plexaura {

namespace {

// True for control characters of ASCII, and for those that follow ASCII in Unicode, C2 80 to C2 9F in UTF-8.
bool is_control(std::string_view character) {
  const auto last = static_cast<unsigned char>(character.back());
  if (character.size() == 1) return last < 0x20 || last == 0x7f;
  return character.size() == 2 && character.front() == '\xc2' && last < 0xa0;
}

bool write(std::FILE* file, std::string_view text) noexcept {
  errno = 0;
  return std::fwrite(text.data(), 1, text.size(), file) == text.size() && std::fflush(file) == 0;
}

}  // namespace

std::string printable(std::string_view text) {
  std::string shown;
  while (!text.empty()) {
    const std::size_t length = utf8_length(text);
    const std::string_view character = text.substr(0, std::max<std::size_t>(length, 1));
    if (length > 0 && !is_control(character)) {
      shown += character;
    } else {
      for (const char c : character) shown += fmt::format("\\x{:02x}", static_cast<unsigned char>(c));
    }
    text.remove_prefix(character.size());
  }
  return shown;
}

void print_error(std::string_view line) noexcept {
  try {
    write(stderr, printable(line) + "\n");
  } catch (const std::exception&) {  // no memory for the printable text: writes the line as it is
    write(stderr, line);
  }
}

void print_output(std::string_view text) {
  if (!write(stdout, text))
    throw UserError(
        fmt::format("cannot write to the standard output: {}; give it a file or a reader that takes it",
                    std::generic_category().message(errno)));
}

}  // namespace plexaura
