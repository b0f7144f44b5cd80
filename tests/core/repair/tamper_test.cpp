// Changes after which verify must never say "proved", and how a repaired checkpoint keeps the
// record of its losses wherever it is copied.
#include <doctest/doctest.h>

#include <algorithm>
#include <functional>
#include <nlohmann/json.hpp>

#include "core/base/hash.h"
#include "core/formats/dcp/dcp_format_writer.h"
#include "core/repair/make_checkpoint.h"
#include "core/repair/plan/plan.h"
#include "core/repair/plan/target_of_plan.h"
#include "core/repair/repaired.h"
#include "core/repair/run/apply.h"
#include "core/repair/run/carry_out.h"
#include "core/repair/run/lost.h"
#include "core/temporary_folder.h"
#include "core/tiles/exact_tiling.h"

using namespace shw;
using SortedJson = nlohmann::json;
namespace fs = std::filesystem;

namespace {

// The metadata that an empty repair would write.
Result<DcpMetadata> metadata_of(const Checkpoint& checkpoint, const std::string& id) {
  const std::shared_ptr<const Checkpoint> source(std::shared_ptr<void>(), &checkpoint);
  SHW_TRY(TargetOfPlan target, target_of_plan(source, {}, nullptr));
  target.form.out = id;
  SHW_TRY(Outputs outputs, outputs_in_place(target.all, target.form));
  return dcp_metadata_of(std::move(outputs), {});
}

const Finding* filled_finding(const CheckReport& report) {
  for (const Finding& finding : report.findings) {
    if (finding.rule == "filled-elements" && finding.severity == Severity::kWarning)
      return &finding;
  }
  return nullptr;
}

// The losses that check reports: "12 of ..." or nothing, and the boxes as text.
std::string told(const std::string& path) {
  auto report = check(*opened(path), {});
  REQUIRE(report.has_value());
  const Finding* finding = filled_finding(*report);
  if (finding == nullptr) return std::string(name(report->verdict));
  CHECK(report->verdict == Verdict::kFindings);
  CHECK(finding->subjects == std::vector<std::string>{kCutOff});
  CHECK(finding->consequence == Consequence::kDataLost);
  FilledReport filled = filled_report_of(*opened(path));
  std::string text = std::to_string(filled.tensors[0].lost) + " " + filled.tensors[0].fill;
  for (const Box& box : filled.tensors[0].boxes) text += " " + to_text(box);
  return text;
}

const char* const kAnnounced = "12 zero [0:2, 0:3] [4:6, 0:3]";

// Calls the function for every way to change one leaf or one key of JSON.
void each_change(SortedJson& root, SortedJson& node,
                 const std::function<void(const std::string&)>& changed,
                 const std::string& path = "") {
  auto with = [&](SortedJson other) {
    SortedJson before = node;
    node = std::move(other);
    changed(path);
    node = before;
  };
  if (node.is_boolean()) with(!node.get<bool>());
  if (node.is_number_integer()) with(node.get<std::int64_t>() + 1);
  if (node.is_string()) with(node.get<std::string>() + "0");
  if (node.is_array() && !node.empty()) {
    SortedJson shorter = node;
    shorter.erase(0);
    with(shorter);
  }
  if (node.is_array())
    for (std::size_t i = 0; i < node.size(); ++i)
      each_change(root, node[i], changed, path + "/" + std::to_string(i));
  if (!node.is_object()) return;
  std::vector<std::string> keys;
  for (const auto& [key, value] : node.items()) keys.push_back(key);
  for (const std::string& key : keys) {
    SortedJson before = node;
    node.erase(key);
    changed(path + "/-" + key);
    node = before;
    each_change(root, node[key], changed, path + "/" + key);
  }
  SortedJson more = node;
  more["one_more"] = 1;
  with(more);
}

using Change = std::function<void(DcpMetadata&)>;

// Every value of .metadata that a proof depends on.
std::vector<std::pair<const char*, Change>> metadata_changes() {
  return {
      {"dtype to an integer", [](DcpMetadata& m) { m.tensors[1].dtype = Dtype::kInt32; }},
      {"dtype to a half", [](DcpMetadata& m) { m.tensors[0].dtype = Dtype::kFloat16; }},
      {"shape", [](DcpMetadata& m) { m.tensors[1].shape[0] += 1; }},
      {"shape turned",
       [](DcpMetadata& m) { std::swap(m.tensors[1].shape[0], m.tensors[1].shape[1]); }},
      {"grad", [](DcpMetadata& m) { m.tensors[0].requires_grad = true; }},
      {"fqn", [](DcpMetadata& m) { m.tensors[1].fqn = "v"; }},
      {"planner key", [](DcpMetadata& m) { m.tensors[1].path = {std::string("v")}; }},
      {"chunk offsets", [](DcpMetadata& m) { m.tensors[1].chunks[1].offsets[0] = 1; }},
      {"chunk sizes", [](DcpMetadata& m) { m.tensors[1].chunks[1].sizes[0] = 1; }},
      {"tiles exchanged",
       [](DcpMetadata& m) { std::swap(m.tensors[1].chunks[0].item, m.tensors[1].chunks[1].item); }},
      {"tile gone", [](DcpMetadata& m) { m.tensors[1].chunks.pop_back(); }},
      {"tensor gone", [](DcpMetadata& m) { m.tensors.pop_back(); }},
      {"item path",
       [](DcpMetadata& m) { m.tensors[1].chunks[0].item.path = m.tensors[1].chunks[1].item.path; }},
      {"item offset", [](DcpMetadata& m) { m.tensors[1].chunks[1].item.offset += 1; }},
      {"item length", [](DcpMetadata& m) { m.tensors[1].chunks[1].item.length -= 1; }},
      {"transform",
       [](DcpMetadata& m) { m.tensors[1].chunks[1].item.transforms = {"stream.zstd/1"}; }},
      {"save id", [](DcpMetadata& m) { m.save_id = "another"; }},
      {"reordered", [](DcpMetadata& m) { m.reordered = {"w"}; }},
      {"checkpoint id", [](DcpMetadata& m) { m.checkpoint_id = "elsewhere"; }},
      {"record of losses gone", [](DcpMetadata& m) { m.plain_attributes.clear(); }},
      {"record of losses edited",
       [](DcpMetadata& m) {
         std::string& value = m.plain_attributes[0].second;
         std::size_t at = value.find("\"lost\":12");
         REQUIRE(at != value.npos);
         value.replace(at, 9, "\"lost\":11");
       }},
      {"another attribute", [](DcpMetadata& m) { m.plain_attributes.emplace_back("more", "N"); }},
  };
}

}  // namespace

