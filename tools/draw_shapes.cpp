// Draws a small data set for image classification: DIR/train/CLASS/*.jpg and DIR/val/CLASS/*.jpg.

#include <cstdio>
#include <filesystem>
#include <fmt/format.h>
#include <string>

#include "tools/shapes.h"
#include "tools/tool.h"

#include "core/base/print.h"
#include "training/data/images/image.h"
#include "training/data/random.h"
#include "training/files/file.h"

namespace plexaura {

namespace {

struct Options {
  std::filesystem::path folder;
  std::int64_t classes = static_cast<std::int64_t>(shape_names().size());
  std::int64_t train = 150;
  std::int64_t val = 50;
  std::int64_t size = 96;
  std::uint64_t seed = 1;
};

void declare(CLI::App& app, Options& options) {
  app.option_defaults()->always_capture_default();
  const auto kinds = static_cast<std::int64_t>(shape_names().size());
  app.add_option("DIR", options.folder, "where to write DIR/train/CLASS/*.jpg and DIR/val/CLASS/*.jpg")
      ->required();
  app.add_option("--classes", options.classes, "number of shapes")->check(whole_number(2, kinds));
  app.add_option("--train", options.train, "training images per class")->check(whole_number(1));
  app.add_option("--val", options.val, "validation images per class")->check(whole_number(1));
  app.add_option("--size", options.size, "width and height of an image in pixels")
      ->check(whole_number(8, 4096));
  app.add_option("--seed", options.seed, "seed of the random numbers");
}

// Draws the images of one class. Images for training and for validation have different values of `first`, so
// that none appears in both.
void draw(const Options& options, const std::filesystem::path& folder, std::int64_t kind, std::int64_t first,
          std::int64_t count) {
  constexpr int quality = 92;
  make_folder(folder);
  for (std::int64_t i = 0; i < count; ++i) {
    Random seeds{options.seed, static_cast<std::uint64_t>(first + i)};
    const Image image = draw_shapes(kind, options.size, seeds.bits());
    write_file(folder / fmt::format("{:05}.jpg", i), encode_jpeg(image, quality));
  }
}

void draw_all(const Options& options) {
  for (std::int64_t kind = 0; kind < options.classes; ++kind) {
    const std::string& name = shape_names()[static_cast<std::size_t>(kind)];
    draw(options, options.folder / "train" / name, kind, 0, options.train);
    draw(options, options.folder / "val" / name, kind, options.train, options.val);
  }
  print_output(fmt::format("{}: {} classes, {} images each to train on and {} to validate on, {}x{} pixels\n",
                           options.folder.string(), options.classes, options.train, options.val, options.size,
                           options.size));
}

}  // namespace

}  // namespace plexaura

int main(int argc, char** argv) {
  using namespace plexaura;
  CLI::App app("Draws a small data set of images to classify", "draw_shapes");
  Options options;
  declare(app, options);
  return run_tool(app, argc, argv, [&] { draw_all(options); });
}
