#include "core/cluster/mpi.h"

#define OMPI_SKIP_MPICXX 1
#define MPICH_SKIP_MPICXX 1
#include <fmt/core.h>
#include <mpi.h>

#include <algorithm>
#include <cstdlib>
#include <list>
#include <optional>
#include <thread>
#include <vector>

#include "core/base/progress.h"

namespace shw {
namespace {

using Clock = std::chrono::steady_clock;
using namespace std::chrono_literals;

// Tag of the error message that a stopping rank sends to all others, on a separate communicator.
constexpr int kNoteTag = 1;
// Tags of the final reports, which are sent when the transports may have ended already.
constexpr int kReportTag = 2, kConfirmTag = 3;
// How long messages in flight may take after an error, and the other ranks at the end.
constexpr auto kDrainTimeout = 1s;
constexpr auto kShutdownTimeout = 5s;

Status check_mpi(int code, const char* call) {
  if (code == MPI_SUCCESS) return {};
  char text[MPI_MAX_ERROR_STRING + 1] = {};
  int length = 0;
  MPI_Error_string(code, text, &length);
  return fail(ErrorKind::kIo, fmt::format("{}: {}", call, text));
}

// Open MPI probes all kinds of networks, which takes 0.2 s of the 0.3 s of its start and end on a
// machine without any; the ob1 layer suffices if all ranks share a machine. An explicit setting of
// the user wins, and other MPI implementations ignore the variable.
void prefer_shared_memory_transport() {
  ::setenv("OMPI_MCA_pml", "ob1", /*overwrite=*/0);
}

// Polling delay: spins first for quick answers, then sleeps so that busy processes on the same
// cores are not slowed down.
class PollDelay {
 public:
  void take() {
    if (++looked_ < 200)
      std::this_thread::yield();
    else
      std::this_thread::sleep_for(looked_ < 2000 ? 50us : 500us);
  }

 private:
  int looked_ = 0;
};

// One piece of a message in flight. A message ends with the first piece below the largest size, an
// empty one if needed, so that two messages of different lengths differ in a piece.
struct Piece {
  MPI_Request request = MPI_REQUEST_NULL;
  int peer = 0;
  int bytes = 0;
  std::uint64_t message = 0;  // length of the whole message in bytes
  bool is_receive = false;
  const std::byte* memory = nullptr;
};

class MpiTransport final : public Transport {
 public:
  MpiTransport(MPI_Comm data, MPI_Comm notes, int rank, int size, const MpiOptions& options)
      : data_(data),
        notes_(notes),
        rank_(rank),
        size_(size),
        piece_(options.piece_bytes),
        stopped_(options.stopped) {}

  int rank() const override { return rank_; }
  int size() const override { return size_; }

  Status send(int peer, Tag tag, BytesView bytes) override {
    return begin(peer, tag, const_cast<std::byte*>(bytes.data()), bytes.size(), false);
  }
  Status receive(int peer, Tag tag, std::span<std::byte> bytes) override {
    return begin(peer, tag, bytes.data(), bytes.size(), true);
  }

  Status wait(const WaitStep& step) override {
    if (is_dead_) return tl::unexpected<Error>(used_after_error());
    const auto deadline = Clock::now() + step.within;
    PollDelay pause;
    while (true) {
      auto error = poll_requests(step);
      if (!error && pieces_.empty()) return {};
      if (!error) error = error_note_from_peer();
      if (!error && stopped_ != nullptr && stopped_->load(std::memory_order_relaxed))
        error = cancelled_error().value();
      if (!error && Clock::now() > deadline) {
        auto late = std::find_if(pieces_.begin(), pieces_.end(),
                                 [](const Piece& piece) { return piece.is_receive; });
        if (late == pieces_.end()) late = pieces_.begin();
        error = peer_timeout_error(step, late->peer, late->message, late->is_receive);
      }
      if (error) {
        abort(*error);
        return tl::unexpected<Error>(std::move(*error));
      }
      pause.take();
    }
  }