TEST_CASE("what was filled stays a finding wherever the folder goes and whatever came along") {
  Repaired made;
  CHECK(told(made.out) == kAnnounced);
  std::string copy = made.copy("renamed");
  CHECK(told(copy) == kAnnounced);
  fs::remove(copy + "/lost.json");
  CHECK(told(copy) == kAnnounced);
  fs::remove(copy + "/certificate.json");
  CHECK(told(copy) == kAnnounced);
  CHECK(filled_report_of(*opened(copy)).sources == std::vector<std::string>{".metadata"});

  // Without a record in .metadata, as after repairs by old versions.
  auto plain = [&](const char* keep) {
    std::string path = made.copy("plain");
    auto checkpoint = opened(path);
    auto metadata = metadata_of(*checkpoint, "");
    REQUIRE(metadata.has_value());
    metadata->plain_attributes.clear();
    auto directory = posix_store().edit_folder(path);
    REQUIRE(directory.has_value());
    fs::remove(path + "/.metadata");
    auto sink = (*directory)->create(".metadata");
    REQUIRE(sink.has_value());
    REQUIRE(write_dcp_metadata(*metadata, **sink));
    REQUIRE((*sink)->finish());
    for (const char* side : {"lost.json", "certificate.json"}) {
      if (std::string(side) != keep) fs::remove(path + "/" + side);
    }
    return path;
  };
  CHECK(told(plain("lost.json")) == kAnnounced);
  CHECK(told(plain("certificate.json")) == kAnnounced);
  CHECK(told(plain("")) == "clean");
}

