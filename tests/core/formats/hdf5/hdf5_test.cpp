// HDF5 files that Keras and h5py wrote, intact and with wrong bytes.
#include <doctest/doctest.h>

#include <algorithm>
#include <map>

#include "core/base/little_endian.h"
#include "core/formats/hdf5/hdf5_files.h"
#include "core/model/evidence.h"
#include "core/rules/check.h"

using namespace shw;
using namespace shw::test;

namespace {

// The file has the classes of layers with numbers; the truth has the layers' own names.
void check_keras(const std::string& folder) {
  auto checkpoint = opened(folder + "/ckpt");
  CHECK(checkpoint->format().name == "hdf5");
  CHECK(checkpoint->opening_findings().empty());
  auto truth = read_truth(kDataFolder + "/" + folder + "/truth.safetensors");
  REQUIRE(truth.has_value());
  const std::map<std::string, std::string> kNames{{"conv/kernel", "conv1d/vars/0"},
                                                  {"conv/bias", "conv1d/vars/1"},
                                                  {"up/kernel", "dense/vars/0"},
                                                  {"up/bias", "dense/vars/1"},
                                                  {"head/kernel", "dense_1/vars/0"},
                                                  {"head/bias", "dense_1/vars/1"},
                                                  {"norm/gamma", "layer_normalization/vars/0"},
                                                  {"norm/beta", "layer_normalization/vars/1"}};
  for (const auto& [name, path] : kNames) {
    auto values = read_named(*checkpoint, "layers/" + path);
    REQUIRE(values.has_value());
    CHECK(values->shape == (*truth)[name].shape);
    CHECK(values->dtype == (*truth)[name].dtype);
    CHECK(values->bytes == (*truth)[name].bytes);
  }
  // Adam: step, learning rate, and two of each variable.
  CHECK(numbers_of<std::int32_t>(*checkpoint, "optimizer/vars/0").size() == 1);
  CHECK(checkpoint->tensor_count() == 8 + 2 + 16);
}

// Reads everything that can be opened. False if damage was not reported.
bool look_at(Bytes bytes) {
  auto checkpoint = open_bytes(std::move(bytes));
  if (!checkpoint) return !checkpoint.error().message.empty();
  for (std::uint32_t t = 0; t < (*checkpoint)->tensor_count(); ++t)
    (void)read_tensor(**checkpoint, TensorId{t});
  return !(*checkpoint)->opening_findings().empty();
}

}  // namespace

TEST_CASE("weights that Keras saved read as training held them, in one file and in five") {
  check_keras("keras-3/weights");
  check_keras("keras-3/weights_sharded");
}

TEST_CASE("a shard of Keras that is gone is found by its index") {
  auto whole = open_directory(kDataFolder + "/keras-3/weights_sharded/ckpt");
  REQUIRE(whole.has_value());
  std::vector<std::pair<std::string, Bytes>> files;
  auto entries = (*whole)->list();
  REQUIRE(entries.has_value());
  for (const Entry& entry : *entries) {
    if (entry.path == "model_00001.weights.h5") continue;
    files.emplace_back(entry.path, file_bytes("keras-3/weights_sharded/ckpt/" + entry.path));
  }
  auto checkpoint = open_checkpoint(memory_directory("memory", files));
  REQUIRE(checkpoint.has_value());
  CHECK_FALSE((*checkpoint)->unclaimed_records().empty());
  auto report = check(**checkpoint, {});
  REQUIRE(report.has_value());
  CHECK(report->verdict != Verdict::kClean);
}

TEST_CASE("missing-file: a name that Keras' index places in two missing shards is counted once") {
  auto whole = open_directory(kDataFolder + "/keras-3/weights_sharded/ckpt");
  REQUIRE(whole.has_value());
  std::vector<std::pair<std::string, Bytes>> files;
  auto entries = (*whole)->list();
  REQUIRE(entries.has_value());
  for (const Entry& entry : *entries) {
    if (entry.path == "model_00002.weights.h5" || entry.path == "model_00003.weights.h5") continue;
    files.emplace_back(entry.path, file_bytes("keras-3/weights_sharded/ckpt/" + entry.path));
  }
  auto checkpoint = open_checkpoint(memory_directory("memory", files));
  REQUIRE(checkpoint.has_value());
  auto report = check(**checkpoint, {});
  REQUIRE(report.has_value());
  const auto found = std::ranges::find(report->findings, "missing-file", &Finding::rule);
  REQUIRE(found != report->findings.end());
  const auto* names = find_evidence<std::vector<std::string>>(*found, "named_only");
  REQUIRE(names != nullptr);
  CHECK(*names == std::vector<std::string>{"optimizer/vars"});
  CHECK(*find_evidence<std::int64_t>(*found, "unreadable_tensors") == 1);
}

