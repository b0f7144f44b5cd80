// NCCL's functions as documented, with checks for violations of their rules.
#include <fcntl.h>
#include <unistd.h>

#include <climits>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <random>
#include <set>
#include <utility>

#include "communicator.h"
#include "control.h"

namespace shw::nccl_double {

struct Id {
  char internal[128];
};
// The fields of version 2.18, with which every later version begins.
struct Config {
  std::size_t size;
  unsigned magic, version;
  int blocking, cga_cluster_size, min_ctas, max_ctas;
  const char* net_name;
  int split_share;
};
// Numbers are never reused, so that a stale handle is always detected.
using Handle = struct Opaque*;

namespace {

constexpr char kIdMark[] = "double of libnccl ";
constexpr std::size_t kName = 32;  // hexadecimal digits after the magic

struct World {
  std::mutex guard;
  std::map<Handle, std::shared_ptr<Communicator>> alive;
  std::set<std::pair<std::string, int>> joined;
  std::uintptr_t handles = 0;
  std::vector<Fault> faults;
  NcclDoubleCounts counts = {};
  bool tolerates = false;
  std::string last;

  World() {
    if (const char* text = std::getenv("SHW_NCCL_DOUBLE_FAULT")) faults = parse_faults(text);
  }
  ~World() {
    if (alive.empty()) return;
    std::fprintf(stderr, "NCCL DOUBLE: %zu communicators were left behind\n", alive.size());
    _exit(98);
  }
};
World& world() {
  static World one;
  return one;
}
// Initialised with the library, so that it is destroyed after all that uses it.
const World& kBegun = world();

struct Pending {
  Handle handle;
  void* stream;
  Group group;
};
thread_local int depth = 0;
thread_local int group_error = kSuccess;
thread_local std::vector<Pending> pending;

int refuse(int code, const std::string& what) {
  violation(what);
  return code;
}

int wanted_failure(const char* call) {
  std::lock_guard lock(world().guard);
  for (const Fault& fault : world().faults) {
    if (fault.kind == call) return fault.code;
  }
  return kSuccess;
}

// One call on one communicator: it must exist, and no other thread may use it.
class Call {
 public:
  Call(Handle handle, const char* name) {
    {
      std::lock_guard lock(world().guard);
      auto found = world().alive.find(handle);
      if (found != world().alive.end()) comm_ = found->second;
    }
    if (!comm_) {
      violation(std::string(name) + " of a communicator that is not there, or is no more");
    } else if (comm_->is_in_call.exchange(true)) {
      violation(std::string(name) + " while another thread uses the communicator");
    }
  }
  ~Call() {
    if (comm_) comm_->is_in_call = false;
  }
  Communicator* operator->() const { return comm_.get(); }
  explicit operator bool() const { return comm_ != nullptr; }

