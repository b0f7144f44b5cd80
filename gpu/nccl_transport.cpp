// NCCL only moves bytes: its messages have no tags, both sides must agree on sizes, a
// message that a peer never receives blocks the whole stream, and a failure gives no
// reason. So a second transport, `control`, carries the unique id, announcements of
// started messages, and the reason of a rank that stops.
//
//   In a pair of ranks the lower rank leads.
//   ready   to the leader: I have started this message of so many bytes
//   go      from the leader, once both have started it: I have given my side to NCCL as number n
//           of this pair
//
// The leader gives a piece to NCCL when it is ready, the other rank at `go`, in number
// order; all available pieces form one group. A rank has one group at a time, so a
// group waits only for higher ranks whose side is still to come: there is no cycle,
// whatever the order in which ranks start messages. Sizes are compared before NCCL is
// called.
//
// NCCL connects a pair at its first message, peer after peer. That first group is equal
// on all ranks and part of the opening. NCCL splits groups with many peers; the effect
// on groups that differ between ranks was never tested on a GPU.
#include "gpu/nccl_transport.h"

#include <fmt/core.h>

#include <algorithm>
#include <list>
#include <map>
#include <optional>
#include <set>
#include <utility>

#include "core/base/words.h"
#include "core/cluster/collectives.h"
#include "gpu/nccl_comm.h"
#include "gpu/nccl_opening.h"
#include "gpu/nccl_pieces.h"

namespace shw {
namespace {

using Clock = std::chrono::steady_clock;
using namespace std::chrono_literals;

constexpr auto kShutdownTimeout = 5s;
// How long a stream may take to end after its communicator was aborted.
constexpr auto kDrainTimeout = 1s;
constexpr int kMaxAnnouncedPieces = 8;  // announced pieces per lane
// Number of a refused piece.
constexpr std::uint64_t kNotGiven = ~std::uint64_t{0};

Error wrong_size(const WaitStep& step, const NcclPiece& piece) {
  Error error =
      wrong_size_error(step, piece.peer, piece.message, piece.heard.bytes > piece.message);
  error.message += fmt::format(": {}", piece.heard.bytes);
  return error;
}

class NcclTransport final : public Transport {
 public:
  NcclTransport(const NcclLibrary& nccl, std::unique_ptr<NcclStagingBuffer> stage,
                Transport& control, const NcclOptions& options)
      : control_(control),
        options_(options),
        stage_(std::move(stage)),
        comm_(nccl),
        next_(static_cast<std::size_t>(control.size())),
        announced_by_lane_(4 * static_cast<std::size_t>(control.size())) {}
  ~NcclTransport() override {
    if (is_dead_) return;
    if (!pieces_.empty() || opening_error_)
      abort({ErrorKind::kUsage, "it left while messages were on their way"});
    else
      comm_.close(kShutdownTimeout);
  }

  int rank() const override { return control_.rank(); }
  int size() const override { return control_.size(); }

  Status send(int peer, Tag tag, BytesView bytes) override {
    return begin(peer, tag, {const_cast<std::byte*>(bytes.data()), bytes.size()}, false);
  }
  Status receive(int peer, Tag tag, std::span<std::byte> bytes) override {
    return begin(peer, tag, bytes, true);
  }

  Status wait(const WaitStep& step) override {
    SHW_CHECK(check_alive());
    const auto deadline = Clock::now() + step.within;
    for (PollBackoff backoff;; backoff.pause()) {
      SHW_CHECK(advance(step));
      if (pieces_.empty()) return {};
      if (Clock::now() > deadline) return stop(timeout_error(step));
    }
  }

  Status poll(const WaitStep& step) override {
    SHW_CHECK(check_alive());
    return advance(step);
  }

  bool is_open(const std::byte* received) const override {
    return std::any_of(pieces_.begin(), pieces_.end(), [&](const NcclPiece& piece) {
      return piece.is_receive && piece.message_at == received && piece.state != PieceState::kDone;
    });
  }

  void abort(const Error& why) override {
    if (is_dead_) return;
    is_dead_ = true;
    control_.abort(why);
    comm_.abort();
    // Waits until copies from the caller's buffers are complete.
    const auto end = Clock::now() + kDrainTimeout;
    for (PollBackoff backoff; Clock::now() < end; backoff.pause()) {
      if (Result<bool> is_idle = stage_->is_idle(); !is_idle || *is_idle) break;
    }
    group_.clear();
    pieces_.clear();
  }

  Status open(const NcclLibrary& nccl);

 private:
  Status stop(Error error) {
    abort(error);
    return tl::unexpected<Error>(std::move(error));
  }
  Status check_alive() {
    if (is_dead_) return tl::unexpected<Error>(used_after_error());
    if (opening_error_) return stop(Error(*opening_error_));
    return {};
  }
  Status begin(int peer, Tag tag, std::span<std::byte> bytes, bool is_receive);
  std::string pending_bytes_text() const;
  Error timeout_error(const WaitStep& step) const;
  Error attribute_control_error(const WaitStep& step, Error error) const;
  Error attribute_nccl_error(const WaitStep& step, Error error);

