#include "core/tensor/statistics_counter.h"

#include <algorithm>
#include <cassert>
#include <cstring>

#include "core/tensor/cpu_clones.h"
#include "core/tensor/float_counts.h"
#include "core/tensor/statistics_tables.h"

namespace shw {
namespace {

// Up to this many elements are added one by one (25 ns each), which is cheaper than scanning a
// table: 4 * 65,536 counters, 2 * 4096 for float64, 4 * 512 for float32.
std::size_t direct_count_limit(std::size_t width) {
  return width <= 2 ? 2048 : width == 8 ? 512 : 64;
}
// Small parts are joined into blocks of this size.
constexpr std::size_t kStaged = 64 << 10;
// 16 Ki floats: a block is scanned twice and stays in the cache.
constexpr std::size_t kFloatBlock = 64 << 10;

std::uint64_t load_bits(BytesView bytes, std::size_t at, std::size_t width) {
  std::uint64_t bits = 0;
  std::memcpy(&bits, bytes.data() + at, width);
  return bits;
}

}  // namespace

struct StatisticsCounter::Tables {
  StatisticsSums sums;
  std::size_t width = 0;
  Bytes staged;
  std::unique_ptr<CodeTable> codes;
  std::unique_ptr<Float32Table> float32;
  std::unique_ptr<Float64Table> float64;
};

StatisticsCounter::StatisticsCounter() : tables_(std::make_unique<Tables>()) {}
StatisticsCounter::~StatisticsCounter() = default;

void StatisticsCounter::begin(Dtype dtype) {
  Tables& t = *tables_;
  t.sums = StatisticsSums(dtype);
  t.width = size_of(dtype);
  t.staged.clear();
  if (t.codes) t.codes->clear();
  if (t.float32) t.float32->clear();
  if (t.float64) t.float64->clear();
}

void StatisticsCounter::add_one_by_one(BytesView bytes) {
  Tables& t = *tables_;
  if (t.width == 16) {  // complex128: both numbers are zero, of either sign
    for (std::size_t at = 0; at < bytes.size(); at += 16) {
      std::uint64_t both = load_bits(bytes, at, 8) | load_bits(bytes, at + 8, 8);
      ++t.sums.elements;
      t.sums.zero += both << 1 == 0 ? 1 : 0;
    }
    return;
  }
  for (std::size_t at = 0; at < bytes.size(); at += t.width)
    shw::add_elements(t.sums, load_bits(bytes, at, t.width), 1);
}

void StatisticsCounter::add_whole(BytesView bytes) {
  Tables& t = *tables_;
  if (t.width <= 2) {
    if (!t.codes) t.codes = std::make_unique<CodeTable>();
    t.codes->add(bytes, t.width, t.sums);
  } else if (t.sums.dtype == Dtype::kFloat32) {
    if (!t.float32) t.float32 = std::make_unique<Float32Table>();
    for (std::size_t at = 0; at < bytes.size(); at += kFloatBlock)
      t.float32->add(bytes.subspan(at, std::min(kFloatBlock, bytes.size() - at)), t.sums);
  } else if (t.sums.dtype == Dtype::kFloat64) {
    if (!t.float64) t.float64 = std::make_unique<Float64Table>();
    for (std::size_t at = 0; at < bytes.size(); at += kFloatBlock)
      t.float64->add(bytes.subspan(at, std::min(kFloatBlock, bytes.size() - at)), t.sums);
  } else if (number_kind(t.sums.dtype) == NumberKind::kInteger) {
    add_integers(bytes, t.sums);
  } else {
    add_one_by_one(bytes);
  }
}

void StatisticsCounter::add(BytesView bytes) {
  Tables& t = *tables_;
  if (t.width == 0) return;
  if (!t.staged.empty()) {
    const std::size_t held = t.staged.size(), more = std::min(kStaged - held, bytes.size());
    if (more == 0) return;
    t.staged.resize(held + more);
    std::memcpy(t.staged.data() + held, bytes.data(), more);
    bytes = bytes.subspan(more);
    if (t.staged.size() < kStaged) return;
    add_whole(t.staged);
    t.staged.clear();
  }
  std::size_t whole = bytes.size() < kStaged ? 0 : bytes.size() / t.width * t.width;
  if (whole != 0) add_whole(bytes.first(whole));
  t.staged.assign(bytes.begin() + static_cast<std::ptrdiff_t>(whole), bytes.end());
}

void StatisticsCounter::add_zeros(std::uint64_t bytes) {
  Tables& t = *tables_;
  if (t.width == 0 || bytes == 0) return;
  static constexpr std::byte kZeros[16] = {};
  std::uint64_t begun = t.staged.size() % t.width;
  std::uint64_t first = begun == 0 ? 0 : std::min<std::uint64_t>(t.width - begun, bytes);
  add(BytesView(kZeros).first(static_cast<std::size_t>(first)));
  bytes -= first;
  if (bytes >= t.width) shw::add_elements(t.sums, 0, bytes / t.width);
  add(BytesView(kZeros).first(static_cast<std::size_t>(bytes % t.width)));
}

StatisticsSums StatisticsCounter::take() {
  Tables& t = *tables_;
  bool in_table = t.codes != nullptr && !t.codes->is_empty();
  if (t.width != 0) {
    BytesView staged = BytesView(t.staged).first(t.staged.size() / t.width * t.width);
    if (in_table || staged.size() >= direct_count_limit(t.width) * t.width)
      add_whole(staged);
    else
      add_one_by_one(staged);
  }
  if (t.codes) t.codes->move_to(t.sums, t.width);
  if (t.float32) t.float32->move_to(t.sums);
  if (t.float64) t.float64->move_to(t.sums);
  t.staged.clear();
  return std::move(t.sums);
}

}  // namespace shw
