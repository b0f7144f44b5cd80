#include "core/exec/agree_on_run.h"

#include <fmt/core.h>

#include <algorithm>

#include "core/base/hash.h"
#include "core/exec/team_journal.h"

namespace shw {
namespace {

// Paths and sizes of the input files; times may differ between machines.
std::string hash_of_inputs(const JournalHeader& header) {
  Encoder payload;
  for (const JournalInput& input : header.inputs) {
    payload.add(std::uint64_t{input.files.size()});
    for (const Entry& file : input.files) {
      payload.add(file.path);
      payload.add(file.size);
    }
  }
  return to_hex(hash_of(payload.take()));
}

std::vector<std::uint64_t> numbers_of(const MemoryPlan& shares) {
  return {shares.limits.slab_bytes, shares.limits.turned_bytes, shares.round_bytes};
}

}  // namespace

Status agree_on_run(Team& team, const JournalHeader& header, MemoryPlan& shares) {
  const std::vector<std::string> own = {header.program, header.laid_out, hash_of_inputs(header),
                                        header.out};
  constexpr const char* kWhat[] = {"would move other bytes", "would lay out other files",
                                   "sees other files in the checkpoint", "would write into"};
  Encoder payload;
  for (const std::string& one : own) payload.add(one);
  payload.add(numbers_of(shares));
  SHW_TRY(auto told, team.allgather(payload.take(), "agree on the plan"));
  for (std::size_t member = 0; member < told.size(); ++member) {
    Decoder theirs(told[member]);
    for (std::size_t i = 0; i < own.size(); ++i) {
      SHW_TRY(std::string one, theirs.text());
      if (one == own[i]) continue;
      return fail(
          ErrorKind::kIo,
          fmt::format("nothing was written: worker {} {}{} than worker {}", member, kWhat[i],
                      i + 1 == own.size() ? " " + one + ", another folder" : "", team.rank()),
          {}, "start all of them with the same arguments, on machines that see the same files");
    }
    SHW_TRY(auto numbers, theirs.numbers());
    if (member != 0 || numbers.size() != 3) continue;
    shares.limits = {numbers[0], numbers[1]};
    shares.round_bytes = numbers[2];
  }
  return {};
}

Result<CreatedFolder> share_created_folder(Team& team, const CreatedFolder& own) {
  Encoder payload;
  if (team.rank() == 0) {
    payload.add(own.partial);
    for (const DurableFile& file : own.files) pack(payload, file);
  }
  SHW_TRY(auto told, team.allgather(payload.take(), "begin the folder"));
  Decoder first(told.front());
  CreatedFolder begun;
  SHW_TRY(begun.partial, first.text());
  while (!first.is_at_end()) {
    SHW_TRY(DurableFile file, unpack_durable_file(first));
    begun.files.push_back(std::move(file));
  }
  return begun;
}

}  // namespace shw