TEST_CASE("files of ranks are put together by the attributes offsets and global_shape") {
  auto checkpoint = opened("h5py/ranks/ckpt");
  auto w = numbers_of<float>(*checkpoint, "model/w");
  REQUIRE(w.size() == 40);
  for (std::size_t i = 0; i < 40; ++i) CHECK(w[i] == static_cast<float>(i));
  TensorId v = *checkpoint->find("model/v");
  CHECK(to_text(checkpoint->shape(v)) == "[8, 4]");
  CHECK(checkpoint->dtype(v) == Dtype::kFloat16);
  std::vector<std::uint32_t> writers;
  for (ChunkId chunk : checkpoint->chunks(v))
    writers.push_back(checkpoint->writer(chunk).value_or(99));
  CHECK(writers == std::vector<std::uint32_t>{0, 1, 2, 3});
  CHECK(check(*checkpoint, {})->verdict == Verdict::kClean);
}

TEST_CASE("what HDF5 can hold and is not read is refused by name, and the rest reads") {
  auto checkpoint = opened("h5py/kinds.h5");
  CHECK(numbers_of<float>(*checkpoint, "float") == std::vector<float>{0, 1, 2, 3, 4, 5});
  CHECK(numbers_of<float>(*checkpoint, "group/hard").size() == 6);
  CHECK(numbers_of<std::int64_t>(*checkpoint, "scalar") == std::vector<std::int64_t>{-5});
  CHECK(numbers_of<std::int32_t>(*checkpoint, "compact") == std::vector<std::int32_t>{0, 1, 2, 3});
  CHECK(numbers_of<std::uint16_t>(*checkpoint, "uint16") == std::vector<std::uint16_t>{0, 1, 2});
  CHECK(checkpoint->dtype(*checkpoint->find("bool")) == Dtype::kBool);
  CHECK(checkpoint->dtype(*checkpoint->find("half")) == Dtype::kFloat16);
  CHECK(read_named(*checkpoint, "empty").has_value());
  CHECK(numbers_of<float>(*checkpoint, "group/soft") ==
        numbers_of<float>(*checkpoint, "float"));  // a soft link
  const std::pair<const char*, const char*> kRefused[] = {
      {"big_float", "big-endian"}, {"big_int", "big-endian"}, {"complex", "dtype"},
      {"text", "dtype"},           {"compound", "dtype"},     {"checked", "filtered"},
  };
  for (const auto& [fqn, word] : kRefused) {
    auto values = read_named(*checkpoint, fqn);
    INFO(fqn);
    REQUIRE_FALSE(values.has_value());
    CHECK(values.error().message.find(word) != std::string::npos);
  }
}

TEST_CASE("tiles of a dataset read as they are, deflated, and shuffled before that") {
  auto checkpoint = opened("h5py/kinds.h5");
  std::vector<std::int32_t> wanted(35);
  for (std::int32_t i = 0; i < 35; ++i) wanted[static_cast<std::size_t>(i)] = i;
  for (const char* fqn : {"chunked", "gzip", "shuffled"}) {
    CHECK(numbers_of<std::int32_t>(*checkpoint, fqn) == wanted);
    CHECK(to_text(checkpoint->shape(*checkpoint->find(fqn))) == "[7, 5]");
  }
  CHECK(checkpoint->chunks(*checkpoint->find("chunked")).size() == 9);
}

TEST_CASE("objects of the newer form read as those of the older one") {
  auto checkpoint = opened("h5py/latest.h5");
  CHECK(checkpoint->tensor_count() == 4);
  CHECK(numbers_of<double>(*checkpoint, "model/3") == std::vector<double>(8, 3.0));
}

TEST_CASE("an HDF5 file that was cut short anywhere is never clean") {
  for (const char* path : {"h5py/latest.h5", "h5py/ranks/ckpt/shard_rank1.h5"}) {
    const Bytes whole = file_bytes(path);
    for (std::size_t size = 0; size < whole.size(); size += 37) {
      auto checkpoint =
          open_bytes(Bytes(whole.begin(), whole.begin() + static_cast<std::ptrdiff_t>(size)));
      if (!checkpoint) {
        CHECK_FALSE(checkpoint.error().message.empty());
        continue;
      }
      CHECK_FALSE((*checkpoint)->opening_findings().empty());
    }
  }
}

