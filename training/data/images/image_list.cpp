#include "training/data/images/image_list.h"

#include <algorithm>
#include <cstddef>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <span>
#include <string_view>
#include <system_error>
#include <utility>

#include "core/base/error.h"
#include "training/data/images/image.h"
#include "training/files/file.h"
#include "training/files/shortage.h"

namespace plexaura {

namespace {

namespace fs = std::filesystem;

// Returns as many bytes as is_image() and unread_format() need.
std::vector<std::uint8_t> head_of(const fs::path& path) {
  std::vector<std::uint8_t> head(12);
  try {
    const InputFile file(path);
    head.resize(std::min(head.size(), file.bytes()));
    file.read(0, std::as_writable_bytes(std::span(head)));
  } catch (const LimitReached&) {
    throw;
  } catch (const UserError&) {
    head.clear();
  }
  return head;
}

void check_loop(const fs::path& folder, std::vector<fs::path>& above) {
  std::error_code error;
  fs::path real = fs::canonical(folder, error);
  if (std::ranges::find(above, real) != above.end())
    throw UserError(fmt::format(
        "{}: is a link to a folder above it, which would have no end; remove the link", folder.string()));
  above.push_back(std::move(real));
}

}  // namespace

IgnoredFiles& IgnoredFiles::operator+=(const IgnoredFiles& more) {
  for (const auto& [format, count] : more.pictures) pictures[format] += count;
  others += more.others;
  beside_classes += more.beside_classes;
  return *this;
}

bool is_folder(const fs::directory_entry& entry) {
  std::error_code error;
  if (entry.is_directory(error)) return true;
  if (error || !entry.exists(error))
    throw UserError(
        fmt::format("{}: is a link that leads nowhere; mend or remove it", entry.path().string()));
  return false;
}

std::vector<fs::directory_entry> entries_in(const fs::path& folder) {
  std::vector<fs::directory_entry> entries;
  try {
    for (const auto& entry : fs::directory_iterator(folder))
      if (!entry.path().filename().string().starts_with('.')) entries.push_back(entry);
  } catch (const fs::filesystem_error& error) {
    throw UserError(fmt::format("{}: cannot be listed: {}; check the path and its permissions",
                                folder.string(), error.code().message()));
  }
  return entries;
}

// Looks only at the name, because opening up to a million files would take long.
bool has_image_extension(const std::string& name) {
  std::string extension = fs::path(name).extension().string();
  std::ranges::transform(extension, extension.begin(), [](char letter) {
    return letter >= 'A' && letter <= 'Z' ? static_cast<char>(letter - 'A' + 'a') : letter;
  });
  return extension == ".jpg" || extension == ".jpeg" || extension == ".png";
}

std::vector<std::string> ImageList::sorted_names() const {
  std::vector<std::string> names;
  for (const auto& [below, files] : files_)
    for (const std::string& file : files) names.push_back(below.empty() ? file : below + "/" + file);
  return names;
}

void ImageList::require_image(std::string_view subject, std::string_view remedy) const {
  for (const auto& [below, files] : files_)
    for (const std::string& file : files)
      if (is_image(head_of(root_ / below / file))) return;
  throw UserError(fmt::format("{}: {}contains no image (a JPEG or PNG file){}; {}", root_.string(), subject,
                              unread_pictures(), remedy));
}

std::string ImageList::unread_pictures() const {
  std::vector<std::string> formats;
  for (const auto& [format, count] : ignored_.pictures)
    formats.push_back(fmt::format("{} in {}", count, format));
  return formats.empty() ? "" : fmt::format(" but {}", fmt::join(formats, ", "));
}

void ImageList::add(const std::string& below, std::vector<fs::path> above) {
  const fs::path folder = below.empty() ? root_ : root_ / below;
  check_loop(folder, above);
  for (const fs::directory_entry& entry : entries_in(folder)) {
    const std::string name = entry.path().filename().string();
    // A file with the name of an image must be one: a folder, a pipe or a broken link causes an error when
    // it is read, as a damaged image does.
    if (has_image_extension(name))
      files_[below].insert(name);
    else if (is_folder(entry))
      add(below.empty() ? name : below + "/" + name, above);
    else if (std::error_code error; entry.is_regular_file(error))
      add_unnamed(below, entry.path());
  }
}

void ImageList::add_unnamed(const std::string& below, const fs::path& path) {
  const std::vector<std::uint8_t> head = head_of(path);
  if (is_image(head))
    files_[below].insert(path.filename().string());
  else if (const std::string_view format = unread_format(head); !format.empty())
    ++ignored_.pictures[std::string(format)];
  else
    ++ignored_.others;
}

}  // namespace plexaura
