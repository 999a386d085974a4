#include "app/report/memory_text.h"

#include <fmt/format.h>

#include "app/report/report.h"

namespace plexaura {

std::string memory_sentence(const Trainer& trainer, const TrainerOptions& options) {
  if (!options.memory) return {};
  const StepMemory& memory = trainer.programs().memory();
  const auto bytes = [](std::size_t count) { return bytes_text(static_cast<double>(count)); };
  std::string text = fmt::format("training.memory {}: a step needs {}",
                                 bytes(static_cast<std::size_t>(*options.memory)), bytes(memory.bytes));
  if (memory.bytes < memory.unlimited_bytes)
    text += fmt::format(
        " instead of {}, because values are computed again in {:.1f} % of the time of the forward and the "
        "backward pass, by estimates",
        bytes(memory.unlimited_bytes), 100 * memory.share_again);
  return text;
}

UserError memory_error(const Config& config, const StepMemoryError& error) {
  return config.section("training").error("memory", text_of(error.shortage()));
}

}  // namespace plexaura
