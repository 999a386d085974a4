#include "distributed/mpi/ulfm.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdlib>
#include <dlfcn.h>
#include <numeric>
#include <string_view>

namespace plexaura {
namespace {

// The number in Open MPI 5 of the communicator attribute that says whether it outlives ranks. The header of
// Open MPI 4 does not define it.
constexpr int attribute_of_open_mpi = 12;

template <class F>
bool look_up(const char* name, F*& function) {
  function = reinterpret_cast<F*>(dlsym(RTLD_DEFAULT, name));
  return function != nullptr;
}

bool is_switched_on() {
  void* value = nullptr;
  int found = 0;
  MPI_Comm_get_attr(MPI_COMM_WORLD, attribute_of_open_mpi, static_cast<void*>(&value), &found);
  return found != 0 && *static_cast<int*>(value) != 0;
}

}  // namespace

std::optional<Ulfm> Ulfm::find() {
  Ulfm found;
  const bool has_all = look_up("MPIX_Comm_get_failed", found.get_failed_) &&
                       look_up("MPIX_Comm_failure_ack", found.acknowledge_) &&
                       look_up("MPIX_Comm_revoke", found.revoke_) &&
                       look_up("MPIX_Comm_shrink", found.shrink_) && look_up("MPIX_Comm_agree", found.agree_);
  if (!has_all || !is_switched_on()) return std::nullopt;
  return found;
}

void Ulfm::prepare() {
  // `mpirun --with-ft ulfm` sets this variable.
  const char* const wanted = std::getenv("OMPI_MCA_mpi_ft_enable");
  if (wanted != nullptr && std::string_view(wanted) != "0") setenv("OMPI_MCA_async_mpi_finalize", "1", 0);
}

// Compares the names of errors, because the header of Open MPI 4 does not define their numbers.
bool Ulfm::is_loss(int code) {
  if (code == MPI_SUCCESS) return false;
  std::array<char, MPI_MAX_ERROR_STRING> text{};
  int length = 0;
  MPI_Error_string(code, text.data(), &length);
  const std::string_view name(text.data());
  return name.starts_with("MPI_ERR_PROC_FAILED") || name.starts_with("MPI_ERR_REVOKED");
}

std::vector<int> Ulfm::dead(MPI_Comm comm) const {
  MPI_Group failed = MPI_GROUP_NULL;
  if (get_failed_(comm, &failed) != MPI_SUCCESS) return {};
  int count = 0;
  MPI_Group_size(failed, &count);
  std::vector<int> ranks(static_cast<std::size_t>(count));
  if (count > 0) {
    std::vector<int> places(ranks.size());
    std::iota(places.begin(), places.end(), 0);
    MPI_Group all = MPI_GROUP_NULL;
    MPI_Comm_group(comm, &all);
    MPI_Group_translate_ranks(failed, count, places.data(), all, ranks.data());
    MPI_Group_free(&all);
    std::ranges::sort(ranks);
  }
  if (failed != MPI_GROUP_EMPTY) MPI_Group_free(&failed);
  return ranks;
}

}  // namespace plexaura
