// Processes that run the same command on the same checkpoint together: expensive work is
// partitioned among them and every process receives all results, so that all take the same
// decisions. The transport is in core/cluster.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "core/base/bytes.h"
#include "core/base/progress.h"
#include "core/base/result.h"

namespace shw {

// How the messages of Team::exchange() travelled, and their number of bytes.
struct TeamTraffic {
  std::string by = {};   // "mpi" or "nccl"; empty if not reported
  std::string why = {};  // why this transport was chosen
  std::uint64_t bytes = 0;
};

class Team {
 public:
  virtual ~Team() = default;
  virtual std::size_t rank() const = 0;
  virtual std::size_t size() const = 0;
  // Name of this machine: processes with equal names share a page cache and a file system.
  virtual std::string machine() const = 0;
  // Sends `own` to all processes and returns the messages of all, by rank, equal on every process.
  // Blocks until all have sent; an error if a process is silent for too long.
  virtual Result<std::vector<Bytes>> allgather(Bytes own, const std::string& step) = 0;
  // Sends to_each[r] to rank r; returns the received messages by rank. A rank's message to itself
  // is returned too.
  virtual Result<std::vector<Bytes>> exchange(std::vector<Bytes> to_each,
                                              const std::string& step) = 0;
  // Notifies the other processes that this one stops, with the reason.
  virtual void stop(const Error& why) = 0;
  // Traffic of this process only.
  virtual TeamTraffic traffic() const { return {}; }
};

// Traffic of the team, with the bytes of all processes added up.
Result<TeamTraffic> sum_traffic_of_team(Team& team);
// For each rank, the lowest rank on its machine.
Result<std::vector<std::uint32_t>> gather_machine_of_each_rank(Team& team);

// Blocks until all processes have called it.
Status barrier(Team& team, const std::string& step);

// A task of one process that may take longer than the timeout of the other processes.
struct HeartbeatTask {
  std::string step;
  std::function<Status()> work;  // runs on a thread of its own
  // Shows that the task advances; null: not watched. It is cancelled when another process stops.
  Progress* progress = nullptr;
  // News to send with each heartbeat, and the handler of other processes' news. Both may be empty.
  std::function<Bytes()> news = {};
  std::function<Status(std::size_t member, BytesView news)> receive = {};
};
// Runs the task and sends heartbeats until all processes are done. A process that works without any
// progress for two minutes is an error that names its rank.
Status run_with_heartbeat(Team& team, const HeartbeatTask& task);

// The half-open range [first, last) of item indices.
struct IndexRange {
  std::size_t first = 0, last = 0;
};
// Splits items into one contiguous range per process, of about equal cost.
std::vector<IndexRange> partition_by_cost(std::span<const std::uint64_t> costs,
                                          std::size_t members);

// Memory held while items are processed: bytes per item, and the limit `most` for all items in
// flight in one process. Empty `bytes`: not limited.
struct MemoryBudget {
  std::span<const std::uint64_t> bytes = {};
  std::uint64_t most = UINT64_MAX;
};

struct ScatterMapTask {
  std::string step;                      // name of the step in timeout errors
  std::span<const std::uint64_t> costs;  // bytes per item; at most 256 MiB each work best
  // Computes the result of one item; called from several threads. An error ends the work of all.
  std::function<Result<Bytes>(std::size_t thing)> find;
  // Called with every result, in item order, on every process.
  std::function<Status(std::size_t thing, BytesView found)> receive;
  Progress* progress = nullptr;  // may be null
  MemoryBudget budget = {};
};
// Computes each item in one process, in rounds, so that a hung process is noticed.
Status scatter_map_allgather(Team& team, const ScatterMapTask& work);

// Computes one text per item in parallel; the processes of a team partition the items and all
// receive all results. `team` and `progress` may be null.
struct MapTask {
  std::string step;
  std::span<const std::uint64_t> costs;  // bytes per item, as in ScatterMapTask
  std::function<Result<std::string>(std::size_t thing)> find;
  Progress* progress = nullptr;
  MemoryBudget budget = {};
};
Result<std::vector<std::string>> map_across_ranks(Team* team, const MapTask& work);

// Runs `work` on rank 0 only and sends the result to all processes. Without a team it runs here.
// `progress` shows that the work advances and may be null.
Result<Bytes> run_on_rank0_and_broadcast(Team* team, const std::string& step,
                                         const std::function<Result<Bytes>()>& work,
                                         Progress* progress = nullptr);

}  // namespace shw
