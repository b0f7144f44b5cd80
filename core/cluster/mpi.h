// A transport between processes started by mpirun or srun. The only header of cluster that is
// implemented with MPI: in mpi.cpp, or in absent.cpp for builds without MPI.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "core/cluster/launch.h"
#include "core/cluster/transport.h"

namespace shw {

struct MpiOptions {
  // Larger messages are sent in pieces of this size, because MPI counts bytes in an int.
  std::size_t piece_bytes = std::size_t{1} << 30;
  // If set, all waits end: a launcher that ends all processes because one was killed leaves each a
  // second or two to report what it left on disk. May be null.
  const std::atomic<bool>* stopped = nullptr;
};

// This process as one MPI process. One session per process; only one thread may use the session and
// its transports.
class MpiSession {
 public:
  virtual ~MpiSession() = default;
  virtual int rank() const = 0;
  virtual int size() const = 0;
  // Collective: all processes call it equally often. Valid until the session ends.
  virtual Result<std::unique_ptr<Transport>> transport(const MpiOptions& options) = 0;
  // Collective, before end(): sends the report of each process to rank 0, which calls `say` with
  // all reports by rank (nullopt for a rank that is silent for a few seconds), then confirms to the
  // other ranks. Returns false if no confirmation came: this process must then print its report.
  using PrintReports = std::function<void(const std::vector<std::optional<Bytes>>&)>;
  virtual bool part(Bytes own, bool has_report, const PrintReports& say) = 0;
  // The last call, after success or failure. Waits a few seconds for the other processes: mpirun
  // ends all of them as soon as one has left, and some may still print a report. Does not wait if
  // the launcher itself is ending the processes (`is_stopped`).
  virtual void end(bool is_stopped) = 0;
};

bool has_mpi();  // false in a build without MPI
// `launch` holds this process's rank and the size. kUnsupported in a build without MPI.
Result<std::unique_ptr<MpiSession>> begin_mpi(const Launch& launch);

}  // namespace shw
