#include "gpu/nccl_library.h"

#include <doctest/doctest.h>

#include <string>

#include "gpu/cuda_executor.h"
#include "gpu/nccl_comm.h"
#include "gpu/nccl_stage.h"
#include "on_double.h"

using namespace shw;

namespace {

bool says_of(const Error& error, const std::string& part) {
  return error.message.find(part) != std::string::npos;
}

}  // namespace

TEST_CASE("A library that is not there, or is not NCCL, is said in words") {
  auto missing = load_nccl("/nowhere/libnccl.so.2");
  REQUIRE_FALSE(missing.has_value());
  CHECK(missing.error().kind == ErrorKind::kUnsupported);
  CHECK(says_of(missing.error(), "NCCL was not found: /nowhere/libnccl.so.2"));
  CHECK_FALSE(missing.error().advice.empty());
  auto another = load_nccl("libm.so.6");
  REQUIRE_FALSE(another.has_value());
  CHECK(says_of(another.error(), "has no ncclGetVersion"));
}

TEST_CASE("Versions are reported as NCCL tells them") {
  CHECK(nccl_version_text(22809) == "2.28.9");
  CHECK(nccl_version_text(21805) == "2.18.5");
  CHECK(test::nccl_double().nccl.version == 22809);
}

// NCCL's own library, if this machine has it: without a GPU it must refuse and not crash.
TEST_CASE("NCCL itself says in words that there is no GPU") {
  const Gpus gpus = cuda_gpus();
  if (gpus.none.empty()) return;  // tests/gpu/run.sh tests the rest
  auto stage = cuda_staging_buffer(0);
  REQUIRE_FALSE(stage.has_value());
  CHECK(stage.error().message == gpus.none);
  auto nccl = load_nccl();
  if (!nccl) {
    CHECK(says_of(nccl.error(), "NCCL was not found: "));
    return;
  }
  CHECK(nccl->version >= kMinNccl);
  NcclComm comm(*nccl);
  Status begun = comm.begin({}, 0, 1);
  REQUIRE_FALSE(begun.has_value());
  CHECK(says_of(begun.error(), "NCCL: ncclCommInitRankConfig: "));
  MESSAGE(nccl_version_text(nccl->version), ": ", begun.error().message);
}
