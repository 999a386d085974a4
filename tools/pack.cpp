// Packs the data of a YAML file into shards: see docs/reference/shards.md.

#include <CLI/CLI.hpp>
#include <filesystem>
#include <string>
#include <system_error>
#include <vector>

#include "tools/tool.h"

#include "app/data/pack_data.h"
#include "app/options/repeatable.h"
#include "core/base/error.h"
#include "core/base/print.h"

namespace plexaura {

namespace {

struct PackCommand {
  std::string file;
  std::vector<std::string> set;
  std::int64_t shard_mib = 256;
  PackOptions options;
};

void declare(CLI::App& app, PackCommand& command) {
  app.add_option("FILE.yaml", command.file, "the file whose section `data` describes the data")->required();
  app.add_option("OUT", command.options.folder, "the folder for the shards; it is made")->required();
  repeatable(app.add_option("--set", command.set, "overrides a key of the file: --set data.path=photos"))
      ->type_name("KEY=VALUE");
  app.add_option("--shard-mib", command.shard_mib, "size of a shard in MiB; one more sample would exceed it")
      ->check(whole_number(1, 1 << 20))
      ->capture_default_str();
  CLI::Option* resize =
      app.add_option("--resize", command.options.resize,
                     "images with a longer shorter side are scaled to this number of pixels, and become JPEG")
          ->check(whole_number(1, 65500));
  app.add_option("--quality", command.options.quality, "of the JPEG files that --resize makes")
      ->check(whole_number(1, 100))
      ->needs(resize)
      ->capture_default_str();
  app.add_option("--pixels", command.options.pixels,
                 "packs samples of this width and height, prepared as for validation, instead of image files")
      ->check(whole_number(1, 4096))
      ->excludes(resize);
}

void pack(PackCommand& command) {
  const Config config = Config::load(command.file, command.set);
  const std::filesystem::path& folder = command.options.folder;
  const bool is_new = !std::filesystem::exists(folder);
  make_folder(folder);
  command.options.shard_bytes = static_cast<std::uint64_t>(command.shard_mib) << 20;
  try {
    print_output(pack_data(config, command.options));
  } catch (const UserError&) {
    std::error_code ignored;  // fails if a folder still contains files
    if (is_new) std::filesystem::remove(folder, ignored);
    throw;
  }
}

}  // namespace

}  // namespace plexaura

int main(int argc, char** argv) {
  using namespace plexaura;
  CLI::App app("Packs the data of a YAML file into shards, which data.format shards reads", "pack");
  PackCommand command;
  declare(app, command);
  return run_tool(app, argc, argv, [&] { pack(command); });
}
