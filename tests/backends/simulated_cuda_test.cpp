// Tests that the simulated CUDA reports mistakes which would go wrong on a GPU. Each test makes one mistake,
// in a separate process, because a device cannot be used after a failure.

#include <algorithm>
#include <cstring>
#include <doctest/doctest.h>
#include <functional>
#include <string>
#include <thread>

#include "backends/registry.h"
#include "core/base/error.h"
#include "core/device/transfer.h"
#include "core/ops/gather.h"
#include "core/ops/matmul.h"
#include "core/ops/unary.h"
#include "testing/run.h"
#include "tests/support/backend_fixture.h"
#include "tests/support/error_text.h"
#include "tests/support/has_simulated_cuda.h"
#include "tests/support/own_process.h"
#include "tests/support/pattern.h"

namespace plexaura::testing::simulated_cuda_test {

namespace {

constexpr std::int64_t elements = 1000;
constexpr std::size_t bytes = elements * sizeof(float);
constexpr auto no_memory = "are no live memory of";

// The op y = -x on the device. Its input and output are copied from and to staging memory.
struct Negation {
  std::unique_ptr<Backend> backend = open_backend("simulated_cuda");
  Graph graph;
  Node x = graph.input("x", {DType::float32, {elements}});
  Node y = neg(x);
  std::unique_ptr<Memory> source = backend->allocate(bytes, MemoryUse::staging);
  std::unique_ptr<Memory> result = backend->allocate(bytes, MemoryUse::staging);
  std::unique_ptr<Memory> input = backend->allocate(bytes, MemoryUse::device);
  std::unique_ptr<Memory> output = backend->allocate(bytes, MemoryUse::device);
  std::string name = "neg %1 of a.cpp:12";

  Negation() {
    fill(source->address(), 1);
    fill(result->address(), 0);
  }

  static void fill(Address memory, float value) {
    std::fill_n(reinterpret_cast<float*>(memory), elements, value);
  }
  float first_result() const { return *reinterpret_cast<const float*>(result->address()); }

