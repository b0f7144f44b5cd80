#include "core/base/team.h"

#include <fmt/core.h>

#include <algorithm>
#include <chrono>
#include <future>
#include <optional>
#include <utility>

#include "core/base/encoder.h"
#include "core/base/hash.h"
#include "core/base/parallel.h"
#include "core/base/parallel_batches.h"
#include "core/base/stop_requests.h"
#include "core/base/threads.h"
#include "core/base/words.h"
#include "core/base/worker_error.h"

namespace shw {
namespace {

// Bytes of work per process and round. A round takes seconds, so its messages cost nothing.
constexpr std::uint64_t kRoundBytes = std::uint64_t{1} << 30;
constexpr std::size_t kMaxWorkUnitsPerRound = 1 << 14;

// Heartbeat interval: short enough that working processes are not taken for dead, and cheap.
constexpr std::chrono::seconds kHeartbeatInterval(2);
constexpr std::chrono::seconds kPeerSilenceTimeout(120);

// When each of the other processes last made progress.
class ProgressTracker {
 public:
  explicit ProgressTracker(std::size_t members) : seen_(members) {}

  // Text about the last heartbeats, added to the error for a process that stopped answering.
  std::string heartbeat_text() const {
    constexpr std::size_t kMaxTold = 8;
    std::string gathered;
    for (std::size_t i = 0; i < std::min(seen_.size(), kMaxTold); ++i) {
      if (!seen_[i].moved) return {};
      gathered += fmt::format("{}worker {} had moved {}", i == 0 ? "" : ", ", i,
                              human_bytes(*seen_[i].moved));
    }
    return gathered + (seen_.size() > kMaxTold ? ", and so on" : "");
  }

  Status note(std::size_t member, bool is_done, std::uint64_t moved, const std::string& step) {
    const auto now = std::chrono::steady_clock::now();
    Seen& seen = seen_[member];
    if (is_done || !seen.moved || *seen.moved != moved) seen = {moved, now};
    if (now - seen.at < kPeerSilenceTimeout) return {};
    return fail(ErrorKind::kIo, fmt::format("in `{}` worker {} has moved no byte for {} s: its "
                                            "disk may hang",
                                            step, member, kPeerSilenceTimeout.count()));
  }

