// Times the reading of images on one thread, as dev/compare_loaders does: build/dev/time_loader FOLDER
// [options]. Prints the number of images of each epoch, the seconds that have passed, and the seconds of
// processor time.
#include <CLI/CLI.hpp>
#include <cstdint>
#include <ctime>
#include <filesystem>
#include <fmt/format.h>
#include <memory>
#include <string>

#include "tools/tool.h"

#include "core/base/clock.h"
#include "core/base/print.h"
#include "training/data/images/image_folder.h"
#include "training/data/loader.h"
#include "training/data/shards/sharded_samples.h"

namespace plexaura {
namespace {

struct Arguments {
  std::string folder;
  std::int64_t size = 224;
  std::int64_t epochs = 1;
  std::int64_t batch = 64;
};

// Opens packed shards, or a folder of images.
std::shared_ptr<const Dataset> open(const Arguments& arguments) {
  const std::filesystem::path folder = arguments.folder;
  const ImageFolderOptions options{.image_size = arguments.size, .augment = true};
  if (std::filesystem::exists(folder / index_name("train")))
    return std::make_shared<ShardedImages>(std::make_shared<ShardFiles>(folder, "train"), options);
  return std::make_shared<ImageFolderDataset>(folder / "train", options);
}

void time_epochs(const Arguments& arguments) {
  const auto images = open(arguments);
  Loader loader(images, {.batch_size = arguments.batch, .workers = 0});
  for (std::int64_t epoch = 0; epoch < arguments.epochs; ++epoch) {
    const double begin = seconds_now();
    const std::clock_t processor_begin = std::clock();
    for (std::int64_t step = 0; step < loader.plan().steps_per_epoch(); ++step) loader.next();
    const double of_processor = static_cast<double>(std::clock() - processor_begin) / CLOCKS_PER_SEC;
    print_output(fmt::format("{} {} {}\n", images->size(), seconds_now() - begin, of_processor));
  }
}

}  // namespace
}  // namespace plexaura

int main(int argc, char** argv) {
  using namespace plexaura;
  Arguments arguments;
  CLI::App app("Times the reading of images on one thread", "time_loader");
  app.add_option("folder", arguments.folder, "packed shards, or a folder with train/CLASS")->required();
  app.add_option("--size", arguments.size, "width and height of a sample (224)")
      ->check(whole_number(1, 4096));
  app.add_option("--epochs", arguments.epochs, "epochs to read (1)")->check(whole_number(1));
  app.add_option("--batch", arguments.batch, "samples of a batch (64)")->check(whole_number(1));
  return run_tool(app, argc, argv, [&] { time_epochs(arguments); });
}
