#include "core/cluster/loopback.h"

#include <algorithm>
#include <condition_variable>
#include <deque>
#include <map>
#include <mutex>
#include <optional>
#include <thread>
#include <tuple>

#include "core/base/threads.h"

namespace shw {
namespace {

using Clock = std::chrono::steady_clock;

// The message queues that the threads share.
struct LoopbackBus {
  LoopbackBus(int workers, bool in_fixed_order)
      : size(workers), fixed_order(in_fixed_order), ended(static_cast<std::size_t>(workers)) {}

  const int size;
  const bool fixed_order;
  std::mutex guard;
  std::condition_variable changed;
  std::map<std::tuple<int, int, Tag>, std::deque<Bytes>> mail;  // by sender, receiver and tag
  std::vector<bool> ended;
  std::optional<std::pair<int, Bytes>> stopped;  // the first rank that stopped, and why
  int turn = 0;                                  // the rank that runs, in fixed order
  int in_vain = 0;                               // hand-overs since the last send or receive

  void pass_turn_to_next_rank_after(int rank) {
    for (int step = 1; step <= size; ++step) {
      turn = (rank + step) % size;
      if (!ended[static_cast<std::size_t>(turn)]) break;
    }
    changed.notify_all();
  }
  bool may_run(int rank) const { return !fixed_order || turn == rank; }
  int running_rank_count() const {
    return static_cast<int>(std::count(ended.begin(), ended.end(), false));
  }
};

struct PendingReceive {
  int peer = 0;
  Tag tag{};
  std::span<std::byte> bytes;
};

class Loopback final : public Transport {
 public:
  Loopback(LoopbackBus& hub, int rank) : hub_(hub), rank_(rank) {}

  int rank() const override { return rank_; }
  int size() const override { return hub_.size; }

  // The bus keeps a copy, like a message in flight.
  Status send(int peer, Tag tag, BytesView bytes) override {
    if (is_dead_) return tl::unexpected<Error>(used_after_error());
    SHW_CHECK(check_peer(*this, peer));
    std::lock_guard lock(hub_.guard);
    hub_.mail[{rank_, peer, tag}].emplace_back(bytes.begin(), bytes.end());
    hub_.in_vain = 0;
    hub_.changed.notify_all();
    return {};
  }

  Status receive(int peer, Tag tag, std::span<std::byte> bytes) override {
    if (is_dead_) return tl::unexpected<Error>(used_after_error());
    SHW_CHECK(check_peer(*this, peer));
    awaited_.push_back({peer, tag, bytes});
    return {};
  }

  Status wait(const WaitStep& step) override {
    if (is_dead_) return tl::unexpected<Error>(used_after_error());
    std::unique_lock lock(hub_.guard);
    const auto deadline = Clock::now() + step.within;
    if (auto error = wait_locked(lock, step, deadline)) {
      stop(*error);
      return tl::unexpected<Error>(std::move(*error));
    }
    return {};
  }

  Status poll(const WaitStep& step) override {
    if (is_dead_) return tl::unexpected<Error>(used_after_error());
    std::unique_lock lock(hub_.guard);
    if (hub_.fixed_order) {
      hub_.pass_turn_to_next_rank_after(rank_);
      hub_.changed.wait(lock, [&] { return hub_.may_run(rank_) || hub_.stopped; });
    }
    auto error = receive_messages(step);
    if (!error && hub_.stopped)
      error = decode_error_of_rank(hub_.stopped->first, hub_.stopped->second);
    if (!error) error = ended_peer_error(step);
    if (!error) return {};
    stop(*error);
    return tl::unexpected<Error>(std::move(*error));
  }

  bool is_open(const std::byte* received) const override {
    return std::any_of(awaited_.begin(), awaited_.end(),
                       [&](const PendingReceive& one) { return one.bytes.data() == received; });
  }

  void abort(const Error& why) override {
    std::lock_guard lock(hub_.guard);
    stop(why);
  }

  // Waits for the first turn of this rank.
  void begin() {
    std::unique_lock lock(hub_.guard);
    hub_.changed.wait(lock, [&] { return hub_.may_run(rank_) || hub_.stopped; });
  }