 private:
  struct Seen {
    std::optional<std::uint64_t> moved;
    std::chrono::steady_clock::time_point at{};
  };
  std::vector<Seen> seen_;
};

// Heartbeat: done or not, progress counter, news, and the error that ended the task.
Bytes encode_heartbeat(const std::optional<Status>& done, const HeartbeatTask& task) {
  auto add = [](Encoder& payload, const Bytes& bytes) {
    payload.add(std::string_view(reinterpret_cast<const char*>(bytes.data()), bytes.size()));
  };
  Encoder payload;
  payload.add(std::uint64_t{done.has_value()});
  payload.add(task.progress == nullptr ? 0 : task.progress->done.load());
  add(payload, task.news ? task.news() : Bytes{});
  add(payload, done && !*done ? encode_error(done->error()) : Bytes{});
  return payload.take();
}

struct DecodedHeartbeats {
  bool all_done = true;               // every process has finished its task
  std::optional<Error> stopped = {};  // the first error of any process
  Status news_receive_status = {};
};
Result<DecodedHeartbeats> decode_heartbeats(const std::vector<Bytes>& gathered,
                                            const HeartbeatTask& task, ProgressTracker& movement) {
  DecodedHeartbeats decoded;
  for (std::size_t member = 0; member < gathered.size(); ++member) {
    Decoder payload(gathered[member]);
    SHW_TRY(std::uint64_t is_done, payload.number());
    SHW_TRY(std::uint64_t moved, payload.number());
    SHW_TRY(std::string news, payload.text());
    SHW_TRY(std::string error, payload.text());
    decoded.all_done = decoded.all_done && is_done != 0;
    if (!error.empty() && !decoded.stopped)
      decoded.stopped = decode_error_of_rank(static_cast<int>(member),
                                             std::as_bytes(std::span(std::as_const(error))));
    if (task.progress != nullptr) SHW_CHECK(movement.note(member, is_done != 0, moved, task.step));
    if (task.receive && !news.empty() && decoded.news_receive_status)
      decoded.news_receive_status =
          task.receive(member, std::as_bytes(std::span(std::as_const(news))));
  }
  return decoded;
}

// Ends this process's task because another process has stopped. A Ctrl-C during the wait sets the
// same flag and must survive when the flag is cleared.
void cancel_and_wait(std::future<Status>& work, Progress* progress) {
  if (progress == nullptr || is_cancelled(progress)) return work.wait();
  const unsigned before = stop_requests.load();
  progress->cancel();
  work.wait();
  progress->cancelled = false;
  if (stop_requests.load() != before) progress->cancel();
}

// Returns the error of a task that is stopped because of `why`; the task's own error takes
// precedence.
Status stop_task_and_get_error(std::future<Status>& work, Progress* progress, const Error& why) {
  const bool was_cancelled = is_cancelled(progress);
  cancel_and_wait(work, progress);
  Status done = work.get();
  if (!done && (was_cancelled || done.error().kind != ErrorKind::kCancelled)) return done;
  return tl::unexpected<Error>(why);
}

Status add_last_heartbeat_to_error(Error error, const ProgressTracker& movement) {
  // If a process reported why it stopped, the progress of the others explains nothing.
  const bool has_reason =
      error.kind == ErrorKind::kCancelled || error.message.find(" stopped: ") != std::string::npos;
  if (const std::string heartbeat_text = movement.heartbeat_text();
      !has_reason && !heartbeat_text.empty())
    error.message += " (when last heard, " + heartbeat_text + ")";
  return tl::unexpected<Error>(std::move(error));
}

// If one process fails, all stop their work and return together: a process that then deletes the
// output knows that no other one still writes into it.
Status send_heartbeats_until_done(Team& team, const HeartbeatTask& task,
                                  std::future<Status>& work) {
  ProgressTracker movement(team.size());
  std::optional<Status> own;
  while (true) {
    if (!own && work.wait_for(kHeartbeatInterval) == std::future_status::ready) own = work.get();
    // A launcher that stops this process waits for no other and may kill it soon.
    if (own && !*own && is_cancelled(task.progress)) return *own;
    auto gathered = team.allgather(encode_heartbeat(own, task), task.step);
    // The others may have left already, once they received this process's error.
    if (!gathered && own && !*own) return *own;
    if (!gathered) return add_last_heartbeat_to_error(std::move(gathered).error(), movement);
    SHW_TRY(DecodedHeartbeats decoded, decode_heartbeats(*gathered, task, movement));
    const Error* why = decoded.stopped ? &*decoded.stopped : nullptr;
    if (!decoded.news_receive_status) why = &decoded.news_receive_status.error();
    if (why != nullptr && !own)
      own = stop_task_and_get_error(work, task.progress, *why);
    else if (why != nullptr && *own && (decoded.all_done || !decoded.news_receive_status))
      own = tl::unexpected<Error>(*why);
    if (decoded.all_done) return *own;
  }
}

// Runs as many items at once as the budget allows, from `first` on; batches if there is no budget.
Status parallel_for_in_budget(const MemoryBudget& held, std::span<const std::uint64_t> costs,
                              std::size_t first, const std::function<Status(std::size_t)>& work) {
  if (held.bytes.empty()) return parallel_for_batched(costs, work);
  return parallel_for_with_memory_budget(held.most, held.bytes.subspan(first, costs.size()), work);
}

// Returns the end of the round that begins at `first`.
std::size_t find_round_end(std::span<const std::uint64_t> costs, std::size_t first,
                           std::size_t members) {
  const std::uint64_t most = kRoundBytes * members;
  std::uint64_t bytes = 0;
  std::size_t end = first;
  while (end < costs.size() && end - first < kMaxWorkUnitsPerRound * members &&
         (end == first || costs[end] <= most - bytes)) {
    bytes += std::min(costs[end++], most - bytes);
  }
  return end;
}

Result<Bytes> map_own_range(const ScatterMapTask& work, std::size_t first, IndexRange own,
                            const std::string& agreed) {
  std::vector<Bytes> found(own.last - own.first);
  const auto costs = work.costs.subspan(first + own.first, found.size());
  SHW_CHECK(
      parallel_for_in_budget(work.budget, costs, first + own.first, [&](std::size_t i) -> Status {
        SHW_TRY(found[i], work.find(first + own.first + i));
        return {};
      }));
  Encoder message;
  message.add(agreed);
  for (const Bytes& one : found)
    message.add(std::string_view(reinterpret_cast<const char*>(one.data()), one.size()));
  return message.take();
}

Status receive_results(const ScatterMapTask& work, std::size_t first, IndexRange share,
                       std::size_t member, const std::string& agreed, BytesView message) {
  Decoder payload(message);
  SHW_TRY(std::string theirs, payload.text());
  if (theirs != agreed) {
    return fail(ErrorKind::kIo,
                fmt::format("in `{}` worker {} looks at other things: not all see the same "
                            "checkpoint, or were asked the same",
                            work.step, member));
  }
  for (std::size_t i = share.first; i < share.last; ++i) {
    SHW_TRY(std::string found, payload.text());
    SHW_CHECK(work.receive(first + i, std::as_bytes(std::span(found))));
  }
  return {};
}

Status run_round(Team& team, const ScatterMapTask& work, std::size_t first, std::size_t end,
                 const std::string& agreed) {
  auto shares = partition_by_cost(work.costs.subspan(first, end - first), team.size());
  Bytes own;
  HeartbeatTask task{work.step, {}, work.progress};
  task.work = [&]() -> Status {
    SHW_TRY(own, map_own_range(work, first, shares[team.rank()], agreed));
    return {};
  };
  SHW_CHECK(run_with_heartbeat(team, task));
  SHW_TRY(auto gathered, team.allgather(std::move(own), work.step));
  for (std::size_t member = 0; member < team.size(); ++member)
    SHW_CHECK(receive_results(work, first, shares[member], member, agreed, gathered[member]));
  return {};
}

}  // namespace

Result<TeamTraffic> sum_traffic_of_team(Team& team) {
  TeamTraffic traffic = team.traffic();
  Encoder own;
  own.add(traffic.bytes);
  SHW_TRY(auto gathered, team.allgather(own.take(), "count what was sent"));
  traffic.bytes = 0;
  for (const Bytes& message : gathered) {
    Decoder payload(message);
    SHW_TRY(const std::uint64_t bytes, payload.number());
    traffic.bytes += bytes;
  }
  return traffic;
}

Result<std::vector<std::uint32_t>> gather_machine_of_each_rank(Team& team) {
  const std::string own = team.machine();
  const BytesView bytes = std::as_bytes(std::span(own));
  SHW_TRY(auto gathered, team.allgather(Bytes(bytes.begin(), bytes.end()), "machines"));
  std::vector<std::uint32_t> machines;
  for (const Bytes& one : gathered)
    machines.push_back(static_cast<std::uint32_t>(std::find(gathered.begin(), gathered.end(), one) -
                                                  gathered.begin()));
  return machines;
}

Status barrier(Team& team, const std::string& step) {
  SHW_TRY([[maybe_unused]] auto gathered, team.allgather({}, step));
  return {};
}

Status run_with_heartbeat(Team& team, const HeartbeatTask& task) {
  auto work = run_on_own_thread(task.work);
  Status done = send_heartbeats_until_done(team, task, work);
  if (done) return done;
  team.stop(done.error());
  if (work.valid()) cancel_and_wait(work, task.progress);
  return done;
}

std::vector<IndexRange> partition_by_cost(std::span<const std::uint64_t> costs,
                                          std::size_t members) {
  double all = 0;
  for (std::uint64_t cost : costs) all += static_cast<double>(cost) + 1;
  std::vector<IndexRange> shares(members);
  double task = 0;
  std::size_t at = 0;
  for (std::size_t member = 0; member < members; ++member) {
    const double until = all * static_cast<double>(member + 1) / static_cast<double>(members);
    shares[member].first = at;
    // An item belongs to the process whose range contains the middle of the item's cost.
    while (at < costs.size() &&
           (member + 1 == members || task + (static_cast<double>(costs[at]) + 1) / 2 < until))
      task += static_cast<double>(costs[at++]) + 1;
    shares[member].last = at;
  }
  return shares;
}

Result<std::vector<std::string>> map_across_ranks(Team* team, const MapTask& work) {
  std::vector<std::string> found(work.costs.size());
  if (team == nullptr) {
    SHW_CHECK(parallel_for_in_budget(work.budget, work.costs, 0, [&](std::size_t i) -> Status {
      if (is_cancelled(work.progress)) return cancelled_error();
      SHW_TRY(found[i], work.find(i));
      return {};
    }));
    return found;
  }
  ScatterMapTask task{work.step, work.costs, {}, {}, work.progress, work.budget};
  task.find = [&](std::size_t i) -> Result<Bytes> {
    if (is_cancelled(work.progress)) return cancelled_error();
    SHW_TRY(std::string heartbeat_text, work.find(i));
    auto bytes = std::as_bytes(std::span(heartbeat_text));
    return Bytes(bytes.begin(), bytes.end());
  };
  task.receive = [&](std::size_t i, BytesView heartbeat_text) -> Status {
    found[i].assign(reinterpret_cast<const char*>(heartbeat_text.data()), heartbeat_text.size());
    return {};
  };
  SHW_CHECK(scatter_map_allgather(*team, task));
  return found;
}

Result<Bytes> run_on_rank0_and_broadcast(Team* team, const std::string& step,
                                         const std::function<Result<Bytes>()>& work,
                                         Progress* progress) {
  if (team == nullptr) return work();
  Bytes found;
  HeartbeatTask task{step, {}, progress};
  task.work = [&]() -> Status {
    if (team->rank() != 0) return {};
    SHW_TRY(found, work());
    return {};
  };
  SHW_CHECK(run_with_heartbeat(*team, task));
  SHW_TRY(auto gathered, team->allgather(std::move(found), step));
  return std::move(gathered.front());
}

Status scatter_map_allgather(Team& team, const ScatterMapTask& work) {
  const std::string agreed = to_hex(hash_of(std::as_bytes(work.costs)));
  std::size_t first = 0;
  do {
    std::size_t end = find_round_end(work.costs, first, team.size());
    if (Status done = run_round(team, work, first, end, agreed); !done) {
      team.stop(done.error());
      return done;
    }
    first = end;
  } while (first < work.costs.size());
  return {};
}

}  // namespace shw