  Status poll(const WaitStep& step) override {
    if (is_dead_) return tl::unexpected<Error>(used_after_error());
    auto error = poll_requests(step);
    if (!error) error = error_note_from_peer();
    if (!error) return {};
    abort(*error);
    return tl::unexpected<Error>(std::move(*error));
  }

  bool is_open(const std::byte* received) const override {
    return std::any_of(pieces_.begin(), pieces_.end(), [&](const Piece& piece) {
      return piece.is_receive && piece.memory == received;
    });
  }

  void abort(const Error& why) override {
    if (is_dead_) return;
    is_dead_ = true;
    // A note may be read after this transport is destroyed: its bytes live until the process ends.
    static std::list<Bytes> notes_on_their_way;
    const Bytes& note = notes_on_their_way.emplace_back(encode_error(why));
    for (int peer = 0; peer < size_; ++peer) {
      if (peer == rank_) continue;
      MPI_Request request = MPI_REQUEST_NULL;
      MPI_Isend(note.data(), static_cast<int>(note.size()), MPI_BYTE, peer, kNoteTag, notes_,
                &request);
      if (request != MPI_REQUEST_NULL) MPI_Request_free(&request);
    }
    cancel_pending_transfers();
  }

 private:
  Status begin(int peer, Tag tag, std::byte* bytes, std::size_t length, bool is_receive) {
    if (is_dead_) return tl::unexpected<Error>(used_after_error());
    SHW_CHECK(check_peer(*this, peer));
    std::size_t at = 0;
    while (true) {
      const std::size_t size = std::min(piece_, length - at);
      Piece piece{MPI_REQUEST_NULL, peer, static_cast<int>(size), length, is_receive, bytes + at};
      int code = is_receive ? MPI_Irecv(bytes + at, piece.bytes, MPI_BYTE, peer,
                                        static_cast<int>(tag), data_, &piece.request)
                            : MPI_Isend(bytes + at, piece.bytes, MPI_BYTE, peer,
                                        static_cast<int>(tag), data_, &piece.request);
      if (Status begun = check_mpi(code, is_receive ? "MPI_Irecv" : "MPI_Isend"); !begun) {
        abort(begun.error());
        return begun;
      }
      pieces_.push_back(piece);
      at += size;
      if (size < piece_) return {};
    }
  }

  // Completes finished transfers; an error if one has an unexpected size.
  std::optional<Error> poll_requests(const WaitStep& step) {
    for (auto piece = pieces_.begin(); piece != pieces_.end();) {
      int done = 0;
      MPI_Status status{};
      int code = MPI_Test(&piece->request, &done, &status);
      if (code == MPI_SUCCESS && done == 0) {
        ++piece;
        continue;
      }
      const Piece ended = *piece;
      piece = pieces_.erase(piece);
      int kind = MPI_SUCCESS;
      if (code != MPI_SUCCESS) MPI_Error_class(code, &kind);
      if (kind == MPI_ERR_TRUNCATE) return wrong_size_error(step, ended.peer, ended.message, true);
      if (code != MPI_SUCCESS) {
        Error error = check_mpi(code, "MPI_Test").error();
        error.message =
            fmt::format("in `{}` with worker {}: {}", step.name, ended.peer, error.message);
        return error;
      }
      int count = 0;
      if (ended.is_receive) MPI_Get_count(&status, MPI_BYTE, &count);
      if (ended.is_receive && count != ended.bytes)
        return wrong_size_error(step, ended.peer, ended.message, false);
    }
    return std::nullopt;
  }

