// Trains a small GPT, which learns to write like a page of the documentation, character by character.
//   build/examples/gpt [STEPS]      100 steps show that it learns; 3000 give words

#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <plexaura/plexaura.h>
#include <random>
#include <string>

using namespace plexaura;

constexpr std::int64_t letters = 128, context = 64, width = 64, batch = 16;

struct Gpt : Module {
  void members(MemberVisitor& visit) override {
    visit("words", words);
    visit("positions", positions);
    visit("blocks", blocks);
    visit("out", out);
  }

  // Returns, for characters [N, context], the logits [N context, letters] of the character after each of
  // them.
  Node operator()(Operand characters) const {
    const Node x = positions(words(characters));
    return reshape(out(blocks(x, {.is_causal = true})), {-1, letters});
  }

  static layers::TransformerOptions options() {
    return {.feedforward = 4 * width, .dropout = 0, .activation = "gelu", .norm_first = true};
  }

  layers::Embedding words{letters, width, {.weight = Initialiser::normal(0.02)}};
  layers::Positions positions{context, width};
  layers::TransformerEncoder blocks{2, width, 4, options(), layers::LayerNorm(width)};
  layers::Linear out{width, letters, {.bias = false, .tied_weight = &words.weight()}};
};

std::string ascii_of(const char* path) {
  std::ifstream file(path);
  std::string text{std::istreambuf_iterator<char>(file), {}};
  std::erase_if(text, [](char letter) { return static_cast<unsigned char>(letter) >= letters; });
  if (text.size() <= context)
    throw UserError("there is no " + std::string(path) + "; start this in the folder of the sources");
  return text;
}

double train(const Gpt& gpt, ParameterStore& store, Backend& backend, const std::string& text, int steps) {
  Graph graph;
  const Node next = graph.input("next", {DType::int64, {batch * context}});
  const Node logits = gpt(graph.input("characters", {DType::int64, {batch, context}}));
  Optimizer optimizer({.loss = softmax_cross_entropy(logits, next)}, store, backend,
                      {.optimizer = {.kind = OptimizerSpec::adamw}, .learning_rate = 0.002});
  std::mt19937 random(1);
  double mean = 0;
  for (int step = 1; step <= steps; ++step) {
    std::vector<std::int64_t> characters, following;
    for (std::int64_t n = 0; n < batch; ++n) {
      const std::size_t start = random() % (text.size() - context);
      characters.insert(characters.end(), &text[start], &text[start + context]);
      following.insert(following.end(), &text[start + 1], &text[start + context] + 1);
    }
    const double loss =
        optimizer.step({{"characters", Tensor::of<std::int64_t>({batch, context}, characters)},
                        {"next", Tensor::of<std::int64_t>({batch * context}, following)}});
    mean = step == 1 ? loss : 0.9 * mean + 0.1 * loss;
    if (step % 20 == 0) std::printf("step %d  loss %.3f\n", step, mean);
  }
  return mean;
}

// Appends `count` characters to `text`. Each depends on the `context` characters before it.
std::string continued(const Gpt& gpt, ParameterStore& store, Backend& backend, std::string text, int count) {
  Graph graph(Mode::inference);
  const Node characters = graph.input("characters", {DType::int64, {1, context}});
  Function logits_of(graph, {characters}, {gpt(characters)}, backend, &store);
  std::mt19937 random(2);
  for (int i = 0; i < count; ++i) {
    const std::size_t seen = std::min<std::size_t>(text.size(), context);
    std::vector<std::int64_t> numbers(text.end() - static_cast<std::ptrdiff_t>(seen), text.end());
    // Fills up with zeros after the text; no position of the text attends to them.
    numbers.resize(context, 0);
    const Tensor logits = logits_of(Tensor::of<std::int64_t>({1, context}, numbers))[0];
    std::vector<double> weights;
    for (const float logit : logits.as<float>().subspan((seen - 1) * letters, letters))
      weights.push_back(std::exp(logit));
    text += static_cast<char>(std::discrete_distribution<>(weights.begin(), weights.end())(random));
  }
  return text;
}

int main(int argc, char** argv) try {
  const int steps = argc > 1 ? std::atoi(argv[1]) : 100;
  if (steps < 1) throw UserError("usage: gpt [STEPS], a whole number above 0");
  const std::string text = ascii_of("docs/guide/writing_a_model.md");
  Gpt gpt;
  ParameterStore store = make_store(gpt, DType::float32, 1);
  const auto backend = open_backend("cpu");
  const double loss = train(gpt, store, *backend, text, steps);
  std::printf("%s\n", continued(gpt, store, *backend, "A model is ", 200).c_str());
  return steps < 100 || loss < 3.5 ? 0 : 1;
} catch (const Error& error) {
  std::fprintf(stderr, "%s\n", error.what());
  return error.exit_status();
}
