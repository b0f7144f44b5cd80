#include "core/formats/dcp/megatron_files.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

#include "core/base/json.h"
#include "core/base/little_endian.h"
#include "core/formats/common/byte_order_mark.h"
#include "core/formats/common/magic.h"
#include "core/formats/common/torch_item.h"
#include "core/formats/pickle/pickle.h"
#include "core/formats/zip/zip.h"

namespace shw {
namespace {

constexpr std::uint64_t kLargestMarker = 1 << 20;
constexpr std::uint64_t kReadWhole = std::uint64_t{64} << 20;

void note(const std::string& file, Severity severity, std::string cause,
          CheckpointBuilder& builder) {
  Finding finding{.rule = "bad-record", .severity = severity, .subjects = {file}};
  finding.cause = std::move(cause);
  finding.evidence.emplace_back("file", file);
  builder.add_finding(std::move(finding));
}

// The backend named in metadata.json; empty if the file is another
// program's.
Result<std::string> declared_backend(const Directory& directory) {
  auto damaged = [](const std::string& why) {
    return fail(ErrorKind::kDamaged, why, {kMegatronMarker});
  };
  SHW_TRY(auto source, directory.open(kMegatronMarker));
  if (source->size() > kLargestMarker)
    return damaged("is larger than any file that Megatron writes");
  SHW_TRY(Bytes bytes, read_bytes(*source, 0, source->size()));
  auto json =
      parse_json<nlohmann::json>({reinterpret_cast<const char*>(bytes.data()), bytes.size()}).tree;
  const bool is_marked = begins_with_byte_order_mark(bytes);
  if (is_marked || !json.is_object()) return damaged("is not a JSON object");
  auto backend = json.find("sharded_backend");
  if (backend == json.end()) return std::string();
  if (!backend->is_string()) return damaged("has a sharded_backend that is not a name");
  return backend->get<std::string>();
}

// Reports a bad marker, and returns whether the checkpoint is Megatron's.
bool report_bad_marker(const Directory& directory, bool has_common, CheckpointBuilder& builder) {
  auto backend = declared_backend(directory);
  if (!backend) {
    // Without other files of Megatron it may belong to another program.
    note(kMegatronMarker, has_common ? Severity::kError : Severity::kInfo,
         "metadata.json " + backend.error().message + ": Megatron reads it first, and fails there.",
         builder);
    return has_common;
  }
  if (!backend->empty() && *backend != "torch_dist")
    note(kMegatronMarker, Severity::kError,
         "metadata.json names the backend \"" + backend->substr(0, 40) +
             "\", but the folder holds torch_dist: Megatron selects its loader by that name.",
         builder);
  return !backend->empty();
}

// Reads common.pt. True if the checksum of every record was verified; false if the file is over 64
// MiB or has no checksums; kDamaged if a record differs.
Result<bool> verify_common_state(const Directory& directory) {
  SHW_TRY(auto source, directory.open(kCommonState));
  SHW_TRY(Bytes begin, read_bytes(*source, 0, std::min<std::uint64_t>(source->size(), 4)));
  // torch's format before 1.6 has no checksums; torch_dist never used it.
  if (begin.size() < 4 || load_little<std::uint32_t>(begin) != kZipMagic)
    return fail(ErrorKind::kDamaged, "does not begin like a torch.save file", {kCommonState});
  SHW_TRY(ZipReader zip, ZipReader::open(source, 0, source->size()));
  SHW_TRY(Bytes pickle, read_pickle_record(zip, kReadWhole));
  SHW_TRY(PickleTree tree, decode_pickle(pickle, kCommonState));
  if (tree.refused()) return fail(ErrorKind::kDamaged, tree.refused()->what, {kCommonState});
  if (source->size() > kReadWhole || zip.lacks_crcs()) return false;
  for (const ZipEntry& entry : zip.entries()) {
    SHW_TRY(std::uint32_t crc, zip.crc_of(entry, nullptr));
    if (crc != entry.crc)
      return zip.damaged(entry.header_offset, "the record " + entry.name +
                                                  " changed after it was written: its checksum "
                                                  "differs");
  }
  return true;
}

// True for "iter_0000250", as Megatron-LM names its own saves.
bool is_named_by_megatron(std::string_view folder) {
  while (folder.ends_with('/')) folder.remove_suffix(1);
  return folder.substr(folder.rfind('/') + 1).starts_with("iter_");
}

void report_common_state(const Directory& directory, bool has_common_object,
                         CheckpointBuilder& builder) {
  if (directory.stat(kCommonState).kind == EntryKind::kMissing) {
    if (!has_common_object)
      // torch and some converters do not need it: the tensors are complete without it.
      note(kCommonState,
           is_named_by_megatron(directory.name()) ? Severity::kWarning : Severity::kInfo,
           "common.pt is missing, and so is an entry common_state: Megatron-LM reads arguments and "
           "optimizer settings from it before any tensor, and fails.",
           builder);
    return;
  }
  auto read = verify_common_state(directory);
  if (!read)
    note(kCommonState, Severity::kError,
         "common.pt cannot be read (" + read.error().message +
             "): Megatron reads the arguments and the optimizer's settings from it before any "
             "tensor.",
         builder);
  else if (!*read)
    note(kCommonState, Severity::kInfo,
         "Only the pickle of common.pt was read: its other records were not verified, because it "
         "has no checksums or is larger than 64 MiB.",
         builder);
}

}  // namespace

void report_megatron_files(const Directory& directory, bool has_common_object,
                           CheckpointBuilder& builder) {
  const bool has_common =
      has_common_object || directory.stat(kCommonState).kind != EntryKind::kMissing;
  if (report_bad_marker(directory, has_common, builder))
    report_common_state(directory, has_common_object, builder);
}

void report_missing_marker(const Directory& directory, bool has_common_object,
                           CheckpointBuilder& builder) {
  if (!has_common_object && directory.stat(kCommonState).kind != EntryKind::kFile) return;
  note(kMegatronMarker, Severity::kWarning,
       std::string("metadata.json is missing, and ") +
           (has_common_object ? "the entry common_state" : "common.pt") +
           " shows that Megatron saved this: it writes that file last, so the save did not finish "
           "or the copy is incomplete. Megatron does not load a folder without it; torch's loader "
           "does not need it.",
       builder);
}

}  // namespace shw
