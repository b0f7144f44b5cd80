// Loads libnccl.so.2 at run time. The functions are declared here and not taken from nccl.h, so
// that a build needs neither header nor library and every build can use NCCL if present. These
// thirteen functions and the configuration fields of 2.18 have kept their ABI (the library reads
// `size` bytes and uses its defaults for fields newer than `version`); tests/gpu/nccl/abi_test.cpp
// checks them against nccl.h if that is installed.
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

// Least supported version: the first with the configuration below.
inline constexpr int kMinNccl = 21800;

struct NcclConfig {
  std::size_t size = sizeof(NcclConfig);
  unsigned magic = 0xcafebeef;
  unsigned version = kMinNccl;
  int blocking = INT_MIN;  // INT_MIN, nullptr: the library's default
  int cga_cluster_size = INT_MIN;
  int min_ctas = INT_MIN;
  int max_ctas = INT_MIN;
  const char* net_name = nullptr;
  int split_share = INT_MIN;
};

struct NcclCommunicator;   // target of ncclComm_t
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

// `file`: path of the library; empty: search the system and $CUDA_HOME. kUnsupported if missing or
// too old. The library is never unloaded, because it has threads of its own.
Result<NcclLibrary> load_nccl(const std::string& file = {});

std::string nccl_version_text(int version);  // "2.28.9"

}  // namespace shw
