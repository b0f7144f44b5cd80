// Workers that are processes, begun by mpirun or srun. The only header of this room behind which
// MPI is: mpi.cpp, and absent.cpp where it is not to be had.
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
  // MPI counts in an int: larger messages are sent in pieces of so many bytes.
  std::size_t piece_bytes = std::size_t{1} << 30;
  // Where it is set nobody is waited for any more: a launcher that ends all of them, since one was
  // killed, leaves each a second or two to say what is left. May be null.
  const std::atomic<bool>* stopped = nullptr;
};

// This process as one of several: one session in a process, used by one thread, which is also the
// one that uses its transports.
class MpiSession {
 public:
  virtual ~MpiSession() = default;
  virtual int rank() const = 0;
  virtual int size() const = 0;
  // All processes ask for it, each as often as the others. May be used until the session ends.
  virtual Result<std::unique_ptr<Transport>> transport(const MpiOptions& options) = 0;
  // Before the end: what each has to say comes to the first one, who calls `say` with it, by rank;
  // nothing of one that is not heard within a few seconds. Then those that said something hear that
  // it was heard. False where one did not: it has to speak for itself.
  using Say = std::function<void(const std::vector<std::optional<Bytes>>&)>;
  virtual bool part(Bytes own, bool has_words, const Say& say) = 0;
  // Last of all, whatever became of the run. Waits a few seconds for the others to come here:
  // mpirun ends all of them as soon as one has left, and some may still have something to say.
  // Nothing to wait for is left where the launcher itself is ending them (`is_stopped`).
  virtual void end(bool is_stopped) = 0;
};

bool has_mpi();  // in this build
// `launch` says who this process is. kUnsupported in a build without MPI.
Result<std::unique_ptr<MpiSession>> begin_mpi(const Launch& launch);

}  // namespace shw
