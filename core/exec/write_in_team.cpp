#include "core/exec/write_in_team.h"

#include <fmt/core.h>

#include <algorithm>
#include <cstring>
#include <future>
#include <utility>

#include "core/base/encoder.h"
#include "core/base/parallel.h"
#include "core/base/threads.h"
#include "core/exec/file_scheduler.h"
#include "core/exec/job_part.h"
#include "core/exec/part_assignment.h"
#include "core/exec/received_source_data.h"
#include "core/exec/shared_files.h"
#include "core/exec/spill_plan.h"

namespace shw {
namespace {

// Bytes that a rank writes per round if nothing has to be sent.
constexpr std::uint64_t kRoundBytes = std::uint64_t{256} << 20;
constexpr std::size_t kRoundParts = 1 << 14;
// Header of a sent part: length, fingerprint (a, b), number of out-of-range
// elements.
constexpr std::size_t kSentNumbers = 4;

// True if a rank other than `writer` reads data of a chunk for it.
bool receives_from_other_rank(const FolderRun& run, const FileAssignment& dealt, std::size_t tile,
                              std::uint32_t writer) {
  const JobRange jobs = jobs_of(run.program, run.made[tile]);
  for (std::size_t j = jobs.first; j < jobs.last; ++j) {
    if (dealt.reader_for(run.program.jobs[j].source, writer) != writer) return true;
  }
  return false;
}

class CollectiveWriter {
 public:
  CollectiveWriter(const FileWriterInputs& with, FileAssignment dealt, FileWriter& writer,
                   TeamJournal& journal)
      : run_(with.run),
        shares_(with.shares),
        team_(*with.run.team),
        dealt_(std::move(dealt)),
        writer_(writer),
        journal_(journal),
        progress_(with.progress) {}

  Status plan(const std::vector<bool>& there);
  Status write_all();

 private:
  using Rounds = std::vector<IndexRange>;  // ranges of FileWriter::parts()

  std::span<const FilePart> parts_of_rank_in_round(std::size_t worker, std::size_t round) const;
  std::uint32_t self() const { return static_cast<std::uint32_t>(team_.rank()); }
  std::uint32_t writer_of(const FilePart& part) const {
    return parts_.writer[static_cast<std::size_t>(&part - writer_.parts().data())];
  }
  bool is_sent(const FilePart& part) const {
    return is_sent_[static_cast<std::size_t>(&part - writer_.parts().data())];
  }
  void find_sent_parts();
  void cut_rounds(std::size_t worker, IndexRange parts);
  Status begin_messages(std::size_t round, std::vector<Bytes>& messages);
  Status for_each_own_part(const FilePart& part, const std::function<Status(const JobPart&)>& then);
  Result<std::uint64_t> count_own_bytes(const FilePart& part);
  Result<ElementSums> read_own_parts_of(const FilePart& part, std::span<std::byte> to);
  Result<Bytes> encode_round_message_for(std::size_t worker, std::size_t round);
  Result<std::vector<std::vector<SourceDataMessage>>> open_messages(const std::vector<Bytes>& come,
                                                                    std::size_t round) const;
  Status write_round(const std::vector<Bytes>& come, std::size_t round);

