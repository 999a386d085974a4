#include "app/use/next_token_logits.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "core/base/error.h"
#include "core/compile/compile.h"
#include "core/compile/mixed_precision.h"

namespace plexaura {

namespace {

constexpr const char* token_name = "token";
constexpr const char* position_name = "position";

// Returns how many tokens a first text may have for each call if it is read token by token. models/text_gpt.yaml reads
// 3.5 tokens one by one (the new token among them) in the time of a whole window of 64 tokens, and 7.2 in the time of one
// of 256.
std::int64_t tokens_per_call(std::int64_t window) { return 1 + window / 50; }

// Returns a store with these weights and the buffers of the incremental model, which may be null.
ParameterStore store_with_buffers(const ParameterStore& weights, layers::IncrementalLayer* incremental) {
  std::vector<ParameterSpec> specs = weights.specs();
  // Placeholders, which the values of `weights` replace.
  for (ParameterSpec& spec : specs) spec.initialiser = Initialiser::zeros();
  if (incremental != nullptr)
    std::ranges::move(specs_of(*incremental, weights.dtype(), "incremental"), std::back_inserter(specs));
  ParameterStore store(std::move(specs));
  store.set_types(weights.types());
  for (const ParameterSpec& spec : weights.specs()) store.write(spec.name, weights.read(spec.name));
  return store;
}

}  // namespace

NextTokenLogits::NextTokenLogits(Model& model, const ParameterStore& weights, Backend& backend, bool strict,
                                 std::int64_t calls)
    : window_(model.sample_shape()[0]),
      incremental_(model.incremental(1)),
      store_(store_with_buffers(weights, incremental_.get())),
      backend_(backend),
      whole_([&](const Node& x) { return model(x); }, store_, backend, {.strict = strict}),
      strict_(strict),
      calls_(calls) {}

std::vector<double> NextTokenLogits::operator()(std::span<const std::int32_t> tokens) {
  if (std::ssize(tokens) <= seen_tokens_)
    throw InternalError("the text whose next token is wanted has no token more than at the last call");
  if (seen_tokens_ == 0 && std::ssize(tokens) > tokens_per_call(window_) * calls_) incremental_.reset();
  seen_tokens_ = std::ssize(tokens);
  if (!incremental_ || seen_tokens_ > window_) return read_window(tokens);
  std::vector<double> logits;
  while (read_positions_ < std::ssize(tokens))
    logits = read_next(tokens[static_cast<std::size_t>(read_positions_)]);
  return logits;
}

std::vector<double> NextTokenLogits::read_next(std::int32_t token) {
  if (vm_ == nullptr) compile_incremental();
  vm_->run({{token_name, Tensor::of<std::int64_t>({1, 1}, {token})},
            {position_name, Tensor::scalar(read_positions_)}},
           StepBlock{});
  ++read_positions_;
  ++computed_positions_;
  return vm_->output().to_doubles();
}

std::vector<double> NextTokenLogits::read_window(std::span<const std::int32_t> tokens) {
  const std::size_t seen = std::min(tokens.size(), static_cast<std::size_t>(window_));
  Tensor samples(TensorType{DType::int64, {1, window_}});
  // Fills the rest of the window, which no position of the text reads.
  std::ranges::fill(samples.as<std::int64_t>(), 0);
  std::ranges::copy(tokens.last(seen), samples.as<std::int64_t>().begin());
  computed_positions_ += window_;
  const std::vector<double> logits = whole_(samples).to_doubles();
  const std::size_t width = logits.size() / static_cast<std::size_t>(window_);
  const auto last = logits.begin() + static_cast<std::ptrdiff_t>((seen - 1) * width);
  return {last, last + static_cast<std::ptrdiff_t>(width)};
}

void NextTokenLogits::compile_incremental() {
  Graph graph(Mode::inference);
  const Node token = graph.input(token_name, {DType::int64, {1, 1}});
  const Node position = graph.input(position_name, {DType::int64, {}});
  const std::vector<Value> roots{incremental_->next(token, position).value()};
  const ArenaTypes& types = store_.types();
  const PassGraph built =
      types.is_mixed() ? in_mixed_precision(graph, roots, types.precision()) : copy(graph, roots);
  const std::vector<ProgramOutput> outputs{{.node = Node(*built.graph, built.roots[0])}};
  vm_ = std::make_unique<VM>(
      compile(*built.graph, outputs, backend_, {.placement = &store_.placement(), .strict = strict_}),
      backend_, VmOptions{.store = &store_});
}

std::set<std::string> NextTokenLogits::ops_on_host() const {
  std::set<std::string> ops = whole_.ops_on_host();
  if (vm_ != nullptr) ops.merge(vm_->program().ops_on_host());
  return ops;
}

}  // namespace plexaura
