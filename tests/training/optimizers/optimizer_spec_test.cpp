#include "training/optimizers/optimizer_spec.h"

#include <array>
#include <cmath>
#include <cstring>
#include <doctest/doctest.h>

#include "core/compile/compile.h"
#include "core/vm/vm.h"
#include "tests/support/backend.h"
#include "tests/support/error_text.h"
#include "tests/support/read_tail.h"

namespace plexaura::testing::optimizer_spec_test {

namespace {

using Three = std::array<double, 3>;

constexpr Three start{1, -2, 0.5};
constexpr std::array<Three, 3> gradients{{{0.1, -0.2, 0.3}, {-0.4, 0.1, 0.2}, {0.05, 0.6, -0.7}}};
constexpr std::array<double, 3> rates{0.1, 0.05, 0.2};

// A parameter store and a program that updates it. The store has a matrix of two elements, a vector of one,
// and a buffer. Matrix and vector are in separate buckets.
class Updates {
 public:
  explicit Updates(const OptimizerSpec& optimizer, const UpdateOptions& options = {})
      : store_({spec("a", {1, 2}, ParameterRole::trainable), spec("b", {1}, ParameterRole::trainable),
                spec("running", {3}, ParameterRole::buffer)}) {
    Placement placement;
    placement.types = ArenaTypes::all(DType::float64);
    for (const ParameterSpec& spec : store_.specs())
      placement.append(spec.name, spec.type, spec.role, Layout::row_major(spec.type.shape.rank()));
    store_.place(placement, test_backend());
    store_.require_states(state_count(optimizer));
    write({1, -2}, "a");
    write({0.5}, "b");
    write({10, 20, 30}, "running");
    Graph graph;
    build_update(graph, optimizer, store_.placement(), make_buckets(store_.placement(), 1), options);
    program_ = compile(graph, {}, test_backend(), {.placement = &store_.placement()});
    vm_ = std::make_unique<VM>(program_, test_backend(), VmOptions{.store = &store_});
  }

  void step(const Three& gradient, double rate, double loss_scale = 1) {
    write_gradient("a", std::span(gradient).first(2));
    write_gradient("b", std::span(gradient).last(1));
    write_gradient("running", std::array{1.0, 0.0, -1.0});
    StepBlock block;
    block.learning_rate = rate;
    block.loss_scale = loss_scale;
    block.step = static_cast<double>(++steps_);
    vm_->run({}, block);
    vm_->wait();
  }

  std::size_t instructions() const { return program_->instructions.size(); }
  Three value() const {
    const std::vector<double> a = store_.read("a").to_doubles();
    return {a[0], a[1], store_.read("b").to_doubles()[0]};
  }
  Three average() const {
    const std::int64_t last = store_.states() - 1;
    const std::vector<double> a = store_.read_state(last, "a").to_doubles();
    return {a[0], a[1], store_.read_state(last, "b").to_doubles()[0]};
  }
  std::vector<double> running() const { return store_.read("running").to_doubles(); }
  bool failed() const { return read_tail(store_, TailSlot::failed) != 0; }

 private:
  static ParameterSpec spec(const char* name, Shape shape, ParameterRole role) {
    return {name, {DType::float64, std::move(shape)}, role, Initialiser::zeros()};
  }

  void write(std::vector<double> values, const char* name) {
    Tensor tensor(store_.spec(name).type);
    std::ranges::copy(values, tensor.as<double>().begin());
    store_.write(name, tensor);
  }

  void write_gradient(const char* name, std::span<const double> values) {
    const auto offset = static_cast<std::size_t>(store_.placement().find(name)->offset) * sizeof(double);
    std::memcpy(store_.gradients() + offset, values.data(), values.size_bytes());
  }

