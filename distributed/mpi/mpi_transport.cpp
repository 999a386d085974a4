#include "distributed/mpi/mpi_transport.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <cstring>
#include <fmt/format.h>
#include <functional>
#include <limits>
#include <numeric>
#include <optional>
#include <string_view>
#include <utility>

#include "core/base/error.h"
#include "core/exchange/rank_lost.h"
#include "distributed/failure/cut_off.h"
#include "distributed/failure/silent_links.h"
#include "distributed/mpi/mpi_session.h"
#include "distributed/mpi/succession.h"
#include "distributed/wire/failure.h"

namespace plexaura {
namespace {

static_assert(sizeof(MPI_Request) <= sizeof(Request::handle));

Request wrap(MPI_Request request) {
  Request wrapped;
  std::memcpy(&wrapped.handle, &request, sizeof(MPI_Request));
  return wrapped;
}

MPI_Request unwrap(const Request& request) {
  MPI_Request unwrapped;
  std::memcpy(&unwrapped, &request.handle, sizeof(MPI_Request));
  return unwrapped;
}

// The request of a message from or to a rank that has died. It never completes.
constexpr Request never{std::numeric_limits<std::uint64_t>::max()};

int count_of(std::size_t bytes) {
  Transport::check_length(bytes);
  return static_cast<int>(bytes);
}

MPI_Datatype summed_type(DType dtype) {
  if (dtype == DType::float64) return MPI_DOUBLE;
  return dtype == DType::float32 ? MPI_FLOAT : MPI_INT64_T;
}

// Returns the numbers that ranks of a communicator had at the start.
std::vector<int> numbers_of(MPI_Comm comm, const std::vector<int>& ranks) {
  std::vector<int> numbers(ranks.size());
  MPI_Group group = MPI_GROUP_NULL;
  MPI_Group world = MPI_GROUP_NULL;
  MPI_Comm_group(comm, &group);
  MPI_Comm_group(MPI_COMM_WORLD, &world);
  MPI_Group_translate_ranks(group, static_cast<int>(ranks.size()), ranks.data(), world, numbers.data());
  MPI_Group_free(&world);
  MPI_Group_free(&group);
  return numbers;
}

// Throws a RankLost. If no rank catches it, the lowest rank that is left prints it.
[[noreturn]] void throw_loss(const Ulfm& ulfm, MPI_Comm comm, const char* call) {
  const std::vector<int> dead = ulfm.dead(comm);
  int rank = 0;
  MPI_Comm_rank(comm, &rank);
  const std::string who =
      dead.empty() ? "another rank" : fmt::format("rank {}", numbers_of(comm, dead).front());
  const RankLost loss(
      fmt::format("{} has died while rank {} waited in {}", who, numbers_of(comm, {rank}).front(), call),
      numbers_of(comm, dead), call, true);
  int lowest = 0;
  while (std::ranges::find(dead, lowest) != dead.end()) ++lowest;
  if (lowest == rank) throw loss;
  throw Remote<RankLost>(lowest, loss);
}

// Returns the numbers that all ranks of `comm` had at the start.
std::vector<int> members_of(MPI_Comm comm) {
  int size = 0;
  MPI_Comm_size(comm, &size);
  std::vector<int> all(static_cast<std::size_t>(size));
  std::iota(all.begin(), all.end(), 0);
  return numbers_of(comm, all);
}

// Returns the text that ask_to_continue() expects, for the ranks that are left.
std::string marks_of(const std::vector<int>& left) {
  std::string marks(members_of(MPI_COMM_WORLD).size(), '0');
  for (const int rank : left) marks[static_cast<std::size_t>(rank)] = '1';
  return marks;
}

// Throws CutOff. The lowest of the ranks that are left has asked the launcher, and prints the error.
[[noreturn]] void throw_cut_off(const std::vector<int>& left, bool speaks, bool has_answered) {
  const CutOff error(fmt::format("{} {} cut off from the others, {}", list_ranks(left),
                                 left.size() == 1 ? "was" : "were",
                                 !has_answered      ? "and from mpirun, which decides which ranks continue"
                                 : left.size() == 1 ? "which continued without it"
                                                    : "which continued without them"));
  if (speaks) throw error;
  throw Remote<CutOff>(left.front(), error.what());
}

class MpiTransport final : public Transport {
 public:
  // `abandoned` is shared by all transports that duplicate() and split() made from one another.
  MpiTransport(std::shared_ptr<MpiSession> session, MPI_Comm comm,
               std::shared_ptr<std::atomic<bool>> abandoned)
      : session_(std::move(session)), comm_(comm), abandoned_(std::move(abandoned)) {
    MPI_Comm_set_errhandler(comm_, MPI_ERRORS_RETURN);
    MPI_Comm_rank(comm_, &rank_);
    MPI_Comm_size(comm_, &size_);
  }
  ~MpiTransport() override {
    if (!session_->abandoned() && !*abandoned_) MPI_Comm_free(&comm_);
  }
  MpiTransport(const MpiTransport&) = delete;
  MpiTransport& operator=(const MpiTransport&) = delete;

