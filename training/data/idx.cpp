#include "training/data/idx.h"

#include <algorithm>
#include <fmt/format.h>
#include <span>
#include <utility>

#include "core/base/error.h"
#include "training/data/unzip.h"

namespace plexaura {

namespace {

constexpr std::uint32_t image_magic = 2051;
constexpr std::uint32_t label_magic = 2049;

// The header and records of an IDX file.
class IdxFile {
 public:
  explicit IdxFile(const std::filesystem::path& path) : name_(path.string()), file_(path) {}

  std::uint32_t big_endian() {
    const std::vector<std::uint8_t> four = bytes(4);
    return std::uint32_t{four[0]} << 24 | std::uint32_t{four[1]} << 16 | std::uint32_t{four[2]} << 8 |
           four[3];
  }

  // Reads exactly `count` bytes. Memory grows with the bytes that exist, so that a wrong count in a header
  // causes an error and no huge allocation.
  std::vector<std::uint8_t> bytes(std::uint64_t count) {
    constexpr std::uint64_t largest_piece = 1 << 20;
    std::vector<std::uint8_t> all;
    while (all.size() < count) {
      const std::size_t before = all.size();
      all.resize(before + std::min(count - before, largest_piece));
      const std::span<std::uint8_t> piece = std::span(all).subspan(before);
      if (file_.read(piece) < piece.size())
        throw UserError(fmt::format(
            "{}: ends before the last record that its header counts; fetch the file again", name_));
    }
    return all;
  }

  void expect_magic(std::uint32_t wanted, const char* what) {
    const std::uint32_t magic = big_endian();
    if (magic != wanted)
      throw UserError(fmt::format(
          "{}: begins with {}, but {} begin with {}{}; give an IDX file of unsigned bytes, plain or gzipped",
          name_, magic, what, wanted,
          is_not_gzip_as_called() ? ", and is not gzip data as its name says" : ""));
  }

  void expect_end() {
    std::uint8_t surplus = 0;
    if (file_.read({&surplus, 1}) > 0)
      throw UserError(fmt::format(
          "{}: has bytes after the last record that its header counts; make the file anew", name_));
  }

 private:
  bool is_not_gzip_as_called() const { return name_.ends_with(".gz") && !file_.is_gzip(); }

  std::string name_;
  UnzippedFile file_;
};

struct IdxImages {
  std::uint64_t count = 0;
  std::int64_t rows = 0;
  std::int64_t columns = 0;
  std::vector<std::uint8_t> pixels = {};
};

IdxImages read_images(const std::filesystem::path& path) {
  IdxFile file(path);
  file.expect_magic(image_magic, "images");
  IdxImages images{.count = file.big_endian(), .rows = file.big_endian(), .columns = file.big_endian()};
  constexpr std::int64_t largest_side = 1 << 16;
  if (images.count == 0 || std::min(images.rows, images.columns) < 1 ||
      std::max(images.rows, images.columns) > largest_side)
    throw UserError(
        fmt::format("{}: has {} images of {}x{}; there must be at least one, with sides from 1 to {}",
                    path.string(), images.count, images.rows, images.columns, largest_side));
  images.pixels = file.bytes(images.count * static_cast<std::uint64_t>(images.rows * images.columns));
  file.expect_end();
  return images;
}

void check_labels(const std::filesystem::path& path, const std::vector<std::uint8_t>& labels,
                  std::int64_t classes) {
  const auto wrong = std::ranges::find_if(labels, [&](std::uint8_t label) { return label >= classes; });
  if (wrong != labels.end())
    throw UserError(
        fmt::format("{}: record {} has label {}; with {} classes labels go from 0 to {}: correct the file or "
                    "the number of classes",
                    path.string(), wrong - labels.begin(), *wrong, classes, classes - 1));
}

}  // namespace

IdxDataset::IdxDataset(const std::filesystem::path& images, const std::filesystem::path& labels,
                       const IdxOptions& options) {
  if (options.classes < 1)
    throw UserError(fmt::format("{}: classes is {}; it must be positive", images.string(), options.classes));
  IdxImages read = read_images(images);
  rows_ = read.rows;
  columns_ = read.columns;
  pixels_ = std::move(read.pixels);
  const std::uint64_t count = read.count;

  IdxFile label_file(labels);
  label_file.expect_magic(label_magic, "labels");
  const std::uint64_t label_count = label_file.big_endian();
  if (label_count != count)
    throw UserError(fmt::format("{}: has {} labels, but {} has {} images; give the labels of these images",
                                labels.string(), label_count, images.string(), count));
  labels_ = label_file.bytes(label_count);
  label_file.expect_end();
  check_labels(labels, labels_, options.classes);
  for (std::int64_t i = 0; i < options.classes; ++i) class_names_.push_back(std::to_string(i));
}

Tensor read_idx_images(const std::filesystem::path& path) {
  const IdxImages images = read_images(path);
  Tensor tensor(
      TensorType{DType::uint8, {static_cast<std::int64_t>(images.count), 1, images.rows, images.columns}});
  std::ranges::copy(images.pixels, tensor.as<std::uint8_t>().begin());
  return tensor;
}

void IdxDataset::read(std::int64_t index, const SampleContext&, std::span<std::uint8_t> sample,
                      std::int64_t& label) const {
  std::copy_n(pixels_.data() + static_cast<std::size_t>(index) * sample.size(), sample.size(), sample.data());
  label = labels_[static_cast<std::size_t>(index)];
}

}  // namespace plexaura
