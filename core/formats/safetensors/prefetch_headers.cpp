#include "core/formats/safetensors/prefetch_headers.h"

#include <algorithm>

#include "core/base/little_endian.h"
#include "core/formats/common/safetensors_header.h"
#include "core/io/prefetch.h"

namespace shw {
namespace {

constexpr std::uint64_t kLengthBytes = 8;
constexpr std::uint64_t kMaxExpected = std::uint64_t{1} << 20;

// An entry of a header takes up to 1.7 times the bytes of one in the index: DeepSeek-V3's take 128
// and 104, Llama's 110 and 66.
std::uint64_t expected_header(std::uint64_t index_bytes, std::size_t files) {
  return std::min(kMaxExpected, kLengthBytes + index_bytes / files * 7 / 4);
}

// The whole header, if the file begins with a plausible length.
PrefetchRange header_range(const Directory& directory, const std::string& path) {
  auto source = directory.open(path);
  auto prefix = source ? read_bytes(**source, 0, kLengthBytes) : Result<Bytes>();
  if (!source || !prefix) return {};
  const auto length = load_little<std::uint64_t>(*prefix);
  if (length > kMaxSafetensorsHeader) return {};
  return {path, 0, kLengthBytes + length};
}

}  // namespace

void prefetch_headers(const Directory& directory, const std::vector<std::string>& paths,
                      std::uint64_t index_bytes) {
  const PrefetchingDirectory* remote = find_prefetching(directory);
  if (remote == nullptr || paths.size() < 2) return;
  std::vector<PrefetchRange> ranges;
  const std::uint64_t expected = expected_header(index_bytes, paths.size());
  for (const std::string& path : paths) ranges.push_back({path, 0, expected});
  remote->prefetch(ranges);
  ranges.clear();
  for (const std::string& path : paths) {
    if (PrefetchRange range = header_range(directory, path); range.length > expected)
      ranges.push_back(std::move(range));
  }
  remote->prefetch(ranges);
}

}  // namespace shw