  std::unique_ptr<Launch> bind(Address from, Address to) const {
    const Region region = single(graph, y.id());
    const auto candidates = backend->propose({graph, region, {std::nullopt}, {true}});
    return candidates[0].make()->bind({.inputs = {from}, .outputs = {to}, .name = &name});
  }
  void negate() const { bind(input->address(), output->address())->run(); }
  void upload(Stream stream) const { backend->copy(stream, input->address(), source->address(), bytes); }
  void download() const { backend->copy(Stream::compute, result->address(), output->address(), bytes); }
  std::unique_ptr<Event> recorded(Stream stream) const {
    auto event = backend->make_event();
    event->record(stream);
    return event;
  }
  void wait() const { wait_for(*backend); }
};

using Work = std::function<void(Negation& of)>;

std::string what_ends(const Work& work) {
  return testing::what_ends([&] {
    Negation negation;
    work(negation);
  });
}

// Returns the first element of the result, computed in a separate process. It is -1 unless there is a
// mistake.
float result_of(const Work& work) {
  const std::string words = what_ends([&](Negation& of) {
    work(of);
    throw std::runtime_error(std::to_string(of.first_result()));
  });
  CAPTURE(words);
  return std::stof(words);
}

void check_ends(const Work& work, const char* words) {
  const std::string found = what_ends(work);
  CAPTURE(found);
  CHECK(found.find(words) != std::string::npos);
}

// Checks that `body` is refused during a capture.
void check_refused_in_capture(const Work& body) {
  const auto record = [&](Negation& of) { of.backend->record([&] { body(of); }); };
  check_ends(record, "while a segment is recorded for CUDA");
}

}  // namespace

TEST_CASE("a program without a mistake computes") {
  if (!has_simulated_cuda()) return;
  CHECK(result_of([](Negation& of) {
          of.upload(Stream::copy);
          of.recorded(Stream::copy)->hold(Stream::compute);
          of.negate();
          of.download();
          of.wait();
        }) == -1);
}

TEST_CASE("a thread that has not opened the device launches kernels on it, and libraries' work") {
  if (!has_simulated_cuda()) return;
  const auto check = [](const std::function<Node(const Node& matrix)>& make) {
    Graph graph;
    const Node x = graph.input("x", {DType::float32, {2, 2}});
    const Node y = make(x);
    const auto backend = open_backend("simulated_cuda");
    Tensor found;
    std::string failure;
    std::thread([&] {
      try {
        found = Runner(graph, {y}, *backend)({pattern(x.shape()).cast(DType::float32)})[0];
      } catch (const std::exception& error) {
        failure = error.what();
      }
    }).join();
    CHECK(failure == "");
    CHECK(found ==
          Runner(graph, {y}, *open_backend("portable"))({pattern(x.shape()).cast(DType::float32)})[0]);
  };
  check([](const Node& x) { return neg(x); });
  check([](const Node& x) { return matmul(x, x); });
}

TEST_CASE("memory of the device faults on the host") {
  if (!has_simulated_cuda()) return;
  CHECK(what_ends([](Negation& of) {
          const auto value = *reinterpret_cast<const volatile float*>(of.input->address());
          throw std::runtime_error(std::to_string(value));
        }) == "signal 11");
  CHECK(what_ends([](Negation& of) { of.fill(of.output->address(), 1); }) == "signal 11");
}

TEST_CASE("memory that is freed or too small is found") {
  if (!has_simulated_cuda()) return;
  check_ends(
      [](Negation& of) {
        of.upload(Stream::compute);
        const auto launch = of.bind(of.input->address(), of.output->address());
        of.input.reset();
        launch->run();
        of.wait();
      },
      no_memory);
  check_ends(
      [](Negation& of) {
        const Address gone = of.input->address();
        of.input.reset();
        of.backend->copy(Stream::compute, gone, of.source->address(), bytes);
      },
      no_memory);
  check_ends(
      [](Negation& of) {
        of.backend->copy(Stream::compute, of.input->address(), of.source->address(), 1 << 20);
      },
      no_memory);
  check_ends(
      [](Negation& of) {
        const std::vector<float> of_host(elements);
        of.bind(reinterpret_cast<Address>(const_cast<float*>(of_host.data())), of.output->address())->run();
        of.wait();
      },
      no_memory);
}

TEST_CASE("threads of a kernel that race for memory of the device are found, and where") {
  if (!has_simulated_cuda()) return;
  const Work shifted = [](Negation& of) {
    const auto room = of.backend->allocate(2 * bytes, MemoryUse::device);
    of.bind(room->address(), room->address() + sizeof(float))->run();
    of.wait();
  };
  check_ends(shifted, "neg %1 of a.cpp:12: thread ");
  check_ends(shifted, " bytes behind the begin of output 0");
  // Each launch reads the memory that it writes.
  CHECK(what_ends([](Negation& of) {
          of.bind(of.input->address(), of.input->address())->run();
          of.wait();
        }).empty());
}

TEST_CASE("nothing is done before somebody waits, so that a missing event shows") {
  if (!has_simulated_cuda()) return;
  // The kernel does not wait for its input.
  CHECK(result_of([](Negation& of) {
          of.upload(Stream::copy);
          of.negate();
          of.download();
          of.wait();
        }) != -1);
  // The event is recorded on the wrong stream.
  CHECK(result_of([](Negation& of) {
          of.upload(Stream::copy);
          of.recorded(Stream::copy)->hold(Stream::copy);
          of.negate();
          of.download();
          of.wait();
        }) != -1);
  // The event is recorded before the work that it should wait for.
  CHECK(result_of([](Negation& of) {
          const auto event = of.recorded(Stream::copy);
          of.upload(Stream::copy);
          event->hold(Stream::compute);
          of.negate();
          of.download();
          of.wait();
        }) != -1);
  // The host overwrites staging memory too early.
  CHECK(result_of([](Negation& of) {
          of.upload(Stream::compute);
          of.fill(of.source->address(), 7);
          of.negate();
          of.download();
          of.wait();
        }) == -7);
  // First the host reads a result too early, then a result is copied before it is computed.
  CHECK(result_of([](Negation& of) {
          of.upload(Stream::compute);
          of.negate();
          of.download();
        }) == 0);
  CHECK(result_of([](Negation& of) {
          of.upload(Stream::compute);
          of.negate();
          of.backend->copy(Stream::copy, of.result->address(), of.output->address(), bytes);
          wait_for(*of.backend, Stream::copy);
        }) != -1);
}

TEST_CASE("what CUDA forbids in a capture is refused") {
  if (!has_simulated_cuda()) return;
  check_refused_in_capture([](Negation& of) { of.backend->allocate(bytes, MemoryUse::device); });
  check_refused_in_capture([](Negation& of) { of.backend->allocate(bytes, MemoryUse::staging); });
  check_refused_in_capture([](Negation& of) { of.backend->make_event(); });
  check_refused_in_capture([](Negation& of) { of.backend->record([] {}); });
  check_refused_in_capture([](Negation& of) { of.upload(Stream::copy); });
  for (const auto& mistake : std::vector<std::function<void(Event & event)>>{
           [](Event& event) { event.wait(); }, [](Event& event) { static_cast<void>(event.passed()); },
           [](Event& event) { event.signal(); }, [](Event& event) { event.reset(); },
           [](Event& event) { event.hold(Stream::compute); },
           [](Event& event) { event.record(Stream::copy); }})
    check_ends(
        [&](Negation& of) {
          const auto event = of.recorded(Stream::compute);
          of.backend->record([&] { mistake(*event); });
        },
        "while a segment is recorded for CUDA");
  check_ends(
      [](Negation& of) {
        const auto recording = of.backend->record([&] { of.negate(); });
        of.backend->record([&] { recording->replay(); });
      },
      "replaying while a segment is recorded for CUDA");
}

TEST_CASE("memory that comes or goes while a stream waits for the host is found") {
  if (!has_simulated_cuda()) return;
  const auto while_held = [](const Work& work) {
    return what_ends([&](Negation&) {
      setenv("PLEXAURA_SIMULATED_CUDA_PATIENCE", "100", 1);
      Negation of;
      const auto open = of.backend->make_event();
      open->hold(Stream::copy);
      work(of);
      open->signal();
      wait_for(*of.backend, Stream::copy);
    });
  };
  constexpr auto words = " waits for a stream that waits for a flag, which nobody raises";
  CHECK(while_held([](Negation&) {}).empty());
  CHECK(while_held([](Negation& of) { of.source.reset(); }) == std::string("CUDA: cudaFreeHost") + words);
  CHECK(while_held([](Negation& of) { of.input.reset(); }) == std::string("CUDA: cudaFree") + words);
  CHECK(while_held([](Negation& of) { of.backend->allocate(1, MemoryUse::staging); }) ==
        std::string("CUDA: cudaMallocHost") + words);
  CHECK(while_held([](Negation& of) { of.backend->allocate(1, MemoryUse::device); }) ==
        std::string("CUDA: cudaMalloc") + words);
}

TEST_CASE("a replay finds memory that is gone since the capture") {
  if (!has_simulated_cuda()) return;
  check_ends(
      [](Negation& of) {
        const auto launch = of.bind(of.input->address(), of.output->address());
        const auto recording = of.backend->record([&] { launch->run(); });
        of.output.reset();
        recording->replay();
        of.wait();
      },
      no_memory);
}

TEST_CASE("a failure shows at the next wait, names its launch, and the device is lost") {
  if (!has_simulated_cuda()) return;
  check_ends(
      [](Negation& of) {
        const Node table = of.graph.input("table", {DType::float32, {3, 4}});
        const Node places = of.graph.input("places", {DType::int64, {1}});
        RegionRun run(*of.backend, of.graph, single(of.graph, gather(table, places).id()),
                      {Tensor(table.type()), Tensor::of<std::int64_t>({1}, {3})});
        run.launch();
        of.wait();
      },
      "gather");
  check_ends(
      [](Negation& of) {
        const auto launch = of.bind(of.input->address(), of.output->address());
        of.input.reset();
        launch->run();
        CHECK_THROWS_AS(of.wait(), DeviceError);
        of.wait();
      },
      "neg %1 of a.cpp:12");
}

TEST_CASE("the blocks of a kernel run in another order each time") {
  if (!has_simulated_cuda()) return;
  const auto backend = open_backend("simulated_cuda");
  Graph graph;
  const Node table = graph.input("table", {DType::float32, {3}});
  const Node places = graph.input("places", {DType::int64, {elements}});
  // The first and the last block each have a wrong index. The error is about the one that is found first.
  Tensor wrong(places.type());
  wrong.as<std::int64_t>().front() = wrong.as<std::int64_t>().back() = 3;
  RegionRun run(*backend, graph, single(graph, gather(table, places).id()), {Tensor(table.type()), wrong});
  int first = 0;
  constexpr int launches = 40;
  for (int i = 0; i < launches; ++i) {
    run.launch();
    const std::string told = device_error([&] { wait_for(*backend); });
    CHECK(told.find(" of the indices is 3") != std::string::npos);
    first += told.find("element 0 of") != std::string::npos ? 1 : 0;
  }
  CHECK(first > launches / 8);
  CHECK(first < launches * 7 / 8);
}

TEST_CASE("faults that a test asks for come: no memory, a launch that is refused, a device that dies") {
  if (!has_simulated_cuda()) return;
  const auto with = [](const char* fault, const char* value, const Work& work) {
    return what_ends([&](Negation&) {
      setenv(fault, value, 1);
      Negation of;
      work(of);
    });
  };
  CHECK(with("PLEXAURA_SIMULATED_CUDA_MEMORY", "1000000", [](Negation& of) {
          const auto held = of.backend->allocate(900000, MemoryUse::device);
          of.backend->allocate(900000, MemoryUse::device);
        }).starts_with("the GPU was asked for 900000 bytes of memory and has "));
  const Work twice = [](Negation& of) {
    of.upload(Stream::compute);
    of.negate();
    of.negate();
  };
  CHECK(with("PLEXAURA_SIMULATED_CUDA_REFUSES", "2", twice) ==
        "neg %1 of a.cpp:12: CUDA: too many resources requested for launch");
  // A second backend does not restart the count.
  CHECK(with("PLEXAURA_SIMULATED_CUDA_REFUSES", "2", [](Negation& of) {
          of.upload(Stream::compute);
          of.negate();
          const auto second = open_backend("simulated_cuda");
          of.negate();
        }).find("too many resources requested for launch") != std::string::npos);
  CHECK(with("PLEXAURA_SIMULATED_CUDA_DIES_IN", "1", twice).empty());  // no call waits for the device
  // After the failure was reported once, all calls fail.
  for (const Work& next : std::vector<Work>{
           [](Negation& of) { of.wait(); }, [](Negation& of) { of.negate(); },
           [](Negation& of) { of.upload(Stream::copy); },
           [](Negation& of) { of.backend->allocate(1, MemoryUse::device); },
           [](Negation& of) { of.backend->allocate(1, MemoryUse::staging); },
           [](Negation& of) { of.backend->make_event(); }, [](Negation& of) { of.backend->record([] {}); },
           [](Negation& of) { of.recorded(Stream::copy); }})
    CHECK(with("PLEXAURA_SIMULATED_CUDA_DIES_IN", "1", [&](Negation& of) {
            twice(of);
            CHECK_THROWS_AS(of.wait(), DeviceError);
            next(of);
          }).find("CUDA: an illegal memory access was encountered") != std::string::npos);
}

}  // namespace plexaura::testing::simulated_cuda_test
