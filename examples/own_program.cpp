// A program of your own for a model of your own, with all that build/models/mlp has: YAML, --set, --describe,
// mpirun, checkpoints, --resume, --evaluate, --predict. docs/guide/writing_a_model.md explains it.
//   build/examples/own_program examples/own_program.yaml
//   tools/run -n 2 build/examples/own_program examples/own_program.yaml

#include <plexaura/plexaura.h>
#include <plexaura/program.h>

using namespace plexaura;

struct GatedOptions {
  std::int64_t hidden = 16;
  std::string gate = "sigmoid";
};

// A network with two paths to the outputs: a straight one, and one whose hidden values are multiplied by
// gates.
class Gated final : public Model {
 public:
  Gated(ModelInfo info, const GatedOptions& options)
      : Model(std::move(info)),
        value(sample_shape().elements(), options.hidden),
        gate(sample_shape().elements(), options.hidden),
        out(options.hidden, classes()),
        straight(sample_shape().elements(), classes()),
        opens(options.gate) {}

  void members(MemberVisitor& visit) override {
    visit("value", value);
    visit("gate", gate);
    visit("out", out);
    visit("straight", straight);
  }

 protected:
  Node forward(Operand x) const override {
    const Node flat = layers::Flatten()(x);
    return out(value(flat) * opens(gate(flat))) + straight(flat);
  }

 private:
  layers::Linear value, gate, out, straight;
  layers::Activation opens;
};

// Returns the keys of the section `model`, except `name` and `loss`.
std::vector<Key> gated_keys(GatedOptions& options) {
  return {
      {.name = "hidden",
       .into = &options.hidden,
       .range = {.minimum = 1, .maximum = 1 << 20},
       .meaning = "number of hidden values"},
      {.name = "gate",
       .into = &options.gate,
       .words = layers::Activation::names(),
       .meaning = "activation of the gates"},
  };
}

int main(int argc, char** argv) {
  register_model("gated", model_kind(gated_keys, [](ModelInfo info, const GatedOptions& options,
                                                    const Section& /*yaml*/) {
                   return std::make_unique<Gated>(std::move(info), options);
                 }));
  return run_program("gated", argc, argv);
}
