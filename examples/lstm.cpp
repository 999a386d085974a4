// A recurrent net that learns to write like a page of the documentation, character by character. Compare gpt.cpp: here a
// state carries what came before, so that one character after the other is written with one step of the net.
//   build/examples/lstm [STEPS]      100 steps show that it learns; more give longer fragments of the text

#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <plexaura/plexaura.h>
#include <random>
#include <string>

using namespace plexaura;

constexpr std::int64_t letters = 128, length = 32, hidden = 128, batch = 16;

struct Writer : Module {
  void members(MemberVisitor& visit) override {
    visit("words", words);
    visit("lstm", lstm);
    visit("out", out);
  }

  // Returns, for characters [N, T], the logits [N T, letters] of the character after each of them, and the
  // state after the last one.
  layers::Recurrence operator()(Operand characters, const std::vector<Node>& state = {}) const {
    layers::Recurrence found = lstm.run(words(characters), state);
    found.sequence = reshape(out(found.sequence), {-1, letters});
    return found;
  }

  layers::Embedding words{letters, 32};
  layers::Lstm lstm{32, hidden};
  layers::Linear out{hidden, letters};
};

std::string ascii_of(const char* path) {
  std::ifstream file(path);
  std::string text{std::istreambuf_iterator<char>(file), {}};
  std::erase_if(text, [](char letter) { return static_cast<unsigned char>(letter) >= letters; });
  if (text.size() <= length)
    throw UserError("there is no " + std::string(path) + "; start this in the folder of the sources");
  return text;
}

double train(const Writer& writer, ParameterStore& store, Backend& backend, const std::string& text,
             int steps) {
  Graph graph;
  const Node next = graph.input("next", {DType::int64, {batch * length}});
  const Node logits = writer(graph.input("characters", {DType::int64, {batch, length}})).sequence;
  Optimizer optimizer(
      {.loss = softmax_cross_entropy(logits, next)}, store, backend,
      {.optimizer = {.kind = OptimizerSpec::adam, .max_gradient_norm = 1}, .learning_rate = 0.004});
  std::mt19937 random(1);
  double mean = 0;
  for (int step = 1; step <= steps; ++step) {
    std::vector<std::int64_t> characters, following;
    for (std::int64_t n = 0; n < batch; ++n) {
      const std::size_t start = random() % (text.size() - length);
      characters.insert(characters.end(), &text[start], &text[start + length]);
      following.insert(following.end(), &text[start + 1], &text[start + length] + 1);
    }
    const double loss = optimizer.step({{"characters", Tensor::of<std::int64_t>({batch, length}, characters)},
                                        {"next", Tensor::of<std::int64_t>({batch * length}, following)}});
    mean = step == 1 ? loss : 0.9 * mean + 0.1 * loss;
    if (step % 20 == 0) std::printf("step %d  loss %.3f\n", step, mean);
  }
  return mean;
}

// Appends `count` characters to `text`.
std::string continued(const Writer& writer, ParameterStore& store, Backend& backend, std::string text,
                      std::size_t count) {
  Graph graph(Mode::inference);
  const Node character = graph.input("character", {DType::int64, {1, 1}});
  const Node h = graph.input("h", {DType::float32, {1, hidden}});
  const Node c = graph.input("c", {DType::float32, {1, hidden}});
  const layers::Recurrence found = writer(character, {h, c});
  Function step(graph, {character, h, c}, {found.sequence, found.state[0], found.state[1]}, backend, &store);
  std::mt19937 random(2);
  Tensor state[] = {Tensor(h.type()), Tensor(c.type())};  // the states, which begin as zeros
  const std::size_t end = text.size() + count;
  for (std::size_t i = 0; text.size() < end; ++i) {
    const std::vector<Tensor> results = step(Tensor::of<std::int64_t>({1, 1}, {text[i]}), state[0], state[1]);
    state[0] = results[1];
    state[1] = results[2];
    if (i + 1 < text.size()) continue;  // the net still reads the given text
    std::vector<double> weights = results[0].to_doubles();
    for (double& weight : weights) weight = std::exp(weight);
    text += static_cast<char>(std::discrete_distribution<>(weights.begin(), weights.end())(random));
  }
  return text;
}

int main(int argc, char** argv) try {
  const int steps = argc > 1 ? std::atoi(argv[1]) : 100;
  if (steps < 1) throw UserError("usage: lstm [STEPS], a whole number above 0");
  const std::string text = ascii_of("docs/guide/writing_a_model.md");
  Writer writer;
  ParameterStore store = make_store(writer, DType::float32, 1);
  const auto backend = open_backend("cpu");
  const double loss = train(writer, store, *backend, text, steps);
  std::printf("%s\n", continued(writer, store, *backend, "A model is ", 200).c_str());
  return steps < 100 || loss < 3.5 ? 0 : 1;
} catch (const Error& error) {
  std::fprintf(stderr, "%s\n", error.what());
  return error.exit_status();
}
