#include "core/exec/write_in_team.h"

#include <fmt/core.h>

#include <algorithm>
#include <cstring>
#include <future>
#include <utility>

#include "core/base/packed.h"
#include "core/base/parallel.h"
#include "core/base/threads.h"
#include "core/exec/deal_parts.h"
#include "core/exec/decoded_places.h"
#include "core/exec/file_turns.h"
#include "core/exec/job_part.h"
#include "core/exec/parts_of_others.h"
#include "core/exec/shared_files.h"

namespace shw {
namespace {

// What a worker writes in a round where nothing has to be sent.
constexpr std::uint64_t kRoundBytes = std::uint64_t{256} << 20;
constexpr std::size_t kRoundParts = 1 << 14;
// Before the bytes of a part: its length, what they come to (fingerprint a, b), and how many
// elements of it are out of range.
constexpr std::size_t kSentNumbers = 4;

// Whether another worker than `writer` reads something of a tile for it.
bool is_sent_something(const FolderRun& run, const DealtFiles& dealt, std::size_t tile,
                       std::uint32_t writer) {
  const JobRange jobs = jobs_of(run.program, run.made[tile]);
  for (std::size_t j = jobs.first; j < jobs.last; ++j) {
    if (dealt.reader_for(run.program.jobs[j].source, writer) != writer) return true;
  }
  return false;
}

class TeamWriting {
 public:
  TeamWriting(const FileWriting& with, DealtFiles dealt, FileWriter& writer, TeamJournal& journal)
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
  using Rounds = std::vector<Share>;  // of FileWriter::parts()

  std::span<const FilePart> parts_in(std::size_t worker, std::size_t round) const;
  std::uint32_t self() const { return static_cast<std::uint32_t>(team_.rank()); }
  std::uint32_t writer_of(const FilePart& part) const {
    return parts_.writer[static_cast<std::size_t>(&part - writer_.parts().data())];
  }
  bool is_sent(const FilePart& part) const {
    return is_sent_[static_cast<std::size_t>(&part - writer_.parts().data())];
  }
  void find_sent_parts();
  void cut_rounds(std::size_t worker, Share parts);
  Status begin_messages(std::size_t round, std::vector<Bytes>& messages);
  Status each_of_mine(const FilePart& part, const std::function<Status(const JobPart&)>& then);
  Result<std::uint64_t> bytes_for(const FilePart& part);
  Result<ElementSums> read_for(const FilePart& part, std::span<std::byte> to);
  Result<Bytes> message_to(std::size_t worker, std::size_t round);
  Result<std::vector<std::vector<SentPiece>>> open_messages(const std::vector<Bytes>& come,
                                                            std::size_t round) const;
  Status write_round(const std::vector<Bytes>& come, std::size_t round);