TEST_CASE("a second repair and one in place carry the losses over, to where they are then") {
  Repaired made;
  std::string copy = made.copy("once");
  fs::remove(copy + "/lost.json");
  fs::remove(copy + "/certificate.json");
  auto checkpoint = opened(copy);
  // Blocks of two rows in another order: surviving rows come first.
  Plan plan =
      plan_of_cut_off(*checkpoint, BlocksPermuted{*checkpoint->find(kCutOff), 0, 2, {1, 0, 2}});
  auto twice = apply_plan(*checkpoint, plan, {made.folder / "twice", false});
  if (!twice) FAIL(twice.error().message);
  CHECK_FALSE(twice->lossless);
  FilledReport filled = filled_report_of(*opened(twice->output));
  REQUIRE(filled.tensors.size() == 1);
  CHECK(filled.tensors[0].lost == 12);
  CHECK(filled.disagreements.empty());
  CHECK(are_disjoint(filled.tensors[0].boxes));
  for (const Box& box : filled.tensors[0].boxes) CHECK(box.offsets[0] >= 2);
  CHECK(outcome_of(twice->output) == "proved");

  // Another tensor, repaired in place.
  Plan rename = plan_of_cut_off(*checkpoint, Renamed{*checkpoint->find("w"), "v", {}});
  auto in_place = apply_plan(*checkpoint, rename, {"", true});
  if (!in_place) FAIL(in_place.error().message);
  CHECK(opened(copy)->find("v").has_value());
  CHECK(told(copy) == kAnnounced);
  CHECK(outcome_of(copy) == "proved");
  // Refused in place for that tensor: its record next to it would become wrong.
  Plan moved =
      plan_of_cut_off(*opened(made.copy("other")),
                      Renamed{*opened(made.out)->find(kCutOff), "optimizer.state.1.exp_avg", {}});
  auto refused = apply_plan(*opened(made.folder / "other"), moved, {"", true});
  REQUIRE_FALSE(refused.has_value());
  CHECK(refused.error().kind == ErrorKind::kUnsupported);
}

TEST_CASE("a certificate of another checkpoint neither accuses nor hides") {
  Repaired made;
  TemporaryFolder folder;
  // One common name and shape, and two others.
  write_checkpoint(folder / "clean",
                   {{kCutOff, {6, 3}, {{whole(Extents{6, 3}), {6, 3}, Values(18, 1), 0}}},
                    {"a", {1}, {{whole(Extents{1}), {1}, {1}, 0}}},
                    {"b", {1}, {{whole(Extents{1}), {1}, {1}, 0}}}});
  CHECK(told(folder / "clean") == "clean");
  fs::copy(made.out + "/certificate.json", folder / "clean/certificate.json");
  CHECK(told(folder / "clean") == "clean");
  CHECK(filled_report_of(*opened(folder / "clean")).foreign ==
        std::vector<std::string>{"certificate.json"});

  std::string copy = made.copy("hidden");
  SortedJson other = SortedJson::parse(contents(copy + "/certificate.json"));
  other["tensors"] = {{"x", other["tensors"]["w"]}, {"y", other["tensors"]["w"]}};
  put(copy + "/certificate.json", other.dump());
  fs::remove(copy + "/lost.json");
  CHECK(told(copy) == kAnnounced);
}

