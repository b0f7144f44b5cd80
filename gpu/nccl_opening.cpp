#include "gpu/nccl_opening.h"

#include <fmt/core.h>

#include <algorithm>
#include <cstring>
#include <functional>
#include <utility>
#include <vector>

#include "core/base/words.h"
#include "core/cluster/collectives.h"
#include "gpu/nccl_pieces.h"

namespace shw {
namespace {

using Clock = std::chrono::steady_clock;

// How long to wait for other ranks' reasons after NCCL reports only that a peer left: ranks send
// the reason before they leave. Must be at most a quarter of the peers' timeout.
constexpr std::chrono::milliseconds kPeerReasonTimeout = std::chrono::milliseconds(100);

// Checks that both ranks have equal versions and options, then exchanges the unique id.
Status exchange_nccl_id(NcclComm& comm, const NcclLibrary& nccl, Transport& control,
                        const NcclOptions& options) {
  const int rank = control.rank(), size = control.size();
  struct Handshake {
    std::uint64_t version, piece_bytes;
  };
  const Handshake own{static_cast<std::uint64_t>(nccl.version), options.piece_bytes};
  auto view = std::as_bytes(std::span(&own, 1));
  SHW_TRY(auto all,
          all_gather(control, Bytes(view.begin(), view.end()),
                     sizeof(Handshake) * static_cast<std::uint64_t>(size), options.opening));
  for (int peer = 0; peer < size; ++peer) {
    Handshake other{};
    const Bytes& told = all[static_cast<std::size_t>(peer)];
    std::memcpy(&other, told.data(), std::min(told.size(), sizeof(other)));
    if (other.version != own.version)
      return fail(ErrorKind::kUnsupported,
                  fmt::format("worker {} has NCCL {}, and worker {} has {}", peer,
                              nccl_version_text(static_cast<int>(other.version)), rank,
                              nccl_version_text(nccl.version)));
    if (other.piece_bytes != own.piece_bytes)
      return fail(ErrorKind::kUsage, fmt::format("worker {} cuts messages at {} bytes, and worker "
                                                 "{} at {}",
                                                 peer, other.piece_bytes, rank, own.piece_bytes));
  }
  NcclUniqueId id = {};
  if (rank == 0) {
    SHW_TRY(id, comm.unique_id());
  }
  auto id_view = std::as_bytes(std::span(&id, 1));
  SHW_TRY(Bytes told, broadcast(control, 0, Bytes(id_view.begin(), id_view.end()), sizeof(id),
                                options.opening));
  if (told.size() != sizeof(id)) return fail(ErrorKind::kIo, "a unique id of another size");
  std::memcpy(&id, told.data(), sizeof(id));
  return comm.begin(id, rank, size);
}

Status poll_until(const std::function<Result<bool>()>& done, const std::string& what,
                  Transport& control, const WaitStep& step) {
  const auto deadline = Clock::now() + step.within;
  for (PollBackoff backoff;; backoff.pause()) {
    SHW_CHECK(control.poll(step));
    Result<bool> is_done = done();
    if (!is_done) {
      if (auto said = relayed_error(control, step)) return tl::unexpected<Error>(std::move(*said));
      return fail(ErrorKind::kIo, fmt::format("in `{}` {}", step.name, is_done.error().message));
    }
    if (*is_done) return {};
    if (Clock::now() > deadline)
      return fail(ErrorKind::kIo,
                  fmt::format("in `{}` {} of {} workers was not there after {}", step.name, what,
                              control.size(),
                              human_seconds(std::chrono::duration<double>(step.within).count())));
  }
}

// Exchanges 16 bytes with every rank, which contain the sender's rank.
Status connect(NcclComm& comm, NcclStagingBuffer& stage, Transport& control, const WaitStep& step) {
  const int rank = control.rank(), size = control.size();
  const auto workers = static_cast<std::size_t>(size);
  SHW_TRY(std::byte * staged, stage.reserve(2 * workers * kStagingAlignment));
  const PieceNotice own{static_cast<std::uint64_t>(rank), workers};
  std::vector<NcclMove> moves;
  for (int peer = 0; peer < size; ++peer) {
    if (peer == rank) continue;
    std::byte* at = staged + 2 * static_cast<std::size_t>(peer) * kStagingAlignment;
    SHW_CHECK(stage.fill(at, std::as_bytes(std::span(&own, 1))));
    moves.push_back({peer, false, at, sizeof(own)});
    moves.push_back({peer, true, at + kStagingAlignment, sizeof(own)});
  }
  if (moves.empty()) return {};
  SHW_CHECK(comm.post(moves, stage.stream()));
  auto done = [&]() -> Result<bool> {
    SHW_TRY(const bool is_ready, comm.is_ready());
    if (!is_ready) return false;
    return stage.is_idle();
  };
  SHW_CHECK(poll_until(done, "a connection", control, step));
  for (const NcclMove& move : moves) {
    if (!move.is_receive) continue;
    PieceNotice came;
    SHW_CHECK(stage.fetch(bytes_of(came), move.staged));
    if (came.bytes != static_cast<std::uint64_t>(move.peer) || came.number != workers)
      return fail(ErrorKind::kIo,
                  fmt::format("NCCL brought other bytes than worker {} sent", move.peer));
  }
  return {};
}

}  // namespace

std::optional<Error> relayed_error(Transport& control, const WaitStep& step) {
  const auto end = Clock::now() + std::min(kPeerReasonTimeout, step.within / 4);
  for (PollBackoff backoff; Clock::now() < end; backoff.pause()) {
    if (Status heard = control.poll(step); !heard) return heard.error();
  }
  return std::nullopt;
}

Status open_nccl_communicator(NcclComm& comm, const NcclLibrary& nccl, NcclStagingBuffer& stage,
                              Transport& control, const NcclOptions& options) {
  SHW_CHECK(stage.take());
  SHW_CHECK(exchange_nccl_id(comm, nccl, control, options));
  auto is_ready = [&] { return comm.is_ready(); };
  SHW_CHECK(poll_until(is_ready, "the communicator", control, options.opening));
  // No rank starts connecting before all are here, so a missing rank can be named.
  SHW_CHECK(barrier(control, options.opening));
  return connect(comm, stage, control, options.opening);
}

}  // namespace shw
