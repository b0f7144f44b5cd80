#include "core/exec/file_assignment.h"

#include <algorithm>
#include <numeric>
#include <tuple>

#include "core/base/team.h"

namespace shw {
namespace {

// Bytes of a source that a rank needs for its outputs.
struct SourceNeed {
  std::uint32_t source = 0, worker = 0;
  std::uint64_t bytes = 0;
};

std::vector<SourceNeed> bytes_needed_by_ranks(const FolderRun& run, const std::vector<bool>& there,
                                              const std::vector<std::uint32_t>& writer) {
  std::vector<SourceNeed> needs;
  for (std::size_t i = 0; i < run.made.size(); ++i) {
    const std::uint32_t file = run.laid_out.made[i].file;
    if (there[file]) continue;
    const JobRange jobs = jobs_of(run.program, run.made[i]);
    for (std::size_t j = jobs.first; j < jobs.last; ++j) {
      const ProgramJob& job = run.program.jobs[j];
      if (job.source == SourceId::kNone) continue;
      auto elements = static_cast<std::uint64_t>(volume(run.program.sizes(job)).value_or(0));
      needs.push_back(
          {static_cast<std::uint32_t>(job.source), writer[file], elements * size_of(job.from)});
    }
  }
  std::sort(needs.begin(), needs.end(), [](const SourceNeed& a, const SourceNeed& b) {
    return std::tuple(a.source, a.worker) < std::tuple(b.source, b.worker);
  });
  // Merges all needs of one rank for one source.
  std::size_t kept = 0;
  for (const SourceNeed& need : needs) {
    if (kept != 0 && needs[kept - 1].source == need.source &&
        needs[kept - 1].worker == need.worker) {
      needs[kept - 1].bytes += need.bytes;
    } else {
      needs[kept++] = need;
    }
  }
  needs.resize(kept);
  return needs;
}

// The rank that reads a source: among the ranks that need at least half as much as the largest
// need, the one that reads least; among all ranks if those already read more than their part.
std::uint32_t choose_reader(std::span<const SourceNeed> needs,
                            const std::vector<std::uint64_t>& reads, double share) {
  std::uint64_t most = 0;
  for (const SourceNeed& need : needs) most = std::max(most, need.bytes);
  std::optional<std::uint32_t> best;
  for (const SourceNeed& need : needs) {
    if (need.bytes < most / 2 || static_cast<double>(reads[need.worker]) > share) continue;
    if (!best || reads[need.worker] < reads[*best]) best = need.worker;
  }
  if (best) return *best;
  return static_cast<std::uint32_t>(std::min_element(reads.begin(), reads.end()) - reads.begin());
}

}  // namespace

FileAssignment assign_files(const FolderRun& run, const std::vector<bool>& there,
                            const std::vector<std::uint32_t>& machines) {
  const std::size_t workers = machines.size();
  FileAssignment dealt{machines, {}, {}, {}, {}};
  dealt.order.resize(workers);
  std::iota(dealt.order.begin(), dealt.order.end(), 0u);
  std::stable_sort(dealt.order.begin(), dealt.order.end(),
                   [&](std::uint32_t a, std::uint32_t b) { return machines[a] < machines[b]; });
  std::vector<std::uint64_t> sizes;
  for (std::size_t i = 0; i < run.laid_out.files.size(); ++i)
    sizes.push_back(there[i] ? 0 : run.laid_out.files[i].size);
  dealt.writer.resize(sizes.size());
  std::vector<IndexRange> shares = partition_by_cost(sizes, workers);
  for (std::size_t i = 0; i < workers; ++i)
    std::fill(dealt.writer.begin() + static_cast<std::ptrdiff_t>(shares[i].first),
              dealt.writer.begin() + static_cast<std::ptrdiff_t>(shares[i].last), dealt.order[i]);

  for (const ProgramSource& source : run.program.sources)
    dealt.is_decoded.push_back(source.form == SourceForm::kItem);
  dealt.reader.assign(run.program.sources.size(), 0);
  std::vector<SourceNeed> needs = bytes_needed_by_ranks(run, there, dealt.writer);
  double all = 0;
  for (const SourceNeed& need : needs) all += static_cast<double>(need.bytes);
  const double share = all / static_cast<double>(workers);
  std::vector<std::uint64_t> reads(workers);
  for (std::size_t first = 0; first < needs.size();) {
    std::size_t last = first;
    std::uint64_t bytes = 0;
    while (last < needs.size() && needs[last].source == needs[first].source)
      bytes += needs[last++].bytes;
    std::uint32_t reader =
        choose_reader(std::span(needs).subspan(first, last - first), reads, share);
    reads[reader] += bytes;
    dealt.reader[needs[first].source] = reader;
    first = last;
  }
  return dealt;
}

}  // namespace shw
