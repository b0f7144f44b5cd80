// Copies in files of single ranks, compared with a slow look at the whole.
#include "core/rules/values/rank_copies.h"

#include <doctest/doctest.h>

#include <bit>
#include <cmath>

#include "core/cluster/loopback.h"
#include "core/cluster/transport_team.h"
#include "core/formats/open.h"
#include "core/io/source.h"

using namespace shw;
using namespace shw::test;

namespace {

using Floats = std::vector<float>;

constexpr std::int64_t kHigh = 300, kWide = 700;  // more than three pieces

Floats numbers_of_first() {
  Floats out(static_cast<std::size_t>(kHigh * kWide));
  for (std::size_t i = 0; i < out.size(); ++i) out[i] = 1 + static_cast<float>(i % 977) / 512;
  return out;
}

// Files of ranks with one tensor, after some other bytes.
struct RankFiles {
  std::vector<std::unique_ptr<RankTensors>> files;

  void add(const Floats& values, bool by_columns = false) {
    constexpr std::size_t kBefore = 24;
    Bytes bytes(kBefore);
    for (std::size_t i = 0; i < values.size(); ++i) {
      const std::size_t high = kHigh, wide = kWide;
      const std::size_t from = by_columns ? i % high * wide + i / high : i;
      auto word = std::as_bytes(std::span(&values[from], 1));
      bytes.insert(bytes.end(), word.begin(), word.end());
    }
    TorchFileTensor tensor;
    tensor.dtype = Dtype::kFloat32;
    tensor.sizes = {kHigh, kWide};
    tensor.strides = by_columns ? Extents{1, kHigh} : Extents{kWide, 1};
    tensor.payload_offset = 8;
    tensor.storage_offset = 4;
    tensor.payload_length = bytes.size() - 8;
    auto file = std::make_unique<RankTensors>();
    file->path = "rank " + std::to_string(files.size());
    file->source = memory_source(file->path, bytes);
    file->tensors = {tensor};
    files.push_back(std::move(file));
  }
  RankCopies copies() const {
    RankCopies out;
    for (const auto& file : files)
      out.push_back({static_cast<std::int64_t>(out.size()), file.get(), &file->tensors[0]});
    return out;
  }
};

bool is_same(const std::vector<ComparedCopies>& a, const std::vector<ComparedCopies>& b) {
  bool same = a.size() == b.size();
  for (std::size_t i = 0; same && i < a.size(); ++i) {
    same = a[i].is_read == b[i].is_read && a[i].from_first.size() == b[i].from_first.size();
    for (std::size_t j = 0; same && j < a[i].from_first.size(); ++j) {
      const CopyDivergence &one = a[i].from_first[j], &two = b[i].from_first[j];
      same = one.elements == two.elements && one.differing == two.differing && one.far == two.far &&
             one.largest == two.largest && one.histogram == two.histogram;
    }
  }
  return same;
}

}  // namespace

TEST_CASE("copies of ranks are compared to their last element in whatever order they are") {
  const Floats first = numbers_of_first();
  Floats bits = first, astray = first;
  bits.back() = std::nextafter(bits.back(), 9.0F);
  for (std::size_t i = 60'000; i < 120'000; ++i) astray[i] *= 1.5F;
  RankFiles files;
  files.add(first);
  for (bool by_columns : {false, true}) {
    files.add(first, by_columns);
    files.add(bits, by_columns);
    files.add(astray, by_columns);
  }
  RankFiles in_order;
  for (int i = 0; i < 3; ++i) in_order.add(i == 0 ? first : i == 1 ? bits : astray);
  auto empty = open_checkpoint(std::string(SHW_TEST_DATA) + "/torch-2.14/healthy_zstd/ckpt");
  REQUIRE(empty.has_value());
  CheckInput input{**empty, nullptr, nullptr, {}, {}, {}, {}, Depth::kData};
  const std::vector<RankCopies> groups = {files.copies(), in_order.copies()};
  auto found = compare_copies(input, groups);
  REQUIRE(found.has_value());
  for (const ComparedCopies& group : *found) {
    REQUIRE(group.is_read);
    for (std::size_t i = 0; i < group.from_first.size(); ++i) {
      CAPTURE(i);
      const CopyDivergence& seen = group.from_first[i];
      const std::size_t kind = &group == &found->front() ? i % 3 : i + 1;
      CHECK(seen.elements == kHigh * kWide);
      CHECK(seen.differing == (kind == 0 ? 0 : kind == 1 ? 1 : 60'000));
      CHECK(seen.far == (kind == 2 ? 60'000 : 0));
      if (kind == 1) CHECK(histogram_text(seen) == "1 by 1 ULP");
      if (kind == 2) CHECK(seen.largest == doctest::Approx(0.5 * (1 + 976.0 / 512)).epsilon(0.01));
    }
  }
  for (int workers : {2, 3}) {
    std::vector<std::vector<ComparedCopies>> by_worker(static_cast<std::size_t>(workers));
    auto ended = run_on_threads(workers, {}, [&](Transport& transport) -> Status {
      TransportTeam team(transport, std::chrono::seconds(60));
      CheckInput own = input;
      own.team = &team;
      SHW_TRY(by_worker[static_cast<std::size_t>(transport.rank())], compare_copies(own, groups));
      return {};
    });
    for (const Status& status : ended) REQUIRE(status.has_value());
    for (const auto& one : by_worker) CHECK(is_same(one, *found));
  }
}

TEST_CASE("a copy that leaves its file is not a copy that was compared") {
  const Floats first = numbers_of_first();
  auto any = open_checkpoint(std::string(SHW_TEST_DATA) + "/torch-2.14/healthy_zstd/ckpt");
  REQUIRE(any.has_value());
  CheckInput input{**any, nullptr, nullptr, {}, {}, {}, {}, Depth::kData};
  for (int bent = 0; bent < 6; ++bent) {
    CAPTURE(bent);
    RankFiles files, whole;
    for (int rank = 0; rank < 3; ++rank) {
      files.add(first);
      whole.add(first);
    }
    TorchFileTensor& tensor = files.files[1]->tensors[0];
    if (bent == 0) tensor.storage_offset = -1;
    if (bent == 1) tensor.storage_offset = std::int64_t{1} << 61;
    if (bent == 2) tensor.payload_length -= 4;
    if (bent == 3) tensor.payload_offset = std::uint64_t{1} << 62;
    for (const auto& file : files.files) {  // all files give the same size
      if (bent == 4) file->tensors[0].sizes = {std::int64_t{1} << 31, std::int64_t{1} << 30};
      if (bent == 5) file->tensors[0].sizes = {std::int64_t{1} << 20, std::int64_t{1} << 20};
      if (bent == 5) file->tensors[0].strides = {0, 0};
    }
    auto found = compare_copies(input, {files.copies(), whole.copies()});
    REQUIRE(found.has_value());
    CHECK_FALSE(found->at(0).is_read);
    CHECK(found->at(1).is_read);
    CHECK(found->at(1).from_first.at(1).elements == kHigh * kWide);
  }
}
