// Times sums over ranks, and MPI_Allreduce for comparison: mpirun -n 2 build/dev/time_sums. Prints a table in
// Markdown.
#include <algorithm>
#include <chrono>
#include <cstdint>
#include <fmt/format.h>
#include <functional>
#include <memory>
#include <mpi.h>
#include <string>
#include <vector>

#include "tools/tool.h"

#include "core/base/error.h"
#include "core/base/print.h"
#include "distributed/communicator/communicator.h"
#include "distributed/communicator/run_ranks.h"

namespace plexaura {
namespace {

struct Arguments {
  std::vector<std::int64_t> bytes{1'000, 10'000, 100'000, 1'000'000, 10'000'000, 100'000'000};
  std::vector<std::string> algorithms{"auto", "hierarchical", "tree", "ring"};
  std::int64_t rounds = 15;
  std::int64_t cold_megabytes = 0;
};

// One way to compute sums, which is called repeatedly.
struct Way {
  std::string name;
  std::function<void()> call;
  std::vector<double> microseconds = {};
};

using Clock = std::chrono::steady_clock;

double microseconds_since(Clock::time_point begin) {
  return std::chrono::duration<double, std::micro>(Clock::now() - begin).count();
}

double median(std::vector<double> values) {
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::ranges::nth_element(values, middle);
  return *middle;
}

// Returns the time of a call on the slowest rank, in microseconds.
double time_calls(const Way& way, std::int64_t calls) {
  MPI_Barrier(MPI_COMM_WORLD);
  const Clock::time_point begin = Clock::now();
  for (std::int64_t i = 0; i < calls; ++i) way.call();
  double mine = microseconds_since(begin) / static_cast<double>(calls);
  MPI_Allreduce(MPI_IN_PLACE, &mine, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
  return mine;
}

class Table {
 public:
  Table(Communicator& ranks, const Arguments& arguments)
      : ranks_(ranks),
        arguments_(arguments),
        scratch_(static_cast<std::size_t>(arguments.cold_megabytes) << 20) {
    for (const std::string& name : arguments.algorithms) {
      communicators_.push_back(ranks.duplicate("one that is timed"));
      communicators_.back()->choose_algorithm(name);
    }
  }

  void print() {
    print_row("bytes", "MPI_Allreduce", "in 1 MB", [](const std::string& name) { return name; });
    print_row("---", "---", "---", [](const std::string&) { return "---"; });
    for (const std::int64_t bytes : arguments_.bytes) time_row(bytes);
  }

 private:
  void time_row(std::int64_t bytes) {
    const std::int64_t count = bytes / static_cast<std::int64_t>(sizeof(float));
    std::vector<float> values(static_cast<std::size_t>(count));
    SharedWindow window =
        ranks_.allocate_shared(static_cast<std::size_t>(bytes), "the window that is summed");
    std::vector<Way> ways = ways_to_sum(values, window);
    const std::int64_t calls =
        std::clamp<std::int64_t>(3'000'000 / bytes, 1, arguments_.cold_megabytes > 0 ? 1 : 1000);
    for (Way& way : ways) way.call();
    for (std::int64_t round = 0; round < arguments_.rounds; ++round) {
      for (Way& way : ways) {
        // Writes much memory, so that the cache holds no other data.
        std::ranges::fill(scratch_, static_cast<char>(round));
        way.microseconds.push_back(time_calls(way, calls));
      }
    }
    std::vector<std::string> cells;
    for (const Way& way : ways) cells.push_back(fmt::format("{:.1f}", median(way.microseconds)));
    std::size_t next = 2;
    print_row(std::to_string(bytes), cells[0], cells[1], [&](const std::string&) { return cells[next++]; });
  }

  // Returns the ways in the order of the columns.
  std::vector<Way> ways_to_sum(std::vector<float>& values, SharedWindow& window) {
    const auto count = static_cast<std::int64_t>(values.size());
    const auto sum_in_pieces = [&values](std::int64_t longest) {
      const auto all = static_cast<std::int64_t>(values.size());
      for (std::int64_t first = 0; first < all; first += longest)
        MPI_Allreduce(MPI_IN_PLACE, values.data() + first, static_cast<int>(std::min(longest, all - first)),
                      MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
    };
    std::vector<Way> ways{
        {"MPI_Allreduce", [=] { sum_in_pieces(count); }},
        {"in 1 MB", [=] { sum_in_pieces((1 << 20) / static_cast<std::int64_t>(sizeof(float))); }}};
    for (const std::unique_ptr<Communicator>& communicator : communicators_)
      ways.push_back({"", [&window, &communicator = *communicator, count] {
                        communicator.sum_window(window, 0, DType::float32, count, "a window");
                      }});
    for (const std::unique_ptr<Communicator>& communicator : communicators_)
      ways.push_back({"", [&values, &communicator = *communicator, count] {
                        communicator.sum(DType::float32, reinterpret_cast<std::byte*>(values.data()), count,
                                         "values");
                      }});
    return ways;
  }

  template <class Cell>
  void print_row(const std::string& bytes, const std::string& mpi, const std::string& pieces, Cell cell) {
    std::string row = fmt::format("| {} | {} | {} |", bytes, mpi, pieces);
    for (const char* const where : {"", ", copied"})
      for (const std::string& name : arguments_.algorithms) {
        const std::string text = cell(name);
        row += fmt::format(" {}{} |", text, text == name ? where : "");
      }
    if (ranks_.rank() == 0) print_output(row + "\n");
  }

  Communicator& ranks_;
  const Arguments& arguments_;
  std::vector<char> scratch_;
  std::vector<std::unique_ptr<Communicator>> communicators_;  // one communicator for each algorithm
};

int time_sums(Communicator& ranks, const Arguments& arguments) {
  if (ranks.size() == 1) throw UserError("one rank has nothing to sum: start time_sums with mpirun -n 2");
  Table(ranks, arguments).print();
  return 0;
}

}  // namespace
}  // namespace plexaura

int main(int argc, char** argv) {
  using namespace plexaura;
  Arguments arguments;
  CLI::App app(
      "Times sums over ranks, in microseconds: medians of rounds in which all ways take turns. 'copied' are "
      "sums of "
      "private arrays, the others lie in windows. Start it with mpirun.",
      "time_sums");
  app.add_option("--bytes", arguments.bytes, "sizes of the arrays")->delimiter(',')->check(whole_number(4));
  app.add_option("--algorithms", arguments.algorithms, "values of distributed.algorithm")->delimiter(',');
  app.add_option("--rounds", arguments.rounds, "for each size")->check(whole_number(1));
  app.add_option("--cold", arguments.cold_megabytes, "megabytes that are written before each call")
      ->check(whole_number(0, 100'000));
  int status = 0;
  const int tool_status = run_tool(app, argc, argv, [&] {
    status = run_ranks({}, [&](Communicator& ranks) { return time_sums(ranks, arguments); });
  });
  return tool_status != 0 ? tool_status : status;
}
