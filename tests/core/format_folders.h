// One small checkpoint of each format in tests/data.
#pragma once

#include <array>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/io/source.h"

namespace shw::test {

struct FormatFolder {
  std::string_view format;  // its name in JSON
  std::string_view path;    // below tests/data; of one file, the file
};

inline constexpr auto kFormatFolders = std::to_array<FormatFolder>({
    {"megatron-dist", "torch-2.6/mcore12"},
    {"dcp", "torch-2.14/healthy_zstd/ckpt"},
    {"dcp-rank-local", "torch-2.14/healthy_rank_local/ckpt"},
    {"torch-checkpointing", "torch-checkpointing-0.1/healthy_no_metadata/ckpt"},
    {"nanotron", "folders/nanotron"},
    {"tensor-parallel", "folders/sharded_state"},
    {"safetensors", "folders/one_file"},
    {"hf-sharded", "torch-2.14/healthy_hf_sharded/ckpt"},
    {"deepspeed-universal", "deepspeed-0.19/universal/ckpt"},
    {"deepspeed-zero", "deepspeed-0.19/zero1/ckpt"},
    {"deepspeed-zero", "deepspeed-0.19/zero3/ckpt"},
    {"deepspeed-zero", "torch-2.15/neox_pipeline/ckpt"},
    {"rank-files", "torch-2.15/rank_files/ckpt"},
    {"megatron-legacy", "torch-2.15/megatron_legacy/ckpt"},
    {"meta-llama", "folders/meta_llama"},
    {"torch", "torch-2.15/torch_save/training.pt"},
    {"torch", "torch-2.15/torch_save/legacy.pt"},
    {"torch", "torch-2.15/torch_script/scripted.pt"},
    {"torch-export", "torch-2.15/torch_export/program.pt2"},
    {"hdf5", "keras-3/weights_sharded/ckpt"},
    {"hdf5", "keras-3/archive/ckpt"},
    {"gguf", "gguf/split/ckpt"},
    {"orbax", "orbax/ocdbt/ckpt"},
    {"orbax", "orbax/zarr/ckpt"},
    {"flax", "flax/flax_model.msgpack"},
    {"npz", "npz/stored.npz"},
    {"ctranslate2", "weight_list/ctranslate2"},
    {"onnx", "onnx/external"},
    {"openvino", "openvino/ckpt"},
    {"mindspore", "weight_list/net.ckpt"},
    {"folders", "pickle/agent.zip"},
    {"pickle", "pickle/numpy_5.pkl"},
});

using FolderFiles = std::vector<std::pair<std::string, Bytes>>;

inline Result<FolderFiles> files_of_format(const std::string& data, const FormatFolder& folder) {
  std::string path = data + "/" + std::string(folder.path), only;
  if (folder.path.rfind('.') != folder.path.npos &&
      folder.path.rfind('.') > folder.path.rfind('/')) {
    only = path.substr(path.rfind('/') + 1);
    path.resize(path.rfind('/'));
  }
  FolderFiles files;
  SHW_TRY(auto directory, open_directory(path));
  SHW_TRY(auto entries, directory->list());
  for (const Entry& entry : entries) {
    if (!only.empty() && entry.path != only) continue;
    SHW_TRY(auto source, directory->open(entry.path));
    SHW_TRY(Bytes bytes, read_bytes(*source, 0, source->size()));
    files.emplace_back(entry.path, std::move(bytes));
  }
  return files;
}

}  // namespace shw::test
