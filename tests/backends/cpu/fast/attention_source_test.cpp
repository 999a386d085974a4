// Tests for which attentions the CPU takes the regions.

#include <doctest/doctest.h>
#include <string>

#include "backends/cpu/cpu_backend.h"
#include "core/autodiff/gradients.h"
#include "core/compile/compile.h"
#include "core/ops/attention.h"

namespace plexaura::testing::attention_source_test {

namespace {

struct AttentionProgram {
  AttentionProgram(std::int64_t queries, std::int64_t keys, bool trains, AttentionOptions options) {
    const auto backend = make_cpu_backend();
    Graph graph;
    const auto input = [&](const char* name, std::int64_t rows) {
      return graph.input(name, {DType::float32, {4, rows, 16}});
    };
    const Node query = input("query", queries), key = input("key", keys), value = input("value", keys);
    std::vector<Node> results{scaled_dot_product_attention(query, key, value, options)};
    if (trains)
      for (const Node& grad :
           vjp(results, std::vector{input("grad", queries)}, std::vector{query, key, value}))
        results.push_back(grad);
    std::vector<ProgramOutput> outputs;
    for (const Node& node : results) outputs.push_back({.node = node});
    const auto program = compile(graph, outputs, *backend);
    arena = program->arena_bytes;
    const std::string text = program->to_text();
    forward = text.find("(attention+") != std::string::npos || text.find("(attention)") != std::string::npos;
    backward = text.find("(attention_grad") != std::string::npos;
  }

  std::size_t arena;
  bool forward, backward;
};

constexpr std::size_t bytes_of_scores(std::int64_t queries, std::int64_t keys) {
  return static_cast<std::size_t>(4 * queries * keys) * sizeof(float);
}

}  // namespace

TEST_CASE("the CPU takes the regions of long causal attentions, whose arena does not grow with the square") {
  const auto program = [](std::int64_t positions) {
    return AttentionProgram(positions, positions, true, {.is_causal = true});
  };
  const AttentionProgram first = program(2048), second = program(4096);
  CHECK((first.forward && first.backward));
  CHECK(first.arena < bytes_of_scores(2048, 2048) / 4);
  CHECK(static_cast<double>(second.arena) < 2.1 * static_cast<double>(first.arena));
}

TEST_CASE("the CPU takes the region of a very long attention without gradient") {
  const AttentionProgram program(4096, 4096, false, {});
  CHECK(program.forward);
  CHECK(program.arena < bytes_of_scores(4096, 4096) / 8);
}

TEST_CASE("the CPU takes the regions of attentions with very many scores") {
  for (const double dropout : {0., 0.1}) {
    const AttentionProgram program(4096, 4096, true, {.dropout = dropout});
    CHECK((program.forward && program.backward));
    CHECK(program.arena < bytes_of_scores(4096, 4096) / 8);
  }
}

TEST_CASE("the CPU takes no region that is slower than its ops and saves little memory") {
  CHECK_FALSE(AttentionProgram(64, 64, true, {.is_causal = true}).forward);
  CHECK_FALSE(AttentionProgram(1, 4096, false, {}).forward);
  const AttentionProgram plain(2048, 2048, true, {});
  CHECK_FALSE((plain.forward || plain.backward));
}

}  // namespace plexaura::testing::attention_source_test
