#include "training/checkpoints/checkpoint_directory.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <cstdio>
#include <fcntl.h>
#include <fmt/format.h>
#include <string>
#include <string_view>
#include <system_error>
#include <unistd.h>
#include <utility>
#include <vector>

#include "core/base/error.h"
#include "training/files/file.h"
#include "training/files/folder_lock.h"
#include "training/files/shortage.h"

namespace plexaura {

namespace fs = std::filesystem;

namespace {

constexpr std::string_view prefix = "checkpoint-";
constexpr std::string_view removed_prefix = "checkpoint.removed-";
constexpr std::string_view unfinished_name = "checkpoint.unfinished";
constexpr std::string_view best_name = "best";
// Name of the new link before it replaces the old one.
constexpr std::string_view new_best_name = "checkpoint.best";
constexpr std::array<std::string_view, 2> file_names{"weights.safetensors", "state.safetensors"};

// Returns the number in a name that consists of the prefix and a number.
std::optional<std::int64_t> number_of(const fs::path& path, std::string_view before = prefix) {
  const std::string name = path.filename().string();
  if (!name.starts_with(before)) return std::nullopt;
  std::int64_t number = 0;
  const char* end = name.data() + name.size();
  const auto [stop, error] = std::from_chars(name.data() + before.size(), end, number);
  return error == std::errc() && stop == end ? std::optional(number) : std::nullopt;
}

[[noreturn]] void cannot(const char* what, const fs::path& path, const std::error_code& error) {
  const Shortage shortage = shortage_at(path, error.value()).value_or(Shortage{error.message(), ""});
  const std::string elsewhere = shortage.remedy.empty()
                                    ? "name a folder that can be written in output.dir"
                                    : shortage.remedy + " or name another folder in output.dir";
  const std::string limit = remedy_of_limit(error.value());
  const std::string text = fmt::format("cannot {} {}: {}; {}", what, path.string(), shortage.reason,
                                       limit.empty() ? elsewhere : limit);
  if (error == std::errc::no_such_file_or_directory) throw RemovedError(text);
  if (user_can_mend(error.value())) throw UserError(text);
  throw DeviceError(text);
}

// Returns the checkpoints, or the removed ones, in the order of their numbers.
std::vector<std::pair<std::int64_t, fs::path>> checkpoints_in(const fs::path& directory,
                                                              std::string_view before = prefix) {
  std::vector<std::pair<std::int64_t, fs::path>> found;
  std::error_code error;
  for (fs::directory_iterator entry(directory, error), end; !error && entry != end; entry.increment(error))
    if (const auto number = number_of(entry->path(), before)) found.emplace_back(*number, entry->path());
  if (error && error != std::errc::no_such_file_or_directory) cannot("read", directory, error);
  std::ranges::sort(found);
  return found;
}

// True for the two files of a checkpoint, and for a temporary file that a killed process has left: see
// AtomicFile.
bool is_own_name(const std::string& name) {
  return std::ranges::any_of(file_names, [&](std::string_view own) {
    return name == own || name.starts_with(fmt::format(".{}.unfinished-", own));
  });
}

// Returns a path at the place of a checkpoint that belongs to no checkpoint and would be lost with its
// removal: the path itself, or the first foreign entry of the folder.
std::optional<fs::path> foreign_at(const fs::path& path) {
  std::error_code error;
  const fs::file_type type = fs::symlink_status(path, error).type();
  if (type == fs::file_type::not_found) return std::nullopt;
  if (type != fs::file_type::directory) return path;
  for (fs::directory_iterator entry(path, error), end; !error && entry != end; entry.increment(error)) {
    std::error_code ignored;  // the entry may have disappeared
    const bool is_folder = entry->is_directory(ignored);
    if (is_folder || !is_own_name(entry->path().filename().string())) return entry->path();
  }
  return error && error != std::errc::no_such_file_or_directory ? std::optional(path) : std::nullopt;
}

void refuse_foreign(const fs::path& path) {
  if (const auto foreign = foreign_at(path))
    throw UserError(
        fmt::format("{} is not of a checkpoint of Plexaura and would be removed with '{}'; move it away, or "
                    "name another folder in output.dir",
                    foreign->string(), path.filename().string()));
}

void refuse_other_than_link(const fs::path& path) {
  std::error_code error;
  const fs::file_type type = fs::symlink_status(path, error).type();
  if (type != fs::file_type::not_found && type != fs::file_type::symlink)
    throw UserError(fmt::format(
        "{} is at the place of the link to the best checkpoint; move it away, or name another folder "
        "in output.dir",
        path.string()));
}

void make_folder(const fs::path& directory) {
  std::error_code error;
  if (fs::is_symlink(directory, error) && fs::status(directory, error).type() == fs::file_type::not_found)
    throw UserError(
        fmt::format("output.dir is {}, a link to '{}', which is not there; make that folder, or name another "
                    "in output.dir",
                    directory.string(), fs::read_symlink(directory, error).string()));
  fs::create_directories(directory, error);
  if (error) cannot("create", directory, error);
}

// Renames the folder of a checkpoint, so that it no longer counts as one.
void set_aside(const fs::path& path, std::int64_t number) {
  const fs::path removed = path.parent_path() / fmt::format("{}{:06}", removed_prefix, number);
  std::error_code error;
  if (!foreign_at(removed)) fs::remove_all(removed, error);
  fs::rename(path, removed, error);
}

// Removes the folders that set_aside() has renamed, including those of a process that was killed.
void remove_set_aside(const fs::path& directory) {
  std::error_code error;
  for (const auto& [number, path] : checkpoints_in(directory, removed_prefix))
    if (!foreign_at(path)) fs::remove_all(path, error);
}

}  // namespace

fs::path checkpoint_folder(const fs::path& directory, std::int64_t step) {
  return directory / fmt::format("{}{:06}", prefix, step);
}

void prepare_checkpoints(const fs::path& directory) {
  make_folder(directory);
  if (::access(directory.c_str(), W_OK | X_OK) != 0)
    cannot("write in", directory, std::error_code(errno, std::generic_category()));
  refuse_foreign(directory / unfinished_name);
  for (const std::string_view link : {best_name, new_best_name}) refuse_other_than_link(directory / link);
  for (const auto& [number, path] : checkpoints_in(directory)) refuse_foreign(path);
}

bool is_reserved_in_checkpoints(const fs::path& name) {
  return name == unfinished_name || name == best_name || name == new_best_name ||
         name == FolderLock::file_name || number_of(name) || number_of(name, removed_prefix);
}

std::optional<std::int64_t> newest_step(const fs::path& directory) {
  const auto all = checkpoints_in(directory);
  return all.empty() ? std::nullopt : std::optional(all.back().first);
}

std::optional<fs::path> newest_checkpoint(const fs::path& directory) {
  const auto all = checkpoints_in(directory);
  return all.empty() ? std::nullopt : std::optional(all.back().second);
}

void require_whole(const fs::path& checkpoint) {
  std::error_code error;
  for (const std::string_view name : file_names)
    if (fs::symlink_status(checkpoint / name, error).type() == fs::file_type::not_found)
      throw UserError(fmt::format(
          "{} is not a complete checkpoint: {} is missing; copy it again, or move it away to resume from an "
          "earlier one",
          checkpoint.string(), name));
}

UnfinishedCheckpoint::UnfinishedCheckpoint(const fs::path& directory, std::int64_t step)
    : path_(directory / unfinished_name), target_(checkpoint_folder(directory, step)) {
  make_folder(directory);
  refuse_foreign(target_);
  refuse_foreign(path_);
  std::error_code error;
  fs::remove_all(path_, error);
  fs::create_directory(path_, error);
  if (error) cannot("create", path_, error);
}

UnfinishedCheckpoint::~UnfinishedCheckpoint() {
  std::error_code error;
  fs::remove_all(path_, error);
}

// Gives the checkpoint its name. If a folder has that name already, exchanges the two, atomically if the file
// system supports that.
void UnfinishedCheckpoint::put_in_place() {
  std::error_code error;
  for (const std::string_view name : file_names)
    if (!fs::exists(path_ / name, error)) throw_write_error(path_ / name, ENOENT);
  if (::renameat2(AT_FDCWD, path_.c_str(), AT_FDCWD, target_.c_str(), RENAME_EXCHANGE) == 0) return;
  if (const auto number = number_of(target_)) set_aside(target_, *number);
  fs::rename(path_, target_, error);
  if (error) cannot("rename", path_, error);
}

void link_best(const fs::path& directory, std::int64_t step) {
  const fs::path link = directory / best_name;
  const fs::path new_link = directory / new_best_name;
  const fs::path target = checkpoint_folder(directory, step).filename();
  std::error_code error;
  if (!fs::is_directory(directory / target, error) || fs::read_symlink(link, error) == target) return;
  fs::remove(new_link, error);
  fs::create_directory_symlink(target, new_link, error);
  if (error) cannot("make the link", link, error);
  fs::rename(new_link, link, error);
  if (error) cannot("make the link", link, error);
}

// Renames all folders before it removes one. Removing takes time, and if the process were killed meanwhile, a
// run would resume from a later checkpoint of an earlier run.
void remove_other_checkpoints(const fs::path& directory, std::int64_t step, int keep,
                              const std::set<std::int64_t>& held) {
  auto all = checkpoints_in(directory);
  const auto later = std::ranges::upper_bound(all, step, {}, [](const auto& found) { return found.first; });
  const auto kept = std::min(static_cast<std::ptrdiff_t>(keep), later - all.begin());
  all.erase(later - kept, later);
  for (const auto& [number, path] : all)
    if (!(number < step && held.contains(number)) && !foreign_at(path)) set_aside(path, number);
  const fs::path best = directory / best_name;
  std::error_code error;
  if (fs::is_symlink(best, error) && !fs::exists(best, error)) fs::remove(best, error);
  remove_set_aside(directory);
}

}  // namespace plexaura
