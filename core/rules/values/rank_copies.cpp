#include "core/rules/values/rank_copies.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <optional>

#include "core/base/checked.h"
#include "core/base/encoder.h"
#include "core/base/words.h"
#include "core/facts/values/value_reader.h"
#include "core/tensor/element_difference.h"
#include "core/tensor/strided_copy.h"

namespace shw {
namespace {

constexpr std::array<std::uint64_t, 5> kSteps{1, 2, 16, 256, 65536};
constexpr std::uint64_t kReadAtOnce = 64 << 10;                        // of each copy
constexpr std::uint64_t kMaxGroupReadBytes = std::uint64_t{64} << 20;  // of all copies of a group
// Limit on the bytes of all copies of a group that are held in memory at once.
constexpr std::uint64_t kMaxHeldGroupBytes = std::uint64_t{256} << 20;

template <class Bits>
void count_differences(Dtype dtype, BytesView a, BytesView b, CopyDivergence& out) {
  for (std::size_t i = 0; i < a.size() / sizeof(Bits); ++i) {
    Bits x = bits_at<Bits>(a, i), y = bits_at<Bits>(b, i);
    if (x == y) continue;
    ++out.differing;
    std::uint64_t steps = ulps_between(dtype, x, y);
    auto bucket = std::upper_bound(kSteps.begin(), kSteps.end(), steps) - kSteps.begin();
    ++out.histogram[static_cast<std::size_t>(std::max<std::ptrdiff_t>(bucket, 1) - 1)];
    double first = value_at(dtype, a, i), second = value_at(dtype, b, i);
    double apart = std::abs(first - second);
    if (std::isfinite(apart)) out.largest = std::max(out.largest, apart);
    if (!(apart <= 0.01 * std::max(std::abs(first), std::abs(second)))) ++out.far;
  }
}

void add_divergence_of_piece(Dtype dtype, BytesView a, BytesView b, CopyDivergence& out) {
  const std::size_t width = size_of(dtype);
  out.elements += static_cast<std::int64_t>(a.size() / width);
  if (std::equal(a.begin(), a.end(), b.begin(), b.end())) return;
  if (width == 8) count_differences<std::uint64_t>(dtype, a, b, out);
  if (width == 4) count_differences<std::uint32_t>(dtype, a, b, out);
  if (width == 2) count_differences<std::uint16_t>(dtype, a, b, out);
}

// Size in bytes of the tensor; empty if the file is too short.
std::optional<std::uint64_t> bytes_of(const TorchFileTensor& tensor) {
  auto elements = volume(tensor.sizes);
  if (!elements) return std::nullopt;
  return checked_mul(static_cast<std::uint64_t>(*elements), std::uint64_t{size_of(tensor.dtype)});
}

// True if elements are stored in order, so that a part can be read alone.
bool is_stored_in_order(const TorchFileTensor& tensor) {
  return !tensor.big_endian && is_row_major(tensor.sizes, tensor.strides);
}

bool fits_its_storage(const TorchFileTensor& tensor) {
  const std::uint64_t all = tensor.payload_length, bytes = bytes_of(tensor).value_or(UINT64_MAX);
  const auto first = static_cast<std::uint64_t>(tensor.storage_offset);
  return tensor.storage_offset >= 0 && bytes <= all &&
         first <= (all - bytes) / size_of(tensor.dtype);
}

// True if all copies can be read side by side within the memory limit.
bool can_read_copies_together(const RankCopies& copies) {
  const std::uint64_t most = kMaxHeldGroupBytes / copies.size();
  return std::all_of(copies.begin(), copies.end(), [&](const RankCopy& copy) {
    return is_stored_in_order(*copy.tensor) ? fits_its_storage(*copy.tensor)
                                            : bytes_of(*copy.tensor).value_or(UINT64_MAX) <= most;
  });
}

// Reads the elements of one copy in pieces, row-major and little-endian.
class CopyReader {
 public:
  static Result<CopyReader> open(const RankCopy& copy) {
    CopyReader reader(copy);
    const TorchFileTensor& tensor = *copy.tensor;
    if (!is_stored_in_order(tensor)) {
      SHW_TRY(reader.held_, read_torch_file_elements(*copy.file->source, tensor));
      return reader;
    }
    reader.begin_ = tensor.payload_offset +
                    static_cast<std::uint64_t>(tensor.storage_offset) * size_of(tensor.dtype);
    return reader;
  }
  Result<BytesView> read(std::uint64_t at, std::uint64_t length) {
    if (held_) return BytesView(*held_).subspan(at, length);
    piece_.resize(length);
    SHW_CHECK(copy_->file->source->read(begin_ + at, piece_));
    return BytesView(piece_);
  }

 private:
  explicit CopyReader(const RankCopy& copy) : copy_(&copy) {}