  int rank() const override { return rank_; }
  int size() const override { return size_; }

  Request send(std::span<const std::byte> data, int to, int tag) override {
    count_sent(data.size());
    MPI_Request request = MPI_REQUEST_NULL;
    const int code = MPI_Isend(data.data(), count_of(data.size()), MPI_BYTE, to, tag, comm_, &request);
    return is_loss(code, "MPI_Isend") ? never : wrap(request);
  }

  Request receive(std::span<std::byte> data, int from, int tag) override {
    MPI_Request request = MPI_REQUEST_NULL;
    const int code = MPI_Irecv(data.data(), count_of(data.size()), MPI_BYTE, from, tag, comm_, &request);
    return is_loss(code, "MPI_Irecv") ? never : wrap(request);
  }

  bool done(Request& request) override {
    if (request.handle == never.handle) return false;
    MPI_Request unwrapped = unwrap(request);
    int flag = 0;
    const bool lost = is_loss(MPI_Test(&unwrapped, &flag, MPI_STATUS_IGNORE), "MPI_Test");
    request = lost ? never : wrap(unwrapped);
    return flag != 0 && !lost;
  }

  void keep(const Request&, std::shared_ptr<const void> memory) override {
    session_->keep(std::move(memory));
  }

  std::optional<Envelope> waiting(int from, int tag) override {
    MPI_Status status;
    int flag = 0;
    const auto probe = [&] {
      const int code = MPI_Iprobe(from == anyone ? MPI_ANY_SOURCE : from, tag, comm_, &flag, &status);
      return is_loss(code, "MPI_Iprobe");
    };
    bool lost = probe();
    if (lost && from == anyone) {  // living ranks may still send
      session_->ulfm()->acknowledge(comm_);
      lost = probe();
    }
    if (lost || flag == 0) return std::nullopt;
    int bytes = 0;
    MPI_Get_count(&status, MPI_BYTE, &bytes);
    return Envelope{status.MPI_SOURCE, static_cast<std::size_t>(bytes)};
  }

  std::unique_ptr<Transport> duplicate() override {
    MPI_Comm made = MPI_COMM_NULL;
    blocking("MPI_Comm_dup", [&] { return MPI_Comm_dup(comm_, &made); });
    return std::make_unique<MpiTransport>(session_, made, abandoned_);
  }

  std::unique_ptr<Transport> split(int colour) override {
    MPI_Comm made = MPI_COMM_NULL;
    blocking("MPI_Comm_split", [&] { return MPI_Comm_split(comm_, colour, rank_, &made); });
    return std::make_unique<MpiTransport>(session_, made, abandoned_);
  }

  bool outlives_ranks() const override { return session_->ulfm().has_value(); }
  std::vector<int> dead() override {
    return session_->ulfm() ? session_->ulfm()->dead(comm_) : std::vector<int>();
  }

  void drop_silent_links() override {
    if (session_->ulfm()) close_silent_links();
  }

  void when_stuck(const std::function<void()>& rescue) override { session_->when_stuck(rescue); }

  // Makes a transport of the ranks that are left. MPI waits in these calls only for those ranks.
  std::unique_ptr<Transport> without(std::span<const int> lost, double deadline_seconds) override {
    *abandoned_ = true;
    MPI_Comm made = session_->ulfm() ? regroup(deadline_seconds) : exclude(lost);
    return std::make_unique<MpiTransport>(session_, made, std::make_shared<std::atomic<bool>>(false));
  }

  bool agree(bool yes, double deadline_seconds) override {
    if (!session_->ulfm()) return yes;
    int flag = yes ? 1 : 0;
    agree(comm_, flag, deadline_seconds);
    return flag != 0;
  }

  void all_reduce(DType dtype, std::byte* data, std::int64_t count) override {
    constexpr std::int64_t most = std::int64_t{1} << 30;  // MPI counts elements in an int
    for (std::int64_t first = 0; first < count; first += most) {
      std::byte* const piece = data + static_cast<std::size_t>(first) * size_of(dtype);
      const auto length = static_cast<int>(std::min(most, count - first));
      blocking("MPI_Allreduce", [&] {
        return MPI_Allreduce(MPI_IN_PLACE, piece, length, summed_type(dtype), MPI_SUM, comm_);
      });
    }
  }

