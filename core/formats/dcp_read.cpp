#include "core/formats/dcp_read.h"

#include "core/formats/dcp_rows.h"
#include "core/formats/pickle.h"
#include "core/model/builder.h"

namespace shw {
namespace {

constexpr const char* kInterrupted =
    "The save was probably interrupted. The data files may be whole: the metadata of an earlier "
    "step of the same run describes the same layout.";

Error with_advice(Error error) {
  if (error.kind == ErrorKind::kDamaged && error.advice.empty()) error.advice = kInterrupted;
  return error;
}

}  // namespace

Result<std::shared_ptr<const Checkpoint>> read_dcp_metadata(
    const ByteSource& source, std::shared_ptr<const Directory> directory, Progress* progress,
    const DcpReadOptions& options) {
  if (source.size() == 0)
    return fail(ErrorKind::kDamaged, "is empty", {source.name(), 0}, kInterrupted);
  if (progress != nullptr) progress->begin(Phase::kOpening, source.size(), true);
  Bytes read;
  BytesView bytes = source.mapped();
  if (bytes.empty()) {
    SHW_TRY(read, read_bytes(source, 0, source.size()));
    bytes = read;
  }
  CheckpointBuilder builder;
  builder.set_format(options.format, Encoding::kTorchZip);
  builder.set_directory(std::move(directory));
  NameTable names;
  DcpRows rows;
  auto tree = decode_pickle(bytes, source.name());
  if (!tree) return tl::unexpected<Error>(with_advice(std::move(tree).error()));
  if (is_cancelled(progress)) return cancelled_error();
  auto built = build_dcp(*tree, rows, names, source.name(), source.size(), builder);
  if (!built) return tl::unexpected<Error>(with_advice(std::move(built).error()));
  if (is_cancelled(progress)) return cancelled_error();
  if (progress != nullptr) progress->add(source.size());
  return builder.finish();
}

Result<std::shared_ptr<const Checkpoint>> read_dcp(std::shared_ptr<const Directory> directory,
                                                   Progress* progress,
                                                   const DcpReadOptions& options) {
  SHW_TRY(auto source, directory->open(std::string(kDcpMetadataName)));
  return read_dcp_metadata(*source, std::move(directory), progress, options);
}

}  // namespace shw
