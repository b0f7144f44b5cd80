// Tensor subclasses of torchao in DCP, as torchao 0.18 and torch 2.15 wrote them (tests/data).
#include "core/formats/dcp/dcp_subclasses.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cstring>

#include "core/formats/dcp/dcp_names.h"
#include "core/formats/items/items.h"
#include "core/formats/open.h"
#include "core/io/read_whole.h"
#include "core/memory_sink.h"
#include "core/rules/check.h"

using namespace shw;
using namespace shw::test;

namespace {

using WrappedFiles = std::vector<std::pair<std::string, Bytes>>;

WrappedFiles files_of(const std::string& name) {
  const std::string folder = std::string(SHW_TEST_DATA) + "/torch-2.15/torchao/" + name;
  auto directory = open_directory(folder);
  REQUIRE(directory.has_value());
  auto entries = (*directory)->list();
  REQUIRE(entries.has_value());
  WrappedFiles files;
  for (const Entry& entry : *entries) {
    auto source = (*directory)->open(entry.path);
    REQUIRE(source.has_value());
    auto bytes = read_bytes(**source, 0, (*source)->size());
    REQUIRE(bytes.has_value());
    files.emplace_back(entry.path, std::move(*bytes));
  }
  return files;
}

std::shared_ptr<const Checkpoint> opened_from(WrappedFiles files) {
  auto opened = open_checkpoint(memory_directory("torchao", std::move(files)));
  REQUIRE_MESSAGE(opened.has_value(), opened.error().message);
  return *opened;
}

TensorId tensor_named(const Checkpoint& checkpoint, std::string_view fqn) {
  for (TensorId tensor : checkpoint.tensors()) {
    if (checkpoint.fqn(tensor) == fqn) return tensor;
  }
  FAIL("no tensor of this name");
  return TensorId{};
}

std::string listed(const Checkpoint& checkpoint) {
  std::vector<std::string> names;
  for (TensorId tensor : checkpoint.tensors())
    names.push_back(std::string(checkpoint.fqn(tensor)) + to_text(checkpoint.shape(tensor)));
  std::sort(names.begin(), names.end());
  std::string all;
  for (const std::string& name : names) all += name + " ";
  return all;
}

std::vector<Finding> diagnosed(const Checkpoint& checkpoint) {
  CheckOptions options;
  options.depth = Depth::kData;
  auto report = check(checkpoint, options, nullptr);
  REQUIRE_MESSAGE(report.has_value(), report.error().message);
  return report->findings;
}

Severity worst_of(const std::vector<Finding>& findings) {
  Severity worst = Severity::kInfo;
  for (const Finding& finding : findings) worst = std::max(worst, finding.severity);
  return worst;
}

void flip_at(Bytes& bytes, std::uint64_t at) {
  bytes.at(at) ^= std::byte{4};
}

}  // namespace

TEST_CASE("tensor subclasses in DCP: what a weight wraps are tensors of their own") {
  const auto opened = opened_from(files_of("int8"));
  CHECK(listed(*opened) ==
        "0.bias[8] 0.weight.qdata[8, 16] 0.weight.scale[8, 1] 0.weight.zero_point[8, 1] ");
  auto values = read_tensor(*opened, tensor_named(*opened, "0.weight.qdata"));
  REQUIRE(values.has_value());
  const Bytes first(values->bytes.begin(), values->bytes.begin() + 4);
  CHECK(first == Bytes{std::byte{70}, std::byte{196}, std::byte{230}, std::byte{63}});
  CHECK(worst_of(diagnosed(*opened)) == Severity::kInfo);
}

TEST_CASE("tensor subclasses in DCP: ranks cut elements and scales, and a table is a copy") {
  const auto opened = opened_from(files_of("adam8bit"));
  CHECK(listed(*opened) ==
        "w.exp_avg.codes[16, 16] w.exp_avg.qmap[256] w.exp_avg.scale[4] w[16, 16] ");
  const TensorId scale = tensor_named(*opened, "w.exp_avg.scale");
  auto values = read_tensor(*opened, scale);
  REQUIRE(values.has_value());
  float read[4];
  std::memcpy(read, values->bytes.data(), sizeof read);
  CHECK(read[0] == doctest::Approx(0.15613165));
  CHECK(read[2] == doctest::Approx(0.58109826));
  std::vector<std::optional<std::uint32_t>> writers;
  for (ChunkId chunk : opened->chunks(scale)) writers.push_back(opened->writer(chunk));
  CHECK(writers == std::vector<std::optional<std::uint32_t>>{0, 1});
  const TensorId table = tensor_named(*opened, "w.exp_avg.qmap");
  REQUIRE(opened->chunks(table).size() == 1);
  CHECK(opened->replicas(*opened->chunks(table).begin()).size() == 1);
  CHECK(worst_of(diagnosed(*opened)) == Severity::kInfo);
}

TEST_CASE("tensor subclasses in DCP: a changed byte of any wrapped tensor is reported") {
  for (const char* name : {"int8", "adam8bit"}) {
    const auto sound = opened_from(files_of(name));
    for (TensorId tensor : sound->tensors()) {
      for (ChunkId chunk : sound->chunks(tensor)) {
        if (!sound->view(chunk)) continue;  // of a plain tensor
        const ItemPlace place = sound->place(sound->storage(chunk));
        WrappedFiles files = files_of(name);
        for (auto& [path, bytes] : files) {
          if (path == sound->file(place.file).path)
            flip_at(bytes, static_cast<std::uint64_t>(place.offset));
        }
        CAPTURE(sound->fqn(tensor));
        CHECK(worst_of(diagnosed(*opened_from(std::move(files)))) == Severity::kError);
      }
    }
  }
}

TEST_CASE("tensor subclasses in DCP: bytes around the elements are checked too") {
  WrappedFiles files = files_of("int8");
  for (auto& [path, bytes] : files) {
    if (!path.ends_with(kDcpDataSuffix)) continue;
    const std::string_view text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
    const std::size_t at = text.rfind("little");  // in the last item, that of the weight
    REQUIRE(at != std::string_view::npos);
    flip_at(bytes, at);
  }
  const auto opened = opened_from(std::move(files));
  CHECK(!listed(*opened).empty());
  const auto findings = diagnosed(*opened);
  CHECK(std::any_of(findings.begin(), findings.end(), [](const Finding& finding) {
    return finding.rule == "not-looked-at" || finding.severity == Severity::kError;
  }));
}

TEST_CASE("tensor subclasses in DCP: it is not written in place of what it was read from") {
  const auto opened = opened_from(files_of("int8"));
  CHECK(opened->format().writer == nullptr);
  CHECK(opened->format().rewrite == Rewrite::kNone);
}