  void abandon() noexcept override {
    session_->abandon();
    *abandoned_ = true;
  }
  bool abandoned() const noexcept override { return *abandoned_; }

 private:
  // Returns true if the call failed because a rank has died. Throws DeviceError for other failures.
  bool is_loss(int code, const char* name) const {
    if (session_->ulfm() && Ulfm::is_loss(code)) return true;
    MpiSession::check(code, name);
    return false;
  }

  // Runs a call that needs all ranks. If a rank has died, the call fails on some ranks only; revoking the
  // communicator releases the other ones, which may wait for these.
  template <class F>
  void blocking(const char* name, F&& call) {
    if (!is_loss(session_->blocking(name, call), name)) return;
    session_->ulfm()->revoke(comm_);
    throw_loss(*session_->ulfm(), comm_, name);
  }

  MPI_Comm shrink(double deadline_seconds) {
    MPI_Comm made = MPI_COMM_NULL;
    const Ulfm& ulfm = *session_->ulfm();
    const char* const name = "MPIX_Comm_shrink";
    MpiSession::check(session_->blocking(
                          name, [&] { return ulfm.shrink(comm_, &made); }, deadline_seconds),
                      name);
    session_->proceed();
    return made;
  }

  // Returns a communicator of all living ranks. If there are several hosts, asks the launcher, and throws CutOff if
  // these ranks may not continue. Tries again if more ranks have died before all ranks knew the answer.
  MPI_Comm regroup(double deadline_seconds) {
    constexpr int may_continue = 1;
    constexpr int is_answered = 2;
    for (;;) {
      MPI_Comm made = shrink(deadline_seconds);
      if (is_one_host()) return made;
      const std::vector<int> left = members_of(made);
      const bool asks = left.front() == numbers_of(comm_, {rank_}).front();
      const std::optional<bool> answer = asks ? ask_to_continue(marks_of(left), session_->deadline()) : true;
      int known = (answer.value_or(false) ? may_continue : 0) | (answer ? is_answered : 0);
      if (!agree(made, known, deadline_seconds + session_->deadline())) continue;
      if ((known & may_continue) != 0) return made;
      session_->abandon();
      throw_cut_off(left, asks, (known & is_answered) != 0);
    }
  }

  // Combines `bits` of all living ranks by bitwise and, and returns the result to all of them. Returns false
  // if a rank has died.
  bool agree(MPI_Comm comm, int& bits, double deadline_seconds) {
    const char* const name = "MPIX_Comm_agree";
    const Ulfm& ulfm = *session_->ulfm();
    const int code = session_->blocking(
        name, [&] { return ulfm.agree(comm, &bits); }, deadline_seconds);
    return !is_loss(code, name);
  }

  MPI_Comm exclude(std::span<const int> lost) {
    MPI_Group all = MPI_GROUP_NULL;
    MPI_Group left = MPI_GROUP_NULL;
    MPI_Comm_group(comm_, &all);
    MPI_Group_excl(all, static_cast<int>(lost.size()), lost.data(), &left);
    MPI_Comm made = MPI_COMM_NULL;
    blocking("MPI_Comm_create_group", [&] { return MPI_Comm_create_group(comm_, left, 0, &made); });
    MPI_Group_free(&left);
    MPI_Group_free(&all);
    return made;
  }

  std::shared_ptr<MpiSession> session_;
  MPI_Comm comm_;
  std::shared_ptr<std::atomic<bool>> abandoned_;
  int rank_ = 0;
  int size_ = 1;
};

}  // namespace

std::unique_ptr<Transport> make_mpi_transport(double deadline_seconds) {
  auto session = std::make_shared<MpiSession>(deadline_seconds);
  MPI_Comm world = MPI_COMM_NULL;
  const char* const name = "MPI_Comm_dup";
  const int code = session->blocking(name, [&] { return MPI_Comm_dup(MPI_COMM_WORLD, &world); });
  if (session->ulfm() && Ulfm::is_loss(code)) throw_loss(*session->ulfm(), MPI_COMM_WORLD, name);
  MpiSession::check(code, name);
  return std::make_unique<MpiTransport>(std::move(session), world,
                                        std::make_shared<std::atomic<bool>>(false));
}

std::string mpi_library() {
  std::array<char, MPI_MAX_LIBRARY_VERSION_STRING> text{};
  int length = 0;
  MPI_Get_library_version(text.data(), &length);
  const std::string_view whole(text.data(), static_cast<std::size_t>(length));
  // After the library's name, Open MPI continues with a comma. MPICH separates words with tabs, and continues
  // with a line for each option.
  std::string name(whole.substr(0, whole.find_first_of(",\n")));
  std::ranges::replace(name, '\t', ' ');
  return name;
}

}  // namespace plexaura
