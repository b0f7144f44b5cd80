// Sampled comparisons of tensors, checked by a simple loop over all elements.
#include "core/facts/values/optimizer_values.h"

#include <atomic>
#include <filesystem>
#include <numeric>

#include "core/base/parallel.h"
#include "core/cluster/loopback.h"
#include "core/cluster/transport_team.h"
#include "core/facts/values/value_pairs.h"
#include "core/facts/values/value_reader.h"
#include "core/faulty_store.h"
#include "core/report/report.h"
#include "core/rules/make_contents.h"
#include "core/temporary_folder.h"

using namespace shw;
using namespace shw::test;

namespace {

// A sum that is equal only for the same pairs of adjacent elements, in any order.
std::uint64_t mixed(double a, double b) {
  return (std::bit_cast<std::uint64_t>(a) * 31 + std::bit_cast<std::uint64_t>(b)) *
         0x9E3779B97F4A7C15;
}

class SumCounter : public PairCounter {
 public:
  void add(const PairPiece& piece) override {
    for (std::size_t i = 0; i < piece.count; ++i)
      sum_ += mixed(value_at(piece.a_dtype, piece.a, i), value_at(piece.b_dtype, piece.b, i));
    count_ += piece.count;
  }
  void add_zeros(std::size_t count) override {
    sum_ += count * mixed(0, 0);
    count_ += count;
  }
  std::vector<std::uint64_t> numbers() const override { return {count_, sum_}; }

 private:
  std::uint64_t count_ = 0, sum_ = 0;
};

struct Sums {
  PairResults seen;
  std::vector<std::uint64_t> counts, sums;  // by pair
};

// All that a check passes to a look at the values.
struct Asked {
  std::shared_ptr<const Checkpoint> checkpoint;
  std::vector<TensorTiling> tilings;
  ItemHeaders headers;
  Team* team = nullptr;
  Progress* progress = nullptr;

  explicit Asked(std::shared_ptr<const Checkpoint> opened) : checkpoint(std::move(opened)) {
    tilings = compute_tilings(*checkpoint, nullptr);
    auto read = read_item_headers(*checkpoint, nullptr);
    REQUIRE(read.has_value());
    headers = std::move(*read);
  }
  CheckInput input() const {
    CheckInput in{*checkpoint, nullptr, nullptr, headers, {}, {}, tilings, Depth::kData};
    in.states = std::make_shared<const std::vector<OptimizerState>>(optimizer_states(*checkpoint));
    in.team = team;
    in.progress = progress;
    return in;
  }
  ValuePair pair(const char* a, const char* b) const {
    return {checkpoint->find(a).value(), checkpoint->find(b).value()};
  }
};

Result<Sums> sums_of(const Asked& asked, const std::vector<ValuePair>& pairs, double share = 1) {
  Sums out{{}, std::vector<std::uint64_t>(pairs.size()), std::vector<std::uint64_t>(pairs.size())};
  PairWork work{"sum up", pairs, share, {}, {}};
  work.counter = [](std::size_t) { return std::make_unique<SumCounter>(); };
  work.receive = [&](std::size_t pair, std::span<const std::uint64_t> numbers) -> Status {
    REQUIRE(numbers.size() == 2);
    out.counts[pair] += numbers[0];
    out.sums[pair] += numbers[1];
    return {};
  };
  const CheckInput input = asked.input();
  SHW_TRY(out.seen, compare_pairs(input, work));
  return out;
}

std::uint64_t slow_sum(const Checkpoint& c, const ValuePair& pair) {
  auto a = read_tensor(c, pair.a), b = read_tensor(c, pair.b);
  REQUIRE((a.has_value() && b.has_value()));
  std::uint64_t sum = 0;
  for (std::size_t i = 0; i < count_in(*a); ++i)
    sum += mixed(value_at(a->dtype, a->bytes, i), value_at(b->dtype, b->bytes, i));
  return sum;
}

Numbers counted_up(std::int64_t count, double first) {
  Numbers out(static_cast<std::size_t>(count));
  std::iota(out.begin(), out.end(), first);
  return out;
}

void add_cut(MadeModel& model, const std::string& fqn, Dtype dtype, const Extents& shape,
             double first, std::vector<WrittenTile> tiles) {
  model.add(fqn, dtype, shape, counted_up(volume(shape).value(), first));
  model.tensors.back().tiles = std::move(tiles);
}

const std::vector<WrittenTile> kRows = {{{0, 0}, {100, 900}, 0}, {{100, 0}, {200, 900}, 1}};
const std::vector<WrittenTile> kColumns = {{{0, 0}, {300, 1}, 1}, {{0, 1}, {300, 899}, 0}};

MadeModel cut_in_many_ways() {
  MadeModel model;
  const Extents shape{300, 900};
  add_cut(model, "a", Dtype::kFloat32, shape, 1, kRows);
  add_cut(model, "b", Dtype::kBfloat16, shape, -5000, {kRows[1], kRows[0]});
  add_cut(model, "c", Dtype::kFloat64, shape, 70, kColumns);
  add_cut(model, "d", Dtype::kFloat32, shape, 9, {});
  // A part that belongs to no tensor.
  add_cut(model, "torn", Dtype::kFloat32, shape, 9, {kRows[0]});
  add_cut(model, "other shape", Dtype::kFloat32, {900, 300}, 9, {});
  model.add("point", Dtype::kFloat32, {}, {3});
  return model;
}

// Moments of `layers` parameters of [rows, 512], with those of one mixed up.
MadeModel trained_layers(std::size_t layers, std::size_t rows, std::size_t mixed_up) {
  MadeModel model;
  for (std::size_t i = 0; i < layers; ++i) {
    Moments moments = trained(rows * 512, 12, 0.9, 0.999, i + 1);
    if (i == mixed_up) std::reverse(moments.mean.begin(), moments.mean.end());
    const Extents shape{static_cast<std::int64_t>(rows), 512};
    model.pair("l" + std::to_string(i) + ".weight", shape, moments.mean, moments.square);
  }
  model.entries = {{"optimizer.param_groups.0.betas", pickled_pair(0.9, 0.999)}};
  return model;
}

bool is_same(const OptimizerValues& a, const OptimizerValues& b) {
  bool same = a.moments.size() == b.moments.size() && a.looked_at == b.looked_at;
  for (std::size_t i = 0; same && i < a.moments.size(); ++i) {
    const MomentValues &one = a.moments[i], &two = b.moments[i];
    same = one.is_read == two.is_read && one.count.looked_at == two.count.looked_at &&
           one.count.above == two.count.above && one.count.squares == two.count.squares &&
           one.count.worst == two.count.worst && one.correlation.count == two.correlation.count &&
           one.correlation.xy == two.correlation.xy;
  }
  return same;
}

}  // namespace

