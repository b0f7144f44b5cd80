// libnccl.so.2, found when the program runs. What we call is declared here by ourselves and not
// taken from nccl.h: a build needs neither header nor library, so that every build can use NCCL
// where it is met. These thirteen functions and the fields of 2.18's configuration have kept their
// form since (a library reads no further than `size`, and takes its own defaults for what is newer
// than `version`); tests/gpu/nccl/abi_test.cpp holds them against nccl.h where that is installed.
#pragma once

#include <climits>
#include <cstddef>
#include <string>

#include "core/base/result.h"

namespace shw {

enum class NcclCode : int {
  kSuccess = 0,
  kUnhandledCudaError = 1,
  kSystemError = 2,
  kInternalError = 3,
  kInvalidArgument = 4,
  kInvalidUsage = 5,
  kRemoteError = 6,
  kInProgress = 7,
};

struct NcclUniqueId {
  char internal[128];
};

// The least that we take: the first with configurations as below.
inline constexpr int kLeastNccl = 21800;

struct NcclConfig {
  std::size_t size = sizeof(NcclConfig);
  unsigned magic = 0xcafebeef;
  unsigned version = kLeastNccl;
  int blocking = INT_MIN;  // INT_MIN, nullptr: what the library thinks best
  int cga_cluster_size = INT_MIN;
  int min_ctas = INT_MIN;
  int max_ctas = INT_MIN;
  const char* net_name = nullptr;
  int split_share = INT_MIN;
};

struct NcclCommunicator;   // what ncclComm_t points to
using NcclStream = void*;  // cudaStream_t
inline constexpr int kNcclUint8 = 1;

struct NcclLibrary {
  int version = 0;  // 22809 is 2.28.9
  NcclCode (*get_version)(int*) = nullptr;
  NcclCode (*get_unique_id)(NcclUniqueId*) = nullptr;
  NcclCode (*comm_init_rank_config)(NcclCommunicator**, int ranks, NcclUniqueId, int rank,
                                    NcclConfig*) = nullptr;
  NcclCode (*comm_get_async_error)(NcclCommunicator*, NcclCode*) = nullptr;
  NcclCode (*comm_finalize)(NcclCommunicator*) = nullptr;
  NcclCode (*comm_destroy)(NcclCommunicator*) = nullptr;
  NcclCode (*comm_abort)(NcclCommunicator*) = nullptr;
  const char* (*get_error_string)(NcclCode) = nullptr;
  const char* (*get_last_error)(NcclCommunicator*) = nullptr;
  NcclCode (*group_start)() = nullptr;
  NcclCode (*group_end)() = nullptr;
  NcclCode (*send)(const void*, std::size_t count, int type, int peer, NcclCommunicator*,
                   NcclStream) = nullptr;
  NcclCode (*receive)(void*, std::size_t count, int type, int peer, NcclCommunicator*,
                      NcclStream) = nullptr;
};

// `file`: where it is; empty: where the system finds it, or in $CUDA_HOME. kUnsupported, in words,
// where there is none, or one that is too old. It stays in the process: it has threads of its own.
Result<NcclLibrary> load_nccl(const std::string& file = {});

std::string nccl_version_text(int version);  // "2.28.9"

}  // namespace shw