  std::optional<Error> error_note_from_peer() {
    int there = 0;
    MPI_Status status{};
    if (MPI_Iprobe(MPI_ANY_SOURCE, kNoteTag, notes_, &there, &status) != MPI_SUCCESS || there == 0)
      return std::nullopt;
    Bytes note(kMaxOfError);
    int count = 0;
    MPI_Get_count(&status, MPI_BYTE, &count);
    if (count < 0 || static_cast<std::size_t>(count) > note.size())
      return decode_error_of_rank(status.MPI_SOURCE, {});
    if (MPI_Recv(note.data(), count, MPI_BYTE, status.MPI_SOURCE, kNoteTag, notes_,
                 MPI_STATUS_IGNORE) != MPI_SUCCESS)
      return decode_error_of_rank(status.MPI_SOURCE, {});
    return decode_error_of_rank(status.MPI_SOURCE,
                                BytesView(note).first(static_cast<std::size_t>(count)));
  }

  // Ensures that MPI no longer accesses the caller's buffers: cancels unmatched receives and waits
  // for a while for transfers in progress.
  void cancel_pending_transfers() {
    for (Piece& piece : pieces_) {
      if (piece.is_receive) MPI_Cancel(&piece.request);
    }
    const auto end = Clock::now() + kDrainTimeout;
    PollDelay pause;
    // Also waits for sends: freeing a request while MPI still reads the buffer would let MPI read
    // memory that the caller has released.
    while (!pieces_.empty() && Clock::now() < end) {
      std::erase_if(pieces_, [](Piece& piece) {
        int done = 0;
        return MPI_Test(&piece.request, &done, MPI_STATUS_IGNORE) != MPI_SUCCESS || done != 0;
      });
      pause.take();
    }
    for (Piece& piece : pieces_) MPI_Request_free(&piece.request);
    pieces_.clear();
  }

  MPI_Comm data_, notes_;  // freed with the session: earlier it would wait for other ranks
  const int rank_, size_;
  const std::size_t piece_;
  const std::atomic<bool>* stopped_;
  bool is_dead_ = false;
  std::list<Piece> pieces_;
};

class OpenedMpi final : public MpiSession {
 public:
  OpenedMpi(int rank, int size) : rank_(rank), size_(size) {}

  int rank() const override { return rank_; }
  int size() const override { return size_; }

  Result<std::unique_ptr<Transport>> transport(const MpiOptions& options) override {
    if (options.stopped != nullptr) stopped_ = options.stopped;
    MPI_Comm data = MPI_COMM_NULL, notes = MPI_COMM_NULL;
    SHW_CHECK(check_mpi(MPI_Comm_dup(MPI_COMM_WORLD, &data), "MPI_Comm_dup"));
    SHW_CHECK(check_mpi(MPI_Comm_dup(MPI_COMM_WORLD, &notes), "MPI_Comm_dup"));
    MPI_Comm_set_errhandler(data, MPI_ERRORS_RETURN);
    MPI_Comm_set_errhandler(notes, MPI_ERRORS_RETURN);
    return std::make_unique<MpiTransport>(data, notes, rank_, size_, options);
  }

  bool part(Bytes own, bool has_report, const PrintReports& say) override {
    if (rank_ != 0) return send_report(std::move(own), has_report);
    std::vector<std::optional<Bytes>> reports(static_cast<std::size_t>(size_));
    reports[0] = std::move(own);
    receive_reports(reports);
    say(reports);
    is_any_rank_missing_ = std::any_of(reports.begin(), reports.end(),
                                       [](const auto& received) { return !received.has_value(); });
    for (int worker = 1; worker < size_; ++worker) {
      if (!reports[static_cast<std::size_t>(worker)]) continue;
      MPI_Request request = MPI_REQUEST_NULL;
      MPI_Isend(nullptr, 0, MPI_BYTE, worker, kConfirmTag, MPI_COMM_WORLD, &request);
      if (request != MPI_REQUEST_NULL) MPI_Request_free(&request);
    }
    return true;
  }

  void end(bool is_stopped) override {
    // A rank that has already timed out is not waited for again.
    if (is_stopped || is_any_rank_missing_) return;
    MPI_Request all = MPI_REQUEST_NULL;
    if (MPI_Ibarrier(MPI_COMM_WORLD, &all) != MPI_SUCCESS) return;
    const auto deadline = Clock::now() + kShutdownTimeout;
    PollDelay pause;
    for (int done = 0; done == 0; pause.take()) {
      if (MPI_Test(&all, &done, MPI_STATUS_IGNORE) != MPI_SUCCESS) return;
      // A missing rank would make MPI_Finalize wait for ever.
      if (done == 0 && Clock::now() > deadline) return;
    }
    MPI_Finalize();
  }

