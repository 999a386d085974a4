#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace plexaura {

// Counts files among the images that are not read.
struct IgnoredFiles {
  // Pictures of formats that are not supported, by format, such as "WebP".
  std::map<std::string, std::int64_t> pictures = {};
  std::int64_t others = 0;
  std::int64_t beside_classes = 0;  // files with names of images that are in no class folder

  IgnoredFiles& operator+=(const IgnoredFiles& more);
};

// Returns the entries of a folder whose names do not begin with a dot. Throws UserError if it cannot be listed.
std::vector<std::filesystem::directory_entry> entries_in(const std::filesystem::path& folder);
// Throws UserError for a link that leads nowhere, because a class or images would be missing.
bool is_folder(const std::filesystem::directory_entry& entry);
// True for names that end in .jpg, .jpeg or .png, in capital or small letters.
bool has_image_extension(const std::string& name);

// The images in a folder and in folders within it, as ImageFolderDataset describes. Throws UserError if a folder cannot be
// listed, and for links to nothing or to a folder above.
class ImageList {
 public:
  explicit ImageList(const std::filesystem::path& folder) : root_(folder) { add("", {}); }

  // Returns names relative to the folder, sorted by the path of their own folder and then by name.
  std::vector<std::string> sorted_names() const;
  // Throws UserError unless one of the files begins like an image. Its text is "FOLDER: SUBJECTcontains no image (a JPEG
  // or PNG file); REMEDY", in which a list of unread pictures may precede the semicolon.
  void require_image(std::string_view subject, std::string_view remedy) const;
  const IgnoredFiles& ignored() const { return ignored_; }

 private:
  // Returns a text such as " but 3 in WebP"; empty if all pictures have a format that is read.
  std::string unread_pictures() const;
  // Adds the images of the folder `below`. `above` has the real paths of the folders that lead to that folder.
  void add(const std::string& below, std::vector<std::filesystem::path> above);
  // Adds a file whose name does not show its format.
  void add_unnamed(const std::string& below, const std::filesystem::path& path);

  std::filesystem::path root_;
  std::map<std::string, std::set<std::string>> files_;
  IgnoredFiles ignored_;
};

}  // namespace plexaura
