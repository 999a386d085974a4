#include "dev/described_bench.h"

#include <fmt/format.h>
#include <memory>

#include "app/described_step.h"
#include "app/options/run_config.h"
#include "backends/registry.h"
#include "models/zoo/model.h"

namespace plexaura {

std::string described_step(const Config& config, const Shape& sample, std::int64_t classes,
                           const std::string& backend, const std::string& device) {
  const auto model = make_model(config, sample, classes);
  const std::int64_t batch = config.section("training").integer("batch_size", {.minimum = 1});
  RunOptions run = read_options(config, batch, 1);
  run.trainer.output.clear();
  const auto described = open_described_backend(backend, device);
  ParameterStore store = make_store(*model, run.types.values);
  store.set_types(run.types);
  Trainer trainer({.model = builder_of(*model),
                   .store = store,
                   .backend = *described,
                   .train = std::make_shared<UnreadSamples>(batch, sample)},
                  run.trainer);
  const WorkAccount account = account_of_step(*described, trainer);
  double seconds = 0, bytes = 0;
  for (const EnqueuedCall& call : account.calls) {
    seconds += call.seconds;
    bytes += call.bytes;
  }
  return fmt::format(
      R"({{"device":"{}","batch":{},"roofline_s":{:.6g},"calls":{},"graph_launches":{},"gb":{:.3f},"planned_mb":{:.1f}}})",
      device, batch, seconds, account.calls.size(), account.replays, bytes / 1e9,
      static_cast<double>(described->most_bytes_used()) / (1 << 20));
}

}  // namespace plexaura
