#include "training/data/images/cifar.h"

#include <algorithm>
#include <fmt/format.h>
#include <sstream>
#include <system_error>

#include "core/base/error.h"
#include "training/files/file.h"

namespace plexaura {

namespace {

namespace fs = std::filesystem;

constexpr std::int64_t side = 32;
constexpr std::size_t pixels_of_image = 3 * side * side;

bool is_there(const fs::path& path) {
  std::error_code error;
  return fs::exists(path, error);
}

// Reads the names of the classes, one in a line; the files end in an empty line.
std::vector<std::string> read_names(const fs::path& path) {
  constexpr std::uint64_t longest = 1 << 16;
  std::istringstream text(read_text_file(path, longest));
  std::vector<std::string> names;
  for (std::string line; std::getline(text, line);) {
    if (line.ends_with('\r')) line.pop_back();
    if (!line.empty()) names.push_back(line);
  }
  if (names.empty())
    throw UserError(fmt::format("{}: has no name of a class; fetch the archive again", path.string()));
  return names;
}

// Throws for a folder without the binary version, and names what the folder contains instead.
[[noreturn]] void refuse_folder(const fs::path& folder) {
  std::error_code error;
  if (fs::is_directory(folder / "train", error))
    throw UserError(
        fmt::format("{}: has a folder 'train' and no file of CIFAR; for images in train/CLASS set "
                    "data.format to image_folder, otherwise name the folder with the files of the "
                    "binary version",
                    folder.string()));
  const bool is_pickled = is_there(folder / "data_batch_1") || is_there(folder / "train");
  throw UserError(
      is_pickled
          ? fmt::format(
                "{}: has CIFAR in the version for Python, whose pickles are not read; convert it with "
                "tools/unpickle_cifar, or fetch the binary version",
                folder.string())
          : fmt::format(
                "{}: has neither data_batch_1.bin (CIFAR-10) nor train.bin (CIFAR-100); name the folder "
                "with the files of the binary version",
                folder.string()));
}

}  // namespace

CifarDataset::CifarDataset(const fs::path& folder, CifarPart part, CifarLabels labels) {
  const bool is_train = part == CifarPart::train;
  if (is_there(folder / "data_batch_1.bin")) {
    if (labels == CifarLabels::coarse)
      throw UserError(fmt::format(
          "{}: has CIFAR-10, which has no coarse labels; set data.cifar_labels to fine, or leave it out",
          folder.string()));
    class_names_ = read_names(folder / "batches.meta.txt");
    constexpr int batches = 5;
    for (int i = 1; is_train && i <= batches; ++i)
      add_file(folder / fmt::format("data_batch_{}.bin", i), 1, 0);
    if (!is_train) add_file(folder / "test_batch.bin", 1, 0);
  } else if (is_there(folder / "train.bin")) {
    const bool is_fine = labels == CifarLabels::fine;
    class_names_ = read_names(folder / (is_fine ? "fine_label_names.txt" : "coarse_label_names.txt"));
    add_file(folder / (is_train ? "train.bin" : "test.bin"), 2, is_fine ? 1 : 0);
  } else {
    refuse_folder(folder);
  }
}

void CifarDataset::add_file(const fs::path& file, std::size_t label_bytes, std::size_t label_at) {
  const std::vector<std::uint8_t> bytes = InputFile(file).read_all();
  const std::size_t record = label_bytes + pixels_of_image;
  if (bytes.empty() || bytes.size() % record != 0)
    throw UserError(
        fmt::format("{}: has {} bytes, which is no whole number of records of {} bytes; fetch the file "
                    "again",
                    file.string(), bytes.size(), record));
  for (std::size_t at = 0; at < bytes.size(); at += record) {
    const std::uint8_t label = bytes[at + label_at];
    if (label >= class_names_.size())
      throw UserError(
          fmt::format("{}: record {} (offset {}) has label {}, but there are names of {} classes; fetch "
                      "the archive again",
                      file.string(), at / record, at + label_at, label, class_names_.size()));
    labels_.push_back(label);
    const auto pixels = bytes.begin() + static_cast<std::ptrdiff_t>(at + label_bytes);
    pixels_.insert(pixels_.end(), pixels, pixels + pixels_of_image);
  }
}

Shape CifarDataset::sample_shape() const { return Shape{3, side, side}; }

void CifarDataset::read(std::int64_t index, const SampleContext&, std::span<std::uint8_t> sample,
                        std::int64_t& label) const {
  const auto first = pixels_.begin() + index * static_cast<std::ptrdiff_t>(pixels_of_image);
  std::copy_n(first, pixels_of_image, sample.begin());
  label = labels_[static_cast<std::size_t>(index)];
}

}  // namespace plexaura
