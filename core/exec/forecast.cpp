#include "core/exec/forecast.h"

#include <algorithm>
#include <chrono>
#include <map>
#include <span>
#include <tuple>
#include <utility>

#include "core/base/hash.h"
#include "core/base/parallel.h"
#include "core/exec/memory_shares.h"
#include "core/formats/zip/crc32.h"
#include "core/tensor/fingerprint.h"
#include "core/tensor/strided_copy.h"

namespace shw {
namespace {

constexpr std::int64_t kSide = 512;  // rows and columns of a sample
constexpr std::uint64_t kReadSample = std::uint64_t{8} << 20;
constexpr int kReadSamples = 4;
// Fixed thread-seconds per job or chunk: system calls, zip records, the header when read back. The
// sum of 15 us was measured on a repair of 218,304 chunks of 32 bytes; its division among the
// stages is an estimate.
constexpr double kReadSecondsPerJob = 3e-6, kWriteSecondsPerJob = 6e-6,
                 kReadBackSecondsPerJob = 6e-6;

template <class Work>
double measure_wall_seconds(Work work) {
  auto begun = std::chrono::steady_clock::now();
  work();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begun).count();
}

// The best of several measurements, which excludes other load on the machine.
template <class Work>
double min_seconds_of(Work work) {
  double best = measure_wall_seconds(work);
  for (int i = 0; i < 3; ++i) best = std::min(best, measure_wall_seconds(work));
  return best;
}

// Jobs with equal cost per element.
struct JobCostClass {
  ElementOp op = ElementOp::kCopy;
  Dtype from = Dtype::kUnknown, to = Dtype::kUnknown;
  CastChain via{};
  bool turned = false;
  friend bool operator<(const JobCostClass& a, const JobCostClass& b) {
    return std::tie(a.op, a.from, a.to, a.via, a.turned) <
           std::tie(b.op, b.from, b.to, b.via, b.turned);
  }
};

// Seconds per element to compute it and to fingerprint its source.
Result<ComputeSeconds> measure_seconds_per_element(const JobCostClass& one, Executor& executor) {
  const auto in_size = static_cast<std::int64_t>(size_of(one.from));
  const auto out_size = static_cast<std::int64_t>(size_of(one.to));
  std::vector<std::byte> in(static_cast<std::size_t>(kSide * kSide * in_size));
  std::vector<std::byte> out(static_cast<std::size_t>(kSide * kSide * out_size));
  for (std::size_t i = 0; i < in.size(); ++i) in[i] = static_cast<std::byte>(i * 37 % 61);
  TileJob job{one.op, one.from, one.to, {}, {0, 0}, one.via};
  const Extents sizes{kSide, kSide};
  Extents strides = byte_strides(sizes, size_of(one.from));
  if (one.turned) std::swap(strides[0], strides[1]);
  const Extents target = byte_strides(sizes, size_of(one.to)), logical = row_major_strides(sizes);
  LayoutPair elements;
  for_each_canonical_pair(pair_of(sizes, strides, 0, target, 0),
                          [&](const LayoutPair& pair) { job.layouts = pair; });
  for_each_canonical_pair(pair_of(sizes, strides, 0, logical, 0),
                          [&](const LayoutPair& pair) { elements = pair; });
  Fingerprint sum;
  Status made;
  ComputeSeconds spent;
  spent.make = min_seconds_of([&] {
    auto done = executor.run({in, std::span(&job, 1), {}, out});
    if (!done) made = tl::unexpected<Error>(std::move(done).error());
  });
  SHW_CHECK(made);
  if (one.op != ElementOp::kConstant) {
    spent.fingerprint =
        min_seconds_of([&] { add_strided(sum, in.data(), elements, size_of(one.from)); });
  }
  constexpr auto kCount = static_cast<double>(kSide * kSide);
  return ComputeSeconds{spent.make / kCount, spent.fingerprint / kCount};
}

}  // namespace

Result<ComputeSeconds> measure_compute_seconds(const Program& program, Executor& executor) {
  std::map<JobCostClass, double> elements;
  for (const ProgramJob& job : program.jobs)
    elements[{job.op, job.from, job.to, job.via, !reads_contiguous_rows(program, job)}] +=
        static_cast<double>(volume(program.sizes(job)).value_or(0));
  ComputeSeconds all;
  for (const auto& [one, count] : elements) {
    SHW_TRY(ComputeSeconds each, measure_seconds_per_element(one, executor));
    all.make += count * each.make;
    all.fingerprint += count * each.fingerprint;
  }
  return all;
}

