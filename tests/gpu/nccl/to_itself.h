// A communicator of one rank that sends bytes to itself through NCCL: the smallest transfer. Used
// with the test double and on a GPU (tests/gpu/device/nccl.cpp).
#pragma once

#include <chrono>
#include <thread>

#include "gpu/nccl_comm.h"
#include "gpu/nccl_stage.h"

namespace shw::test {

inline Status wait_for_nccl(NcclComm& comm, NcclStagingBuffer* stage) {
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(60);
  while (std::chrono::steady_clock::now() < deadline) {
    SHW_TRY(const bool is_ready, comm.is_ready());
    if (is_ready && stage == nullptr) return {};
    if (is_ready) {
      SHW_TRY(const bool is_idle, stage->is_idle());
      if (is_idle) return {};
    }
    std::this_thread::sleep_for(std::chrono::microseconds(50));
  }
  return fail(ErrorKind::kIo, "NCCL did nothing for a minute");
}

inline Status send_to_itself(const NcclLibrary& nccl, NcclStagingBuffer& stage, std::size_t bytes) {
  NcclComm comm(nccl);
  SHW_CHECK(stage.take());
  SHW_TRY(const NcclUniqueId id, comm.unique_id());
  SHW_CHECK(comm.begin(id, 0, 1));
  SHW_CHECK(wait_for_nccl(comm, nullptr));
  Bytes sent(bytes), came(bytes);
  for (std::size_t i = 0; i < bytes; ++i) sent[i] = static_cast<std::byte>(i * 7 + i / 251);
  SHW_TRY(std::byte * staged, stage.reserve(2 * bytes));
  SHW_CHECK(stage.fill(staged, sent));
  const NcclMove moves[] = {{0, false, staged, bytes}, {0, true, staged + bytes, bytes}};
  SHW_CHECK(comm.post(moves, stage.stream()));
  SHW_CHECK(wait_for_nccl(comm, &stage));
  SHW_CHECK(stage.fetch(came, staged + bytes));
  comm.close(std::chrono::seconds(10));
  return came == sent ? Status{} : fail(ErrorKind::kDamaged, "NCCL brought other bytes");
}

}  // namespace shw::test
