#include "tests/support/thread_collective.h"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <exception>
#include <fmt/format.h>
#include <thread>

namespace plexaura::testing {
namespace {

template <class T>
void add(std::byte* sum, const std::byte* more, std::int64_t count) {
  for (std::int64_t i = 0; i < count; ++i) {
    reinterpret_cast<T*>(sum)[i] += reinterpret_cast<const T*>(more)[i];
  }
}

using Add = void (*)(std::byte*, const std::byte*, std::int64_t);

Add adder(DType dtype) {
  switch (dtype) {
    case DType::float64:
      return add<double>;
    case DType::float32:
      return add<float>;
    case DType::int64:
      return add<std::uint64_t>;
    default:
      throw UserError(fmt::format("ranks do not sum {}", name_of(dtype)));
  }
}

}  // namespace

// The side of one rank, used by its thread.
class ThreadRanks::Member final : public Collective {
 public:
  Member(ThreadRanks& ranks, int rank) : ranks_(ranks), rank_(rank) {}

  int rank() const override { return rank_; }
  int size() const override { return ranks_.size_; }
  double deadline_seconds() const override { return ranks_.deadline_; }

  void sum(DType dtype, std::byte* data, std::int64_t count, std::string_view what) override {
    refuse_in_phase(what);
    const Add add = adder(dtype);
    const std::string call = fmt::format("'{}' (sum of {} {})", what, count, name_of(dtype));
    ranks_.meet(rank_, {call, data, {}, nullptr}, [&](Parts& parts) {
      for (std::size_t i = 1; i < parts.size(); ++i) add(parts[0]->data, parts[i]->data, count);
      copy_to_all(parts, 0, static_cast<std::size_t>(count) * size_of(dtype));
    });
  }

  void broadcast(std::byte* data, std::size_t bytes, int root, std::string_view what) override {
    refuse_in_phase(what);
    const std::string call = fmt::format("'{}' (broadcast of {} bytes from rank {})", what, bytes, root);
    ranks_.meet(rank_, {call, data, {}, nullptr},
                [&](Parts& parts) { copy_to_all(parts, static_cast<std::size_t>(root), bytes); });
  }

  std::vector<std::string> gather_all(const std::string& mine, std::string_view what) override {
    refuse_in_phase(what);
    std::vector<std::string> texts;
    ranks_.meet(rank_, {fmt::format("'{}' (gathering of texts)", what), nullptr, mine, &texts},
                [](Parts& parts) {
                  std::vector<std::string> all;
                  for (const auto& part : parts) all.push_back(part->text);
                  for (const auto& part : parts) *part->texts = all;
                });
    return texts;
  }

 private:
  static void copy_to_all(const Parts& parts, std::size_t from, std::size_t bytes) {
    for (std::size_t i = 0; i < parts.size() && bytes > 0; ++i) {
      if (i != from) std::memcpy(parts[i]->data, parts[from]->data, bytes);
    }
  }

  ThreadRanks& ranks_;
  int rank_;
};

ThreadRanks::ThreadRanks(int size, double deadline_seconds)
    : size_(size),
      deadline_(deadline_seconds),
      parts_(static_cast<std::size_t>(size)),
      left_(static_cast<std::size_t>(size)) {}

void ThreadRanks::run(const std::function<void(Collective&)>& body) {
  std::vector<std::exception_ptr> errors(static_cast<std::size_t>(size_));
  std::vector<std::thread> threads;
  for (int rank = 0; rank < size_; ++rank) {
    threads.emplace_back([&, rank] {
      std::exception_ptr& error = errors[static_cast<std::size_t>(rank)];
      try {
        Member member(*this, rank);
        body(member);
      } catch (const RemoteError&) {  // another rank reports the error
      } catch (...) {
        error = std::current_exception();
      }
      leave(rank, error != nullptr);
    });
  }
  for (std::thread& thread : threads) thread.join();
  std::fill(left_.begin(), left_.end(), false);
  for (const std::exception_ptr& error : errors) {
    if (error) std::rethrow_exception(error);
  }
}

void ThreadRanks::meet(int rank, Part part, const std::function<void(Parts&)>& work) {
  std::unique_lock lock(mutex_);
  check_failure();
  check_same_call(rank, part);
  parts_[static_cast<std::size_t>(rank)] = std::move(part);
  if (++present_ == size_) {
    work(parts_);
    std::fill(parts_.begin(), parts_.end(), std::nullopt);
    present_ = 0;
    ++round_;
    changed_.notify_all();
    return;
  }
  // The system's clock, because the thread sanitizer of g++ 12 does not support waits on the steady one.
  const auto patience = std::chrono::microseconds(static_cast<std::int64_t>(deadline_ * 1e6));
  const auto end = std::chrono::system_clock::now() + patience;
  const std::uint64_t round = round_;
  while (round_ == round) {
    check_failure();
    check_nobody_left(rank);
    if (changed_.wait_until(lock, end) == std::cv_status::timeout && round_ == round) {
      const auto missing = std::find(parts_.begin(), parts_.end(), std::nullopt) - parts_.begin();
      fail(rank, fmt::format("rank {} did not come to {} within {:.3g} s", missing,
                             parts_[static_cast<std::size_t>(rank)]->call, deadline_));
    }
  }
}

void ThreadRanks::leave(int rank, bool in_error) {
  const std::lock_guard lock(mutex_);
  left_[static_cast<std::size_t>(rank)] = true;
  if (in_error && failed_rank_ < 0) {
    failed_rank_ = rank;
    failure_ = fmt::format("rank {} has left with an error of its own", rank);
  }
  changed_.notify_all();
}

void ThreadRanks::check_failure() const {
  if (failed_rank_ < 0) return;
  if (loss_) throw Remote<RankLost>(failed_rank_, *loss_);
  throw Remote<DeviceError>(failed_rank_, failure_);
}

void ThreadRanks::check_nobody_left(int rank) {
  const auto left = std::find(left_.begin(), left_.end(), true);
  if (left == left_.end()) return;
  const std::string& call = parts_[static_cast<std::size_t>(rank)]->call;
  const auto lost = static_cast<int>(left - left_.begin());
  loss_.emplace(fmt::format("rank {} has ended while rank {} waits at {}", lost, rank, call),
                std::vector<int>{lost}, call);
  failed_rank_ = rank;
  changed_.notify_all();
  throw *loss_;
}

void ThreadRanks::check_same_call(int rank, const Part& part) {
  for (std::size_t other = 0; other < parts_.size(); ++other) {
    if (!parts_[other] || parts_[other]->call == part.call) continue;
    fail(rank,
         fmt::format("rank {} is at {} while rank {} is at {}", rank, part.call, other, parts_[other]->call));
  }
}

void ThreadRanks::fail(int rank, const std::string& text) {
  failed_rank_ = rank;
  failure_ = text;
  changed_.notify_all();
  throw DeviceError(text);
}

}  // namespace plexaura::testing
