#include "core/verbs/demo.h"

#include <fmt/core.h>

#include <unistd.h>

#include <algorithm>
#include <array>
#include <bit>
#include <filesystem>

#include "core/formats/zip/crc32.h"
#include "core/io/list_names.h"
#include "core/io/path_text.h"
#include "core/io/permissions.h"
#include "core/io/random_name.h"
#include "core/io/store.h"
#include "core/tensor/convert.h"
#include "core/verbs/demo_model.h"

namespace shw {
namespace {

constexpr const char* kRecipe =
#include "demo_recipe.inc"
    ;
// Marks a folder that may be replaced.
constexpr const char* kMarker = ".shardwright-demo";
// Payloads begin with this many real bytes, followed by a hole: enough for `show --values` and
// distinct chunks, while 7,000 chunks take about 40 MB of disk.
constexpr std::uint64_t kRealBytes = 512;

std::uint64_t hash_mix(std::uint64_t value) {  // splitmix64
  value += 0x9E3779B97F4A7C15ull;
  value = (value ^ (value >> 30)) * 0xBF58476D1CE4E5B9ull;
  value = (value ^ (value >> 27)) * 0x94D049BB133111EBull;
  return value ^ (value >> 31);
}

std::uint64_t bits_of_number(Dtype dtype, std::int64_t number) {
  if (dtype == Dtype::kFloat32) return std::bit_cast<std::uint32_t>(static_cast<float>(number));
  return static_cast<std::uint64_t>(number);
}

// Element `random` of a tensor. Weights have either sign and magnitudes from 0.008 to 0.06, like
// trained ones. Mean gradients are between 2^-17 and 2^-10, mean squares one to four times their
// square, as consistent and noisy gradients give.
std::uint64_t element_of(const DemoTensor& tensor, std::uint64_t random) {
  if (tensor.values == DemoValues::kNumber) return bits_of_number(tensor.dtype, tensor.number);
  if (tensor.dtype != Dtype::kBfloat16) return random & 0xFF;
  std::uint64_t sign = random & 0x8000;
  if (tensor.values == DemoValues::kWeights) return sign | (0x3C00 + random % 0x180);
  std::uint64_t mean = 0x3700 + random % 0x380;
  if (tensor.values == DemoValues::kMean) return sign | mean;
  auto m = from_narrow<kBfloat16Form, float>(static_cast<std::uint16_t>(mean));
  float scatter = 1.0F + static_cast<float>(random >> 32 & 0xFF) * (3.0F / 255);
  return to_narrow<kBfloat16Form>(m * m * scatter);
}

Bytes real_values(const DemoTensor& tensor, std::uint64_t length, std::uint64_t seed) {
  Bytes bytes(length);
  std::uint32_t size = size_of(tensor.dtype);
  for (std::uint64_t i = 0; i < length / size; ++i) {
    std::uint64_t bits = element_of(tensor, hash_mix(seed * 0x10001 + i));
    for (std::uint32_t b = 0; b < size; ++b)
      bytes[i * size + b] = static_cast<std::byte>(bits >> (8 * b));
  }
  return bytes;
}

PayloadWriter sparse_payload(const DemoTensor& tensor, std::uint64_t length, std::uint64_t seed) {
  auto write = [&tensor, length, seed](ByteSink& sink) -> Result<std::uint32_t> {
    std::uint64_t real = std::min(length, kRealBytes);
    Bytes head = real_values(tensor, real, seed);
    SHW_CHECK(sink.write(head));
    if (length > real) SHW_CHECK(sink.skip(length - real));
    return crc32_of_zeros(crc32_of(head), length - real);
  };
  return {write, length};
}

struct DemoItem {  // one item of a file
  std::size_t tensor = 0, tile = 0;
};

Status write_file(const DemoModel& model, std::uint32_t rank, const std::vector<DemoItem>& jobs,
                  WritableDirectory& directory, DcpMetadata& metadata, Progress* progress) {
  std::string path = fmt::format("__{}_0.distcp", rank);
  SHW_TRY(auto sink, directory.create(path));
  for (const DemoItem& job : jobs) {
    if (is_cancelled(progress)) return cancelled_error();
    const DemoTensor& tensor = model.tensors[job.tensor];
    const Box& box = tensor.tiles[job.tile].recorded;
    auto length = static_cast<std::uint64_t>(*volume(box.sizes)) * size_of(tensor.dtype);
    std::uint64_t offset = sink->position();
    bool moment = tensor.values == DemoValues::kMean || tensor.values == DemoValues::kSquare;
    std::uint64_t seed =
        (moment ? model.tensors.size() + tensor.gradients : job.tensor) << 8 | job.tile;
    SHW_TRY(std::uint64_t item,
            write_torch_item(*sink, tensor.dtype, box.sizes, sparse_payload(tensor, length, seed)));
    metadata.tensors[job.tensor].chunks[job.tile] = {
        box.offsets, box.sizes, {path, offset, item, {}}};
    if (progress != nullptr) progress->add(1);
  }
  return sink->finish();
}

Status write_checkpoint(const DemoModel& model, WritableDirectory& directory, Progress* progress) {
  std::vector<std::vector<DemoItem>> files(static_cast<std::size_t>(model.dense_mesh.size()));
  DcpMetadata metadata;
  metadata.checkpoint_id = model.checkpoint;
  metadata.save_id = "5d1f0c5e-9000-4000-8000-000000001691";
  std::uint64_t items = 0;
  for (std::size_t t = 0; t < model.tensors.size(); ++t) {
    const DemoTensor& tensor = model.tensors[t];
    DcpTensor row{tensor.fqn, tensor.dtype, false, tensor.recorded, {}, tensor.path};
    row.chunks.resize(tensor.tiles.size());
    metadata.tensors.push_back(std::move(row));
    for (std::size_t i = 0; i < tensor.tiles.size(); ++i)
      files[tensor.tiles[i].writer].push_back({t, i});
    items += tensor.tiles.size();
  }
  if (progress != nullptr) progress->begin(Phase::kCopying, items, false);
  for (std::uint32_t rank = 0; rank < files.size(); ++rank)
    SHW_CHECK(write_file(model, rank, files[rank], directory, metadata, progress));
  SHW_TRY(auto sink, directory.create(".metadata"));
  SHW_CHECK(write_dcp_metadata(metadata, *sink));
  SHW_CHECK(sink->finish());
  return directory.sync();
}

namespace fs = std::filesystem;

// Refuses a folder inside a checkpoint, where the demo would be read as part of it.
Status check_is_no_checkpoint(const std::string& folder) {
  if (!posix_store().exists(folder)) return {};
  SHW_TRY(const std::vector<std::string> names, names_in(folder));
  for (const std::string& name : names) {
    bool part = name.ends_with(".metadata") || name.ends_with(".distcp") ||
                name.ends_with(".safetensors") || name.ends_with(".index.json");
    if (part)
      return fail(ErrorKind::kUsage, "is a checkpoint (there is " + name + " in it)", {folder},
                  "Choose a folder that is new or empty.");
  }
  return {};
}

// Deletes an earlier demo; other files are kept and cause an error.
Status clear(const std::string& folder, const std::string& checkpoint) {
  std::error_code code;
  std::string made = folder + "/" + checkpoint;
  bool ours = fs::exists(folder + "/" + kMarker, code);
  bool taken = fs::exists(made, code) || fs::exists(folder + "/spec.json", code);
  if (taken && !ours) {
    return fail(ErrorKind::kUsage, "holds files that are not from a demo", {folder, {}, {}},
                "Choose a folder that is new or empty.");
  }
  if (!taken) return {};
  std::string old = made + ".shardwright-partial-old";
  fs::rename(made, old, code);
  if (!code) SHW_CHECK(posix_store().discard(old, ".shardwright-partial-"));
  fs::remove(folder + "/spec.json", code);
  return {};
}

}  // namespace

Result<Demo> make_demo(const std::string& folder, Progress* progress) {
  DemoModel model;
  SHW_CHECK(read_demo_model(kRecipe, model));
  SHW_CHECK(check_is_no_checkpoint(folder));
  std::error_code code;
  fs::create_directories(folder, code);
  if (code) return fail(ErrorKind::kIo, code.message(), {folder, {}, {}});
  SHW_CHECK(clear(folder, model.checkpoint));

  std::string checkpoint = folder + "/" + model.checkpoint;
  std::string temporary = checkpoint + kPartialMark + random_digits();
  SHW_TRY(auto parent, posix_store().edit_folder(folder));
  SHW_TRY(auto directory, posix_store().make_folder(temporary));
  if (auto written = write_checkpoint(model, *directory, progress); !written) {
    directory.reset();
    if (auto gone = posix_store().discard(temporary, ".shardwright-partial-"); !gone)
      return tl::unexpected(gone.error());
    return tl::unexpected(written.error());
  }
  if (!fs::exists(folder + "/" + kMarker, code)) SHW_CHECK(write_text(*parent, kMarker, ""));
  SHW_CHECK(write_text(*parent, "spec.json", demo_spec_json(model)));
  SHW_CHECK(posix_store().publish(temporary, checkpoint));
  SHW_CHECK(set_final_permissions(posix_store(), checkpoint, {}));
  return Demo{checkpoint, folder + "/spec.json"};
}

}  // namespace shw
