#include "core/formats/table.h"

#include <array>

#include "core/formats/dcp/dcp_table.h"
#include "core/formats/deepspeed/deepspeed_table.h"
#include "core/formats/flax/flax_table.h"
#include "core/formats/gguf/gguf_table.h"
#include "core/formats/hdf5/hdf5_table.h"
#include "core/formats/megatron_legacy/legacy_open.h"
#include "core/formats/meta_llama/meta_open.h"
#include "core/formats/nanotron/nanotron_open.h"
#include "core/formats/npz/npz_table.h"
#include "core/formats/orbax/orbax_table.h"
#include "core/formats/rank_files/rank_files_open.h"
#include "core/formats/safetensors/safetensors_table.h"
#include "core/formats/tar/nemo_open.h"
#include "core/formats/tensor_parallel/parallel_open.h"
#include "core/formats/torch_checkpointing/items_open.h"
#include "core/formats/torch_export/export_table.h"
#include "core/formats/torch_file/bare_pickle.h"
#include "core/formats/torch_file/torch_file_table.h"
#include "core/formats/torch_file/torch_zip.h"
#include "core/formats/weight_list/weight_list_table.h"

namespace shw {

std::span<const FormatRow> formats() {
  // Formats with an index of fixed name come before those that need a listing.
  static const std::array kRows = {kMegatronRow,
                                   kDcpRow,
                                   kDcpRankLocalRow,
                                   kTorchCheckpointingRow,
                                   kTorchCheckpointingNewRow,
                                   kNanotronRow,
                                   kNemoRow,
                                   kTensorParallelRow,
                                   kSafetensorsRow,
                                   kHfShardedRow,
                                   kUniversalRow,
                                   kZeroRow,
                                   kRankFilesRow,
                                   kMegatronLegacyRow,
                                   kMetaLlamaRow,
                                   kTorchFileRow,
                                   kTorchExportRow,
                                   kHdf5Row,
                                   kGgufRow,
                                   kOrbaxRow,
                                   kFlaxRow,
                                   kNpzRow,
                                   kCtranslate2Row,
                                   kMindsporeRow,
                                   kOpenvinoRow,
                                   kTorchZipRow,
                                   kBarePickleRow,
                                   kOnnxRow};
  return kRows;
}

std::vector<std::string> noted_additions(const Checkpoint& checkpoint) {
  for (const FormatRow& row : formats()) {
    if (row.format == &checkpoint.format() && row.noted_additions != nullptr)
      return row.noted_additions(checkpoint);
  }
  return {};
}

std::vector<NeededAddition> needed_additions(const Checkpoint& checkpoint) {
  for (const FormatRow& row : formats()) {
    if (row.format == &checkpoint.format() && row.needed_additions != nullptr)
      return row.needed_additions(checkpoint);
  }
  return {};
}

std::vector<TensorClass> tensor_classes(const Checkpoint& checkpoint) {
  for (const FormatRow& row : formats()) {
    // A format that is read only may have the name of the one that its row writes.
    if (row.format->name == checkpoint.format().name && row.tensor_classes != nullptr)
      return row.tensor_classes(checkpoint);
  }
  return {};
}

}  // namespace shw
