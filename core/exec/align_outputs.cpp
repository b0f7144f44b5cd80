#include "core/exec/align_outputs.h"

#include <algorithm>
#include <array>
#include <optional>
#include <tuple>
#include <vector>

#include "core/base/checked.h"
#include "core/exec/job_part.h"
#include "core/io/copy_range.h"

namespace shw {
namespace {

// A run of bytes that could be shared if its item, or the whole file, moved up.
struct Run {
  std::uint32_t file = 0;
  std::uint64_t item = 0;  // offset of the item that contains the run
  std::uint64_t move = 0;
  std::uint64_t length = 0;
};

// The run of a job's elements if they are contiguous in the source and in the output.
std::optional<Run> run_of(const Program& program, const ProgramJob& job, const WrittenTile& made) {
  if (job.op != ElementOp::kCopy) return std::nullopt;
  const ProgramOutput& out = program.output(job.output);
  const auto part = part_of(program, job, {Extents(out.ndim, 0), copy_of(program.sizes(out))});
  if (!part || part->length() < kMinShared) return std::nullopt;
  const auto begin = contiguous_source_offset(program, *part);
  ExtentsView at = program.at(job), sizes = program.sizes(job), all = program.sizes(out);
  std::uint64_t first = 0;
  bool is_run = begin.has_value(), is_narrow = false;
  for (std::size_t d = 0; d < sizes.size(); ++d) {
    is_run = is_run && (!is_narrow || sizes[d] == all[d]);
    is_narrow = is_narrow || sizes[d] != 1;
    first = first * static_cast<std::uint64_t>(all[d]) + static_cast<std::uint64_t>(at[d]);
  }
  if (!is_run) return std::nullopt;
  const std::uint64_t place = made.offset + first * size_of(job.to);
  return Run{made.file, made.item_offset, reflink_alignment_padding(*begin, place), part->length()};
}

// The longest run of an item decides how far the item moves.
std::optional<Run> run_of(const Program& program, OutputId output, const WrittenTile& made) {
  std::optional<Run> longest;
  if (made.length < kMinShared) return longest;
  const JobRange jobs = jobs_of(program, output);
  for (std::size_t j = jobs.first; j < jobs.last; ++j) {
    auto run = run_of(program, program.jobs[j], made);
    if (run && (!longest || run->length > longest->length)) longest = run;
  }
  return longest;
}

// The runs of the outputs at their current positions.
std::vector<Run> runs_of(const Program& program, std::span<const OutputId> made,
                         const LaidOut& laid_out) {
  std::vector<Run> runs;
  for (const OutputCopy& copy : laid_out.copies) {
    if (copy.length >= kMinShared && !copy.is_inside)
      runs.push_back({copy.file, copy.offset, reflink_alignment_padding(copy.begin, copy.offset),
                      copy.length});
  }
  for (std::size_t i = 0; i < made.size(); ++i) {
    if (auto run = run_of(program, made[i], laid_out.made[i])) runs.push_back(*run);
  }
  std::sort(runs.begin(), runs.end(), [](const Run& a, const Run& b) {
    return std::tuple(a.file, a.item) < std::tuple(b.file, b.item);
  });
  return runs;
}

// Bytes from this offset on move up by this amount.
struct Shift {
  std::uint32_t file = 0;
  std::uint64_t offset = 0, by = 0;
};

// Adds a gap before each item that needs one; `by` accumulates all gaps so far.
std::vector<Shift> insert_alignment_gaps(std::span<const Run> runs) {
  std::vector<Shift> shifts;
  for (const Run& run : runs) {
    const bool is_first = shifts.empty() || shifts.back().file != run.file;
    const std::uint64_t before = is_first ? 0 : shifts.back().by;
    const std::uint64_t gap = (run.move - before) % kShareBlock;
    if (gap != 0) shifts.push_back({run.file, run.item, before + gap});
  }
  return shifts;
}

// Header sizes stay multiples of the widest element.
constexpr std::uint64_t kHeaderStep = 8;

// The shift of a whole file that shares the most bytes; the smallest if several do.
std::uint64_t best_file_shift(std::span<const Run> runs) {
  std::array<std::uint64_t, kShareBlock / kHeaderStep> bytes{};
  for (const Run& run : runs) {
    if (run.move % kHeaderStep == 0) bytes[run.move / kHeaderStep] += run.length;
  }
  auto best = std::max_element(bytes.begin(), bytes.end());
  return static_cast<std::uint64_t>(best - bytes.begin()) * kHeaderStep;
}

// Widens the header of every file for which that shares blocks.
std::vector<Shift> widen_headers(const FormatWriter& writer, std::span<const Run> runs,
                                 LaidOut& laid_out) {
  std::vector<Shift> shifts;
  for (OutputBytes& header : laid_out.before) {
    auto of_file = std::equal_range(runs.begin(), runs.end(), Run{.file = header.file},
                                    [](const Run& a, const Run& b) { return a.file < b.file; });
    const std::uint64_t by = best_file_shift({of_file.first, of_file.second});
    const std::uint64_t end = header.bytes.size();
    if (by != 0 && header.offset == 0 && writer.widen_header(header.bytes, by))
      shifts.push_back({header.file, end, by});
  }
  std::sort(shifts.begin(), shifts.end(),
            [](const Shift& a, const Shift& b) { return a.file < b.file; });
  return shifts;
}

std::uint64_t shift_at(std::span<const Shift> shifts, std::uint32_t file, std::uint64_t offset) {
  auto behind = std::upper_bound(
      shifts.begin(), shifts.end(), std::tuple(file, offset),
      [](const auto& at, const Shift& shift) { return at < std::tuple(shift.file, shift.offset); });
  return behind != shifts.begin() && (behind - 1)->file == file ? (behind - 1)->by : 0;
}

Status apply_shifts(std::span<const Shift> shifts, LaidOut& laid_out) {
  auto move = [&](std::uint32_t file, std::uint64_t& offset) {
    offset += shift_at(shifts, file, offset);
  };
  for (std::uint32_t i = 0; i < laid_out.files.size(); ++i) {
    LaidOut::File& file = laid_out.files[i];
    auto size = checked_add(file.size, shift_at(shifts, i, file.size));
    if (!size) return fail(ErrorKind::kUnsupported, "would be too large", {file.path});
    file.size = *size;
  }
  for (OutputBytes& bytes : laid_out.before) move(bytes.file, bytes.offset);
  for (OutputCopy& copy : laid_out.copies) move(copy.file, copy.offset);
  for (WrittenTile& made : laid_out.made) {
    const std::uint64_t by = shift_at(shifts, made.file, made.item_offset);
    made.item_offset += by;
    made.offset += by;
  }
  for (LaidOut::Item& item : laid_out.kept) move(item.file, item.offset);
  for (LaidOut::Item& item : laid_out.objects) move(item.file, item.offset);
  for (LaidOut::Item& item : laid_out.given) move(item.file, item.offset);
  return {};
}

}  // namespace

Result<bool> align_outputs(const FormatWriter& writer, std::span<const OutputId> made,
                           LaidOut& laid_out, Program& program) {
  if (!writer.may_have_gaps && writer.widen_header == nullptr) return false;
  const std::vector<Run> runs = runs_of(program, made, laid_out);
  const std::vector<Shift> shifts =
      writer.may_have_gaps ? insert_alignment_gaps(runs) : widen_headers(writer, runs, laid_out);
  if (shifts.empty()) return false;
  SHW_CHECK(apply_shifts(shifts, laid_out));
  for (std::size_t i = 0; i < made.size(); ++i)
    program.outputs[static_cast<std::size_t>(made[i])].offset = laid_out.made[i].offset;
  return true;
}

}  // namespace shw
