// Joins the files of all ranks into the tensors of one model.
#pragma once

#include <map>
#include <string>
#include <unordered_map>
#include <vector>

#include "core/formats/megatron_axes.h"
#include "core/formats/megatron_legacy/legacy_file.h"
#include "core/formats/megatron_legacy/legacy_layers.h"
#include "core/formats/rank_chunks.h"
#include "core/model/builder.h"

namespace shw {

struct LegacyRankFile {
  std::string name;    // folder of the rank
  std::string prefix;  // for tensors of the rank alone: "mp_rank_00_001.distrib_optim."
  LegacyFolder folder;
  FileId file = FileId::kNone;
  bool is_model = false;
  std::vector<TorchFileTensor> tensors = {};
  LegacyPlace place = {};
};

class LegacyTensors {
 public:
  LegacyTensors(CheckpointBuilder& builder, const LegacyArgs& args, const LegacySizes& sizes)
      : builder_(builder), args_(args), sizes_(sizes), chunks_(builder) {}

  void add(LegacyRankFile file) { files_.push_back(std::move(file)); }
  // Adds all tensors and findings to the builder.
  void finish();

 private:
  struct Piece {
    std::size_t file = 0;
    TorchFileTensor* tensor = nullptr;
  };
  using Pieces = std::vector<Piece>;

  void count_layers();
  void gather(std::size_t file);
  std::string model_name(const TorchFileTensor& tensor, const LegacyRankFile& file,
                         std::uint32_t chunk) const;
  void add_model_tensor(const std::string& fqn, Pieces& pieces);
  bool add_joined(const std::string& fqn, const Pieces& pieces);
  void add_piece_as_tensor(const std::string& name, Piece& piece);
  std::uint32_t rank_of(const LegacyPlace& place) const;
  void note_rules();
  void report_unjoined_states();

  CheckpointBuilder& builder_;
  const LegacyArgs& args_;
  LegacySizes sizes_;
  RankChunks chunks_;
  LegacyLayers layers_;
  std::uint32_t model_chunks_ = 1;
  std::uint32_t experts_here_ = 0;  // per rank
  std::vector<LegacyRankFile> files_;
  std::unordered_map<std::string, Pieces> pieces_;
  std::vector<std::string> order_, unknown_;
  std::size_t joined_ = 0;
};

}  // namespace shw
