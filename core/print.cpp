#include "core/print.h"

#include <cerrno>
#include <cstdio>
#include <exception>
#include <fmt/format.h>
#include <system_error>

#include "core/error.h"

namespace plexaura {

namespace {

// In ASCII, or among the control characters behind it, which are C2 80 to C2 9F in UTF-8 and single bytes
// elsewhere.
bool is_control(unsigned char byte, unsigned char before) {
  if (byte < 0x80) return byte < 0x20 || byte == 0x7f;
  return byte < 0xa0 && (before < 0x80 || before == 0xc2);
}

bool write(std::FILE* file, std::string_view text) noexcept {
  errno = 0;
  return std::fwrite(text.data(), 1, text.size(), file) == text.size() && std::fflush(file) == 0;
}

}  // namespace

std::string printable(std::string_view text) {
  std::string shown;
  unsigned char before = 0;
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (is_control(byte, before))
      shown += fmt::format("\\x{:02x}", byte);
    else
      shown += c;
    before = byte;
  }
  return shown;
}

void print_error(std::string_view line) noexcept {
  try {
    write(stderr, printable(line) + "\n");
  } catch (const std::exception&) {  // there is no memory for another text
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