  const FolderRun& run_;
  const MemoryPlan& shares_;
  Team& team_;
  const FileAssignment dealt_;
  PartAssignment parts_;
  std::vector<bool> is_sent_;  // by part: another rank reads data for its writer
  FileWriter& writer_;
  TeamJournal& journal_;
  Progress* progress_;
  std::vector<Rounds> rounds_;  // by rank
  std::size_t round_count_ = 0;
  std::vector<std::uint32_t> empty_files_;  // files of this rank without parts
};

// Maximum bytes of a part in a message.
std::uint64_t max_sent_bytes(const FolderRun& run, const FilePart& part, std::uint64_t pieces) {
  const JobRange jobs = jobs_of(run.program, run.made[part.index]);
  const std::size_t made = size_of(run.program.output(run.made[part.index]).dtype);
  const std::uint64_t elements = part.length / std::max<std::size_t>(made, 1) / pieces + 1;
  return elements * std::max(widest(run.program, jobs), made);
}

// The pieces of a chunk are adjacent, and so are the parts of one writer.
void CollectiveWriter::find_sent_parts() {
  const auto parts = writer_.parts();
  is_sent_.resize(parts.size());
  for (std::size_t i = 0; i < parts.size(); ++i) {
    if (parts[i].kind != FilePart::Kind::kMade) continue;
    const bool as_before = i != 0 && parts[i - 1].kind == FilePart::Kind::kMade &&
                           parts[i - 1].index == parts[i].index &&
                           parts_.writer[i - 1] == parts_.writer[i];
    is_sent_[i] = as_before
                      ? is_sent_[i - 1]
                      : receives_from_other_rank(run_, dealt_, parts[i].index, parts_.writer[i]);
  }
}

void CollectiveWriter::cut_rounds(std::size_t worker, IndexRange parts) {
  std::uint64_t bytes = 0, sent = 0;
  IndexRange round{parts.first, parts.first};
  for (; round.last < parts.last; ++round.last) {
    const FilePart& part = writer_.parts()[round.last];
    const std::uint64_t length = bytes_of(part);
    std::uint64_t own = 0;
    if (is_sent_[round.last])
      own = max_sent_bytes(run_, part, part.block_count) * (part.blocks.last - part.blocks.first);
    bool is_full = bytes + length > kRoundBytes || sent + own > shares_.round_bytes ||
                   round.last - round.first >= kRoundParts;
    if (is_full && round.last != round.first) {
      rounds_[worker].push_back(round);
      round.first = round.last;
      bytes = sent = 0;
    }
    bytes += length;
    sent += own;
  }
  if (round.last != round.first) rounds_[worker].push_back(round);
}

Status CollectiveWriter::plan(const std::vector<bool>& there) {
  std::vector<bool> has_parts = there;
  // A team of one sends nothing.
  const std::uint64_t piece =
      shares_.round_bytes == 0 ? kPieceBytes : std::min(kPieceBytes, shares_.round_bytes);
  SHW_CHECK(for_each_file_part(run_.laid_out, [&](const FilePart& part) {
    has_parts[part.file] = true;
    if (!there[part.file]) writer_.add(part, piece);
  }));
  parts_ = assign_parts(dealt_, writer_.parts());
  find_sent_parts();
  const bool in_rounds = std::find(is_sent_.begin(), is_sent_.end(), true) != is_sent_.end();
  rounds_.resize(team_.size());
  for (std::size_t worker = 0; worker < team_.size(); ++worker) {
    // Without data to send no rank waits for another.
    if (in_rounds)
      cut_rounds(worker, parts_.own[worker]);
    else
      rounds_[worker] = {parts_.own[worker]};
    round_count_ = std::max(round_count_, rounds_[worker].size());
  }
  const IndexRange mine = parts_.own[team_.rank()];
  writer_.expect(writer_.parts().subspan(mine.first, mine.last - mine.first));
  for (const SharedFile& shared : parts_.shared)
    writer_.share(shared.file, shared.owner == team_.rank());
  for (std::uint32_t file = 0; file < has_parts.size(); ++file) {
    if (!has_parts[file] && dealt_.writer[file] == team_.rank()) empty_files_.push_back(file);
  }
  return {};
}

std::span<const FilePart> CollectiveWriter::parts_of_rank_in_round(std::size_t worker,
                                                                   std::size_t round) const {
  if (round >= rounds_[worker].size()) return {};
  const IndexRange share = rounds_[worker][round];
  return writer_.parts().subspan(share.first, share.last - share.first);
}

// The parts of jobs that this rank reads.
Status CollectiveWriter::for_each_own_part(const FilePart& part,
                                           const std::function<Status(const JobPart&)>& then) {
  const std::uint32_t writer = writer_of(part);
  auto is_mine = [&](const ProgramJob& job) {
    return job.source != SourceId::kNone && dealt_.reader_for(job.source, writer) == team_.rank();
  };
  return for_each_job_part(run_.program, run_.made[part.index], part.blocks,
                           writer_.payloads().limits(), is_mine, then);
}

Result<std::uint64_t> CollectiveWriter::count_own_bytes(const FilePart& part) {
  std::uint64_t bytes = 0;
  auto count = [&](const JobPart& one) -> Status {
    bytes += one.length();
    return {};
  };
  SHW_CHECK(for_each_own_part(part, count));
  return bytes;
}

Result<ElementSums> CollectiveWriter::read_own_parts_of(const FilePart& part,
                                                        std::span<std::byte> to) {
  ElementSums elements;
  auto space = writer_.payloads().workspace();
  auto read = [&](const JobPart& one) -> Status {
    if (is_cancelled(progress_)) return cancelled_error();
    SHW_TRY(TileJob tile, tile_of(one.job, space->storages));
    SHW_CHECK(read_part(run_.program, one, tile, space->storages, to.first(one.length()), elements,
                        stages_of(progress_)));
    to = to.subspan(one.length());
    return {};
  };
  SHW_CHECK(for_each_own_part(part, read));
  return elements;
}

// Header (kSentNumbers) of every sent part, then their bytes.
Result<Bytes> CollectiveWriter::encode_round_message_for(std::size_t worker, std::size_t round) {
  std::vector<const FilePart*> shared;
  for (const FilePart& part : parts_of_rank_in_round(worker, round)) {
    if (is_sent(part)) shared.push_back(&part);
  }
  std::vector<std::uint64_t> rows(kSentNumbers * shared.size()), begin;
  const std::uint64_t head = rows.size() * sizeof(std::uint64_t);
  std::uint64_t length = head;
  for (std::size_t i = 0; i < shared.size(); ++i) {
    SHW_TRY(rows[kSentNumbers * i], count_own_bytes(*shared[i]));
    begin.push_back(length);
    length += rows[kSentNumbers * i];
  }
  Bytes message(static_cast<std::size_t>(length));
  SHW_CHECK(parallel_for(shared.size(), [&](std::size_t i) -> Status {
    auto to = std::span(message).subspan(static_cast<std::size_t>(begin[i]),
                                         static_cast<std::size_t>(rows[kSentNumbers * i]));
    if (!to.empty()) {
      SHW_TRY(ElementSums elements, read_own_parts_of(*shared[i], to));
      rows[kSentNumbers * i + 1] = elements.fingerprint.a;
      rows[kSentNumbers * i + 2] = elements.fingerprint.b;
      rows[kSentNumbers * i + 3] = elements.out_of_range;
    }
    writer_.payloads().done(run_.made[shared[i]->index]);
    return {};
  }));
  if (head != 0) std::memcpy(message.data(), rows.data(), static_cast<std::size_t>(head));
  return message;
}

Status CollectiveWriter::begin_messages(std::size_t round, std::vector<Bytes>& messages) {
  messages.assign(team_.size(), {});
  for (std::size_t worker = 0; worker < team_.size(); ++worker) {
    if (worker == team_.rank()) continue;
    SHW_TRY(messages[worker], encode_round_message_for(worker, round));
  }
  return {};
}

// By sending rank: the pieces that it has sent.
Result<std::vector<std::vector<SourceDataMessage>>> CollectiveWriter::open_messages(
    const std::vector<Bytes>& come, std::size_t round) const {
  const auto own = parts_of_rank_in_round(team_.rank(), round);
  const auto count = static_cast<std::size_t>(
      std::count_if(own.begin(), own.end(), [&](const FilePart& part) { return is_sent(part); }));
  std::vector<std::vector<SourceDataMessage>> pieces(come.size(),
                                                     std::vector<SourceDataMessage>(count));
  for (std::size_t worker = 0; worker < come.size(); ++worker) {
    if (worker == team_.rank()) continue;
    BytesView bytes = come[worker];
    Decoder rows(bytes);
    std::size_t at = kSentNumbers * count * sizeof(std::uint64_t);
    for (SourceDataMessage& piece : pieces[worker]) {
      SHW_TRY(std::uint64_t length, rows.number());
      SHW_TRY(piece.elements.fingerprint.a, rows.number());
      SHW_TRY(piece.elements.fingerprint.b, rows.number());
      SHW_TRY(piece.elements.out_of_range, rows.number());
      if (at > bytes.size() || length > bytes.size() - at)
        return fail(ErrorKind::kIo, fmt::format("a message of worker {} is truncated", worker));
      piece.bytes = bytes.subspan(at, static_cast<std::size_t>(length));
      at += static_cast<std::size_t>(length);
    }
    if (at != bytes.size())
      return fail(ErrorKind::kIo, fmt::format("a message of worker {} is too long", worker));
  }
  return pieces;
}

Status CollectiveWriter::write_round(const std::vector<Bytes>& come, std::size_t round) {
  SHW_TRY(auto pieces, open_messages(come, round));
  const auto own = parts_of_rank_in_round(team_.rank(), round);
  std::vector<std::size_t> piece_of(own.size());
  std::vector<std::uint32_t> files(own.size());
  std::size_t next = 0;
  for (std::size_t i = 0; i < own.size(); ++i) {
    piece_of[i] = is_sent(own[i]) ? next++ : SIZE_MAX;
    files[i] = own[i].file;
  }
  return parallel_for_by_file(files, needs_decoded_items(run_.program),
                              [&](std::size_t i) -> Status {
                                if (piece_of[i] == SIZE_MAX) return writer_.write(own[i]);
                                ReceivedSourceData sent(dealt_, self());
                                for (std::size_t worker = 0; worker < pieces.size(); ++worker) {
                                  if (worker != self())
                                    sent.add(worker, pieces[worker][piece_of[i]]);
                                }
                                return writer_.write(own[i], &sent);
                              });
}

// Reads and sends the next round while the current one is written.
Status CollectiveWriter::write_all() {
  std::vector<Bytes> next;
  Bytes left;  // reports of this rank for the owners of shared files
  std::future<Status> writing;
  auto all_written = [&] { return writing.valid() ? writing.get() : Status{}; };
  HeartbeatTask task{"read and write", {}, progress_};
  task.news = [&] { return journal_.news(); };
  task.receive = [&](std::size_t member, BytesView news) { return journal_.receive(member, news); };
  task.work = [&]() -> Status {
    SHW_CHECK(create_shared_files(parts_, self(), writer_));
    return begin_messages(0, next);
  };
  SHW_CHECK(run_with_heartbeat(team_, task));
  for (std::size_t round = 0; round < round_count_; ++round) {
    auto come = team_.exchange(std::exchange(next, {}), "tiles");
    if (!come) {
      team_.stop(come.error());
      return tl::unexpected<Error>(std::move(come).error());
    }
    task.work = [&]() -> Status {
      SHW_CHECK(all_written());
      writing = run_on_own_thread(
          [this, round, sent = std::move(*come)] { return write_round(sent, round); });
      return begin_messages(round + 1, next);
    };
    SHW_CHECK(run_with_heartbeat(team_, task));
  }
  task.work = [&]() -> Status {
    SHW_CHECK(all_written());
    for (std::uint32_t file : empty_files_) SHW_CHECK(writer_.finish(file));
    SHW_TRY(left, finish_own_parts_of_shared_files(parts_, self(), writer_));
    return {};
  };
  SHW_CHECK(run_with_heartbeat(team_, task));
  if (parts_.shared.empty()) return {};
  SHW_TRY(auto told, team_.allgather(std::move(left), "pieces of files"));
  for (std::size_t worker = 0; worker < told.size(); ++worker) {
    if (worker != team_.rank()) SHW_CHECK(writer_.receive(told[worker]));
  }
  task.work = [&] { return finish_shared_files(parts_, self(), writer_); };
  return run_with_heartbeat(team_, task);
}

// Sends the checksums of each rank's chunks to all: (chunk, a, b, out of range).
Result<WrittenElementSums> allgather_element_sums(Team& team, WrittenElementSums own) {
  std::vector<std::uint64_t> rows;
  for (std::size_t tile = 0; tile < own.size(); ++tile) {
    if (!own[tile]) continue;
    const auto& [fingerprint, out_of_range] = *own[tile];
    rows.insert(rows.end(), {tile, fingerprint.a, fingerprint.b, out_of_range});
  }
  Encoder payload;
  payload.add(rows);
  SHW_TRY(auto told, team.allgather(payload.take(), "fingerprints"));
  for (const Bytes& message : told) {
    Decoder theirs(message);
    SHW_TRY(rows, theirs.numbers());
    for (std::size_t i = 0; i + 3 < rows.size(); i += 4) {
      if (rows[i] >= own.size())
        return fail(ErrorKind::kIo, "another worker made a tile that is not to be made");
      own[static_cast<std::size_t>(rows[i])] = ElementSums{{rows[i + 1], rows[i + 2]}, rows[i + 3]};
    }
  }
  return own;
}

}  // namespace

Result<WrittenElementSums> write_files_collectively(const FileWriterInputs& with,
                                                    TeamJournal& journal) {
  Team& team = *with.run.team;
  const OnFileDurable done = [&](const DurableFile& file) { return journal.add(file); };
  FileWriter writer(with, done);
  SHW_TRY(auto machines, gather_machine_of_each_rank(team));
  CollectiveWriter writing(with, assign_files(with.run, with.there, machines), writer, journal);
  SHW_CHECK(writing.plan(with.there));
  SHW_CHECK(writing.write_all());
  SHW_CHECK(with.copied_items.share(team));
  return allgather_element_sums(team, writer.release_elements());
}

}  // namespace shw
