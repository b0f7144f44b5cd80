#include "core/formats/dcp/dcp_read.h"

#include <algorithm>

#include "core/base/words.h"
#include "core/formats/common/lfs_pointer.h"
#include "core/formats/dcp/dcp_formats.h"
#include "core/formats/dcp/dcp_rows.h"
#include "core/formats/dcp/dcp_shortcut.h"
#include "core/formats/dcp/flattened_states.h"
#include "core/formats/dcp/megatron_files.h"
#include "core/formats/pickle/pickle.h"
#include "core/io/read_whole.h"
#include "core/model/builder.h"

namespace shw {
namespace {

constexpr const char* kInterrupted =
    "The save was probably interrupted. The data files may be complete: the metadata of an earlier "
    "step of the same run describes the same layout.";

Error with_interrupted_save_hint(Error error) {
  if (error.kind == ErrorKind::kDamaged && error.advice.empty()) error.advice = kInterrupted;
  return error;
}

Result<PickleTree> decode_with_shortcuts(const ByteSource& source, BytesView bytes,
                                         Progress* progress, DcpRows& rows, NameTable& names,
                                         CheckpointBuilder& builder) {
  // torch writes at least 122 bytes per storage record and 39 per chunk, usually 177. Limited to a
  // million in advance, because sparse files may have any size.
  std::size_t expected = std::min<std::size_t>(bytes.size() / 170, std::size_t{1} << 20);
  rows.chunks.reserve(expected);
  rows.keys.reserve(expected);
  rows.places.reserve(expected);
  DcpShortcut shortcut(builder, names, rows);
  std::uint64_t consumed = 0;
  shortcut.on_consumed = [&](std::uint64_t done) {
    source.forget(consumed, done - consumed);
    if (progress != nullptr) progress->add(done - consumed);
    consumed = done;
    return !is_cancelled(progress);
  };
  PickleMachine<DcpShortcut> machine(bytes, source.name(), 0, {}, shortcut);
  auto ran = machine.run();
  auto general = [&] {
    rows = {};
    names = {};
    builder = {};
    return decode_pickle(bytes, source.name());
  };
  if (is_cancelled(progress)) return cancelled_error();
  if (shortcut.is_shortcut_abandoned()) return general();
  SHW_CHECK(ran);
  PickleTree tree = machine.take();
  // A root without Metadata: the error needs its class, which shortcuts do not keep.
  return tree.kind(tree.root()) == NodeKind::kShortcut ? general() : std::move(tree);
}

bool has_common_object(const NameTable& names) {
  for (std::uint32_t name = 0; name < names.size(); ++name) {
    if (names.text(name).starts_with("common_state/")) return true;
  }
  return false;
}

// Empty checkpoints have empty data files; if files are not empty, their entries are lost.
void report_no_entries(const Directory& folder, const std::string& file,
                       CheckpointBuilder& builder) {
  auto entries = folder.list();
  if (!entries) return;
  std::vector<std::string> files;
  for (const Entry& entry : *entries) {
    const bool is_data = entry.kind == EntryKind::kFile && entry.size != 0 &&
                         entry.path.ends_with(kDcpFormat.traits.data_suffix);
    if (is_data) files.push_back(entry.path);
  }
  if (files.empty()) return;
  Finding finding{.rule = "bad-record", .subjects = {file}};
  finding.cause = file + " lists no entry at all, and " + plural(files.size(), "data file") + " (" +
                  short_list_text(files) + ") are next to it: a load reads none of their data.";
  finding.evidence = {{"file", file}, {"data_files", static_cast<std::int64_t>(files.size())}};
  builder.add_finding(std::move(finding));
}

}  // namespace

Result<std::shared_ptr<const Checkpoint>> read_dcp_metadata(
    const ByteSource& source, std::shared_ptr<const Directory> directory, Progress* progress,
    const DcpReadOptions& options) {
  if (source.size() == 0)
    return fail(ErrorKind::kDamaged, "is empty", {source.name(), 0}, kInterrupted);
  SHW_CHECK(check_is_no_lfs_pointer(source));
  if (progress != nullptr) progress->begin(Phase::kOpening, source.size(), true);
  Bytes read;
  BytesView bytes = source.mapped();
  if (bytes.empty()) {
    SHW_TRY(read, read_whole(source, kMaxIndexFile));
    bytes = read;
  }
  CheckpointBuilder builder;
  NameTable names;
  DcpRows rows;
  auto tree = options.shortcuts
                  ? decode_with_shortcuts(source, bytes, progress, rows, names, builder)
                  : decode_pickle(bytes, source.name());
  if (!tree) return tl::unexpected<Error>(with_interrupted_save_hint(std::move(tree).error()));
  if (is_cancelled(progress)) return cancelled_error();
  builder.set_format(*options.format);
  const Directory* folder = directory.get();
  builder.set_directory(std::move(directory));
  auto built = build_dcp(*tree, rows, names, source.name(), source.size(), builder, progress);
  if (!built) return tl::unexpected<Error>(with_interrupted_save_hint(std::move(built).error()));
  if (is_cancelled(progress)) return cancelled_error();
  if (names.size() == 0 && folder != nullptr) report_no_entries(*folder, source.name(), builder);
  if (options.format == &kMegatronFormat && folder != nullptr)
    report_megatron_files(*folder, has_common_object(names), builder);
  const bool names_dicts =
      tree->kind(tree->attribute(tree->root(), "planner_data")) == NodeKind::kDict;
  if (options.format == &kDcpFormat && folder != nullptr && !names_dicts)
    report_missing_marker(*folder, has_common_object(names), builder);
  auto checkpoint = builder.finish(progress);
  if (is_cancelled(progress)) return cancelled_error();
  return options.format == &kMegatronFormat
             ? with_shapes_before_flattening(std::move(checkpoint), shapes_before_flattening(*tree))
             : std::move(checkpoint);
}

Result<std::shared_ptr<const Checkpoint>> read_dcp(std::shared_ptr<const Directory> directory,
                                                   Progress* progress,
                                                   const DcpReadOptions& options) {
  SHW_TRY(auto source, directory->open(std::string(kDcpMetadataName)));
  return read_dcp_metadata(*source, std::move(directory), progress, options);
}

}  // namespace shw
