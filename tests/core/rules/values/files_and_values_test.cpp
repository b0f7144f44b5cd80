// Rules about values, files and names, on checkpoints on disk.
#include <chrono>
#include <filesystem>
#include <fstream>
#include <limits>

#include "core/facts/states/per_rank_masters.h"
#include "core/model/builder.h"
#include "core/rules/make_contents.h"
#include "core/temporary_folder.h"
#include "core/unnamed_format.h"

using namespace shw;
using namespace shw::test;
namespace fs = std::filesystem;

namespace {

MadeModel layers(int count, int copy = -1, int of = -1) {
  MadeModel model;
  for (int i = 0; i < count; ++i) {
    std::string before = "model.layers." + std::to_string(i) + ".mlp.";
    double scale = 1 + (i == copy ? of : i);
    model.add(before + "up_proj.weight", Dtype::kFloat32, {8, 8}, distinct(64, scale));
    model.add(before + "down_proj.weight", Dtype::kFloat32, {8, 8}, distinct(64, scale + 0.5));
    model.add(before + "norm.weight", Dtype::kFloat32, {64}, Numbers(64, 1));
  }
  return model;
}

// A rank's torch.save file of a list with one DTensor.
std::string rank_file(int rank, int world, const std::string& placement, const Numbers& values) {
  auto object = [](const std::string& type, const std::string& attributes) {
    return "ctorch.distributed.tensor\n" + type + "\n)\x81" + attributes + "b";
  };
  auto count = static_cast<std::int64_t>(values.size());
  TensorText local{.count = count, .sizes = {count}, .strides = {1}};
  TensorText ranks{.storage_class = "torch\nLongStorage\n",
                   .count = world,
                   .sizes = {world},
                   .strides = {1},
                   .key = "1"};
  std::string mesh = object(
      "DeviceMesh", pickled_dict({{"mesh", tensor_call(ranks)}, {"_rank", pickled_int(rank)}}));
  std::string how = object(placement, pickled_dict({{"dim", pickled_int(0)}}));
  std::string spec =
      object("DTensorSpec", pickled_dict({{"mesh", mesh}, {"placements", "(" + how + "t"}}));
  std::string state =
      "(N" + pickled_dict({{"_local_tensor", tensor_call(local)}, {"_spec", spec}}) + "t";
  std::string tensor =
      "ctorch._tensor\n_rebuild_from_type_v2\n(ctorch._utils\n_rebuild_wrapper_subclass\n"
      "ctorch.distributed.tensor\nDTensor\n(NN" +
      pickled_tuple({count}) + pickled_tuple({count}) + "NNNNt" + state + "tR";
  std::string numbers;
  for (int i = 0; i < world; ++i) numbers += little(static_cast<std::uint64_t>(i), 8);
  Bytes bytes = as_dtype(values, Dtype::kFloat32);
  return make_zip(
      {{"archive/data.pkl", whole_pickle(pickled_dict({{"exp_avgs", pickled_list({tensor})}}))},
       {"archive/data/0", std::string(reinterpret_cast<const char*>(bytes.data()), bytes.size())},
       {"archive/data/1", numbers},
       {"archive/version", "3\n"}});
}

// The severity of the rule's first finding; nullopt without one.
std::optional<Severity> said(const Checkpoint& checkpoint, std::string_view rule) {
  auto findings = found_in(checkpoint, rule);
  if (findings.empty()) return std::nullopt;
  CHECK_FALSE(findings[0].cause.empty());
  CHECK_FALSE(findings[0].subjects.empty());
  CHECK_FALSE(findings[0].evidence.empty());
  return findings[0].severity;
}

}  // namespace

