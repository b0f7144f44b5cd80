#include "core/formats/unread.h"

#include <array>

namespace shw {
namespace {

bool is_at_top(std::string_view path) {
  return path.find('/') == std::string_view::npos;
}

constexpr auto kUnreadFormats = std::to_array<UnreadFormat>({
    {"an Orbax checkpoint (JAX)",
     [](std::string_view, std::string_view name) {
       return name == "_CHECKPOINT_METADATA" || name == "_METADATA" || name == "manifest.ocdbt";
     },
     ""},
    {"a Megatron checkpoint of the zarr backend, or another zarr store",
     [](std::string_view, std::string_view name) {
       return name == ".zarray" || name == "zarr.json";
     },
     "Megatron converts it: save again with --dist-ckpt-format torch_dist."},
    {"a PaddlePaddle checkpoint (FlexCheckpoint)",
     [](std::string_view path, std::string_view name) {
       return is_at_top(path) && name.ends_with(".metadata") && !name.starts_with("__") &&
              name.size() > 9 && name.front() >= '0' && name.front() <= '9';
     },
     ""},
    {"a DeepSpeed universal checkpoint",
     [](std::string_view path, std::string_view name) {
       return name == "fp32.pt" && path.find("zero/") != std::string_view::npos;
     },
     ""},
    {"a DeepSpeed ZeRO checkpoint",
     [](std::string_view, std::string_view name) {
       return name.starts_with("zero_pp_rank_") || name.starts_with("bf16_zero_pp_rank_") ||
              name.ends_with("model_states.pt");
     },
     "zero_to_fp32.py in it turns it into one state dict."},
    {"a Megatron checkpoint of the legacy format (one file a rank)",
     [](std::string_view, std::string_view name) {
       return name == "model_optim_rng.pt" || name == "model_rng.pt";
     },
     "Megatron converts it: load it there and save with --dist-ckpt-format torch_dist."},
    {"one torch.save file a rank, as verl writes them",
     [](std::string_view, std::string_view name) {
       return name.starts_with("model_world_size_") && name.ends_with(".pt");
     },
     "verl's model_merger turns them into safetensors."},
    {"a folder with several torch.save files, or with one of before torch 1.6",
     [](std::string_view path, std::string_view name) {
       return is_at_top(path) && (name.ends_with(".pt") || name.ends_with(".pth") ||
                                  name.ends_with(".bin") || name.ends_with(".ckpt"));
     },
     "Open one of them by its name. torch.save(torch.load(FILE), NEW) writes the form that is "
     "read.",
     true},
});

}  // namespace

std::span<const UnreadFormat> unread_formats() {
  return kUnreadFormats;
}

}  // namespace shw