  const FolderRun& run_;
  const MemoryShares& shares_;
  Team& team_;
  const DealtFiles dealt_;
  DealtParts parts_;
  std::vector<bool> is_sent_;  // by part: others read something of it for its writer
  FileWriter& writer_;
  TeamJournal& journal_;
  Progress* progress_;
  std::vector<Rounds> rounds_;  // by worker
  std::size_t round_count_ = 0;
  std::vector<std::uint32_t> empty_files_;  // of this worker
};

// What a part takes of a message, at most.
std::uint64_t sent_at_most(const FolderRun& run, const FilePart& part, std::uint64_t pieces) {
  const JobRange jobs = jobs_of(run.program, run.made[part.index]);
  const std::size_t made = size_of(run.program.output(run.made[part.index]).dtype);
  const std::uint64_t elements = part.length / std::max<std::size_t>(made, 1) / pieces + 1;
  return elements * std::max(widest(run.program, jobs), made);
}

// A tile's pieces follow each other, and so do those of one writer.
void TeamWriting::find_sent_parts() {
  const auto parts = writer_.parts();
  is_sent_.resize(parts.size());
  for (std::size_t i = 0; i < parts.size(); ++i) {
    if (parts[i].is != FilePart::Is::kMade) continue;
    const bool as_before = i != 0 && parts[i - 1].is == FilePart::Is::kMade &&
                           parts[i - 1].index == parts[i].index &&
                           parts_.writer[i - 1] == parts_.writer[i];
    is_sent_[i] = as_before ? is_sent_[i - 1]
                            : is_sent_something(run_, dealt_, parts[i].index, parts_.writer[i]);
  }
}

void TeamWriting::cut_rounds(std::size_t worker, Share parts) {
  std::uint64_t bytes = 0, sent = 0;
  Share round{parts.first, parts.first};
  for (; round.last < parts.last; ++round.last) {
    const FilePart& part = writer_.parts()[round.last];
    const std::uint64_t length = bytes_of(part);
    std::uint64_t own = 0;
    if (is_sent_[round.last])
      own = sent_at_most(run_, part, part.block_count) * (part.blocks.last - part.blocks.first);
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

Status TeamWriting::plan(const std::vector<bool>& there) {
  std::vector<bool> has_parts = there;
  // A team of one is sent nothing.
  const std::uint64_t piece =
      shares_.round_bytes == 0 ? kPieceBytes : std::min(kPieceBytes, shares_.round_bytes);
  SHW_CHECK(each_file_part(run_.laid_out, [&](const FilePart& part) {
    has_parts[part.file] = true;
    if (!there[part.file]) writer_.add(part, piece);
  }));
  parts_ = deal_parts(dealt_, writer_.parts());
  find_sent_parts();
  const bool in_rounds = std::find(is_sent_.begin(), is_sent_.end(), true) != is_sent_.end();
  rounds_.resize(team_.size());
  for (std::size_t worker = 0; worker < team_.size(); ++worker) {
    // Nobody waits for anybody where nothing is sent.
    if (in_rounds)
      cut_rounds(worker, parts_.own[worker]);
    else
      rounds_[worker] = {parts_.own[worker]};
    round_count_ = std::max(round_count_, rounds_[worker].size());
  }
  const Share mine = parts_.own[team_.rank()];
  writer_.expect(writer_.parts().subspan(mine.first, mine.last - mine.first));
  for (const SharedFile& shared : parts_.shared)
    writer_.share(shared.file, shared.owner == team_.rank());
  for (std::uint32_t file = 0; file < has_parts.size(); ++file) {
    if (!has_parts[file] && dealt_.writer[file] == team_.rank()) empty_files_.push_back(file);
  }
  return {};
}

std::span<const FilePart> TeamWriting::parts_in(std::size_t worker, std::size_t round) const {
  if (round >= rounds_[worker].size()) return {};
  const Share share = rounds_[worker][round];
  return writer_.parts().subspan(share.first, share.last - share.first);
}

// Those parts of jobs that this worker reads.
Status TeamWriting::each_of_mine(const FilePart& part,
                                 const std::function<Status(const JobPart&)>& then) {
  const std::uint32_t writer = writer_of(part);
  auto is_mine = [&](const ProgramJob& job) {
    return job.source != SourceId::kNone && dealt_.reader_for(job.source, writer) == team_.rank();
  };
  return each_part(run_.program, run_.made[part.index], part.blocks, writer_.payloads().limits(),
                   is_mine, then);
}

Result<std::uint64_t> TeamWriting::bytes_for(const FilePart& part) {
  std::uint64_t bytes = 0;
  auto count = [&](const JobPart& one) -> Status {
    bytes += one.length();
    return {};
  };
  SHW_CHECK(each_of_mine(part, count));
  return bytes;
}

Result<ElementSums> TeamWriting::read_for(const FilePart& part, std::span<std::byte> to) {
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
  SHW_CHECK(each_of_mine(part, read));
  return elements;
}

// kSentNumbers of every shared part; then their bytes.
Result<Bytes> TeamWriting::message_to(std::size_t worker, std::size_t round) {
  std::vector<const FilePart*> shared;
  for (const FilePart& part : parts_in(worker, round)) {
    if (is_sent(part)) shared.push_back(&part);
  }
  std::vector<std::uint64_t> rows(kSentNumbers * shared.size()), begin;
  const std::uint64_t head = rows.size() * sizeof(std::uint64_t);
  std::uint64_t length = head;
  for (std::size_t i = 0; i < shared.size(); ++i) {
    SHW_TRY(rows[kSentNumbers * i], bytes_for(*shared[i]));
    begin.push_back(length);
    length += rows[kSentNumbers * i];
  }
  Bytes message(static_cast<std::size_t>(length));
  SHW_CHECK(each_in_parallel(shared.size(), [&](std::size_t i) -> Status {
    auto to = std::span(message).subspan(static_cast<std::size_t>(begin[i]),
                                         static_cast<std::size_t>(rows[kSentNumbers * i]));
    if (!to.empty()) {
      SHW_TRY(ElementSums elements, read_for(*shared[i], to));
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

Status TeamWriting::begin_messages(std::size_t round, std::vector<Bytes>& messages) {
  messages.assign(team_.size(), {});
  for (std::size_t worker = 0; worker < team_.size(); ++worker) {
    if (worker == team_.rank()) continue;
    SHW_TRY(messages[worker], message_to(worker, round));
  }
  return {};
}

// By worker, the pieces that it has sent.
Result<std::vector<std::vector<SentPiece>>> TeamWriting::open_messages(
    const std::vector<Bytes>& come, std::size_t round) const {
  const auto own = parts_in(team_.rank(), round);
  const auto count = static_cast<std::size_t>(
      std::count_if(own.begin(), own.end(), [&](const FilePart& part) { return is_sent(part); }));
  std::vector<std::vector<SentPiece>> pieces(come.size(), std::vector<SentPiece>(count));
  for (std::size_t worker = 0; worker < come.size(); ++worker) {
    if (worker == team_.rank()) continue;
    BytesView bytes = come[worker];
    Unpacker rows(bytes);
    std::size_t at = kSentNumbers * count * sizeof(std::uint64_t);
    for (SentPiece& piece : pieces[worker]) {
      SHW_TRY(std::uint64_t length, rows.number());
      SHW_TRY(piece.elements.fingerprint.a, rows.number());
      SHW_TRY(piece.elements.fingerprint.b, rows.number());
      SHW_TRY(piece.elements.out_of_range, rows.number());
      if (at > bytes.size() || length > bytes.size() - at)
        return fail(ErrorKind::kIo, fmt::format("a message of worker {} is cut off", worker));
      piece.bytes = bytes.subspan(at, static_cast<std::size_t>(length));
      at += static_cast<std::size_t>(length);
    }
    if (at != bytes.size())
      return fail(ErrorKind::kIo, fmt::format("a message of worker {} is too long", worker));
  }
  return pieces;
}

Status TeamWriting::write_round(const std::vector<Bytes>& come, std::size_t round) {
  SHW_TRY(auto pieces, open_messages(come, round));
  const auto own = parts_in(team_.rank(), round);
  std::vector<std::size_t> piece_of(own.size());
  std::vector<std::uint32_t> files(own.size());
  std::size_t next = 0;
  for (std::size_t i = 0; i < own.size(); ++i) {
    piece_of[i] = is_sent(own[i]) ? next++ : SIZE_MAX;
    files[i] = own[i].file;
  }
  return each_in_turns(files, decodes_items(run_.program), [&](std::size_t i) -> Status {
    if (piece_of[i] == SIZE_MAX) return writer_.write(own[i]);
    PartOfOthers sent(dealt_, self());
    for (std::size_t worker = 0; worker < pieces.size(); ++worker) {
      if (worker != self()) sent.add(worker, pieces[worker][piece_of[i]]);
    }
    return writer_.write(own[i], &sent);
  });
}

// While a round is written the next one is read and sent.
Status TeamWriting::write_all() {
  std::vector<Bytes> next;
  Bytes left;  // what this one leaves to the owners of files
  std::future<Status> writing;
  auto all_written = [&] { return writing.valid() ? writing.get() : Status{}; };
  BesideWork beside{"read and write", {}, progress_};
  beside.news = [&] { return journal_.news(); };
  beside.hear = [&](std::size_t member, BytesView news) { return journal_.hear(member, news); };
  beside.work = [&]() -> Status {
    SHW_CHECK(create_shared(parts_, self(), writer_));
    return begin_messages(0, next);
  };
  SHW_CHECK(work_beside(team_, beside));
  for (std::size_t round = 0; round < round_count_; ++round) {
    auto come = team_.exchange(std::exchange(next, {}), "tiles");
    if (!come) {
      team_.stop(come.error());
      return tl::unexpected<Error>(std::move(come).error());
    }
    beside.work = [&]() -> Status {
      SHW_CHECK(all_written());
      writing =
          run_beside([this, round, sent = std::move(*come)] { return write_round(sent, round); });
      return begin_messages(round + 1, next);
    };
    SHW_CHECK(work_beside(team_, beside));
  }
  beside.work = [&]() -> Status {
    SHW_CHECK(all_written());
    for (std::uint32_t file : empty_files_) SHW_CHECK(writer_.finish(file));
    SHW_TRY(left, leave_shared(parts_, self(), writer_));
    return {};
  };
  SHW_CHECK(work_beside(team_, beside));
  if (parts_.shared.empty()) return {};
  SHW_TRY(auto told, team_.tell_all(std::move(left), "pieces of files"));
  for (std::size_t worker = 0; worker < told.size(); ++worker) {
    if (worker != team_.rank()) SHW_CHECK(writer_.hear(told[worker]));
  }
  beside.work = [&] { return finish_shared(parts_, self(), writer_); };
  return work_beside(team_, beside);
}

// What each has read for a tile, told to all: (tile, a, b, out of range) of those that were made.
Result<MadeElements> share_elements(Team& team, MadeElements own) {
  std::vector<std::uint64_t> rows;
  for (std::size_t tile = 0; tile < own.size(); ++tile) {
    if (!own[tile]) continue;
    const auto& [fingerprint, out_of_range] = *own[tile];
    rows.insert(rows.end(), {tile, fingerprint.a, fingerprint.b, out_of_range});
  }
  Packer words;
  words.add(rows);
  SHW_TRY(auto told, team.tell_all(words.take(), "fingerprints"));
  for (const Bytes& message : told) {
    Unpacker theirs(message);
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

Result<MadeElements> write_in_team(const FileWriting& with, TeamJournal& journal) {
  Team& team = *with.run.team;
  const FileDone done = [&](const DurableFile& file) { return journal.add(file); };
  FileWriter writer(with, done);
  SHW_TRY(auto machines, machines_of(team));
  TeamWriting writing(with, deal_files(with.run, with.there, machines), writer, journal);
  SHW_CHECK(writing.plan(with.there));
  SHW_CHECK(writing.write_all());
  SHW_CHECK(with.came_along.share(team));
  return share_elements(team, writer.take_elements());
}

}  // namespace shw