  Status advance(const WaitStep& step);
  Status announce(NcclPiece& piece);
  std::optional<Error> receive(const WaitStep& step);
  Status submit_group(const std::vector<NcclPiece*>& group);
  Status announce_group_start();
  Status finish_group_if_idle(bool is_ready);

  Transport& control_;
  const NcclOptions options_;
  bool is_dead_ = false;
  std::optional<Error> opening_error_;  // error at the end of opening, reported by the first use
  std::unique_ptr<NcclStagingBuffer> stage_;  // must outlive NCCL's transfers
  NcclComm comm_;
  std::list<NcclPiece> pieces_;
  std::vector<NcclPiece*> group_;       // pieces given to NCCL
  std::vector<std::uint64_t> next_;     // by peer: number of the next piece of the pair
  std::vector<int> announced_by_lane_;  // by lane
};

Status NcclTransport::begin(int peer, Tag tag, std::span<std::byte> bytes, bool is_receive) {
  SHW_CHECK(check_alive());
  SHW_CHECK(check_peer(*this, peer));
  std::size_t at = 0;
  do {
    NcclPiece& piece = pieces_.emplace_back();
    piece.peer = peer;
    piece.tag = tag;
    piece.is_receive = is_receive;
    piece.leads = rank() < peer;
    piece.memory = bytes.data() + at;
    piece.bytes = std::min(options_.piece_bytes, bytes.size() - at);
    piece.message = bytes.size();
    piece.message_at = bytes.data();
    piece.told.bytes = bytes.size();
    if (Status told = announce(piece); !told) return stop(told.error());
    at += piece.bytes;
  } while (at < bytes.size());
  return {};
}

// Limits announced pieces per lane, because a message may have thousands of pieces.
Status NcclTransport::announce(NcclPiece& piece) {
  if (announced_by_lane_[piece.lane()] >= kMaxAnnouncedPieces) return {};
  ++announced_by_lane_[piece.lane()];
  piece.state = PieceState::kAnnounced;
  SHW_CHECK(control_.receive(piece.peer, piece.control_tag(), bytes_of(piece.heard)));
  if (piece.leads) return {};
  return control_.send(piece.peer, piece.control_tag(), bytes_of(piece.told));
}

std::string NcclTransport::pending_bytes_text() const {
  std::map<int, std::uint64_t> of_peers;
  std::uint64_t bytes = 0;
  for (const NcclPiece& piece : pieces_) {
    if (piece.state == PieceState::kDone) continue;
    of_peers[piece.peer] += piece.bytes;
    bytes += piece.bytes;
  }
  std::string text = fmt::format("{} bytes were under way with worker", bytes);
  for (const auto& [peer, more] : of_peers)
    text += fmt::format("{} {}", peer == of_peers.begin()->first ? "" : ",", peer);
  return text;
}

// The timeout error. A rank that has never announced anything although it should have is certainly
// silent. Otherwise an unfinished group does not tell who blocks it, and a rank without `go` may
// itself be waiting. Receives are named before sends.
Error NcclTransport::timeout_error(const WaitStep& step) const {
  const NcclPiece* found = nullptr;
  std::set<int> have_spoken;
  for (const NcclPiece& piece : pieces_) {
    if (piece.state >= PieceState::kAgreed) have_spoken.insert(piece.peer);
  }
  auto rank_of = [&](const NcclPiece& piece) {
    const bool is_silent = piece.leads && !have_spoken.contains(piece.peer);
    const bool is_agreed = piece.state >= PieceState::kAgreed;
    return (is_silent ? 4 : is_agreed ? 2 : 0) + (piece.is_receive ? 1 : 0);
  };
  for (const NcclPiece& piece : pieces_) {
    if (piece.state == PieceState::kDone) continue;
    if (found == nullptr || rank_of(piece) > rank_of(*found)) found = &piece;
  }
  if (found->state < PieceState::kAgreed)
    return peer_timeout_error(step, found->peer, found->message, found->is_receive);
  return {ErrorKind::kIo,
          fmt::format("in `{}` NCCL moved nothing for {}: {}", step.name,
                      human_seconds(std::chrono::duration<double>(step.within).count()),
                      pending_bytes_text())};
}

// Attributes an error of the control transport to the message that was announced.
Error NcclTransport::attribute_control_error(const WaitStep& step, Error error) const {
  for (const NcclPiece& piece : pieces_) {
    if (error.message == peer_lost_error(step, piece.peer, sizeof(PieceNotice)).message)
      return peer_lost_error(step, piece.peer, piece.message, piece.is_receive);
  }
  return error;
}

// NCCL knows neither which rank left nor why. Uses the reason that the rank sent, or names the
// ranks with pieces in flight.
Error NcclTransport::attribute_nccl_error(const WaitStep& step, Error error) {
  if (auto said = relayed_error(control_, step))
    return attribute_control_error(step, std::move(*said));
  error.message = fmt::format("in `{}` {}", step.name, error.message);
  if (!pieces_.empty()) error.message += ": " + pending_bytes_text();
  return error;
}

// One step: receives announcements, completes groups, posts the next group.
Status NcclTransport::advance(const WaitStep& step) {
  if (Status heard = control_.poll(step); !heard)
    return stop(attribute_control_error(step, heard.error()));
  if (auto error = receive(step)) return stop(std::move(*error));
  Result<bool> ready = comm_.is_ready();
  if (!ready) return stop(attribute_nccl_error(step, std::move(ready).error()));
  Status done = finish_group_if_idle(*ready);
  if (done && *ready && group_.empty())
    done = submit_group(next_group(pieces_, next_, options_.most_staged));
  if (!done) return stop(attribute_nccl_error(step, std::move(done).error()));
  const bool is_done = std::all_of(pieces_.begin(), pieces_.end(),
                                   [](const NcclPiece& p) { return p.state == PieceState::kDone; });
  if (!is_done || pieces_.empty()) return {};
  // Announcements may still be in flight; all expected ones have arrived.
  if (Status told = control_.wait(step); !told)
    return stop(attribute_control_error(step, told.error()));
  pieces_.clear();
  return {};
}

// In each lane announcements arrive in the order of the pieces.
std::optional<Error> NcclTransport::receive(const WaitStep& step) {
  std::vector<bool> is_open(announced_by_lane_.size());
  for (NcclPiece& piece : pieces_) {
    const std::size_t lane = piece.lane();
    if (piece.state == PieceState::kQueued) {
      if (Status told = announce(piece); !told) return told.error();
      continue;
    }
    if (piece.state != PieceState::kAnnounced || is_open[lane]) continue;
    is_open[lane] = control_.is_open(bytes_of(piece.heard).data());
    if (is_open[lane]) continue;
    piece.state = PieceState::kAgreed;
    --announced_by_lane_[lane];
    if (piece.is_receive && piece.heard.bytes != piece.message) return wrong_size(step, piece);
  }
  return std::nullopt;
}

Status NcclTransport::submit_group(const std::vector<NcclPiece*>& group) {
  if (group.empty()) return {};
  std::size_t total = 0;
  for (const NcclPiece* piece : group) total += staged_bytes(*piece);
  SHW_TRY(std::byte * staged, stage_->reserve(total));
  std::vector<NcclMove> moves;
  for (NcclPiece* piece : group) {
    // The receiver reports a refused size to all ranks.
    const bool is_refused = piece->heard.bytes != piece->message;
    piece->told.number = is_refused ? kNotGiven : next_[static_cast<std::size_t>(piece->peer)]++;
    piece->state = PieceState::kSubmitted;
    piece->staged = staged;
    if (is_refused || piece->bytes == 0) continue;
    if (!piece->is_receive) SHW_CHECK(stage_->fill(staged, {piece->memory, piece->bytes}));
    moves.push_back({piece->peer, piece->is_receive, staged, piece->bytes});
    staged += staged_bytes(*piece);
  }
  if (!moves.empty()) SHW_CHECK(comm_.post(moves, stage_->stream()));
  group_ = group;
  return announce_group_start();
}

Status NcclTransport::announce_group_start() {
  for (NcclPiece* piece : group_) {
    if (piece->leads)
      SHW_CHECK(control_.send(piece->peer, piece->control_tag(), bytes_of(piece->told)));
  }
  // Drops refused pieces, which never complete by themselves.
  std::erase_if(group_, [](const NcclPiece* piece) { return piece->told.number == kNotGiven; });
  return {};
}

Status NcclTransport::finish_group_if_idle(bool is_ready) {
  if (group_.empty() || !is_ready) return {};
  SHW_TRY(const bool is_idle, stage_->is_idle());
  if (!is_idle) return {};
  for (NcclPiece* piece : group_) {
    if (piece->is_receive && piece->bytes != 0)
      SHW_CHECK(stage_->fetch({piece->memory, piece->bytes}, piece->staged));
    piece->state = PieceState::kDone;
  }
  group_.clear();
  return {};
}

Status NcclTransport::open(const NcclLibrary& nccl) {
  if (Status opened = open_nccl_communicator(comm_, nccl, *stage_, control_, options_); !opened)
    return stop(std::move(opened).error());
  // A faster rank may use the transport and stop before the others have passed the barrier.
  if (Status all = barrier(control_, options_.opening); !all) opening_error_ = all.error();
  return {};
}

}  // namespace

Result<std::unique_ptr<Transport>> open_nccl(const NcclLibrary& nccl,
                                             std::unique_ptr<NcclStagingBuffer> stage,
                                             Transport& control, const NcclOptions& options) {
  if (options.piece_bytes == 0) return fail(ErrorKind::kUsage, "pieces of nothing");
  auto transport = std::make_unique<NcclTransport>(nccl, std::move(stage), control, options);
  SHW_CHECK(transport->open(nccl));
  return std::unique_ptr<Transport>(std::move(transport));
}

}  // namespace shw