  const RankCopy* copy_;
  std::uint64_t begin_ = 0;
  std::optional<Bytes> held_;
  Bytes piece_;
};

// Bytes [first, last) of every copy of a group.
struct CopyPart {
  std::size_t group = 0;
  std::uint64_t first = 0, last = 0;
};

std::vector<CopyPart> parts_of(const std::vector<RankCopies>& groups,
                               std::vector<ComparedCopies>& out) {
  std::vector<CopyPart> parts;
  for (std::size_t i = 0; i < groups.size(); ++i) {
    const RankCopies& copies = groups[i];
    out[i].from_first.resize(copies.size() - 1);
    if (!can_read_copies_together(copies)) {
      out[i].is_read = false;
      continue;
    }
    const std::uint64_t bytes = bytes_of(*copies.front().tensor).value_or(0);
    const bool in_order = std::all_of(copies.begin(), copies.end(), [](const RankCopy& copy) {
      return is_stored_in_order(*copy.tensor);
    });
    const std::uint64_t each =
        std::max(kMaxGroupReadBytes / copies.size() / kReadAtOnce, std::uint64_t{1}) * kReadAtOnce;
    for (std::uint64_t at = 0; at < bytes; at += in_order ? each : bytes)
      parts.push_back({i, at, in_order ? std::min(at + each, bytes) : bytes});
  }
  return parts;
}

std::vector<std::uint64_t> numbers_of(const std::vector<CopyDivergence>& all) {
  std::vector<std::uint64_t> out;
  for (const CopyDivergence& one : all) {
    for (std::int64_t number : {one.elements, one.differing, one.far})
      out.push_back(static_cast<std::uint64_t>(number));
    out.push_back(std::bit_cast<std::uint64_t>(one.largest));
    for (std::int64_t number : one.histogram) out.push_back(static_cast<std::uint64_t>(number));
  }
  return out;
}

constexpr std::size_t kNumbers = 4 + kSteps.size();

CopyDivergence decode_copy_divergence(std::span<const std::uint64_t> numbers) {
  auto count = [&](std::size_t i) { return static_cast<std::int64_t>(numbers[i]); };
  CopyDivergence out{count(0), count(1), count(2), std::bit_cast<double>(numbers[3]), {}};
  for (std::size_t i = 0; i < kSteps.size(); ++i) out.histogram[i] = count(4 + i);
  return out;
}

Result<std::vector<CopyDivergence>> compare_part(const RankCopies& copies, const CopyPart& part,
                                                 Progress* progress) {
  std::vector<CopyReader> readers;
  for (const RankCopy& copy : copies) {
    if (is_cancelled(progress)) return cancelled_error();
    SHW_TRY(CopyReader reader, CopyReader::open(copy));
    readers.push_back(std::move(reader));
  }
  const Dtype dtype = copies.front().tensor->dtype;
  std::vector<CopyDivergence> out(copies.size() - 1);
  for (std::uint64_t at = part.first; at < part.last; at += kReadAtOnce) {
    if (is_cancelled(progress)) return cancelled_error();
    const std::uint64_t length = std::min(kReadAtOnce, part.last - at);
    SHW_TRY(BytesView first, readers.front().read(at, length));
    for (std::size_t i = 1; i < readers.size(); ++i) {
      SHW_TRY(BytesView other, readers[i].read(at, length));
      add_divergence_of_piece(dtype, first, other, out[i - 1]);
    }
    if (progress != nullptr) progress->add(length * copies.size());
  }
  return out;
}

}  // namespace

void CopyDivergence::join(const CopyDivergence& other) {
  elements += other.elements;
  differing += other.differing;
  far += other.far;
  largest = std::max(largest, other.largest);
  for (std::size_t i = 0; i < histogram.size(); ++i) histogram[i] += other.histogram[i];
}

std::string histogram_text(const CopyDivergence& seen) {
  constexpr std::array<const char*, kSteps.size()> kNames{"1", "2 to 15", "16 to 255",
                                                          "256 to 65,535", "65,536 and more"};
  std::string text;
  for (std::size_t i = 0; i < kNames.size(); ++i) {
    if (seen.histogram[i] == 0) continue;
    text += (text.empty() ? "" : ", ") +
            human_count(static_cast<std::uint64_t>(seen.histogram[i])) + " by " + kNames[i] +
            " ULP";
  }
  return text;
}

Result<std::vector<ComparedCopies>> compare_copies(const CheckInput& input,
                                                   const std::vector<RankCopies>& groups) {
  std::vector<ComparedCopies> out(groups.size());
  const std::vector<CopyPart> parts = parts_of(groups, out);
  std::vector<std::uint64_t> costs;
  std::uint64_t all = 0;
  for (const CopyPart& part : parts) {
    costs.push_back((part.last - part.first) * groups[part.group].size());
    all += costs.back();
  }
  if (input.progress != nullptr && all != 0)
    input.progress->begin(Phase::kReadingBytes, all, /*bytes=*/true);
  MapTask work{"compare files of single ranks", costs, {}, input.progress};
  work.find = [&](std::size_t i) -> Result<std::string> {
    auto seen = compare_part(groups[parts[i].group], parts[i], input.progress);
    if (!seen && seen.error().kind == ErrorKind::kCancelled)
      return tl::unexpected<Error>(std::move(seen).error());
    Encoder payload;
    payload.add(seen ? numbers_of(*seen) : std::vector<std::uint64_t>{});
    return packed_text(payload.take());
  };
  SHW_TRY(auto told, map_across_ranks(input.team, work));
  for (std::size_t i = 0; i < told.size(); ++i) {
    ComparedCopies& group = out[parts[i].group];
    Decoder payload(std::as_bytes(std::span(told[i])));
    SHW_TRY(auto numbers, payload.numbers());
    if (numbers.size() != group.from_first.size() * kNumbers) group.is_read = false;
    if (!group.is_read) continue;
    for (std::size_t copy = 0; copy < group.from_first.size(); ++copy)
      group.from_first[copy].join(
          decode_copy_divergence(std::span(numbers).subspan(copy * kNumbers, kNumbers)));
  }
  return out;
}

}  // namespace shw
