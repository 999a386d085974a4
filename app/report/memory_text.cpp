#include "app/report/memory_text.h"

#include <algorithm>
#include <fmt/format.h>

#include "app/report/report.h"

namespace plexaura {

namespace {

std::string text_of_bytes(std::size_t bytes) { return bytes_text(static_cast<double>(bytes)); }

}  // namespace

std::string activations_text(const Program& program) {
  const std::string text = fmt::format("memory       {} for activations of the largest micro-batch",
                                       text_of_bytes(program.arena_bytes));
  const auto again = std::ranges::count_if(program.instructions, &Instruction::is_again);
  if (again == 0)
    return fmt::format("{} (no plan can need less than {})\n", text,
                       text_of_bytes(program.estimates.arena_lower_bound));
  return fmt::format("{}\n             {} without training.memory, which computes {} instructions again\n",
                     text, text_of_bytes(program.estimates.unlimited_arena_bytes), again);
}

std::string memory_sentence(const Trainer& trainer, const TrainerOptions& options) {
  if (!options.memory) return {};
  const StepMemory& memory = trainer.programs().memory();
  std::string text =
      fmt::format("training.memory {}: a step needs {}",
                  text_of_bytes(static_cast<std::size_t>(*options.memory)), text_of_bytes(memory.bytes));
  if (memory.bytes < memory.unlimited_bytes)
    text += fmt::format(
        " instead of {}, because values are computed again in {:.1f} % of the time of the forward and the "
        "backward pass, by estimates",
        text_of_bytes(memory.unlimited_bytes), 100 * memory.share_again);
  return text;
}

UserError memory_error(const Config& config, const StepMemoryError& error) {
  return config.section("training").error("memory", text_of(error.shortage()));
}

}  // namespace plexaura