TEST_CASE("where the records differ the greater loss counts and that they differ is said") {
  Repaired made;
  std::string copy = made.copy("edited");
  SortedJson lost = SortedJson::parse(contents(copy + "/lost.json"));
  lost["tensors"][kCutOff]["lost"] = 15;
  lost["tensors"][kCutOff]["kept"] = 3;
  put(copy + "/lost.json", lost.dump());
  FilledReport filled = filled_report_of(*opened(copy));
  REQUIRE(filled.tensors.size() == 1);
  CHECK(filled.tensors[0].lost == 15);
  CHECK_FALSE(filled.disagreements.empty());

  SortedJson certificate = SortedJson::parse(contents(made.copy("lied") + "/certificate.json"));
  SortedJson& tensor = certificate["tensors"][kCutOff];
  tensor["kept"] = 18;
  tensor["lost"] = 0;
  tensor["lost_boxes"] = SortedJson::array();
  tensor.erase("fill");
  certificate["lossless"] = true;
  put(made.folder / "lied/certificate.json", certificate.dump());
  CHECK(told(made.folder / "lied") == kAnnounced);
  CHECK_FALSE(filled_report_of(*opened(made.folder / "lied")).disagreements.empty());
}

TEST_CASE("records that are damaged or made up are survived, and not taken for a clean bill") {
  TemporaryFolder folder;
  write_checkpoint(folder / "ck", {{"w", {2}, {{whole(Extents{2}), {2}, {1, 2}, 0}}}});
  CHECK(told(folder / "ck") == "clean");
  std::string head = R"({"schema": "shardwright/2", "tensors": {"w": {"shape": [2], )";
  auto with = [&](const std::string& text) {
    put(folder / "ck/lost.json", text);
    return told(folder / "ck");
  };
  CHECK(with(head + R"("lost": 1)") == "undecided");
  const std::string older = R"({"schema": "shardwright/1", "tensors": {"w": {"shape": [2], )";
  CHECK(with(older + R"("lost": 1)") == "undecided");
  CHECK(with(R"({"made by": "another tool"})") == "clean");
  CHECK(with("not even JSON") == "clean");
  CHECK(with("{\"schema\": \"shardwright/2\", \"tensors\": " + std::string(100'000, '[')) ==
        "undecided");
  CHECK(with(R"({"schema": "shardwright/2", "tensors": {"w": {"shape": [3], "lost": 3}}})") ==
        "clean");
  CHECK(with(R"({"schema": "shardwright/2", "tensors": {"w": {"shape": [-2], "lost": 3}}})") ==
        "clean");
  CHECK(with(head + R"("lost": 0, "lost_boxes": [{"offsets": [9], "sizes": [1]}]}}})") == "clean");
  put(folder / "ck/lost.json",
      head + R"("lost": 99999999999999999999, "fill": 7, "lost_boxes": [[], 1, null]}}})");
  CHECK(check(*opened(folder / "ck"), {}).has_value());
}

TEST_CASE("no changed value of the metadata is ever called proved") {
  Repaired made;
  CHECK(outcome_of(made.out) == "proved");
  for (const auto& [what, change] : metadata_changes()) {
    CAPTURE(what);
    std::string path = made.copy("changed");
    auto metadata = metadata_of(*opened(path), made.out);
    REQUIRE(metadata.has_value());
    REQUIRE(metadata->tensors[0].fqn == kCutOff);
    change(*metadata);
    fs::remove(path + "/.metadata");
    auto directory = posix_store().edit_folder(path);
    REQUIRE(directory.has_value());
    auto sink = (*directory)->create(".metadata");
    REQUIRE(sink.has_value());
    REQUIRE(write_dcp_metadata(*metadata, **sink));
    REQUIRE((*sink)->finish());
    CHECK(outcome_of(path) != "proved");
  }
  std::string bytes = contents(made.out + "/.metadata"), path = made.copy("flipped");
  std::size_t proved = 0;
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    std::string other = bytes;
    other[i] = static_cast<char>(other[i] ^ 1);
    put(path + "/.metadata", other);
    proved += outcome_of(path) == "proved" ? 1 : 0;
  }
  CHECK(proved == 0);
}

TEST_CASE("no changed field of the certificate is ever called proved") {
  Repaired made;
  std::string path = made.copy("changed"), file = path + "/certificate.json";
  SortedJson certificate = SortedJson::parse(contents(file));
  put(file, certificate.dump());
  // Spaces and the order of keys do not change its meaning.
  CHECK(outcome_of(path) == "proved");
  std::size_t changes = 0;
  each_change(certificate, certificate, [&](const std::string& where) {
    CAPTURE(where);
    put(file, certificate.dump());
    CHECK(outcome_of(path) != "proved");
    ++changes;
  });
  CHECK(changes > 100);

  std::string text = contents(made.out + "/certificate.json");
  put(file, text.replace(text.find("\"lossless\""), 0, "\"lossless\": true, "));
  CHECK(outcome_of(path) != "proved");
}

TEST_CASE("a certificate that is in good form is compared with what is next to it") {
  Repaired made;
  std::string path = made.copy("lie"), file = path + "/certificate.json";
  SortedJson honest = SortedJson::parse(contents(file));
  auto told_as = [&](const std::function<void(SortedJson&)>& lie) {
    SortedJson other = honest;
    lie(other);
    other.erase("content_hash");
    std::string text = other.dump();
    other["content_hash"] = to_hex(hash_of(std::as_bytes(std::span(text))));
    put(file, other.dump());
    return outcome_of(path);
  };
  CHECK(told_as([](SortedJson&) {}) == "proved");
  auto nothing_lost = [](SortedJson& other) {
    SortedJson& tensor = other["tensors"][kCutOff];
    tensor["kept"] = 18;
    tensor["lost"] = 0;
    tensor["lost_boxes"] = SortedJson::array();
    tensor.erase("fill");
    other["lossless"] = true;
  };
  CHECK(told_as(nothing_lost) == "broken");
  CHECK(told_as([](SortedJson& other) { other["lossless"] = true; }) == "broken");
  CHECK(told_as([](SortedJson& other) { other["tensors"][kCutOff]["fill"] = "cast"; }) == "broken");
  CHECK(told_as([](SortedJson& other) { other["tensors"][kCutOff]["dtype"] = "int32"; }) ==
        "broken");
  fs::remove(path + "/lost.json");
  CHECK(told_as([&](SortedJson& other) {
          nothing_lost(other);
          other["files"].erase("lost.json");
        }) == "broken");
}

TEST_CASE("a certificate without a hash of itself proves nothing") {
  Repaired made;
  SortedJson certificate = SortedJson::parse(contents(made.out + "/certificate.json"));
  certificate.erase("content_hash");
  put(made.out + "/certificate.json", certificate.dump());
  auto report = verify_repair(made.out);
  REQUIRE(report.has_value());
  CHECK(report->outcome == VerifyReport::Outcome::kUndecided);
  CHECK(report->reasons[0].find("content_hash") != std::string::npos);
}

TEST_CASE("no file that is cut, flipped, taken away or added leaves a proof") {
  Repaired made;
  std::vector<std::string> files;
  for (const auto& entry : fs::directory_iterator(made.out))
    files.push_back(entry.path().filename().string());
  CHECK(files.size() >= 6);
  for (const std::string& name : files) {
    CAPTURE(name);
    std::string bytes = contents(made.out + "/" + name), path = made.copy("changed");
    fs::resize_file(path + "/" + name, bytes.size() - 1 - (name.ends_with(".json") ? 1 : 0));
    CHECK(outcome_of(path) != "proved");
    std::size_t step = std::max<std::size_t>(1, bytes.size() / 64);
    for (std::size_t i = 0; i < bytes.size(); i += step) {
      std::string other = bytes;
      other[i] = static_cast<char>(other[i] ^ 1);
      put(path + "/" + name, other);
      CHECK(outcome_of(path) != "proved");
    }
    fs::remove(path + "/" + name);
    CHECK(outcome_of(path) != "proved");
  }
  for (const char* added : {"notes.txt", "__7_0.distcp", "sub.shardwright-x"}) {
    CAPTURE(added);
    std::string path = made.copy("added");
    put(path + "/" + added, "more");
    auto report = verify_repair(path);
    REQUIRE(report.has_value());
    CHECK(report->outcome == VerifyReport::Outcome::kUndecided);
    CHECK(report->reasons[0].find(added) != std::string::npos);
  }
}
