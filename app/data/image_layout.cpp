#include "app/data/image_layout.h"

#include <algorithm>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <string_view>
#include <system_error>
#include <vector>

namespace plexaura {

namespace fs = std::filesystem;

namespace {

std::vector<std::string> folders_in(const fs::path& path) {
  std::vector<std::string> names;
  std::error_code error;
  for (fs::directory_iterator entry(path, error), end; !error && entry != end; entry.increment(error)) {
    std::error_code is_none;
    if (entry->is_directory(is_none)) names.push_back(entry->path().filename().string());
  }
  std::ranges::sort(names);
  return names;
}

std::string in_small_letters(std::string text) {
  std::ranges::transform(text, text.begin(), [](char letter) {
    return letter >= 'A' && letter <= 'Z' ? static_cast<char>(letter - 'A' + 'a') : letter;
  });
  return text;
}

// Returns a folder whose name says that it may be meant for `part`; empty if there is none.
std::string meant_for(std::string_view part, const std::vector<std::string>& folders) {
  const std::vector<std::string> names =
      part == "train" ? std::vector<std::string>{"train", "training"}
                      : std::vector<std::string>{"val", "valid", "validation", "test", "dev"};
  const auto found = std::ranges::find_if(folders, [&](const std::string& folder) {
    return std::ranges::find(names, in_small_letters(folder)) != names.end();
  });
  return found == folders.end() ? "" : *found;
}

}  // namespace

void require_parts(const Section& data, const fs::path& path, bool validates) {
  const std::vector<std::string> folders = folders_in(path);
  for (const std::string_view part : {"train", "val"}) {
    std::error_code error;
    if ((part == "val" && !validates) || fs::exists(path / part, error) || error) continue;
    const std::string meant = meant_for(part, folders);
    throw data.error(
        "path",
        fmt::format("'{0}' has no folder '{1}'; images must be in {0}/train/CLASS and {0}/val/CLASS: {2}{3}",
                    path.string(), part,
                    !meant.empty()    ? fmt::format("rename '{}' if it is that", meant)
                    : part == "train" ? "move them there, or set data.validation_share if they are in CLASS"
                                      : "move them there",
                    part == "val" ? ", or set data.validation_limit to 0 to train without validation" : ""));
  }
}

void refuse_parts(const Section& data, const fs::path& path) {
  const std::vector<std::string> folders = folders_in(path);
  const std::string train = meant_for("train", folders);
  const std::string validation = meant_for("val", folders);
  if (train.empty() || validation.empty()) return;
  throw data.error(
      "path",
      fmt::format("'{0}' has the folders '{1}' and '{2}', and data.{3} divides images in CLASS: leave "
                  "data.{3} out, or name a folder with a folder for each class, such as {0}/{1}",
                  path.string(), train, validation, data.has("folds") ? "folds" : "validation_share"));
}

std::string remedy_for_one_class(const fs::path& folder_of_class) {
  const std::vector<std::string> below = folders_in(folder_of_class);
  if (below.empty()) return "add folders of the others";
  return fmt::format("its folder holds {} '{}'{}: if these are the classes, move them to {}",
                     below.size() == 1 ? "the folder" : "folders,", below.front(),
                     below.size() == 1 ? "" : " and others", folder_of_class.parent_path().string());
}

}  // namespace plexaura
