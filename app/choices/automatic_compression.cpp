#include "app/choices/automatic_compression.h"

#include <algorithm>
#include <fmt/format.h>

#include "app/choices/exchanged_gradients.h"
#include "app/report/report.h"
#include "core/base/error.h"
#include "distributed/choices/choose_compression.h"
#include "training/checkpoints/checkpoint.h"

namespace plexaura {
namespace {

// Of the checkpoint that the run goes on from, as rank 0 sees it; empty where there is none.
std::string stored_compression(Communicator& ranks, const CommandLine& line, const RunOptions& options) {
  const bool looks = line.resume && ranks.rank() == 0;
  const std::string mine = looks ? compression_of_newest(options.trainer.output) : "";
  std::string stored = ranks.gather_all(mine, "the compression of the checkpoint").front();
  const std::vector<std::string>& known = compression_names();
  together(ranks, "the compression of the checkpoint", [&] {
    if (!stored.empty() && std::ranges::find(known, stored) == known.end())
      throw UserError(
          fmt::format("the checkpoint in {} was made with the compression '{}', which this version does "
                      "not know; set distributed.compression to another one",
                      options.trainer.output.string(), stored));
  });
  return stored;
}

// "none 2.31 s", or "none 0.21 to 0.84 s" where it depends on what the backward pass hides.
std::string method_text(const ExpectedSeconds& method) {
  const std::string most = seconds_text(method.most);
  const std::string least = seconds_text(method.least);
  return least == most ? fmt::format("{} {}", method.name, most)
                       : fmt::format("{} {} to {}", method.name, least, most);
}

std::string reason_of(const CompressionChoice& choice) {
  if (choice.expected.empty()) return "all ranks run on one host";
  std::string text = "expected of each step: ";
  for (const ExpectedSeconds& method : choice.expected) text += method_text(method) + ", ";
  return text + fmt::format("with {}/s between hosts", bytes_text(choice.bytes_per_second));
}

std::string sentence_of(const CompressionChoice& choice, const std::string& stored) {
  if (stored.empty())
    return fmt::format("distributed.compression is auto and takes {}; {}", choice.name, reason_of(choice));
  if (stored == choice.name)
    return fmt::format("distributed.compression is auto and goes on with {}, as the checkpoint has it; {}",
                       stored, reason_of(choice));
  return fmt::format(
      "distributed.compression is auto and goes on with {}, as the checkpoint has it, although by what was "
      "measured now a new run would take {}; {}",
      stored, choice.name, reason_of(choice));
}

std::vector<JsonField> fields_of(const CompressionChoice& choice, const std::string& taken) {
  std::vector<JsonField> fields{{"event", "compression"}, {"compression", taken}};
  for (const ExpectedSeconds& method : choice.expected) {
    fields.push_back({method.name + "_seconds_least", method.least});
    fields.push_back({method.name + "_seconds_most", method.most});
  }
  return fields;
}

}  // namespace

ToldChoice settle_compression(Communicator& exchange, const CommandLine& line,
                              const std::vector<ParameterSpec>& parameters, RunOptions& options) {
  CompressionOptions& compression = options.strategy.compression;
  const std::string stored = stored_compression(exchange, line, options);
  if (exchange.size() == 1) {  // nothing is exchanged, but a run of more ranks may go on from here
    compression.name = "none";
    options.trainer.compression = stored;
    return {};
  }
  const CompressionChoice choice =
      choose_compression(compression, exchanged_gradients(parameters, options.types),
                         options.trainer.bucket_bytes, options.strategy.overlap != Overlap::off, exchange);
  compression.name = stored.empty() ? choice.name : stored;
  options.trainer.compression = compression.name;
  return {sentence_of(choice, stored), fields_of(choice, compression.name)};
}

}  // namespace plexaura