TEST_CASE("any byte of an HDF5 file may be wrong") {
  // Tries every byte of the small file, and some of the others, most of whose groups is unused
  // room.
  const std::pair<const char*, std::size_t> kFiles[] = {
      {"h5py/latest.h5", 1}, {"h5py/ranks/ckpt/shard_rank1.h5", 5}, {"h5py/tiles.h5", 3}};
  for (const auto& [path, step] : kFiles) {
    Bytes bytes = file_bytes(path);
    std::size_t silent = 0;
    for (std::size_t i = 0; i < bytes.size(); i += step) {
      bytes[i] ^= std::byte{0xFF};
      if (!look_at(bytes)) ++silent;
      bytes[i] ^= std::byte{0xFF};
    }
    // The newer form has checksums everywhere except over 160 bytes of elements and 650 bytes
    // between blocks.
    if (step == 1) CHECK(silent == 160 + 650);
  }
}

// h5py 3.16 gives an error for each of these when tensors are read.
TEST_CASE("what the older form of HDF5 says next to its tensors has to be right as well") {
  const Bytes whole = file_bytes("h5py/tiles.h5");
  REQUIRE(whole[8] == std::byte{0});  // the superblock's version
  REQUIRE_FALSE(look_at(whole));
  const std::string text(reinterpret_cast<const char*>(whole.data()), whole.size());
  const std::size_t root = load_little<std::uint64_t>(whole, 64), heap = text.find("HEAP");
  REQUIRE(heap != std::string::npos);
  for (std::size_t at : {std::size_t{37}, std::size_t{74}, heap + 23, root + 18}) {
    CAPTURE(at);
    Bytes bent = whole;
    bent[at] ^= std::byte{1};
    CHECK(look_at(bent));
  }
}

TEST_CASE("two files that hold the same names and say nothing of parts are two checkpoints") {
  Bytes bytes = file_bytes("h5py/latest.h5");
  auto checkpoint = open_checkpoint(memory_directory("memory", {{"a.h5", bytes}, {"b.h5", bytes}}));
  REQUIRE_FALSE(checkpoint.has_value());
  CHECK(checkpoint.error().kind == ErrorKind::kUnsupported);
  CHECK(checkpoint.error().message.find("several checkpoints") != std::string::npos);
}

TEST_CASE("hdf5: of saves that a number tells apart the newest is opened") {
  const Bytes bytes = file_bytes("h5py/latest.h5");
  auto checkpoint = open_checkpoint(
      memory_directory("memory", {{"model.10-0.3.h5", bytes}, {"model.09-0.4.h5", bytes}}));
  REQUIRE(checkpoint.has_value());
  CHECK((*checkpoint)->files()[0].path == "model.10-0.3.h5");
  const auto told = (*checkpoint)->opening_findings();
  CHECK(std::any_of(told.begin(), told.end(), [](const Finding& one) {
    return one.rule == "how-read" && one.subjects == std::vector<std::string>{"model.09-0.4.h5"};
  }));
}

TEST_CASE("a group of two names shows its datasets under both, and a way back ends") {
  auto checkpoint = opened("h5py/links.h5");
  for (const char* fqn : {"enc/w", "dec/w"})
    CHECK(numbers_of<float>(*checkpoint, fqn) == std::vector<float>{0, 1, 2, 3});
  CHECK(checkpoint->tensor_count() == 2);
}

TEST_CASE("a link into another file is not followed, and that is said") {
  auto checkpoint = opened("h5py/links.h5");
  REQUIRE(checkpoint->opening_findings().size() == 1);
  const Finding& finding = checkpoint->opening_findings().front();
  CHECK(finding.rule == "not-looked-at");
  CHECK(finding.subjects == std::vector<std::string>{"outside"});
  CHECK(finding.cause.find("other.bin") != std::string::npos);
  CHECK(check(*checkpoint, {})->verdict == Verdict::kUndecided);
}

