// Uses each installed library once: a gradient, a model from YAML, and the ranks of a run without mpirun.

#include <cmath>
#include <cstdio>
#include <plexaura/app/program.h>
#include <plexaura/backends/registry.h>
#include <plexaura/core/autodiff/gradients.h>
#include <plexaura/core/ops/binary.h>
#include <plexaura/core/ops/reduce.h>
#include <plexaura/core/ops/unary.h>
#include <plexaura/core/params/module.h>
#include <plexaura/core/vm/function.h>
#include <plexaura/distributed/communicator/run_ranks.h>
#include <plexaura/models/zoo/model.h>
#include <plexaura/training/optimizers/schedule.h>

using namespace plexaura;

namespace {

bool gradient_is_right(Backend& backend) {
  Graph graph;
  const Node x = graph.input("x", {DType::float64, {3}});
  Function slope(graph, {x}, {gradients(sum(square(x) * 3), {x})[0]}, backend);
  return slope(Tensor::of<double>({3}, {1, -2, 0.5}))[0].to_doubles() == std::vector<double>{6, -12, 3};
}

bool model_has_parameters() {
  const Config config = Config::parse("model: {name: mlp, hidden: [30, 20]}", "in.yaml");
  const auto model = make_model(config, Shape{4}, 3);
  return make_store(*model, DType::float32).trainable_elements() == 833;
}

int run(Communicator& ranks) {
  const auto backend = open_backend("cpu");
  const Schedule schedule(0.1);
  const bool right = gradient_is_right(*backend) && model_has_parameters() && ranks.size() == 1;
  std::puts(right ? "Plexaura works outside its tree" : "something is wrong");
  return right ? 0 : 1;
}

}  // namespace

// With an argument, it is a program like models/mlp.
int main(int argc, char** argv) { return argc > 1 ? run_program("mlp", argc, argv) : run_ranks({}, run); }