namespace {

// The largest source; its read time per byte is taken for all.
const ProgramSource* largest_source(const Program& program) {
  auto largest = std::max_element(
      program.sources.begin(), program.sources.end(),
      [](const ProgramSource& a, const ProgramSource& b) { return a.length < b.length; });
  return largest == program.sources.end() ? nullptr : &*largest;
}

// Seconds per byte, measured on a part.
Result<double> seconds_to_read(const Program& program,
                               const std::vector<const Checkpoint*>& inputs) {
  const ProgramSource* source = largest_source(program);
  if (source == nullptr || inputs[source->input]->directory() == nullptr) return 0.0;
  SHW_TRY(auto file, inputs[source->input]->directory()->open(program.names[source->file]));
  const std::uint64_t size = file->size();
  std::vector<std::byte> room(static_cast<std::size_t>(std::min(kReadSample, size)));
  if (room.empty()) return 0.0;
  Status read;
  double spent = 0;
  for (int i = 0; i < kReadSamples && read; ++i)
    spent += measure_wall_seconds([&] {
      read = file->read((size - room.size()) / kReadSamples * static_cast<std::uint64_t>(i), room);
    });
  SHW_CHECK(read);
  return spent / kReadSamples / static_cast<double>(room.size());
}

StageRates measure_stage_rates(double read) {
  std::vector<std::byte> bytes(std::size_t{1} << 20, std::byte{7});
  const auto count = static_cast<double>(bytes.size());
  double crc = min_seconds_of([&] { static_cast<void>(crc32_of(bytes)); }) / count;
  double hash =
      min_seconds_of([&] { static_cast<void>(hash_of(std::span<const std::byte>(bytes))); });
  Fingerprint sum;
  double elements = min_seconds_of([&] { add_run(sum, bytes.data(), 4, 0, bytes.size() / 4); });
  return {read, read + crc, read + (hash + elements) / count};
}

}  // namespace

Forecast predict_run(const StageRates& rates, double make, const ForecastWork& work,
                     std::size_t threads) {
  const auto at_once = static_cast<double>(std::max<std::size_t>(threads, 1));
  const auto written = static_cast<double>(work.written), copied = static_cast<double>(work.copied);
  const auto tiles = static_cast<double>(work.tiles);
  Forecast out;
  out.seconds = {
      rates.read * static_cast<double>(work.read) +
          kReadSecondsPerJob * static_cast<double>(work.jobs),
      make,
      rates.write * written + (rates.read + rates.write) * copied + kWriteSecondsPerJob * tiles,
      rates.read_back * (written + copied) + kReadBackSecondsPerJob * tiles};
  for (double& seconds : out.seconds) seconds /= at_once;
  for (std::size_t i = 0; i < kStages; ++i) {
    out.total += out.seconds[i];
    if (out.seconds[i] > out.seconds[static_cast<std::size_t>(out.longest)])
      out.longest = static_cast<Stage>(i);
  }
  out.read_rate = rates.read > 0 ? 1 / rates.read : 0;
  return out;
}

Result<Forecast> forecast(const Program& program, const std::vector<const Checkpoint*>& inputs,
                          std::uint64_t copied, std::uint64_t memory) {
  SHW_TRY(double read_rate, seconds_to_read(program, inputs));
  ForecastWork work{0, 0, copied, 0, program.outputs.size()};
  for (const ProgramJob& job : program.jobs) {
    if (job.source == SourceId::kNone) continue;
    ++work.jobs;
    work.read +=
        static_cast<std::uint64_t>(volume(program.sizes(job)).value_or(0)) * size_of(job.from);
  }
  for (const ProgramOutput& output : program.outputs) work.written += output.length;
  SHW_TRY(ComputeSeconds make, measure_compute_seconds(program, *cpu_executor()));
  Forecast out = predict_run(measure_stage_rates(read_rate), make.make + make.fingerprint, work,
                             worker_count());
  const MemoryPlan shares = plan_memory(program, inputs, memory);
  bool turns = std::any_of(program.jobs.begin(), program.jobs.end(), [&](const ProgramJob& job) {
    return !reads_contiguous_rows(program, job);
  });
  std::uint64_t slab = turns ? shares.limits.turned_bytes : shares.limits.slab_bytes;
  out.memory =
      2 * worker_count() * slab + (needs_decoded_items(program) ? shares.decoded_bytes : 0);
  out.decoded_items = shares.decoded.on_disk.size();
  out.decoded_on_disk = shares.decoded.most_at_once;
  return out;
}

}  // namespace shw
