#include "distributed/mpi/mpi_session.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <cstddef>
#include <cstdlib>
#include <fmt/format.h>
#include <string>
#include <string_view>
#include <thread>
#include <unistd.h>
#include <vector>

#include "core/base/error.h"
#include "core/base/events.h"
#include "distributed/wire/launcher.h"

namespace plexaura {
namespace {

// The least deadline of MPI_Init, in seconds: starting many processes takes time, however short the deadline
// between ranks is.
constexpr double seconds_to_start = 60;

// Ends the job by MPI_Abort, which informs the launcher. MPI_Abort may itself wait for a lock that the
// blocked call holds, so it runs on a thread of its own. During MPI_Init it must not be called.
void end_job(const std::string& sentence) {
  report_event(EventKind::error, 1, sentence);
  const std::string line = sentence + "\n";
  [[maybe_unused]] const auto written = write(STDERR_FILENO, line.data(), line.size());
  int initialized = 0;
  MPI_Initialized(&initialized);
  if (initialized == 0) _exit(1);
  std::thread([] { MPI_Abort(MPI_COMM_WORLD, 1); }).detach();
  std::this_thread::sleep_for(std::chrono::seconds(1));
  _exit(1);
}

// Switches off a way of sending. Open MPI 4 may read a long message directly from the sender's memory. If the
// sender died during that, the reader would end too, before it could name the dead rank.
void keep_from_reading_others() { setenv("OMPI_MCA_btl_vader_single_copy_mechanism", "none", 0); }

// Sets the folder for files of Open MPI 5. Ranks that are killed leave the files through which it shares
// memory, and the names of these files do not identify the job. On its own machine, tools/run makes a folder
// for them, and removes it.
void keep_shared_files_where_launcher_cleans_up() {
  const std::string folder = folder_of_launcher("PLEXAURA_SHARED");
  if (!folder.empty()) setenv("OMPI_MCA_btl_sm_backing_directory", folder.c_str(), 0);
}

// Returns the list of components that Open MPI leaves out, with `ofi` added, unless the user has listed
// components to use.
std::string without_slow_one(std::string_view chosen) {
  if (chosen.empty()) return "^ofi";
  return fmt::format("{}{}", chosen, chosen.front() == '^' ? ",ofi" : "");
}

bool is_open_mpi_4() {
  std::array<char, MPI_MAX_LIBRARY_VERSION_STRING> text{};
  int length = 0;
  MPI_Get_library_version(text.data(), &length);
  return std::string_view(text.data()).starts_with("Open MPI v4");
}

// Lets Open MPI leave out its component `ofi`. Open MPI 5 waits a second when it closes this component, which
// transports none of our messages. Its authors do not test it with ranks that die, and Debian's Open MPI 4
// leaves it out too. Other MPI libraries do not have this variable. The tool interface stays open, because
// values written there are lost if it is closed before MPI has started.
void leave_out_slow_component() {
  if (is_open_mpi_4()) return;
  int granted = MPI_THREAD_SINGLE;
  if (MPI_T_init_thread(MPI_THREAD_SINGLE, &granted) != MPI_SUCCESS) return;
  int index = 0;
  int size = 0;
  MPI_T_cvar_handle handle = MPI_T_CVAR_HANDLE_NULL;
  if (MPI_T_cvar_get_index("btl", &index) != MPI_SUCCESS ||
      MPI_T_cvar_handle_alloc(index, nullptr, &handle, &size) != MPI_SUCCESS)
    return;
  std::vector<char> chosen(static_cast<std::size_t>(size) + 1);
  if (MPI_T_cvar_read(handle, chosen.data()) == MPI_SUCCESS)
    MPI_T_cvar_write(handle, without_slow_one(chosen.data()).c_str());
  MPI_T_cvar_handle_free(&handle);
}

void check_not_over() {
  int finalized = 0;
  MPI_Finalized(&finalized);
  if (finalized != 0) throw InternalError("MPI cannot be started again in a process that has closed it");
}

}  // namespace

MpiSession::MpiSession(double deadline_seconds)
    : watchdog_(fmt::format("process {}", getpid()), end_job), deadline_(deadline_seconds) {
  check_not_over();
  int initialized = 0;
  int granted = MPI_THREAD_SINGLE;
  MPI_Initialized(&initialized);
  if (initialized != 0) {
    MPI_Query_thread(&granted);
  } else {
    const Watchdog::Guard guard(watchdog_, "MPI_Init, where all ranks come together",
                                std::max(deadline_, seconds_to_start));
    keep_from_reading_others();
    keep_shared_files_where_launcher_cleans_up();
    leave_out_slow_component();
    Ulfm::prepare();
    check(MPI_Init_thread(nullptr, nullptr, MPI_THREAD_MULTIPLE, &granted), "MPI_Init_thread");
    is_owner_ = true;
  }
  if (granted < MPI_THREAD_MULTIPLE) {
    throw DeviceError(
        "this MPI does not allow calls from several threads (MPI_THREAD_MULTIPLE): use one built with it");
  }
  ulfm_ = Ulfm::find();
  if (ulfm_) {
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    // Errors of calls without a communicator use this handler.
    MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
  }
  int rank = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  watchdog_.rename(fmt::format("rank {}", rank));
}

MpiSession::~MpiSession() {
  if (!is_owner_ || abandoned_) return;
  const Watchdog::Guard guard(watchdog_, "MPI_Finalize, where all ranks come together", deadline_);
  MPI_Finalize();
}

void MpiSession::check(int code, const char* name) {
  if (code == MPI_SUCCESS) return;
  std::array<char, MPI_MAX_ERROR_STRING> text{};
  int length = 0;
  MPI_Error_string(code, text.data(), &length);
  throw DeviceError(fmt::format("{} failed: {}", name, text.data()));
}

}  // namespace plexaura
