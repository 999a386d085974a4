#include "distributed/mpi/succession.h"

#include <array>
#include <chrono>
#include <cstdlib>
#include <fmt/format.h>
#include <future>
#include <mpi.h>
#include <string_view>
#include <thread>
#include <utility>

namespace plexaura {
namespace {

// The number of marks that form one letter. With 4 marks, 4,092 ranks fit in the longest text that Open MPI
// publishes.
constexpr std::size_t marks_of_letter = 4;

// Packs marks of '0' and '1' into letters from 'a' on.
std::string packed(const std::string& marks) {
  std::string letters((marks.size() + marks_of_letter - 1) / marks_of_letter, 'a');
  for (std::size_t i = 0; i < marks.size(); ++i) {
    char& letter = letters[i / marks_of_letter];
    if (marks[i] == '1') letter = static_cast<char>(letter + (1 << i % marks_of_letter));
  }
  return letters;
}

// True if all ranks of `some` are in `others`; both are packed.
bool is_among(const std::string& some, std::string_view others) {
  if (some.size() != others.size()) return false;
  for (std::size_t i = 0; i < some.size(); ++i)
    if (((some[i] - 'a') & ~(others[i] - 'a')) != 0) return false;
  return true;
}

std::string variable_text(const char* variable) {
  const char* const text = std::getenv(variable);
  return text == nullptr ? "" : text;
}

// `left` has the ranks of one side of a cut, packed. Each loss has a numbered turn, and the launcher keeps
// the first text that is published in a turn. Returns true if that text is `left`, and false if it lacks a
// rank of `left`. Otherwise the turn belongs to an earlier loss, and the next one is tried.
std::optional<bool> ask(const std::string& left) {
  if (left.size() >= MPI_MAX_PORT_NAME) return std::nullopt;
  for (int turn = 1;; ++turn) {
    const std::string name = fmt::format("plexaura {} {}", variable_text("PMIX_NAMESPACE"), turn);
    std::array<char, MPI_MAX_PORT_NAME> first{};
    if (MPI_Publish_name(name.c_str(), MPI_INFO_NULL, left.c_str()) != MPI_SUCCESS ||
        MPI_Lookup_name(name.c_str(), MPI_INFO_NULL, first.data()) != MPI_SUCCESS)
      return std::nullopt;
    if (left == first.data()) return true;
    if (!is_among(left, first.data())) return false;
  }
}

}  // namespace

// Asks the launcher on a separate thread, because a call that the launcher does not answer never returns.
std::optional<bool> ask_to_continue(const std::string& left, double seconds) {
  std::packaged_task<std::optional<bool>()> task([left] { return ask(packed(left)); });
  std::future<std::optional<bool>> answer = task.get_future();
  std::thread(std::move(task)).detach();
  if (answer.wait_for(std::chrono::duration<double>(seconds)) != std::future_status::ready)
    return std::nullopt;
  return answer.get();
}

bool is_one_host() {
  const std::string here = variable_text("OMPI_COMM_WORLD_LOCAL_SIZE");
  return !here.empty() && here == variable_text("OMPI_COMM_WORLD_SIZE");
}

}  // namespace plexaura