  void end(const Status& status) {
    std::lock_guard lock(hub_.guard);
    if (!status) stop(status.error());
    hub_.ended[static_cast<std::size_t>(rank_)] = true;
    if (hub_.fixed_order && hub_.turn == rank_) hub_.pass_turn_to_next_rank_after(rank_);
    hub_.in_vain = 0;
    hub_.changed.notify_all();
  }

 private:
  void stop(const Error& why) {
    is_dead_ = true;
    awaited_.clear();
    if (!hub_.stopped) hub_.stopped.emplace(rank_, encode_error(why));
    hub_.changed.notify_all();
  }

  std::optional<Error> wait_locked(std::unique_lock<std::mutex>& lock, const WaitStep& step,
                                   Clock::time_point deadline) {
    for (bool in_time = true;;) {
      if (auto error = receive_messages(step)) return error;
      if (awaited_.empty()) return std::nullopt;
      if (hub_.stopped) return decode_error_of_rank(hub_.stopped->first, hub_.stopped->second);
      if (auto error = ended_peer_error(step)) return error;
      const PendingReceive& first = awaited_.front();
      // With a fixed order also an error if all ranks had a turn and none sent anything.
      if (!in_time || (hub_.fixed_order && ++hub_.in_vain > hub_.running_rank_count()))
        return peer_timeout_error(step, first.peer, first.bytes.size(), true);
      if (hub_.fixed_order) {
        hub_.pass_turn_to_next_rank_after(rank_);
        in_time = hub_.changed.wait_until(lock, deadline,
                                          [&] { return hub_.may_run(rank_) || hub_.stopped; });
      } else {
        in_time = hub_.changed.wait_until(lock, deadline) == std::cv_status::no_timeout;
      }
    }
  }

  // The error for a receive from a rank that has ended.
  std::optional<Error> ended_peer_error(const WaitStep& step) const {
    for (const PendingReceive& one : awaited_) {
      if (hub_.ended[static_cast<std::size_t>(one.peer)])
        return peer_lost_error(step, one.peer, one.bytes.size());
    }
    return std::nullopt;
  }

  // Completes receives whose messages have arrived, in the order in which they were started.
  std::optional<Error> receive_messages(const WaitStep& step) {
    std::vector<PendingReceive> left;
    for (const PendingReceive& one : awaited_) {
      auto found = hub_.mail.find({one.peer, rank_, one.tag});
      if (found == hub_.mail.end() || found->second.empty()) {
        left.push_back(one);
        continue;
      }
      Bytes message = std::move(found->second.front());
      found->second.pop_front();
      hub_.in_vain = 0;
      if (message.size() != one.bytes.size())
        return wrong_size_error(step, one.peer, one.bytes.size(),
                                message.size() > one.bytes.size());
      std::copy(message.begin(), message.end(), one.bytes.begin());
    }
    awaited_ = std::move(left);
    return std::nullopt;
  }

  LoopbackBus& hub_;
  const int rank_;
  bool is_dead_ = false;
  std::vector<PendingReceive> awaited_;
};

}  // namespace

std::vector<Status> run_on_threads(int size, const LoopbackOptions& options,
                                   const std::function<Status(Transport&)>& work) {
  LoopbackBus hub(size, options.fixed_order);
  std::vector<Status> ended(static_cast<std::size_t>(size));
  std::vector<std::thread> threads;
  for (int rank = 0; rank < size; ++rank) {
    auto run = [&, rank] {
      Loopback transport(hub, rank);
      transport.begin();
      Status& status = ended[static_cast<std::size_t>(rank)];
      status = work(transport);
      transport.end(status);
    };
    if (start_thread(threads.emplace_back(), run)) continue;
    // Tells the running ranks that this rank has ended.
    threads.pop_back();
    Loopback transport(hub, rank);
    transport.begin();
    Status& status = ended[static_cast<std::size_t>(rank)];
    status = fail(ErrorKind::kIo, "the system refuses to start more threads");
    transport.end(status);
  }
  for (std::thread& thread : threads) thread.join();
  return ended;
}

}  // namespace shw
