// Tests that the faster one of two graphs is kept, on a fake runtime.

#include <algorithm>
#include <doctest/doctest.h>
#include <stdexcept>
#include <utility>
#include <vector>

#include "backends/cuda/engine/faster_graph.h"

namespace plexaura::cuda::runtime {

struct Graph {
  std::vector<double> seconds;  // of each launch; later launches take as long as the last one
  std::size_t launches = 0;
};

struct Event {
  double time = 0;
};

namespace {

double now = 0;
bool is_late = false;  // true: no enqueued work is done yet

}  // namespace

Event* make_event() { return new Event; }
Event* make_timed_event() { return new Event; }
void destroy(Event* event) noexcept { delete event; }
void destroy(Graph* graph) noexcept { delete graph; }
void record(Event* event, Stream*) { event->time = now; }
bool passed(const Event*) { return !is_late; }
double seconds_between(const Event* begin, const Event* end) {
  // doctest's REQUIRE() would call the raise() of this namespace on 64-bit ARM.
  if (is_late) throw std::logic_error("a time was asked for before the work was done");
  return end->time - begin->time;
}
void launch(Graph* graph, Stream*) {
  now += graph->seconds[std::min(graph->launches++, graph->seconds.size() - 1)];
}

}  // namespace plexaura::cuda::runtime

namespace plexaura::testing::cuda_faster_graph_test {

namespace {

using cuda::FasterGraph;
using cuda::GraphHandle;
namespace runtime = cuda::runtime;

constexpr std::size_t rounds = FasterGraph::rounds;

struct Two {
  Two(std::vector<double> of_first, std::vector<double> of_second)
      : first(new runtime::Graph{std::move(of_first)}),
        second(new runtime::Graph{std::move(of_second)}),
        faster(GraphHandle(first), GraphHandle(second)) {}

  void launch(std::size_t times) {
    for (std::size_t i = 0; i < times; ++i) faster.launch(nullptr);
  }
  // Returns how many launches after the timed ones use the second graph.
  std::size_t by_second() {
    launch(2 * rounds);
    CHECK(first->launches == rounds);
    CHECK(second->launches == rounds);
    launch(10);
    CHECK(first->launches + second->launches == 2 * rounds + 10);
    return second->launches - rounds;
  }

  runtime::Graph* first;
  runtime::Graph* second;
  FasterGraph faster;
};

}  // namespace

TEST_CASE("the second of two graphs stays where it is faster") {
  CHECK(Two({1}, {0.9}).by_second() == 10);
  CHECK(Two({0.9}, {1}).by_second() == 0);
  CHECK(Two({1}, {1}).by_second() == 0);
  CHECK(Two({1}, {0.995}).by_second() == 0);  // so small a difference may be chance
}

TEST_CASE("the first launch of a graph does not count, nor one that was held up") {
  CHECK(Two({1}, {50, 0.9, 1.5}).by_second() == 10);
  CHECK(Two({0.1, 1}, {0.9}).by_second() == 10);
  CHECK(Two({0.9, 7, 7, 0.5}, {0.8}).by_second() == 0);
}

TEST_CASE("until all timed launches are done the first graph is taken") {
  Two two({1}, {0.5});
  two.launch(2 * rounds);
  runtime::is_late = true;
  two.launch(3);
  CHECK(two.first->launches == rounds + 3);
  runtime::is_late = false;
  two.launch(3);
  CHECK(two.second->launches == rounds + 3);
}

TEST_CASE("a graph that is alone is launched without events") {
  auto* const only = new runtime::Graph{{1}};
  FasterGraph faster{GraphHandle(only)};
  for (int i = 0; i < 3; ++i) faster.launch(nullptr);
  CHECK(only->launches == 3);
}

}  // namespace plexaura::testing::cuda_faster_graph_test
