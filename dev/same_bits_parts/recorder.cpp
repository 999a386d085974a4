// dev/same_bits loads this library into each rank before those of the program (LD_PRELOAD). It writes the
// calls between ranks into a file in the folder PLEXAURA_CALLS, one line for each:
//   event THREAD KIND NUMBER TEXT
//       an event of the program about a call or a step: see core/base/events.h
//   message THREAD COMMUNICATOR CALL PEER TAG BYTES
//       a call of MPI; communicators count from 1 in the order in which they are made

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <dlfcn.h>
#include <fcntl.h>
#include <mutex>
#include <string>
#include <unistd.h>

#if __has_include(<mpi.h>)
#define OMPI_SKIP_MPICXX
#include <mpi.h>
#endif

#include "core/base/events.h"

namespace {

int open_log() {
  const char* const folder = std::getenv("PLEXAURA_CALLS");
  if (folder == nullptr) return -1;
  const char* rank = std::getenv("OMPI_COMM_WORLD_RANK");
  if (rank == nullptr) rank = "0";
  const std::string path = std::string(folder) + "/rank-" + rank;
  return open(path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
}

const int log_file = open_log();

// Writes a line without a buffer: other threads write, too, and a signal may end the process.
template <class... T>
void note(const char* format, T... values) {
  std::array<char, 700> line{};
  const int length = std::snprintf(line.data(), line.size(), format, values...);
  if (log_file < 0 || length < 0) return;
  const std::size_t size = std::min<std::size_t>(static_cast<std::size_t>(length), line.size() - 1);
  line[size - 1] = '\n';
  if (write(log_file, line.data(), size) < 0) std::abort();
}

// Returns the id of the calling thread, or 0 for the thread that runs main().
long own_thread() { return gettid() == getpid() ? 0 : gettid(); }

class Recorder final : public plexaura::EventSink {
 public:
  void event(plexaura::EventKind kind, std::int64_t number, std::string_view text) noexcept override {
    note("event %ld %u %lld %.*s\n", own_thread(), static_cast<unsigned>(kind),
         static_cast<long long>(number), static_cast<int>(text.size()), text.data());
    if (plexaura::EventSink* const sink = sink_) sink->event(kind, number, text);
  }
  void forward_to(plexaura::EventSink* sink) { sink_ = sink; }

 private:
  std::atomic<plexaura::EventSink*> sink_ = nullptr;
};

Recorder& recorder() {
  // Never destroyed, because threads may send events until the process ends.
  static auto* const made = new Recorder;
  return *made;
}

void send_to_recorder() {
  static const auto real = reinterpret_cast<decltype(&plexaura::send_events_to)>(
      dlsym(RTLD_NEXT, "_ZN8plexaura14send_events_toEPNS_9EventSinkE"));
  if (real == nullptr) std::abort();
  real(&recorder());
}

}  // namespace

// Replaces the function in libplexaura_core.so.
void plexaura::send_events_to(EventSink* sink) noexcept {
  recorder().forward_to(sink);
  send_to_recorder();
}

#ifdef MPI_VERSION

namespace {

class Communicators {
 public:
  void add(MPI_Comm comm) {
    const std::lock_guard lock(mutex_);
    known_.at(static_cast<std::size_t>(count_++) % known_.size()) = comm;
  }
  int number(MPI_Comm comm) {
    const std::lock_guard lock(mutex_);
    for (int index = count_; index > 0; --index)
      if (known_.at(static_cast<std::size_t>(index - 1) % known_.size()) == comm) return index;
    return 0;
  }

 private:
  std::mutex mutex_;
  std::array<MPI_Comm, 64> known_{};
  int count_ = 0;
};

Communicators communicators;

int made(int code, const char* call, const MPI_Comm* comm) {
  if (code == MPI_SUCCESS && *comm != MPI_COMM_NULL) communicators.add(*comm);
  note("message %ld 0 %s 0 0 0\n", own_thread(), call);
  return code;
}

void note_message(const char* call, int peer, int tag, int count, MPI_Datatype type, MPI_Comm comm) {
  int size = 0;
  PMPI_Type_size(type, &size);
  note("message %ld %d %s %d %d %lld\n", own_thread(), communicators.number(comm), call, peer, tag,
       static_cast<long long>(count) * size);
}

}  // namespace

extern "C" {

// NOLINTBEGIN(readability-identifier-naming): the names are those of MPI

int MPI_Comm_dup(MPI_Comm comm, MPI_Comm* result) {
  return made(PMPI_Comm_dup(comm, result), "MPI_Comm_dup", result);
}

int MPI_Comm_split(MPI_Comm comm, int colour, int key, MPI_Comm* result) {
  return made(PMPI_Comm_split(comm, colour, key, result), "MPI_Comm_split", result);
}

int MPI_Comm_create_group(MPI_Comm comm, MPI_Group group, int tag, MPI_Comm* result) {
  return made(PMPI_Comm_create_group(comm, group, tag, result), "MPI_Comm_create_group", result);
}

int MPI_Isend(const void* data, int count, MPI_Datatype type, int to, int tag, MPI_Comm comm,
              MPI_Request* request) {
  note_message("MPI_Isend", to, tag, count, type, comm);
  return PMPI_Isend(data, count, type, to, tag, comm, request);
}

int MPI_Irecv(void* data, int count, MPI_Datatype type, int from, int tag, MPI_Comm comm,
              MPI_Request* request) {
  note_message("MPI_Irecv", from, tag, count, type, comm);
  return PMPI_Irecv(data, count, type, from, tag, comm, request);
}

int MPI_Allreduce(const void* data, void* result, int count, MPI_Datatype type, MPI_Op op, MPI_Comm comm) {
  note_message("MPI_Allreduce", 0, 0, count, type, comm);
  return PMPI_Allreduce(data, result, count, type, op, comm);
}

// NOLINTEND(readability-identifier-naming)

}  // extern "C"

#endif

namespace {

// Records events from the start, before the program asks for them.
[[maybe_unused]] const bool is_recording = (send_to_recorder(), true);

}  // namespace