TEST_CASE("what the index of Keras places in a file that opens without it is as gone as the file") {
  // Another file of the same name: it opens, but has none of the layers.
  auto whole = open_directory(kDataFolder + "/keras-3/weights_sharded/ckpt");
  REQUIRE(whole.has_value());
  std::vector<std::pair<std::string, Bytes>> files;
  auto entries = (*whole)->list();
  REQUIRE(entries.has_value());
  for (const Entry& entry : *entries) {
    const bool is_other = entry.path == "model_00001.weights.h5";
    files.emplace_back(
        entry.path,
        file_bytes(is_other ? "h5py/latest.h5" : "keras-3/weights_sharded/ckpt/" + entry.path));
  }
  auto checkpoint = open_checkpoint(memory_directory("memory", files));
  REQUIRE(checkpoint.has_value());
  std::vector<std::string> said;
  for (const Finding& finding : (*checkpoint)->opening_findings()) {
    CHECK(finding.rule == "bad-record");
    CHECK(finding.subjects.back() == "model_00001.weights.h5");
    said.push_back(finding.subjects.front());
  }
  CHECK(said == std::vector<std::string>{"layers/dense_1/vars", "optimizer/vars"});
  CHECK((*checkpoint)->unclaimed_records().size() == 2);
}

TEST_CASE("what two ranks saved alike is one tile and a copy of it, and is compared") {
  std::vector<std::pair<std::string, Bytes>> files;
  for (const char* name : {"shard_rank0.h5", "shard_rank1.h5"})
    files.emplace_back(name, file_bytes("h5py/replicas/" + std::string(name)));
  auto at_data = [&]() {
    auto checkpoint = open_checkpoint(memory_directory("memory", files));
    REQUIRE(checkpoint.has_value());
    CheckOptions options;
    options.depth = Depth::kData;
    auto report = check(**checkpoint, options);
    REQUIRE(report.has_value());
    return report->findings;
  };
  auto checkpoint = open_checkpoint(memory_directory("memory", files));
  const TensorId norm = *(*checkpoint)->find("norm"), tiles = *(*checkpoint)->find("tiles");
  REQUIRE((*checkpoint)->chunks(norm).size() == 1);
  REQUIRE((*checkpoint)->replicas((*checkpoint)->chunks(norm)[0]).size() == 1);
  CHECK((*checkpoint)->replicas((*checkpoint)->chunks(norm)[0])[0].writer == 1u);
  CHECK((*checkpoint)->chunks(tiles).size() == 3);
  CHECK((*checkpoint)->replicas((*checkpoint)->chunks(tiles)[2]).size() == 1);
  for (const Finding& finding : at_data()) {
    CHECK(finding.rule != "chunk-overlap");
    CHECK(finding.rule != "replica-diverge");
  }
  ItemPlace copy =
      (*checkpoint)->place((*checkpoint)->replicas((*checkpoint)->chunks(norm)[0])[0].storage);
  files[1].second[static_cast<std::size_t>(copy.offset)] ^= std::byte{1};
  bool found = false;
  for (const Finding& finding : at_data()) {
    if (finding.rule != "replica-diverge") continue;
    found = true;
    CHECK(finding.subjects == std::vector<std::string>{"norm"});
    CHECK(finding.severity == Severity::kError);
  }
  CHECK(found);
}

TEST_CASE("what was never written to a dataset reads as its fill value, and that is said") {
  auto checkpoint = opened("h5py/filled.h5");
  CHECK(numbers_of<std::int32_t>(*checkpoint, "zeros") == std::vector<std::int32_t>(5, 0));
  CHECK(numbers_of<float>(*checkpoint, "sevens") ==
        std::vector<float>{1, 1, 1, 1, 7, 7, 7, 7, 7, 7});
  auto deflated = numbers_of<float>(*checkpoint, "deflated");
  CHECK(deflated[47] == 47.0F);
  CHECK(deflated[48] == -2.5F);
  CHECK(deflated[63] == -2.5F);
  CHECK(numbers_of<std::uint16_t>(*checkpoint, "whole") == std::vector<std::uint16_t>(6, 0x3800));
  std::map<std::string, const Finding*> said;
  auto report = check(*checkpoint, {});
  REQUIRE(report.has_value());
  for (const Finding& finding : report->findings) {
    CHECK(finding.rule == "coverage-gap");
    CHECK(finding.subjects.size() == 1);
    said[finding.subjects.front()] = &finding;
  }
  REQUIRE(said.size() == 5);
  for (const char* fqn : {"zeros", "sevens", "deflated", "whole"}) {
    CHECK(said[fqn]->severity == Severity::kWarning);
    CHECK(said[fqn]->cause.find("HDF5 reads its fill value there") != std::string::npos);
  }
  CHECK(said["sevens"]->cause.find("6 of the 10 elements") != std::string::npos);
  CHECK(said["sevens"]->cause.find("there, 7") != std::string::npos);
  // The bytes are arbitrary, because HDF5 was told not to fill them.
  CHECK(said["nothing"]->severity == Severity::kError);
}