 private:
  std::shared_ptr<Communicator> comm_;
};

void forget(Handle handle) {
  std::shared_ptr<Communicator> last;  // destroyed without the guard, which its thread may need
  std::lock_guard lock(world().guard);
  auto found = world().alive.find(handle);
  if (found == world().alive.end()) return;
  last = found->second;
  world().alive.erase(found);
  world().counts.alive = static_cast<long>(world().alive.size());
}

std::string wrong_config(const Config* config) {
  if (config == nullptr) return "a communicator that blocks: nothing of it could be aborted";
  if (config->magic != 0xcafebeef) return "a configuration without NCCL's magic number";
  if (config->size < sizeof(Config) || config->size > 4096)
    return "a configuration of " + std::to_string(config->size) + " bytes";
  if (config->version < 21800 || config->version > 30000)
    return "a configuration of version " + std::to_string(config->version);
  if (config->blocking != 0) return "a communicator that blocks: nothing of it could be aborted";
  for (int least : {config->cga_cluster_size, config->min_ctas, config->max_ctas}) {
    if (least != INT_MIN && (least < 0 || least > 64)) return "a configuration out of its range";
  }
  return {};
}

std::size_t bytes_of_type(int type) {
  constexpr std::size_t kBytes[] = {1, 1, 4, 4, 8, 8, 2, 4, 8, 2, 1, 1};
  return type >= 0 && type < 12 ? kBytes[type] : 0;
}

int add_move(Move move, Handle handle, void* stream, const char* name) {
  if (int code = wanted_failure(name); code != kSuccess) return code;
  Call comm(handle, name);
  if (!comm) return kInvalidArgument;
  const std::string call = name;
  move.bytes = move.count * bytes_of_type(move.type);
  if (bytes_of_type(move.type) == 0) return refuse(kInvalidArgument, call + " of no known type");
  if (move.peer < 0 || move.peer >= comm->size)
    return refuse(kInvalidArgument, call + " with rank " + std::to_string(move.peer));
  if (move.memory == nullptr && move.bytes > 0)
    return refuse(kInvalidArgument, call + " without memory");
  if (comm->stage >= Stage::kFinalizing)
    return refuse(kInvalidUsage, call + " after ncclCommFinalize");
  if (comm->state == kInProgress)
    return refuse(kInvalidUsage, call + " before ncclCommGetAsyncError said that all is done");
  if (comm->state != kSuccess)
    return refuse(kInvalidUsage, call + " after an error: only an abort is left");
  if (comm->stream != nullptr && comm->stream != stream)
    return refuse(kInvalidUsage, call + " on a second stream of one communicator");
  for (Pending& one : pending) {
    if (one.handle != handle) continue;
    if (one.stream != stream) return refuse(kInvalidUsage, call + " on two streams in one group");
    one.group.push_back(move);
    return kSuccess;
  }
  pending.push_back({handle, stream, {move}});
  return kSuccess;
}

int end_group() {
  const int error = std::exchange(group_error, kSuccess);
  std::vector<Pending> all = std::exchange(pending, {});
  if (error != kSuccess) return error;
  for (Pending& one : all) {
    Call comm(one.handle, "ncclGroupEnd");
    if (!comm) return kInvalidUsage;
    comm->post(std::move(one.group), one.stream);
  }
  return all.empty() ? kSuccess : kInProgress;
}

int move_in_group(const Move& move, Handle handle, void* stream, const char* name) {
  const int code = add_move(move, handle, stream, name);
  if (code != kSuccess && depth > 0) group_error = code;
  if (depth > 0 || code != kSuccess) return code;
  return end_group();  // outside of a group it forms its own group
}

}  // namespace

void violation(const std::string& what) {
  std::lock_guard lock(world().guard);
  ++world().counts.violations;
  world().last = what;
  if (world().tolerates) return;
  std::fprintf(stderr, "NCCL DOUBLE: VIOLATION: %s\n", what.c_str());
  std::fflush(stderr);
  std::abort();
}

void count_group() {
  std::lock_guard lock(world().guard);
  ++world().counts.groups;
}

}  // namespace shw::nccl_double

using namespace shw::nccl_double;