TEST_CASE("a layer with the bytes of another is a warning, models made by copying are not") {
  TemporaryFolder folder;
  CHECK_FALSE(said(*made(folder / "healthy", layers(8)), "duplicate-content"));
  auto twins = made(folder / "twins", layers(8, 5, 2));
  CHECK(said(*twins, "duplicate-content") == Severity::kWarning);
  auto finding = found_in(*twins, "duplicate-content").at(0);
  CHECK(finding.subjects == std::vector<std::string>{"model.layers.5.mlp.up_proj.weight",
                                                     "model.layers.5.mlp.down_proj.weight"});
  CHECK(said(*made(folder / "few", layers(4, 3, 2)), "duplicate-content") == Severity::kWarning);
  CHECK(said(*made(folder / "two", layers(2, 1, 0)), "duplicate-content") == Severity::kInfo);
  MadeModel copied = layers(8);
  for (std::size_t i = 12; i < copied.tensors.size(); ++i)
    copied.tensors[i].values = copied.tensors[i - 12].values;
  CHECK(said(*made(folder / "copied", copied), "duplicate-content") == Severity::kInfo);
}

TEST_CASE("a layer with the bytes of another is reported in a file that keeps no checksums") {
  TemporaryFolder folder;
  auto as_safetensors = [&](const char* name, const MadeModel& model) {
    std::string header, data;
    for (const auto& tensor : model.tensors) {
      const Bytes bytes = as_dtype(tensor.values, tensor.dtype);
      header += std::string(header.empty() ? "{" : ",") + "\"" + tensor.fqn +
                R"(":{"dtype":"F32","shape":)" + to_text(tensor.shape) + R"(,"data_offsets":[)" +
                std::to_string(data.size()) + "," + std::to_string(data.size() + bytes.size()) +
                "]}";
      data.append(reinterpret_cast<const char*>(bytes.data()), bytes.size());
    }
    header += "}";
    fs::create_directory(folder / name);
    std::ofstream(folder / name + "/model.safetensors", std::ios::binary)
        << little(header.size(), 8) << header << data;
    auto opened = open_checkpoint(folder / name);
    REQUIRE_MESSAGE(opened.has_value(), opened.error().message);
    return *opened;
  };
  CHECK_FALSE(said(*as_safetensors("healthy", layers(8)), "duplicate-content"));
  auto twins = as_safetensors("twins", layers(8, 5, 2));
  CHECK(said(*twins, "duplicate-content") == Severity::kWarning);
  CHECK(found_in(*twins, "duplicate-content").at(0).subjects ==
        std::vector<std::string>{"model.layers.5.mlp.up_proj.weight",
                                 "model.layers.5.mlp.down_proj.weight"});
  // Equal in the bytes that a first look reads, but not to their end.
  MadeModel ends = layers(8, 5, 2);
  for (auto& tensor : ends.tensors) {
    tensor.shape = {64, 64};
    tensor.values = distinct(4096, tensor.values[1]);
    tensor.values.back() += static_cast<double>(&tensor - ends.tensors.data());
  }
  CHECK_FALSE(said(*as_safetensors("ends", ends), "duplicate-content"));
}

TEST_CASE("an expert with the bytes of another is reported in a stack of experts") {
  TemporaryFolder folder;
  auto stacks = [](int copy, int of, bool in_both) {
    MadeModel model;
    for (const char* name : {"gate_up_proj", "down_proj"}) {
      Numbers values;
      for (int expert = 0; expert < 8; ++expert) {
        const bool is_copy = expert == copy && (in_both || name[0] == 'g');
        const Numbers own = distinct(64, (is_copy ? of : expert) + (name[0] == 'g' ? 1 : 20));
        values.insert(values.end(), own.begin(), own.end());
      }
      model.add(std::string("model.layers.3.mlp.experts.") + name, Dtype::kFloat32, {8, 8, 8},
                values);
    }
    model.add("model.layers.3.mlp.experts.zero", Dtype::kFloat32, {8, 8, 8}, Numbers(512, 0));
    return model;
  };
  CHECK_FALSE(said(*made(folder / "healthy", stacks(-1, -1, true)), "duplicate-content"));
  CHECK(said(*made(folder / "one", stacks(5, 2, false)), "duplicate-content") ==
        Severity::kWarning);
  auto twins = made(folder / "twins", stacks(5, 2, true));
  CHECK(said(*twins, "duplicate-content") == Severity::kWarning);
  auto finding = found_in(*twins, "duplicate-content").at(0);
  CHECK(finding.subjects == std::vector<std::string>{"model.layers.3.mlp.experts.gate_up_proj",
                                                     "model.layers.3.mlp.experts.down_proj"});
  CHECK(finding.cause.find("model.layers.3.mlp.experts.2 and 5: 2 tensors") != std::string::npos);
}

TEST_CASE("zero weights: a run of zero rows in one layer is reported, not in all or in few rows") {
  TemporaryFolder folder;
  const auto layers = [](int zero_layers, std::size_t rows) {
    MadeModel model;
    for (int layer = 0; layer < 4; ++layer) {
      Numbers values = distinct(16 * 8, layer + 1);
      if (layer < zero_layers) std::fill_n(values.begin() + 16, rows * 8, 0);
      model.add("model.layers." + std::to_string(layer) + ".mlp.up_proj.weight", Dtype::kFloat32,
                {16, 8}, values);
    }
    return model;
  };
  CHECK_FALSE(said(*made(folder / "none", layers(0, 0)), "zero-weights"));
  CHECK(said(*made(folder / "one", layers(1, 5)), "zero-weights") == Severity::kWarning);
  CHECK_FALSE(said(*made(folder / "two", layers(1, 1)), "zero-weights"));
  CHECK_FALSE(said(*made(folder / "all", layers(4, 5)), "zero-weights"));
}

TEST_CASE(
    "duplicates: experts that repeat after a fixed number are a warning, copies of one are not") {
  TemporaryFolder folder;
  auto experts = [](int different) {
    MadeModel model;
    for (int expert = 0; expert < 12; ++expert) {
      const std::string name = "model.layers.0.mlp.experts." + std::to_string(expert);
      model.add(name + ".up_proj.weight", Dtype::kFloat32, {8, 8},
                distinct(64, expert % different + 1));
      model.add(name + ".down_proj.weight", Dtype::kFloat32, {8, 8},
                distinct(64, expert % different + 40));
    }
    return model;
  };
  CHECK_FALSE(said(*made(folder / "sound", experts(12)), "duplicate-content"));
  CHECK(said(*made(folder / "dense", experts(1)), "duplicate-content") == Severity::kInfo);
  auto repeated = made(folder / "repeated", experts(3));
  CHECK(said(*repeated, "duplicate-content") == Severity::kWarning);
  const std::string cause = found_in(*repeated, "duplicate-content").at(0).cause;
  CHECK_MESSAGE(cause.find("the experts repeat every 3") != std::string::npos, cause);
}

TEST_CASE("duplicates: copies of the vocabulary in layers for several tokens are none") {
  TemporaryFolder folder;
  MadeModel model = layers(8);
  for (const char* layer : {"6", "7"}) {
    const std::string before = std::string("model.layers.") + layer;
    model.add(before + ".embed_tokens.weight", Dtype::kFloat32, {8, 8}, distinct(64, 90));
    model.add(before + ".shared_head.head.weight", Dtype::kFloat32, {8, 8}, distinct(64, 91));
  }
  CHECK_FALSE(said(*made(folder / "sound", model), "duplicate-content"));
}

TEST_CASE("zero weights: a vocabulary whose last half is zeros is padded, its first half is not") {
  TemporaryFolder folder;
  auto padded = [](int first_zero, int end_zero, bool has_layer) {
    MadeModel model;
    Numbers values;
    for (int i = 0; i < 32 * 8; ++i)
      values.push_back(i / 8 >= first_zero && i / 8 < end_zero ? 0 : i + 1);
    model.add("model.embed_tokens.weight", Dtype::kFloat32, {32, 8}, values);
    model.add("lm_head.weight", Dtype::kFloat32, {32, 8}, values);
    if (has_layer) model.add("model.layers.0.mlp.up_proj.weight", Dtype::kFloat32, {32, 8}, values);
    return model;
  };
  CHECK(said(*made(folder / "padded", padded(16, 32, false)), "zero-weights") == Severity::kInfo);
  CHECK(said(*made(folder / "first", padded(0, 16, false)), "zero-weights") == Severity::kWarning);
  CHECK(said(*made(folder / "layer", padded(16, 32, true)), "zero-weights") == Severity::kWarning);
  CHECK(said(*made(folder / "most", padded(8, 32, false)), "zero-weights") == Severity::kWarning);
}

TEST_CASE("zero experts: as many zeros between the numbers of all experts are none") {
  TemporaryFolder folder;
  auto experts = [](bool is_one_zero) {
    MadeModel model;
    Numbers values;
    for (int i = 0; i < 8 * 64; ++i)
      values.push_back((is_one_zero ? i / 64 == 3 : i % 8 == 3) ? 0 : i + 1);
    model.add("model.layers.0.mlp.experts.down_proj", Dtype::kFloat32, {8, 8, 8}, values);
    return model;
  };
  CHECK(said(*made(folder / "zero", experts(true)), "zero-weights") == Severity::kWarning);
  CHECK_FALSE(said(*made(folder / "few bits", experts(false)), "zero-weights"));
}

TEST_CASE("duplicates: gate and up with the same bytes are a warning") {
  TemporaryFolder folder;
  MadeModel model = layers(8);
  MadeModel same = model;
  for (std::size_t i = 0; i < same.tensors.size(); ++i) {
    MadeContent gate = same.tensors[i];
    if (gate.fqn.find("layers.2.mlp.up_proj") == std::string::npos) continue;
    gate.fqn = "model.layers.2.mlp.gate_proj.weight";
    same.tensors.push_back(std::move(gate));
    break;
  }
  CHECK(said(*made(folder / "same", same), "duplicate-content") == Severity::kWarning);
}

TEST_CASE("tables that are computed are equal in the few layers that have them") {
  TemporaryFolder folder;
  for (bool computed : {true, false}) {
    MadeModel model = layers(8);
    for (int layer : {1, 4, 7}) {
      for (const char* table : {"cos", "sin"}) {
        std::string fqn = "model.layers." + std::to_string(layer) + ".attn.";
        fqn += computed ? std::string("rotary_emb.") + table + "_cached" : std::string(table);
        model.add(fqn, Dtype::kFloat32, {8, 8}, distinct(64, table[0] == 'c' ? 20 : 30));
      }
    }
    auto opened = made(folder / (computed ? "computed" : "learnt"), model);
    CHECK(said(*opened, "duplicate-content").has_value() == !computed);
  }
}

TEST_CASE("NaN in as many elements as whole rows of tokens have is told as that") {
  TemporaryFolder folder;
  MadeModel model;
  Numbers table = distinct(512);
  std::fill_n(table.begin() + 64, 32, std::numeric_limits<double>::quiet_NaN());
  model.add("model.embed_tokens.weight", Dtype::kFloat32, {32, 16}, table);
  const auto found = found_in(*made(folder / "rows", model), "value-statistics");
  CHECK((found.size() == 1 && found[0].cause.find("rows of tokens") != std::string::npos));
}

TEST_CASE("a tensor of nothing but NaN is a warning, a weight with one too, others information") {
  TemporaryFolder folder;
  constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
  for (Dtype dtype : {Dtype::kFloat32, Dtype::kBfloat16, Dtype::kFloat16, Dtype::kFloat64}) {
    CAPTURE(name(dtype));
    std::string before(name(dtype));
    auto with = [&](const std::string& kind, Numbers values) {
      MadeModel model;
      model.add("w", dtype, {8, 8}, std::move(values));
      return said(*made(folder / (before + kind), model), "value-statistics");
    };
    CHECK_FALSE(with("healthy", distinct(64)));
    CHECK_FALSE(with("zeros", Numbers(64, 0)));
    CHECK(with("nan", Numbers(64, kNan)) == Severity::kWarning);
    Numbers one = distinct(64);
    one[9] = kNan;
    CHECK(with("one", one) == Severity::kInfo);
    for (const char* fqn :
         {"moe.experts.w1", "linear_fc1.weight0", "mixer.A_log", "attn.sinks", "bn.running_var",
          "vit.cls_token", "vit.position_embeddings", "swin.mask_token", "multiscale.pos_embed",
          "attn.relative_position_bias_table"}) {
      MadeModel model;
      model.add(fqn, dtype, {8, 8}, one);
      CHECK(said(*made(folder / (before + fqn), model), "value-statistics") == Severity::kWarning);
    }
    one[9] = -std::numeric_limits<double>::infinity();
    CHECK(with("infinite", one) == Severity::kInfo);
    for (double broken : {kNan, std::numeric_limits<double>::infinity()}) {
      one[9] = broken;
      for (const char* fqn : {"fc.weight", "mlp.experts.down_proj"}) {
        MadeModel model;
        model.add(fqn, dtype, {8, 8}, one);
        const std::string kind = before + fqn + (std::isnan(broken) ? "nan" : "infinite");
        CHECK(said(*made(folder / kind, model), "value-statistics") == Severity::kWarning);
      }
    }
  }
  for (const char* fqn : {"fc.weight", "lm_head.bias", "exp_avg_sq", "masked.bias"}) {
    MadeModel model;
    Numbers flipped = distinct(2048);
    flipped[77] = 3e38;
    if (std::string_view(fqn) == "masked.bias") std::fill_n(flipped.begin(), 512, -3e38);
    model.add(fqn, Dtype::kFloat32, {32, 64}, flipped);
    const auto found =
        said(*made(folder / (std::string("flipped") + fqn), model), "value-statistics");
    CHECK((found == Severity::kWarning) == std::string_view(fqn).starts_with("fc."));
  }
  MadeModel tiny;
  tiny.add("w", Dtype::kFloat32, {16, 8}, distinct(128, 1e-41));
  CHECK(said(*made(folder / "tiny", tiny), "value-statistics") == Severity::kInfo);
  MadeModel unwritten;
  unwritten.add("fc.weight", Dtype::kFloat32, {16, 8}, distinct(128, 1e-41));
  CHECK(said(*made(folder / "unwritten", unwritten), "value-statistics") == Severity::kWarning);
}

TEST_CASE("a matrix of one value next to others of its kind is a warning, with other kinds none") {
  TemporaryFolder folder;
  const auto found = [&](const std::string& name, const std::vector<int>& constant,
                         const char* role, double value) {
    MadeModel model;
    for (int layer = 0; layer < 4; ++layer) {
      const bool is_constant = std::find(constant.begin(), constant.end(), layer) != constant.end();
      model.add("model.layers." + std::to_string(layer) + "." + role, Dtype::kFloat32, {8, 16},
                is_constant ? Numbers(128, value) : distinct(128, layer + 0.5));
    }
    return said(*made(folder / name, model), "constant-weights");
  };
  CHECK_FALSE(found("trained", {}, "mlp.up_proj.weight", 1));
  CHECK(found("one", {2}, "mlp.up_proj.weight", 0.25) == Severity::kWarning);
  CHECK(found("two", {0, 3}, "mlp.up_proj.weight", 1) == Severity::kWarning);
  CHECK_FALSE(found("most", {0, 1, 2}, "mlp.up_proj.weight", 1));
  CHECK_FALSE(found("zero", {2}, "mlp.up_proj.weight", 0));
  CHECK_FALSE(found("scale", {2}, "mlp.up_proj.weight_scale", 1));
}

TEST_CASE("a layer whose norms are all 1 next to trained ones is a warning, all of them are none") {
  TemporaryFolder folder;
  const auto told = [&](const std::string& name, const std::vector<int>& fresh) {
    MadeModel model;
    for (int layer = 0; layer < 4; ++layer) {
      const bool is_fresh = std::find(fresh.begin(), fresh.end(), layer) != fresh.end();
      for (const char* norm : {"input_layernorm", "post_attention_layernorm"}) {
        model.add("model.layers." + std::to_string(layer) + "." + norm + ".weight",
                  Dtype::kBfloat16, {16}, is_fresh ? Numbers(16, 1) : distinct(16, layer + 0.5));
      }
    }
    return said(*made(folder / name, model), "fresh-layers");
  };
  CHECK_FALSE(told("trained", {}));
  CHECK(told("one", {2}) == Severity::kWarning);
  CHECK(told("two", {0, 3}) == Severity::kWarning);
  CHECK_FALSE(told("most", {0, 1, 2}));
  // The first steps in 16 bits: few elements of a norm have changed, and in one layer none.
  MadeModel young;
  for (int layer = 0; layer < 4; ++layer) {
    Numbers norm(16, 1);
    if (layer != 2) norm[3] = 1.0078125;
    young.add("model.layers." + std::to_string(layer) + ".input_layernorm.weight", Dtype::kBfloat16,
              {16}, norm);
  }
  CHECK_FALSE(said(*made(folder / "young", young), "fresh-layers"));
  CHECK_FALSE(told("new", {0, 1, 2, 3}));
}

TEST_CASE("data that is newer than its metadata is said, and a warning where ranges do not fit") {
  TemporaryFolder folder;
  auto path = folder / "a";
  made(path, layers(2));
  auto opened = [&] { return *open_checkpoint(path); };
  CHECK_FALSE(said(*opened(), "data-newer"));
  auto written = fs::last_write_time(path + "/.metadata");
  fs::last_write_time(path + "/__0_0.distcp", written + std::chrono::seconds(30));
  CHECK_FALSE(said(*opened(), "data-newer"));
  fs::last_write_time(path + "/__0_0.distcp", written + std::chrono::seconds(3600));
  CHECK(said(*opened(), "data-newer") == Severity::kInfo);
  fs::resize_file(path + "/__0_0.distcp", fs::file_size(path + "/__0_0.distcp") - 100);
  fs::last_write_time(path + "/__0_0.distcp", written + std::chrono::seconds(3600));
  CHECK(said(*opened(), "data-newer") == Severity::kWarning);
}

TEST_CASE("whether younger data is of this save stays open, also where every byte fits") {
  TemporaryFolder folder;
  auto path = folder / "a";
  made(path, layers(2));
  auto written = fs::last_write_time(path + "/.metadata");
  fs::last_write_time(path + "/__0_0.distcp", written + std::chrono::seconds(3600));
  CheckOptions options;
  options.depth = Depth::kData;
  auto report = check(**open_checkpoint(path), options);
  REQUIRE(report.has_value());
  CHECK(std::any_of(report->unjudged.begin(), report->unjudged.end(), [](const Unjudged& one) {
    return one.hint == "data-newer" && one.needs.find("--data") == std::string::npos;
  }));
}

TEST_CASE("a half-written .metadata.tmp is said") {
  TemporaryFolder folder;
  auto path = folder / "a";
  CHECK_FALSE(said(*made(path, layers(2)), "leftover-metadata"));
  put(path + "/.metadata.tmp", "half");
  CHECK(said(**open_checkpoint(path), "leftover-metadata") == Severity::kInfo);
}

TEST_CASE("a path in planner_data that is not the name is said") {
  TemporaryFolder folder;
  MadeModel model = layers(1);
  CHECK_FALSE(said(*made(folder / "healthy", model), "planner-keys"));
  model.tensors[0].path = {std::string("model"), std::string("layers"), std::int64_t{0},
                           std::string("mlp.up_proj.weight")};
  CHECK_FALSE(said(*made(folder / "nested", model), "planner-keys"));
  model.tensors[0].path = {std::string("module"), std::string("up_proj.weight")};
  auto other = made(folder / "other", model);
  CHECK(said(*other, "planner-keys") == Severity::kInfo);
  CHECK(found_in(*other, "planner-keys").at(0).subjects ==
        std::vector<std::string>{"model.layers.0.mlp.up_proj.weight"});
}

TEST_CASE("two names at one path in planner_data are warned of") {
  TemporaryFolder folder;
  MadeModel model = layers(2);
  REQUIRE(model.tensors.size() > 1);
  const std::string first = model.tensors[0].fqn, second = model.tensors[1].fqn;
  model.tensors[0].path = {first};
  model.tensors[1].path = {first};
  auto other = made(folder / "other", model);
  CHECK(said(*other, "planner-keys") == Severity::kWarning);
  auto findings = found_in(*other, "planner-keys");
  const auto shared = std::find_if(findings.begin(), findings.end(), [](const Finding& finding) {
    return finding.severity == Severity::kWarning;
  });
  REQUIRE(shared != findings.end());
  CHECK(shared->subjects.size() == 2);
}

TEST_CASE("a tensor of more than 16,384 chunks is said, one of as many is not") {
  auto cut = [](std::int64_t chunks) {
    CheckpointBuilder builder;
    builder.set_format(test::kUnnamedFormat);
    builder.add_tensor("w", Dtype::kFloat32, Extents{chunks});
    for (std::int64_t i = 0; i < chunks; ++i)
      builder.add_chunk(Extents{i}, Extents{1}, {builder.file("__0_0.distcp"), 4 * i, 4});
    auto report = check(*builder.finish(), CheckOptions{Depth::kMetadata, nullptr, std::nullopt});
    REQUIRE(report.has_value());
    for (const Finding& finding : report->findings) {
      if (finding.rule == "many-chunks") return std::optional(finding.severity);
    }
    return std::optional<Severity>();
  };
  CHECK_FALSE(cut(16'384));
  CHECK(cut(16'385) == Severity::kInfo);
}

TEST_CASE("replicas that part ways are a warning, those that differ in last bits information") {
  TemporaryFolder folder;
  auto with = [&](const std::string& folder_name, const std::string& placement,
                  const Numbers& of_last_rank) {
    std::string path = folder / folder_name;
    made(path, layers(1));
    for (int rank = 0; rank < 3; ++rank)
      put(path + "/optimizer_rank_" + std::to_string(rank) + ".pt",
          rank_file(rank, 3, placement, rank == 2 ? of_last_rank : distinct(32)));
    return *open_checkpoint(path);
  };
  Numbers bits = distinct(32), astray = distinct(32);
  bits[4] = std::nextafter(static_cast<float>(bits[4]), 1e9F);
  for (std::size_t i = 0; i < 16; ++i) astray[i] *= 1.5;
  REQUIRE(read_rank_files(*with("read", "Replicate", distinct(32))).size() == 3);
  CHECK_FALSE(said(*with("alike", "Replicate", distinct(32)), "replica-diverge"));
  // Parts of one tensor need not be equal.
  CHECK_FALSE(said(*with("parts", "Shard", astray), "replica-diverge"));
  auto last = with("bits", "Replicate", bits);
  CHECK(said(*last, "replica-diverge") == Severity::kInfo);
  CHECK(
      evidence<std::vector<std::string>>(found_in(*last, "replica-diverge").at(0), "steps_between")
          .front() == "exp_avgs.0: rank 2 and rank 0: 1 by 1 ULP");
  auto far = with("astray", "Replicate", astray);
  CHECK(said(*far, "replica-diverge") == Severity::kWarning);
  auto finding = found_in(*far, "replica-diverge").at(0);
  CHECK_FALSE(finding.remedy.has_value());
  CHECK(finding.subjects == std::vector<std::string>{"optimizer_rank_2.pt"});
  CHECK(evidence<double>(finding, "largest_difference") > 0.1);
}
