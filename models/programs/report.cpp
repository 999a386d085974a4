#include "models/programs/report.h"

#include <fmt/format.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>

namespace plexaura {

namespace {

constexpr double seconds_between_lines = 1;  // where the output is a file

double now() { return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count(); }

void print(const std::string& text) {
  std::fputs(text.c_str(), stdout);
  std::fflush(stdout);
}

std::string row(const char* name, const std::string& value) { return fmt::format("  {:<20}{}\n", name, value); }

}  // namespace

RunReport::RunReport(bool speaks, const std::string& log, std::int64_t epochs)
    : speaks_(speaks), terminal_(isatty(STDOUT_FILENO) != 0), epochs_(epochs) {
  if (speaks_ && !log.empty()) log_.emplace(log);
}

void RunReport::step(const StepRecord& record, std::int64_t steps_in_epoch) {
  last_step_ = record;
  if (!speaks_) return;
  if (log_) log_->step(record);
  const double time = now();
  if (!terminal_ && time - last_line_ < seconds_between_lines) return;
  last_line_ = time;
  const std::int64_t step_in_epoch = (record.step - 1) % steps_in_epoch + 1;
  const std::string line = fmt::format("epoch {}/{}  step {}/{}  loss {:.4f}  accuracy {:.1f} %  {:.4g} samples/s  rate {:.3g}", record.epoch + 1, epochs_,
                                       step_in_epoch, steps_in_epoch, record.loss, 100 * record.accuracy, record.images_per_second, record.learning_rate);
  print(terminal_ ? "\r\033[K" + line : line + "\n");
}

void RunReport::epoch(const EpochRecord& record) {
  if (!speaks_) return;
  if (log_) log_->epoch(record);
  print(fmt::format("{}epoch {}/{}  done in {:.2f} s  train loss {:.4f}  validation loss {:.4f}  validation accuracy {:.2f} %\n",
                    terminal_ ? "\r\033[K" : "", record.epoch + 1, epochs_, record.seconds, record.train_loss, record.val_loss,
                    100 * record.val_accuracy));
}

void RunReport::say(const std::string& line) {
  if (speaks_) print(line + "\n");
}

void RunReport::summary(const TrainingResult& result, const ParameterStore& store, const std::string& log, const std::string& checkpoints) {
  if (!speaks_) return;
  std::string text = terminal_ ? "\r\033[K\n" : "\n";
  text += row("steps", with_commas(result.steps));
  if (result.last_epoch.seconds > 0) {
    text += row("training loss", fmt::format("{:.4f}", result.last_epoch.train_loss));
    text += row("validation loss", fmt::format("{:.4f}", result.last_epoch.val_loss));
    text += row("validation accuracy", fmt::format("{:.2f} %", 100 * result.last_epoch.val_accuracy));
  } else {
    text += row("loss", fmt::format("{:.4f} (last step; no epoch was finished)", last_step_.loss));
  }
  text += row("samples/s", fmt::format("{:.4g} (median of the steps; {:.1f} % of the time waiting for data)", result.images_per_second,
                                       100 * result.stall_share));
  text += row("parameters", with_commas(store.trainable_elements()));
  text += row("checkpoint", checkpoints.empty() ? "none (output.dir is not set)" : checkpoints);
  text += row("log", log.empty() ? "none (--log FILE writes one)" : log);
  if (!result.skipped.empty()) text += row("unreadable samples", fmt::format("{}, the first: {}", result.skipped.size(), result.skipped[0]));
  print(text);
}

std::string with_commas(std::int64_t number) {
  const std::string digits = std::to_string(number);
  std::string text;
  for (std::size_t i = 0; i < digits.size(); ++i) {
    if (i > 0 && (digits.size() - i) % 3 == 0) text += ',';
    text += digits[i];
  }
  return text;
}

std::string bytes_text(double bytes) {
  if (bytes < 1e6) return fmt::format("{:.1f} kB", bytes * 1e-3);
  return bytes < 1e9 ? fmt::format("{:.1f} MB", bytes * 1e-6) : fmt::format("{:.2f} GB", bytes * 1e-9);
}

}  // namespace plexaura