TEST_CASE("every element is next to its own however the two tensors are cut") {
  TemporaryFolder folder;
  Asked asked(made(folder / "m", cut_in_many_ways()));
  std::vector<ValuePair> pairs = {
      asked.pair("a", "b"),    asked.pair("b", "c"),    asked.pair("c", "d"),
      asked.pair("d", "a"),    asked.pair("c", "c"),    asked.pair("point", "point"),
      asked.pair("a", "torn"), asked.pair("torn", "a"), asked.pair("a", "other shape")};
  auto sums = sums_of(asked, pairs);
  REQUIRE(sums.has_value());
  for (std::size_t i = 0; i < pairs.size(); ++i) {
    CAPTURE(i);
    CHECK(sums->seen.is_read[i] == (i < 6));
    const auto all =
        static_cast<std::uint64_t>(volume(asked.checkpoint->shape(pairs[i].a)).value());
    CHECK(sums->counts[i] == (i < 6 ? all : 0));
    if (i < 6) CHECK(sums->sums[i] == slow_sum(*asked.checkpoint, pairs[i]));
  }
  CHECK(sums->seen.looked_at == 5 * 270'000 + 1);
  CHECK(sums->seen.elements == 8 * 270'000 + 1);
}

TEST_CASE("tiles that have to be decoded are held next to each other too") {
  auto compressed = open_checkpoint(std::string(SHW_TEST_DATA) + "/torch-2.14/healthy_zstd/ckpt");
  REQUIRE(compressed.has_value());
  Asked asked(*compressed);
  std::vector<ValuePair> pairs;
  for (TensorId tensor : asked.checkpoint->tensors()) {
    if (has_comparable_values(asked.input(), tensor)) pairs.push_back({tensor, tensor});
  }
  REQUIRE(!pairs.empty());
  auto sums = sums_of(asked, pairs);
  REQUIRE(sums.has_value());
  for (std::size_t i = 0; i < pairs.size(); ++i) {
    CHECK(sums->seen.is_read[i]);
    CHECK(sums->sums[i] == slow_sum(*asked.checkpoint, pairs[i]));
  }
}

TEST_CASE("a share of the elements is taken from all over the tensors") {
  TemporaryFolder folder;
  MadeModel model;
  std::vector<WrittenTile> tiles;
  for (std::int64_t i = 0; i < 16; ++i) tiles.push_back({{i * 512, 0}, {512, 512}, 0});
  add_cut(model, "a", Dtype::kFloat32, {8192, 512}, 0, tiles);
  add_cut(model, "b", Dtype::kFloat32, {8192, 512}, 0, tiles);
  Asked asked(made(folder / "m", model));
  // Records which elements were visited: the value of an element is its index.
  class Places : public PairCounter {
   public:
    void add(const PairPiece& piece) override {
      for (std::size_t i = 0; i < piece.count; ++i)
        places_.push_back(static_cast<std::uint64_t>(value_at(piece.a_dtype, piece.a, i)));
    }
    void add_zeros(std::size_t) override { FAIL("no tile of this checkpoint is a hole"); }
    std::vector<std::uint64_t> numbers() const override { return places_; }

   private:
    std::vector<std::uint64_t> places_;
  };
  for (double share : {0.5, 0.25, 0.125}) {
    CAPTURE(share);
    const std::vector<ValuePair> pairs = {asked.pair("a", "b")};
    std::vector<std::uint64_t> places;
    PairWork work{"look for places", pairs, share, {}, {}};
    work.counter = [](std::size_t) { return std::make_unique<Places>(); };
    work.receive = [&](std::size_t, std::span<const std::uint64_t> numbers) -> Status {
      places.insert(places.end(), numbers.begin(), numbers.end());
      return {};
    };
    const CheckInput input = asked.input();
    auto seen = compare_pairs(input, work);
    REQUIRE(seen.has_value());
    CHECK(seen->looked_at == places.size());
    CHECK(static_cast<double>(places.size()) / (8192.0 * 512) ==
          doctest::Approx(share).epsilon(0.1));
    // Over all tiles, both halves of a tile are sampled equally.
    std::size_t upper = 0;
    for (std::uint64_t place : places) upper += place / 512 % 512 < 256;
    CHECK(static_cast<double>(upper) / static_cast<double>(places.size()) ==
          doctest::Approx(0.5).epsilon(0.2));
    std::sort(places.begin(), places.end());
    CHECK(std::adjacent_find(places.begin(), places.end()) == places.end());
    // Something is found in any sixth of the tensor.
    for (std::uint64_t part = 0; part < 6; ++part) {
      auto first = std::lower_bound(places.begin(), places.end(), part * 8192 * 512 / 6);
      CHECK((first != places.end() && *first < (part + 1) * 8192 * 512 / 6));
    }
  }
}

TEST_CASE("a pair of which something cannot be read is none that was checked") {
  TemporaryFolder folder;
  made(folder / "m", cut_in_many_ways());
  auto directory = posix_store().read_folder(folder / "m");
  REQUIRE(directory.has_value());
  std::atomic<bool> fails{false};
  auto opened = open_checkpoint(
      faulty_directory(*directory, [&](const std::string& file, std::uint64_t, std::size_t length) {
        const bool hit = fails && file == "__1_0.distcp" && length > 60'000;
        return hit ? std::optional(Error{ErrorKind::kIo, "the disk is broken", {}}) : std::nullopt;
      }));
  REQUIRE(opened.has_value());
  Asked asked(*opened);
  const std::vector<ValuePair> pairs = {asked.pair("a", "b"), asked.pair("d", "d")};
  fails = true;
  auto sums = sums_of(asked, pairs);
  REQUIRE(sums.has_value());
  CHECK_FALSE(sums->seen.is_read[0]);
  CHECK(sums->counts[0] == 0);
  CHECK(sums->seen.is_read[1]);
  CHECK(sums->seen.looked_at == 270'000);
}

TEST_CASE("shapes that were made up cost no more than what is on the disk") {
  TemporaryFolder folder;
  MadeModel model;
  model.add("optimizer.state.w.exp_avg", Dtype::kFloat32, {64}, Numbers(64, 1));
  made(folder / "m", model);
  const std::string file = folder / "m/__0_0.distcp";
  const auto length = static_cast<std::uint64_t>(std::filesystem::file_size(file));
  for (const Extents& shape :
       {Extents{std::int64_t{1} << 60}, Extents{std::int64_t{1} << 30, 1, 40'000'000},
        Extents{3, std::int64_t{1} << 58}}) {
    CAPTURE(to_text(shape));
    DcpMetadata metadata;
    for (const char* kind : {"exp_avg", "exp_avg_sq"}) {
      DcpTensor tensor{
          std::string("optimizer.state.w.") + kind, Dtype::kFloat32, false, shape, {}, {}};
      tensor.chunks.push_back({Extents(shape.size(), 0), shape, {"__0_0.distcp", 0, length, {}}});
      metadata.tensors.push_back(std::move(tensor));
    }
    std::filesystem::remove(folder / "m/.metadata");
    auto directory = posix_store().edit_folder(folder / "m");
    REQUIRE(directory.has_value());
    auto sink = (*directory)->create(".metadata");
    REQUIRE(sink.has_value());
    REQUIRE(write_dcp_metadata(metadata, **sink));
    REQUIRE((*sink)->finish());
    auto opened = open_checkpoint(folder / "m");
    REQUIRE(opened.has_value());
    Asked asked(*opened);
    auto looks = read_optimizer_values(asked.input(), read_optimizer_settings(**opened));
    REQUIRE(looks.has_value());
    REQUIRE(looks->moments.size() == 1);
    CHECK_FALSE(looks->moments[0].is_read);
    CHECK(looks->looked_at == 0);
    CheckOptions options;
    options.depth = Depth::kData;
    auto report = check(**opened, options);
    REQUIRE(report.has_value());
    CHECK(report->verdict == Verdict::kFindings);
  }
}

TEST_CASE("counts of parts come to the counts of the whole") {
  Moments moments = trained(30'000, 30, 0.9, 0.999);
  for (std::size_t cut : {0u, 1u, 777u, 29'999u, 30'000u}) {
    MomentCount whole, first, second;
    LogCorrelation all, before, behind;
    for (std::size_t i = 0; i < moments.mean.size(); ++i) {
      const double m = moments.mean[i], v = moments.square[(i * 7) % 30'000];
      whole.add(m, v, 5, 0.02);
      (i < cut ? first : second).add(m, v, 5, 0.02);
      all.add(m, v);
      (i < cut ? before : behind).add(m, v);
    }
    first.join(second);
    before.join(behind);
    CHECK(first.looked_at == whole.looked_at);
    CHECK(first.above == whole.above);
    CHECK(first.worst == whole.worst);
    CHECK(first.squares == doctest::Approx(whole.squares).epsilon(1e-12));
    CHECK(before.count == all.count);
    CHECK(before.value() == doctest::Approx(all.value()).epsilon(1e-9));
  }
}

TEST_CASE("workers find of optimizer states what one finds and read as much together") {
  TemporaryFolder folder;
  constexpr std::size_t kLayers = 5, kHeaderBytes = 64 << 10;
  made(folder / "m", trained_layers(kLayers, 1000, 4));
  auto directory = posix_store().read_folder(folder / "m");
  REQUIRE(directory.has_value());
  std::atomic<std::uint64_t> bytes{0};
  auto opened = open_checkpoint(
      faulty_directory(*directory, [&](const std::string&, std::uint64_t, std::size_t length) {
        bytes += length;
        return std::nullopt;
      }));
  REQUIRE(opened.has_value());
  for (std::uint64_t whole_up_to : {kFullReadLimit, std::uint64_t{4} << 20}) {
    Asked alone(*opened);
    const OptimizerSettings settings = read_optimizer_settings(**opened);
    bytes = 0;
    auto one = read_optimizer_values(alone.input(), settings, whole_up_to);
    REQUIRE(one.has_value());
    const std::uint64_t read_by_one = bytes;
    CHECK(one->moments.size() == kLayers);
    CHECK((one->looked_at == one->elements) == (whole_up_to == kFullReadLimit));
    for (const MomentValues& look : one->moments)
      CHECK((look.count.above > 100) == (look.pair.key == "l4.weight"));
    for (int workers : {2, 4}) {
      CAPTURE(workers);
      bytes = 0;
      std::vector<OptimizerValues> found(static_cast<std::size_t>(workers));
      auto ended = run_on_threads(workers, {}, [&](Transport& transport) -> Status {
        TransportTeam team(transport, std::chrono::seconds(60));
        Asked member(*opened);
        member.team = &team;
        Progress progress;
        member.progress = &progress;
        SHW_TRY(found[static_cast<std::size_t>(transport.rank())],
                read_optimizer_values(member.input(), settings, whole_up_to));
        return {};
      });
      for (const Status& status : ended) REQUIRE(status.has_value());
      for (const OptimizerValues& looks : found) CHECK(is_same(looks, *one));
      CHECK(bytes < read_by_one + static_cast<std::uint64_t>(workers + 1) * kHeaderBytes * kLayers);
    }
  }
}

TEST_CASE("what was held next to each other only in parts is among what was not checked") {
  TemporaryFolder folder;
  auto checkpoint = made(folder / "m", trained_layers(3, 300, 1));
  Asked asked(checkpoint);
  const CheckInput input = asked.input();
  const OptimizerSettings settings = read_optimizer_settings(*checkpoint);
  auto whole = read_optimizer_values(input, settings);
  auto part = read_optimizer_values(input, settings, 0);
  REQUIRE((whole.has_value() && part.has_value()));
  CHECK(whole->looked_at == 3 * 300 * 512);
  CHECK(part->elements == whole->elements);
  // An eighth of the bytes; all of them are moments.
  CHECK(static_cast<double>(part->looked_at) / static_cast<double>(part->elements) ==
        doctest::Approx(0.125).epsilon(0.35));
  Progress stopped;
  stopped.cancel();
  asked.progress = &stopped;
  auto none = read_optimizer_values(asked.input(), settings);
  REQUIRE_FALSE(none.has_value());
  CHECK(none.error().kind == ErrorKind::kCancelled);
}