 private:
  void receive_reports(std::vector<std::optional<Bytes>>& reports) const {
    const auto deadline = Clock::now() + kShutdownTimeout;
    PollDelay pause;
    for (int missing = size_ - 1; missing > 0 && Clock::now() < deadline && !is_stopped();) {
      int there = 0, count = 0;
      MPI_Status status{};
      if (MPI_Iprobe(MPI_ANY_SOURCE, kReportTag, MPI_COMM_WORLD, &there, &status) != MPI_SUCCESS)
        return;
      if (there == 0) {
        pause.take();
        continue;
      }
      MPI_Get_count(&status, MPI_BYTE, &count);
      Bytes received(static_cast<std::size_t>(std::max(count, 0)));
      if (MPI_Recv(received.data(), count, MPI_BYTE, status.MPI_SOURCE, kReportTag, MPI_COMM_WORLD,
                   MPI_STATUS_IGNORE) != MPI_SUCCESS)
        return;
      reports[static_cast<std::size_t>(status.MPI_SOURCE)] = std::move(received);
      --missing;
    }
  }

  // Rank 0 may come here as late as the allowed silence, and then formats the reports.
  bool send_report(Bytes own, bool has_report) {
    report_ = std::move(own);
    MPI_Request saying = MPI_REQUEST_NULL, hearing = MPI_REQUEST_NULL;
    if (MPI_Isend(report_.data(), static_cast<int>(report_.size()), MPI_BYTE, 0, kReportTag,
                  MPI_COMM_WORLD, &saying) != MPI_SUCCESS)
      return false;
    MPI_Request_free(&saying);
    // A rank without a report waits for the others only in end().
    if (!has_report) return true;
    if (MPI_Irecv(nullptr, 0, MPI_BYTE, 0, kConfirmTag, MPI_COMM_WORLD, &hearing) != MPI_SUCCESS)
      return false;
    const auto deadline = Clock::now() + 2 * kShutdownTimeout;
    PollDelay pause;
    for (int done = 0;; pause.take()) {
      if (MPI_Test(&hearing, &done, MPI_STATUS_IGNORE) != MPI_SUCCESS) return false;
      if (done != 0) return true;
      if (Clock::now() > deadline) break;
    }
    MPI_Cancel(&hearing);
    MPI_Request_free(&hearing);
    return false;
  }

  bool is_stopped() const {
    return stopped_ != nullptr && stopped_->load(std::memory_order_relaxed);
  }

  const int rank_, size_;
  const std::atomic<bool>* stopped_ = nullptr;  // MpiOptions::stopped
  Bytes report_;                                // kept until the send completes
  bool is_any_rank_missing_ = false;
};

}  // namespace

bool has_mpi() {
  return true;
}

Result<std::unique_ptr<MpiSession>> begin_mpi(const Launch& launch) {
  if (launch.on_one_machine) prefer_shared_memory_transport();
  int given = MPI_THREAD_SINGLE, rank = 0, size = 1;
  SHW_CHECK(check_mpi(MPI_Init_thread(nullptr, nullptr, MPI_THREAD_FUNNELED, &given), "MPI_Init"));
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  if (given < MPI_THREAD_FUNNELED)
    return fail(ErrorKind::kUnsupported, "this MPI is for programs without threads");
  SHW_CHECK(check_mpi(MPI_Comm_rank(MPI_COMM_WORLD, &rank), "MPI_Comm_rank"));
  SHW_CHECK(check_mpi(MPI_Comm_size(MPI_COMM_WORLD, &size), "MPI_Comm_size"));
  return std::make_unique<OpenedMpi>(rank, size);
}

}  // namespace shw
