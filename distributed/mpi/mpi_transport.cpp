#include "distributed/mpi/mpi_transport.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <cstring>
#include <string_view>
#include <utility>

#include "core/error.h"
#include "distributed/mpi/mpi_session.h"

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

int count_of(std::size_t bytes) {
  Transport::check_length(bytes);
  return static_cast<int>(bytes);
}

MPI_Datatype summed_type(DType dtype) {
  if (dtype == DType::float64) return MPI_DOUBLE;
  return dtype == DType::float32 ? MPI_FLOAT : MPI_INT64_T;
}

class MpiTransport final : public Transport {
 public:
  // `abandoned`: of the family.
  MpiTransport(std::shared_ptr<MpiSession> session, MPI_Comm comm,
               std::shared_ptr<std::atomic<bool>> abandoned)
      : session_(std::move(session)), comm_(comm), abandoned_(std::move(abandoned)) {
    MPI_Comm_set_errhandler(comm_, MPI_ERRORS_RETURN);
    MPI_Comm_rank(comm_, &rank_);
    MPI_Comm_size(comm_, &size_);
  }
  ~MpiTransport() override {
    if (!session_->abandoned()) MPI_Comm_free(&comm_);
  }
  MpiTransport(const MpiTransport&) = delete;
  MpiTransport& operator=(const MpiTransport&) = delete;

  int rank() const override { return rank_; }
  int size() const override { return size_; }

  Request send(std::span<const std::byte> data, int to, int tag) override {
    MPI_Request request = MPI_REQUEST_NULL;
    MpiSession::check(MPI_Isend(data.data(), count_of(data.size()), MPI_BYTE, to, tag, comm_, &request),
                      "MPI_Isend");
    return wrap(request);
  }

  Request receive(std::span<std::byte> data, int from, int tag) override {
    MPI_Request request = MPI_REQUEST_NULL;
    MpiSession::check(MPI_Irecv(data.data(), count_of(data.size()), MPI_BYTE, from, tag, comm_, &request),
                      "MPI_Irecv");
    return wrap(request);
  }

  bool done(Request& request) override {
    MPI_Request unwrapped = unwrap(request);
    int flag = 0;
    MpiSession::check(MPI_Test(&unwrapped, &flag, MPI_STATUS_IGNORE), "MPI_Test");
    request = wrap(unwrapped);
    return flag != 0;
  }

  void keep(const Request&, std::shared_ptr<const void> memory) override {
    session_->keep(std::move(memory));
  }

  std::optional<Envelope> waiting(int from, int tag) override {
    MPI_Status status;
    int flag = 0;
    MpiSession::check(MPI_Iprobe(from == anyone ? MPI_ANY_SOURCE : from, tag, comm_, &flag, &status),
                      "MPI_Iprobe");
    if (flag == 0) return std::nullopt;
    int bytes = 0;
    MPI_Get_count(&status, MPI_BYTE, &bytes);
    return Envelope{status.MPI_SOURCE, static_cast<std::size_t>(bytes)};
  }

  std::unique_ptr<Transport> duplicate() override {
    MPI_Comm made = MPI_COMM_NULL;
    session_->blocking("MPI_Comm_dup", [&] { return MPI_Comm_dup(comm_, &made); });
    return std::make_unique<MpiTransport>(session_, made, abandoned_);
  }

  std::unique_ptr<Transport> split(int colour) override {
    MPI_Comm made = MPI_COMM_NULL;
    session_->blocking("MPI_Comm_split", [&] { return MPI_Comm_split(comm_, colour, rank_, &made); });
    return std::make_unique<MpiTransport>(session_, made, abandoned_);
  }

  // MPI waits in this call for those alone that are left.
  std::unique_ptr<Transport> without(std::span<const int> lost) override {
    MPI_Group all = MPI_GROUP_NULL;
    MPI_Group left = MPI_GROUP_NULL;
    MPI_Comm_group(comm_, &all);
    MPI_Group_excl(all, static_cast<int>(lost.size()), lost.data(), &left);
    MPI_Comm made = MPI_COMM_NULL;
    session_->blocking("MPI_Comm_create_group", [&] { return MPI_Comm_create_group(comm_, left, 0, &made); });
    MPI_Group_free(&left);
    MPI_Group_free(&all);
    return std::make_unique<MpiTransport>(session_, made, std::make_shared<std::atomic<bool>>(false));
  }

  void all_reduce(DType dtype, std::byte* data, std::int64_t count) override {
    constexpr std::int64_t most = std::int64_t{1} << 30;  // MPI counts in int
    for (std::int64_t first = 0; first < count; first += most) {
      std::byte* const piece = data + static_cast<std::size_t>(first) * size_of(dtype);
      const auto length = static_cast<int>(std::min(most, count - first));
      session_->blocking("MPI_Allreduce", [&] {
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
  session->blocking("MPI_Comm_dup", [&] { return MPI_Comm_dup(MPI_COMM_WORLD, &world); });
  return std::make_unique<MpiTransport>(std::move(session), world,
                                        std::make_shared<std::atomic<bool>>(false));
}

std::string mpi_library() {
  std::array<char, MPI_MAX_LIBRARY_VERSION_STRING> text{};
  int length = 0;
  MPI_Get_library_version(text.data(), &length);
  const std::string_view whole(text.data(), static_cast<std::size_t>(length));
  return std::string(whole.substr(0, whole.find(',')));
}

}  // namespace plexaura
