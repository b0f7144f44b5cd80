#include "gpu/nccl_comm.h"

#include <fmt/core.h>

#include <thread>
#include <utility>

namespace shw {

// Formats "NCCL: ncclSend: invalid argument (last error of the library)".
Error NcclComm::error(NcclCode code, const char* call) const {
  const char* what = nccl_.get_error_string(code);
  const char* more = nccl_.get_last_error(comm_);
  std::string text = fmt::format("NCCL: {}: {}", call, what != nullptr ? what : "an error");
  if (more != nullptr && *more != '\0') text += fmt::format(" ({})", more);
  while (text.ends_with('\n')) text.pop_back();
  return {ErrorKind::kIo, std::move(text)};
}

Status NcclComm::check(NcclCode code, const char* call) const {
  if (code == NcclCode::kSuccess || code == NcclCode::kInProgress) return {};
  return tl::unexpected<Error>(error(code, call));
}

Result<NcclUniqueId> NcclComm::unique_id() const {
  NcclUniqueId id = {};
  SHW_CHECK(check(nccl_.get_unique_id(&id), "ncclGetUniqueId"));
  return id;
}

Status NcclComm::begin(const NcclUniqueId& id, int rank, int size) {
  NcclConfig config;
  config.blocking = 0;
  return check(nccl_.comm_init_rank_config(&comm_, size, id, rank, &config),
               "ncclCommInitRankConfig");
}

Result<bool> NcclComm::is_ready() {
  NcclCode state = NcclCode::kSuccess;
  SHW_CHECK(check(nccl_.comm_get_async_error(comm_, &state), "ncclCommGetAsyncError"));
  SHW_CHECK(check(state, "the communicator"));
  return state == NcclCode::kSuccess;
}

Status NcclComm::post(std::span<const NcclMove> moves, NcclStream stream) {
  SHW_CHECK(check(nccl_.group_start(), "ncclGroupStart"));
  Status given;
  for (const NcclMove& move : moves) {
    const NcclCode code =
        move.is_receive
            ? nccl_.receive(move.staged, move.bytes, kNcclUint8, move.peer, comm_, stream)
            : nccl_.send(move.staged, move.bytes, kNcclUint8, move.peer, comm_, stream);
    given = check(code, move.is_receive ? "ncclRecv" : "ncclSend");
    if (!given) break;
  }
  // Ends failed groups too: the next group would be nested in it.
  const Status ended = check(nccl_.group_end(), "ncclGroupEnd");
  return given ? ended : given;
}

void NcclComm::close(std::chrono::milliseconds within) {
  using Clock = std::chrono::steady_clock;
  if (comm_ == nullptr) return;
  const auto deadline = Clock::now() + within;
  if (!check(nccl_.comm_finalize(comm_), "ncclCommFinalize")) return abort();
  for (Result<bool> ready = is_ready(); !ready || !*ready; ready = is_ready()) {
    if (!ready || Clock::now() > deadline) return abort();
    std::this_thread::sleep_for(std::chrono::microseconds(200));
  }
  nccl_.comm_destroy(std::exchange(comm_, nullptr));
}

void NcclComm::abort() {
  if (comm_ != nullptr) nccl_.comm_abort(std::exchange(comm_, nullptr));
}

}  // namespace shw