extern "C" {

void ncclDoubleCounts(NcclDoubleCounts* counts) {
  std::lock_guard lock(world().guard);
  *counts = world().counts;
}

int ncclDoubleStreamIdle(void* stream) {
  std::lock_guard lock(world().guard);
  for (auto& [handle, comm] : world().alive) {
    if (!comm->is_idle(stream)) return 0;
  }
  return 1;
}

void ncclDoubleFault(const char* fault) {
  std::lock_guard lock(world().guard);
  world().faults = parse_faults(fault);
}

void ncclDoubleTolerate(int tolerate) {
  std::lock_guard lock(world().guard);
  world().tolerates = tolerate != 0;
  world().counts.violations = 0;
  world().last.clear();
}

const char* ncclDoubleViolation() {
  return world().last.c_str();
}

int ncclGetVersion(int* version) {
  *version = 22809;
  return kSuccess;
}

int ncclGetUniqueId(Id* id) {
  if (int code = wanted_failure("ncclGetUniqueId"); code != kSuccess) return code;
  *id = {};
  std::random_device random;
  std::string name;
  while (name.size() < kName) name += "0123456789abcdef"[random() % 16];
  std::memcpy(id->internal, kIdMark, sizeof(kIdMark));
  std::memcpy(id->internal + sizeof(kIdMark), name.data(), name.size());
  return kSuccess;
}

int ncclCommInitRankConfig(Handle* made, int size, Id id, int rank, Config* config) {
  *made = nullptr;
  if (int code = wanted_failure("ncclCommInitRankConfig"); code != kSuccess) return code;
  if (depth > 0) return refuse(kInvalidUsage, "a communicator that is begun inside a group");
  if (std::string wrong = wrong_config(config); !wrong.empty())
    return refuse(kInvalidArgument, wrong);
  if (size < 1 || rank < 0 || rank >= size)
    return refuse(kInvalidArgument, "rank " + std::to_string(rank) + " of " + std::to_string(size));
  if (std::memcmp(id.internal, kIdMark, sizeof(kIdMark)) != 0)
    return refuse(kInvalidArgument, "an id that ncclGetUniqueId never gave");
  const std::string name(id.internal + sizeof(kIdMark), kName);
  std::vector<Fault> faults;
  bool is_first = false;
  {
    std::lock_guard lock(world().guard);
    faults = world().faults;
    is_first = world().joined.emplace(name, rank).second;
  }
  if (!is_first) return refuse(kInvalidUsage, "a unique id that is used a second time");
  auto comm = std::make_shared<Communicator>(name, rank, size, std::move(faults));
  std::lock_guard lock(world().guard);
  *made = reinterpret_cast<Handle>(0x1000 + 16 * ++world().handles);
  world().alive[*made] = std::move(comm);
  ++world().counts.begun;
  world().counts.alive = static_cast<long>(world().alive.size());
  return kInProgress;
}

int ncclCommGetAsyncError(Handle handle, int* state) {
  if (int code = wanted_failure("ncclCommGetAsyncError"); code != kSuccess) return code;
  Call comm(handle, "ncclCommGetAsyncError");
  if (!comm) return kInvalidArgument;
  *state = comm->state;
  return kSuccess;
}

int ncclCommFinalize(Handle handle) {
  if (int code = wanted_failure("ncclCommFinalize"); code != kSuccess) return code;
  Call comm(handle, "ncclCommFinalize");
  if (!comm) return kInvalidArgument;
  if (comm->stage >= Stage::kFinalizing)
    return refuse(kInvalidUsage, "ncclCommFinalize a second time");
  if (comm->state != kSuccess)
    return refuse(kInvalidUsage, "ncclCommFinalize of a communicator that is not in order");
  comm->finalize();
  return kInProgress;
}

int ncclCommDestroy(Handle handle) {
  {
    Call comm(handle, "ncclCommDestroy");
    if (!comm) return kInvalidArgument;
    if (comm->stage != Stage::kFinalized || comm->state != kSuccess)
      return refuse(kInvalidUsage, "ncclCommDestroy before ncclCommFinalize had ended");
  }
  forget(handle);
  return kSuccess;
}

int ncclCommAbort(Handle handle) {
  {
    Call comm(handle, "ncclCommAbort");
    if (!comm) return kInvalidArgument;
  }
  forget(handle);
  return kSuccess;
}

const char* ncclGetErrorString(int code) {
  constexpr const char* kTexts[] = {"no error",
                                    "unhandled cuda error",
                                    "unhandled system error",
                                    "internal error",
                                    "invalid argument",
                                    "invalid usage",
                                    "remote process exited or there was a network error",
                                    "NCCL operation in progress"};
  return code >= 0 && code < 8 ? kTexts[code] : "unknown result code";
}

const char* ncclGetLastError(Handle handle) {
  thread_local std::string text;
  text.clear();
  std::lock_guard lock(world().guard);
  auto found = world().alive.find(handle);
  if (found != world().alive.end()) text = found->second->last_error();
  return text.c_str();
}

int ncclGroupStart() {
  if (int code = wanted_failure("ncclGroupStart"); code != kSuccess) return code;
  ++depth;
  return kSuccess;
}

int ncclGroupEnd() {
  if (depth == 0) return refuse(kInvalidUsage, "ncclGroupEnd without ncclGroupStart");
  if (--depth > 0) return kSuccess;
  if (int code = wanted_failure("ncclGroupEnd"); code != kSuccess) group_error = code;
  return end_group();
}

int ncclSend(const void* memory, std::size_t count, int type, int peer, Handle handle,
             void* stream) {
  Move move;
  move.memory = static_cast<char*>(const_cast<void*>(memory));
  move.count = count;
  move.type = type;
  move.peer = peer;
  return move_in_group(move, handle, stream, "ncclSend");
}

int ncclRecv(void* memory, std::size_t count, int type, int peer, Handle handle, void* stream) {
  Move move;
  move.is_receive = true;
  move.memory = static_cast<char*>(memory);
  move.count = count;
  move.type = type;
  move.peer = peer;
  return move_in_group(move, handle, stream, "ncclRecv");
}
}
