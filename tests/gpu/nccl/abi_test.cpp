// Declarations of gpu/nccl_library.h, compared with NCCL's own header if it is installed.
#include "gpu/nccl_library.h"

#include <doctest/doctest.h>

#if __has_include(<nccl.h>) && __has_include(<cuda_runtime.h>)
#include <nccl.h>

using namespace shw;

static_assert(sizeof(NcclUniqueId) == sizeof(ncclUniqueId));
static_assert(offsetof(NcclConfig, size) == offsetof(ncclConfig_t, size));
static_assert(offsetof(NcclConfig, magic) == offsetof(ncclConfig_t, magic));
static_assert(offsetof(NcclConfig, version) == offsetof(ncclConfig_t, version));
static_assert(offsetof(NcclConfig, blocking) == offsetof(ncclConfig_t, blocking));
static_assert(offsetof(NcclConfig, cga_cluster_size) == offsetof(ncclConfig_t, cgaClusterSize));
static_assert(offsetof(NcclConfig, min_ctas) == offsetof(ncclConfig_t, minCTAs));
static_assert(offsetof(NcclConfig, max_ctas) == offsetof(ncclConfig_t, maxCTAs));
static_assert(offsetof(NcclConfig, net_name) == offsetof(ncclConfig_t, netName));
static_assert(offsetof(NcclConfig, split_share) == offsetof(ncclConfig_t, splitShare));
static_assert(sizeof(NcclConfig) <= sizeof(ncclConfig_t));
static_assert(static_cast<int>(NcclCode::kInvalidArgument) == ncclInvalidArgument);
static_assert(static_cast<int>(NcclCode::kRemoteError) == ncclRemoteError);
static_assert(static_cast<int>(NcclCode::kInProgress) == ncclInProgress);
static_assert(kNcclUint8 == ncclUint8);
static_assert(sizeof(NcclStream) == sizeof(cudaStream_t));
static_assert(kMinNccl == NCCL_VERSION(2, 18, 0));

TEST_CASE("A configuration begins as that of NCCL's header does") {
  const ncclConfig_t theirs = NCCL_CONFIG_INITIALIZER;
  const NcclConfig ours;
  CHECK(ours.magic == theirs.magic);
  CHECK(ours.blocking == theirs.blocking);
  CHECK(ours.max_ctas == theirs.maxCTAs);
  CHECK(ours.net_name == theirs.netName);
  CHECK(ours.split_share == theirs.splitShare);
}
#endif
