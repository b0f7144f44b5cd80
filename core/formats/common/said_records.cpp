#include "core/formats/common/said_records.h"

#include <fmt/core.h>

#include <optional>
#include <string>

#include "core/base/utf8.h"
#include "core/base/words.h"

namespace shw {
namespace {

// torch writes forty digits at most.
constexpr std::uint64_t kMostSaid = 4096;
// PyTorchStreamReader: kMinSupportedFileFormatVersion, kMaxSupportedFileFormatVersion.
constexpr std::uint64_t kFirstVersion = 1, kLastVersion = 10;

// Nothing where there is no such record, which torch takes as well.
Result<std::optional<std::string>> text_of(const ZipReader& zip, std::string_view name) {
  const ZipEntry* record = zip.find(name);
  if (record == nullptr || record->length > kMostSaid) return std::nullopt;
  SHW_TRY(Bytes bytes, zip.read(*record, kMostSaid));
  return std::string(reinterpret_cast<const char*>(bytes.data()), bytes.size());
}

tl::unexpected<Error> says(const ZipReader& zip, std::string_view name, std::string_view what) {
  return zip.damaged(zip.find(name)->header_offset,
                     fmt::format("the record {} is no {}: torch.load stops there", name, what));
}

// Where torch looks for the version: in the first of the two that is there.
std::string_view version_record(const ZipReader& zip) {
  constexpr std::string_view kBesideData = ".data/version";
  return zip.find(kBesideData) != nullptr ? kBesideData : "version";
}

}  // namespace

Status check_has_version(const ZipReader& zip) {
  if (zip.find(version_record(zip)) != nullptr) return {};
  return zip.damaged(0, "the archive has no record version: torch.load opens none without");
}

Status check_said_records(const ZipReader& zip) {
  constexpr std::string_view kId = ".data/serialization_id", kAlignment = ".storage_alignment";
  const std::string_view version_at = version_record(zip);
  SHW_TRY(auto id, text_of(zip, kId));
  if (id && !is_utf8(*id)) return says(zip, kId, "text");
  SHW_TRY(auto alignment, text_of(zip, kAlignment));
  if (alignment) {
    std::string_view digits = *alignment;
    if (!take_number(digits) || !digits.empty()) return says(zip, kAlignment, "number");
  }
  SHW_TRY(auto version, text_of(zip, version_at));
  if (version) {
    std::string_view digits = *version;  // and whatever follows
    auto number = take_number(digits);
    if (!number || *number < kFirstVersion || *number > kLastVersion)
      return says(zip, version_at, "version that torch reads");
  }
  return {};
}

}  // namespace shw
