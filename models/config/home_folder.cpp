#include "models/config/home_folder.h"

#include <cstddef>
#include <cstdlib>
#include <fmt/format.h>
#include <string_view>
#include <system_error>

#include "core/base/error.h"

namespace plexaura {

namespace {

std::string home_folder() {
  const char* home = std::getenv("HOME");
  if (home == nullptr || *home == '\0')
    throw UserError(
        "begins with '~', but the variable HOME, which would replace it, is not set; write the whole path");
  return home;
}

bool begins_variable(char letter) {
  return letter == '_' || letter == '{' || (letter >= 'A' && letter <= 'Z') ||
         (letter >= 'a' && letter <= 'z');
}

bool has_variable(const std::string& path) {
  for (std::size_t at = path.find('$'); at != std::string::npos; at = path.find('$', at + 1))
    if (at + 1 < path.size() && begins_variable(path[at + 1])) return true;
  return false;
}

}  // namespace

std::filesystem::path expand_home(const std::string& path) {
  if (path == "~" || path.starts_with("~/")) return home_folder() + path.substr(1);
  const bool begins_with_user = path.starts_with('~');
  std::error_code error;
  if ((!begins_with_user && !has_variable(path)) || std::filesystem::exists(path, error)) return path;
  throw UserError(
      begins_with_user
          ? fmt::format("is '{}', but '~' means the home folder only in '~/'; write the whole path", path)
          : fmt::format(
                "is '{}', but variables are not replaced in a configuration; write the value of the variable",
                path));
}

}  // namespace plexaura
