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

// Returns the compression in the checkpoint from which rank 0 resumes, or an empty text. Throws UserError on
// all ranks if this build does not know it. Collective.
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

// Returns the name of the method and its time: "fp16 2.31 s". Returns a range, "fp16 0.21 to 0.84 s", if the
// time depends on how much of the exchange the backward pass hides.
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

// Chooses the compression. A checkpoint keeps the choice. A run that continues from it measures again, to
// report whether it would choose otherwise now.
class AutomaticCompression final : public RankChoice<std::string> {
 public:
  AutomaticCompression(Communicator& exchange, const std::vector<ParameterSpec>& parameters,
                       std::string stored, RunOptions& options)
      : exchange_(exchange),
        gradients_(exchanged_gradients(parameters, options.types)),
        stored_(std::move(stored)),
        options_(options) {}

 private:
  std::vector<std::string> candidates() override { return compression_names(); }
  std::string name_of(const std::string& method) const override { return method; }
  std::string kept_name() override { return stored_; }
  bool judges_again() const override { return true; }

  std::string judge() override {
    choice_ = choose_compression(options_.strategy.compression, gradients_, options_.trainer.bucket_bytes,
                                 options_.strategy.overlap != Overlap::off, exchange_);
    return choice_.name;
  }

  void take(const std::string& method) override {
    options_.strategy.compression.name = method;
    options_.trainer.compression = method;  // checkpoints of this run contain the choice
  }

  ChoiceReport report(const std::string& taken) override {
    std::vector<JsonField> fields{{"event", "compression"}, {"compression", taken}};
    for (const ExpectedSeconds& method : choice_.expected) {
      fields.push_back({method.name + "_seconds_least", method.least});
      fields.push_back({method.name + "_seconds_most", method.most});
    }
    std::string text =
        stored_.empty() ? "takes " + taken : fmt::format("continues with {}, as in the checkpoint", taken);
    if (taken != choice_.name)
      text += ", although by present measurements a new run would take " + choice_.name;
    return {fmt::format("distributed.compression is auto and {}; {}", text, reason_of(choice_)), fields};
  }

  Communicator& exchange_;
  Placement gradients_;
  std::string stored_;
  RunOptions& options_;
  CompressionChoice choice_;
};

}  // namespace

ChoiceReport decide_compression(Communicator& exchange, const CommandLine& line,
                                const std::vector<ParameterSpec>& parameters, RunOptions& options) {
  const std::string stored = stored_compression(exchange, line, options);
  if (exchange.size() > 1) return AutomaticCompression(exchange, parameters, stored, options).make();
  // With one rank nothing is exchanged, but more ranks may resume this run.
  options.strategy.compression.name = "none";
  options.trainer.compression = stored;
  return {};
}

}  // namespace plexaura