  ParameterStore store_;
  std::shared_ptr<const Program> program_;
  std::unique_ptr<VM> vm_;
  int steps_ = 0;
};

void check_three_steps(const OptimizerSpec& optimizer, const Three& expected) {
  Updates updates(optimizer);
  CHECK(updates.value() == start);
  for (std::size_t i = 0; i < 3; ++i) updates.step(gradients[i], rates[i]);
  for (std::size_t i = 0; i < 3; ++i)
    CHECK(updates.value()[i] == doctest::Approx(expected[i]).epsilon(1e-12));
  CHECK(updates.running() == std::vector<double>{13, 20, 27});
}

using Kind = OptimizerSpec::Kind;

}  // namespace

// Expected values are those of torch.optim with the same options, in float64.

TEST_CASE("three steps of SGD") { check_three_steps({}, {1, -2.105, 0.6}); }

TEST_CASE("three steps of SGD with weight decay") {
  check_three_steps({.weight_decay = 0.1}, {0.965198, -2.036096, 0.5836215});
}

TEST_CASE("three steps of SGD with momentum and weight decay") {
  check_three_steps({.momentum = 0.9, .weight_decay = 0.1}, {0.978338, -1.936376, 0.4671165});
}

TEST_CASE("three steps of SGD with Nesterov's momentum and weight decay") {
  check_three_steps({.momentum = 0.9, .nesterov = true, .weight_decay = 0.1},
                    {0.946471682, -1.981570364, 0.5566981935});
}

TEST_CASE("three steps of Adam") {
  check_three_steps({.kind = Kind::adam}, {0.9984561350646803, -1.9920475255369476, 0.39643606310997104});
}

TEST_CASE("three steps of Adam with weight decay, which goes through the moments") {
  check_three_steps({.kind = Kind::adam, .weight_decay = 0.1},
                    {0.9052461501050244, -1.8611367723214456, 0.37811739608616257});
}

TEST_CASE("three steps of Adam with other options") {
  check_three_steps({.kind = Kind::adam, .beta1 = 0.5, .beta2 = 0.8, .epsilon = 0.1, .weight_decay = 0.1},
                    {0.9374297134079622, -1.9632029581205943, 0.47618400545268524});
}

TEST_CASE("three steps of AdamW, whose decay does not") {
  check_three_steps({.kind = Kind::adamw, .weight_decay = 0.1},
                    {0.9657356313408292, -1.9255018624352607, 0.3825709151170033});
}

TEST_CASE("three steps of RMSProp") {
  check_three_steps({.kind = Kind::rmsprop}, {0.24317780709256587, -3.100643019391849, 1.0028367577660962});
  check_three_steps({.kind = Kind::rmsprop, .weight_decay = 0.1},
                    {0.030663511760192108, -2.5678372280438615, 1.0981062519399885});
  check_three_steps({.kind = Kind::rmsprop, .momentum = 0.9, .weight_decay = 0.1},
                    {-0.23327251664556165, -0.5479858822191921, -1.664985115788052});
}

TEST_CASE("three steps of centered RMSProp") {
  check_three_steps({.kind = Kind::rmsprop, .epsilon = 1e-3, .alpha = 0.9, .centered = true},
                    {0.7534291650326246, -2.3629905546276224, 0.6441953071416722});
  check_three_steps({.kind = Kind::rmsprop,
                     .momentum = 0.9,
                     .epsilon = 1e-3,
                     .alpha = 0.9,
                     .centered = true,
                     .weight_decay = 0.1},
                    {0.43406646101379504, -1.340304553441473, -0.3907534611635827});
}

TEST_CASE("three steps of Adagrad") {
  check_three_steps({.kind = Kind::adagrad}, {0.9244299637933513, -2.1097691951144957, 0.5500651698335046});
  check_three_steps({.kind = Kind::adagrad,
                     .epsilon = 1e-3,
                     .lr_decay = 0.1,
                     .initial_accumulator = 0.2,
                     .weight_decay = 0.1},
                    {0.9417370676052353, -2.0191921382033775, 0.5419150455476969});
}

// Returns the values after 20 steps of a plain loop, which shares nothing with the ops.
Three twenty_steps_by_hand(const OptimizerSpec& rule) {
  Three value = start;
  Three square{};
  Three mean{};
  Three moving{};
  square.fill(rule.initial_accumulator);
  for (int step = 1; step <= 20; ++step)
    for (std::size_t i = 0; i < 3; ++i) {
      const double g = std::sin(step * static_cast<double>(i + 1)) + rule.weight_decay * value[i];
      const bool is_adagrad = rule.kind == Kind::adagrad;
      square[i] = is_adagrad ? square[i] + g * g : rule.alpha * square[i] + (1 - rule.alpha) * g * g;
      mean[i] = rule.centered ? rule.alpha * mean[i] + (1 - rule.alpha) * g : 0;
      const double slope = g / (std::sqrt(square[i] - mean[i] * mean[i]) + rule.epsilon);
      moving[i] = rule.momentum * moving[i] + slope;
      value[i] -= 0.05 / (1 + (step - 1) * rule.lr_decay) * moving[i];
    }
  return value;
}

// The last three numbers are those of torch.optim in float64.
TEST_CASE("twenty steps of RMSProp and Adagrad agree with a plain loop, and with torch.optim") {
  const OptimizerSpec rmsprop{
      .kind = Kind::rmsprop, .momentum = 0.9, .epsilon = 1e-3, .alpha = 0.9, .weight_decay = 0.1};
  OptimizerSpec centered = rmsprop;
  centered.centered = true;
  const OptimizerSpec adagrad{.kind = Kind::adagrad,
                              .epsilon = 1e-3,
                              .lr_decay = 0.1,
                              .initial_accumulator = 0.2,
                              .weight_decay = 0.1};
  for (const auto& [rule, torch] :
       {std::pair{rmsprop, Three{-0.5276556420541932, -0.7583732494759213, -0.35111599589160314}},
        std::pair{centered, Three{-0.6598728283210484, -0.7127380125771573, -0.41802422462029215}},
        std::pair{adagrad, Three{0.9249819260659482, -1.9721385422814297, 0.47596964717109247}}}) {
    CAPTURE(optimizer_name(rule));
    Updates updates(rule);
    for (int step = 1; step <= 20; ++step)
      updates.step({std::sin(step), std::sin(2 * step), std::sin(3 * step)}, 0.05);
    const Three by_hand = twenty_steps_by_hand(rule);
    for (std::size_t i = 0; i < 3; ++i) {
      CHECK(updates.value()[i] == doctest::Approx(by_hand[i]).epsilon(1e-12));
      CHECK(updates.value()[i] == doctest::Approx(torch[i]).epsilon(1e-10));
    }
  }
}

// The mean square of equal gradients is the square of their mean. Rounding may make the difference negative.
TEST_CASE("centered RMSProp stays finite while all gradients are equal") {
  for (const double gradient : {0.1, 0.3, 0.7}) {
    Updates updates({.kind = Kind::rmsprop, .alpha = 0.5, .centered = true});
    for (int step = 0; step < 200; ++step) updates.step({gradient, gradient, gradient}, 1e-9);
    for (const double value : updates.value()) CHECK(std::isfinite(value));
  }
}

// The expected values were computed by torch.optim with one param_group for each of the two parameters.
TEST_CASE("three steps with a learning rate and a weight decay for each group of parameters") {
  const std::vector<ParameterGroup> groups{{"a", {.rate = 0.5, .decay = 0.3}}, {"*", {.rate = 2}}};
  check_three_steps({.weight_decay = 0.1, .groups = groups}, {0.9481705, -1.949366, 0.669472});
  check_three_steps({.momentum = 0.9, .weight_decay = 0.1, .groups = groups},
                    {0.9165805, -1.823186, 0.4383519999999999});
  check_three_steps({.momentum = 0.9, .nesterov = true, .weight_decay = 0.1, .groups = groups},
                    {0.8748809845, -1.794707219, 0.6246067479999999});
  check_three_steps({.kind = Kind::adam, .weight_decay = 0.1, .groups = groups},
                    {0.8727239004712776, -1.8534490943009871, 0.2636967759929788});
  check_three_steps({.kind = Kind::adamw, .weight_decay = 0.1, .groups = groups},
                    {0.9489563147398267, -1.8946555154423963, 0.2723695342494046});
  check_three_steps({.kind = Kind::rmsprop,
                     .momentum = 0.9,
                     .epsilon = 1e-3,
                     .alpha = 0.9,
                     .centered = true,
                     .weight_decay = 0.1,
                     .groups = groups},
                    {0.4297915978119436, -1.3212280012192228, -1.1480172716904802});
  check_three_steps({.kind = Kind::adagrad, .lr_decay = 0.1, .weight_decay = 0.1, .groups = groups},
                    {0.9038505155219472, -1.9398683889709096, 0.5333169014030141});
}

TEST_CASE(
    "with LARS and LAMB a group has the rate and the decay of its matrices, and the rate of its vectors") {
  for (const Kind kind : {Kind::lars, Kind::lamb}) {
    Updates grouped({.kind = kind, .groups = {{"*", {.rate = 0.5, .decay = 0.3}}}});
    Updates plain({.kind = kind, .weight_decay = 0.3});
    for (std::size_t i = 0; i < 3; ++i) {
      grouped.step(gradients[i], rates[i]);
      plain.step(gradients[i], rates[i] / 2);
    }
    for (std::size_t i = 0; i < 3; ++i)
      CHECK(grouped.value()[i] == doctest::Approx(plain.value()[i]).epsilon(1e-14));
  }
}

// The second and the third gradient are longer than 0.4. For the expected values they were scaled down to
// this length before torch.optim got them.
TEST_CASE("three steps with gradients of limited length") {
  check_three_steps({.momentum = 0.9, .weight_decay = 0.1, .max_gradient_norm = 0.4},
                    {0.9723607920938766, -1.8654516734087097, 0.3935903829490411});
  check_three_steps({.kind = Kind::adam, .max_gradient_norm = 0.4},
                    {1.0008848953791958, -1.9506514143071068, 0.3254639563274155});
}

// Expected values are those of optax.lamb in float64 for the matrix, and of optax.adam for the vector.
TEST_CASE("three steps of LAMB, which scales the step of a matrix to its length") {
  check_three_steps({.kind = Kind::lamb, .epsilon = 1e-6, .weight_decay = 0.1},
                    {1.1598443987170586, -2.0854363811099508, 0.3964364836607053});
  check_three_steps({.kind = Kind::lamb, .epsilon = 1e-6},
                    {1.1586196568300275, -2.135180180169271, 0.3964364836607053});
  check_three_steps({.kind = Kind::lamb, .beta1 = 0.5, .beta2 = 0.8, .epsilon = 0.1, .weight_decay = 0.01},
                    {1.0872533163169114, -2.211177663084129, 0.4937618306229272});
}

// Expected values were computed from the formula with NumPy.
TEST_CASE("three steps of LARS, which scales the gradient of a matrix to its length") {
  check_three_steps({.kind = Kind::lars, .momentum = 0.9, .weight_decay = 0.1, .trust_coefficient = 0.02},
                    {0.9970898806975778, -1.9904417823248317, 0.5018999999999999});
  check_three_steps({.kind = Kind::lars, .momentum = 0.9, .nesterov = true},
                    {1.000110553023998, -2.0002333792428035, 0.60171});
  check_three_steps(
      {.kind = Kind::lars, .weight_decay = 0.1, .trust_coefficient = 0.02, .max_gradient_norm = 0.4},
      {0.9967124560909664, -1.996683693137466, 0.521922684830835});
}

TEST_CASE("LARS and LAMB step as far whatever the length of the gradient, and stay where it is 0") {
  for (const Kind kind : {Kind::lars, Kind::lamb}) {
    Updates updates({.kind = kind, .epsilon = 1e-300});
    updates.step({0, 0, 0}, 0.1);
    CHECK(updates.value() == start);
    Updates small({.kind = kind, .epsilon = 1e-300});
    Updates large({.kind = kind, .epsilon = 1e-300});
    small.step({1e-100, -2e-100, 0}, 0.1);
    large.step({1e100, -2e100, 0}, 0.1);
    CHECK(small.value()[0] == doctest::Approx(large.value()[0]).epsilon(1e-12));
    CHECK(small.value()[0] < 1);
  }
}

TEST_CASE("LARS and LAMB step as far where the squares of the gradient are too small for its dtype") {
  for (const Kind kind : {Kind::lars, Kind::lamb}) {
    Updates small({.kind = kind});
    Updates plain({.kind = kind});
    small.step({1e-200, -1e-200, 0}, 0.1);
    plain.step({1, -1, 0}, 0.1);
    CHECK(small.value()[0] == doctest::Approx(plain.value()[0]).epsilon(1e-7));
    CHECK(small.value()[0] < 1 - 1e-5);
  }
}

TEST_CASE("LARS and LAMB divide the scale of the loss out, too") {
  for (const Kind kind : {Kind::lars, Kind::lamb}) {
    Updates plain({.kind = kind});
    Updates scaled({.kind = kind, .scaled_loss = true});
    plain.step({2, -4, 1}, 0.125);
    scaled.step({8, -16, 4}, 0.125, 4);
    CHECK(scaled.value() == plain.value());
  }
}

TEST_CASE("the scale of the loss is divided out of the gradients, for update rules that are told of it") {
  for (const bool scaled : {true, false}) {
    Updates updates({.scaled_loss = scaled});
    updates.step({8, -16, 4}, 0.125, 4);
    CHECK(updates.value() == (scaled ? Three{0.75, -1.5, 0.375} : Three{0, 0, 0}));
    CHECK(updates.instructions() == 3);  // one step for each of two buckets, and the buffers
  }
}

TEST_CASE("a replaced buffer takes the sum of its next values, and neighbours add what they get") {
  Updates updates({}, {.replaced = {"running"}});
  updates.step({0, 0, 0}, 0.1);
  CHECK(updates.running() == std::vector<double>{1, 0, -1});

  const TensorType type{DType::float32, {2}};
  ParameterStore store({{"sum", type, ParameterRole::buffer, Initialiser::ones()},
                        {"last", type, ParameterRole::buffer, Initialiser::ones()},
                        {"other", type, ParameterRole::buffer, Initialiser::ones()}});
  Placement placement;
  for (const ParameterSpec& spec : store.specs())
    placement.append(spec.name, spec.type, spec.role, Layout::row_major(1));
  store.place(placement, test_backend());
  Graph graph;
  build_update(graph, {}, placement, make_buckets(placement, 1), {.replaced = {"last"}});
  VM vm(compile(graph, {}, test_backend(), {.placement = &placement}), test_backend(), {.store = &store});
  vm.run({});
  vm.wait();
  for (const char* name : {"sum", "other"}) CHECK(store.read(name).to_doubles() == std::vector<double>{1, 1});
  CHECK(store.read("last").to_doubles() == std::vector<double>{0, 0});
}

TEST_CASE("a guarded update changes nothing where a gradient is not finite, and no bit of another step") {
  const double nan = std::nan("");
  for (const OptimizerSpec& rule :
       std::initializer_list<OptimizerSpec>{{},
                                            {.momentum = 0.9, .weight_decay = 0.1, .max_gradient_norm = 0.4},
                                            {.kind = Kind::adam, .weight_decay = 0.1},
                                            {.kind = Kind::adamw},
                                            {.kind = Kind::lars, .momentum = 0.9, .weight_decay = 0.1},
                                            {.kind = Kind::lamb, .weight_decay = 0.1},
                                            {.kind = Kind::rmsprop, .momentum = 0.9, .centered = true},
                                            {.kind = Kind::adagrad, .lr_decay = 0.1}}) {
    CAPTURE(optimizer_name(rule));
    Updates plain(rule);
    Updates guarded(rule, {.is_guarded = true});
    for (std::size_t i = 0; i < 3; ++i) {
      plain.step(gradients[i], rates[i]);
      guarded.step(gradients[i], rates[i]);
    }
    CHECK(guarded.value() == plain.value());
    CHECK(guarded.running() == plain.running());
    CHECK(!guarded.failed());
    for (const Three& bad : {Three{nan, 0, 0}, Three{0, INFINITY, 0}, Three{0, 0, -INFINITY}}) {
      Updates updates(rule, {.is_guarded = true});
      updates.step(bad, 0.1);
      CHECK(updates.failed());
      CHECK(updates.value() == start);
      CHECK(updates.running() == std::vector<double>{10, 20, 30});
    }
  }
}

// The expected averages are those of torch.optim.swa_utils.AveragedModel with get_ema_multi_avg_fn().
TEST_CASE("averages of three updates") {
  const auto check = [](OptimizerSpec optimizer, double ema, const Three& expected) {
    CAPTURE(optimizer_name(optimizer));
    Updates plain(optimizer);
    optimizer.ema = ema;
    Updates updates(optimizer);
    CHECK(updates.average() == Three{});
    for (std::size_t i = 0; i < 3; ++i) {
      plain.step(gradients[i], rates[i]);
      updates.step(gradients[i], rates[i]);
      CHECK(updates.value() == plain.value());
      if (i == 0) CHECK(updates.average() == updates.value());
    }
    for (std::size_t i = 0; i < 3; ++i)
      CHECK(updates.average()[i] == doctest::Approx(expected[i]).epsilon(1e-12));
  };
  check({}, 0.9, {0.9928, -1.99295, 0.4821});
  check({}, 0.3, {1.0012, -2.06855, 0.5589});
  check({.kind = Kind::adam}, 0.9, {0.91236338814329798, -1.9080062404510352, 0.39527702490585159});
  check({.kind = Kind::adam}, 0.3, {0.97479408403121459, -1.9616367306363245, 0.38731654823164052});
}

TEST_CASE("every optimizer keeps averages as its last state") {
  for (OptimizerSpec rule :
       {OptimizerSpec{.momentum = 0.9}, OptimizerSpec{.kind = Kind::adamw}, OptimizerSpec{.kind = Kind::lars},
        OptimizerSpec{.kind = Kind::lamb}, OptimizerSpec{.kind = Kind::adagrad},
        OptimizerSpec{.kind = Kind::rmsprop, .momentum = 0.9, .centered = true}}) {
    const std::int64_t states = state_count(rule);
    rule.ema = 0.75;
    CAPTURE(optimizer_name(rule));
    CHECK(state_count(rule) == states + 1);
    Updates updates(rule);
    Three expected{};
    for (std::size_t step = 0; step < 3; ++step) {
      updates.step(gradients[step], rates[step]);
      for (std::size_t i = 0; i < 3; ++i)
        expected[i] = step == 0 ? updates.value()[i] : 0.75 * expected[i] + 0.25 * updates.value()[i];
    }
    for (std::size_t i = 0; i < 3; ++i)
      CHECK(updates.average()[i] == doctest::Approx(expected[i]).epsilon(1e-12));
  }
  CHECK(optimizer_name({.kind = Kind::lamb, .ema = 0.5}) == "lamb with training.ema");
}

TEST_CASE("averages have the type of the parameters") {
  Placement placement;
  placement.types.states = DType::bfloat16;
  Graph graph;
  CHECK(user_error([&] { build_update(graph, {.ema = 0.5}, placement, make_buckets(placement, 1)); }) ==
        "the averages of parameters (OptimizerSpec::ema) are states of bfloat16, and the parameters are "
        "float32; "
        "give both one type with ParameterStore::set_types()");
}

TEST_CASE("the states that an optimizer needs") {
  CHECK(state_count({}) == 0);
  CHECK(state_count({.momentum = 0.9}) == 1);
  CHECK(state_count({.kind = Kind::adam}) == 2);
  CHECK(state_count({.kind = Kind::adamw}) == 2);
  CHECK(state_count({.kind = Kind::lars}) == 0);
  CHECK(state_count({.kind = Kind::lars, .momentum = 0.9}) == 1);
  CHECK(state_count({.kind = Kind::lamb}) == 2);
  CHECK(state_count({.kind = Kind::adagrad}) == 1);
  CHECK(state_count({.kind = Kind::rmsprop}) == 1);
  CHECK(state_count({.kind = Kind::rmsprop, .momentum = 0.9}) == 2);
  CHECK(state_count({.kind = Kind::rmsprop, .momentum = 0.9, .centered = true}) == 3);
}

// The second state is a mean or a momentum, which must not be mistaken for each other.
TEST_CASE("a checkpoint knows centered RMSProp by another name") {
  CHECK(optimizer_name({.kind = Kind::rmsprop, .momentum = 0.9}) == "rmsprop");
  CHECK(optimizer_name({.kind = Kind::rmsprop, .centered = true}) == "centered rmsprop");
  CHECK(optimizer_name({.kind = Kind::adagrad}) == "adagrad");
}

}  // namespace plexaura::testing::optimizer_spec_test
