// design: what a folder may include. The CMake targets keep most of it; this keeps all of it.
#include <doctest/doctest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <optional>
#include <sstream>
#include <string>
#include <vector>

namespace {

namespace fs = std::filesystem;
using Words = std::vector<std::string>;

// Inside core: a room includes itself and the rooms above it in this table, nothing else. The order
// is design section 3's.
const Words kRooms = {"base",    "tensor",  "io",     "model",  "mesh",    "tiles",
                      "formats", "spec",    "facts",  "rules",  "explain", "program",
                      "exec",    "cluster", "repair", "report", "verbs",   "session"};

struct Layer {
  std::string folder;
  Words own;      // of our folders, what it may include
  Words foreign;  // prefixes of libraries' headers that it must not
};

// nlohmann_json and its like may be used by core, but never by its headers: see kInSourcesOnly.
const std::vector<Layer> kLayers = {
    {"core", {"core/"}, {"imgui", "GLFW", "GL/", "EGL/", "cuda", "nccl", "CLI/"}},
    {"gpu",
     {"core/base/", "core/tensor/", "core/program/", "core/exec/", "core/cluster/", "gpu/"},
     {"imgui", "GLFW", "CLI/"}},
    {"views",
     {"core/", "views/"},
     {"GLFW", "GL/", "EGL/", "cuda", "nccl", "CLI/", "thread", "mutex", "fstream", "filesystem",
      "unistd.h", "fcntl.h"}},
    {"app", {"app/", "core/", "gpu/", "views/"}, {}},
};
// Of core, what views may not include although the rest of core is open to them.
const Words kClosedToViews = {"core/io/sink.h", "core/formats/open.h", "core/formats/dcp/",
                              "core/formats/common/"};
const Words kInSourcesOnly = {"nlohmann/", "zlib.h", "libdeflate.h", "zstd.h",
                              "xxhash.h",  "hdf5.h", "mpi.h"};

bool starts_with_any(const std::string& text, const Words& prefixes) {
  return std::any_of(prefixes.begin(), prefixes.end(),
                     [&](const std::string& prefix) { return text.starts_with(prefix); });
}

bool is_ours(const std::string& include) {
  return starts_with_any(include, {"core/", "gpu/", "views/", "app/", "tests/"});
}

// The rank of the room that a path of core lies in; nothing for other paths.
std::optional<std::size_t> room_rank(const std::string& path) {
  if (!path.starts_with("core/")) return std::nullopt;
  std::string room = path.substr(5, path.find('/', 5) - 5);
  auto found = std::find(kRooms.begin(), kRooms.end(), room);
  if (found == kRooms.end()) return std::nullopt;
  return static_cast<std::size_t>(found - kRooms.begin());
}

// Of "core/formats/dcp/dcp_read.h": "dcp"; empty for what lies in core/formats itself.
std::string format_folder(const std::string& path) {
  std::size_t slash = path.find('/', 13);
  return path.starts_with("core/formats/") && slash != std::string::npos
             ? path.substr(13, slash - 13)
             : "";
}

// What formats share knows none of them, and no format knows another one.
bool crosses_formats(const std::string& file, const std::string& include) {
  if (!file.starts_with("core/formats/") || !include.starts_with("core/formats/")) return false;
  std::string from = format_folder(file), to = format_folder(include);
  if (from.empty() || to == from) return false;
  return from == "common" || (to != "common" && !to.empty());
}

// Whoever is no format asks for traits, codec and writer, and never for one of them. The demo is
// written as DCP.
bool names_a_format(const std::string& file, const std::string& include) {
  std::string to = format_folder(include);
  return !to.empty() && to != "common" && !file.starts_with("core/formats/") &&
         !file.starts_with("core/verbs/demo");
}

// What is wrong with one include of one file; empty where nothing is.
std::string violation(const Layer& layer, const std::string& file, const std::string& include) {
  if (is_ours(include) && !starts_with_any(include, layer.own)) return "may not be included here";
  if (starts_with_any(include, layer.foreign)) return "belongs to another layer";
  auto from = room_rank(file), to = room_rank(include);
  if (from && to && *to > *from) return "is a room further down the table";
  if (crosses_formats(file, include)) return "is another format's, or not for what they share";
  if (names_a_format(file, include)) return "is one format's: nobody else may know it";
  if (layer.folder == "views" && starts_with_any(include, kClosedToViews))
    return "opens files: views draw what they are given";
  bool header = file.ends_with(".h") && !file.ends_with("/json.h");
  if (layer.folder == "core" && header && starts_with_any(include, kInSourcesOnly))
    return "is for .cpp files only";
  return {};
}

Words violations_in(const Layer& layer, const std::string& file, std::istream& lines) {
  Words found;
  std::string line;
  for (int number = 1; std::getline(lines, line); ++number) {
    std::size_t at = line.find_first_not_of(" \t");
    if (at == std::string::npos || line.compare(at, 1, "#") != 0) continue;
    at = line.find("include", at);
    std::size_t open = line.find_first_of("<\"", at);
    if (at == std::string::npos || open == std::string::npos) continue;
    std::size_t close = line.find_first_of(">\"", open + 1);
    if (close == std::string::npos) continue;
    std::string include = line.substr(open + 1, close - open - 1);
    std::string problem = violation(layer, file, include);
    if (!problem.empty())
      found.push_back(file + ":" + std::to_string(number) + ": " + include + " " + problem);
  }
  return found;
}

Words planted(const std::string& folder, const std::string& file, const std::string& text) {
  for (const Layer& layer : kLayers) {
    std::istringstream lines(text);
    if (layer.folder == folder) return violations_in(layer, file, lines);
  }
  return {};
}

}  // namespace

TEST_CASE("no file includes what its folder may not know") {
  fs::path root = SHW_SOURCE_DIR;
  std::size_t seen = 0;
  for (const Layer& layer : kLayers) {
    if (!fs::exists(root / layer.folder)) continue;
    for (const auto& entry : fs::recursive_directory_iterator(root / layer.folder)) {
      std::string extension = entry.path().extension().string();
      if (extension != ".h" && extension != ".cpp" && extension != ".cu") continue;
      std::ifstream lines(entry.path());
      ++seen;
      for (const std::string& problem :
           violations_in(layer, fs::relative(entry.path(), root).string(), lines))
        FAIL_CHECK(problem);
    }
  }
  CHECK(seen > 50);
}

TEST_CASE("a planted violation of the layers is found, and what is allowed is not") {
  CHECK(planted("core", "core/a.cpp", "#include \"views/theme.h\"\n").size() == 1);
  CHECK(planted("core", "core/a.cpp", "#  include <imgui.h>\n").size() == 1);
  CHECK(planted("core", "core/a.h", "#include <nlohmann/json.hpp>\n").size() == 1);
  CHECK(planted("core", "core/a.cpp", "#include <nlohmann/json.hpp>\n").empty());
  CHECK(planted("core", "core/rules/tiles/a.cpp", "#include \"core/repair/plan.h\"\n").size() == 1);
  CHECK(planted("core", "core/rules/tiles/a.cpp", "#include \"core/facts/facts.h\"\n").empty());
  CHECK(planted("core", "core/spec/a.cpp", "#include \"core/rules/check.h\"\n").size() == 1);
  CHECK(planted("core", "core/mesh/a.h", "#include \"core/spec/spec.h\"\n").size() == 1);
  CHECK(planted("core", "core/formats/dcp/a.cpp",
                "#include \"core/formats/safetensors/safetensors.h\"\n")
            .size() == 1);
  CHECK(
      planted("core", "core/formats/common/a.cpp", "#include \"core/formats/items.h\"\n").size() ==
      1);
  CHECK(planted("core", "core/formats/dcp/a.cpp", "#include \"core/formats/items.h\"\n").empty());
  CHECK(
      planted("core", "core/repair/a.cpp", "#include \"core/formats/dcp/dcp_write.h\"\n").size() ==
      1);
  CHECK(planted("core", "core/repair/a.cpp", "#include \"core/formats/common/zip.h\"\n").empty());
  CHECK(planted("views", "views/a.cpp", "#include \"core/formats/open.h\"\n").size() == 1);
  CHECK(planted("views", "views/a.cpp", "#include <thread>\n").size() == 1);
  CHECK(planted("views", "views/a.cpp", "#include <imgui.h>\n").empty());
  CHECK(planted("gpu", "gpu/a.cu", "#include \"core/model/checkpoint.h\"\n").size() == 1);
  CHECK(planted("app", "app/cli/a.cpp", "#include \"core/io/sink.h\"\n").empty());
}

TEST_CASE("every folder of core stands in the table of rooms") {
  for (const auto& entry : fs::directory_iterator(fs::path(SHW_SOURCE_DIR) / "core")) {
    if (!entry.is_directory()) continue;
    std::string path = "core/" + entry.path().filename().string() + "/";
    CHECK_MESSAGE(room_rank(path).has_value(), path);
  }
}

TEST_CASE("nobody asks which format a checkpoint has, but for its traits") {
  fs::path root = SHW_SOURCE_DIR;
  for (const char* folder : {"core", "views", "app"}) {
    for (const auto& entry : fs::recursive_directory_iterator(root / folder)) {
      if (!entry.is_regular_file()) continue;
      std::string path = fs::relative(entry.path(), root).string();
      std::ifstream file(entry.path());
      std::stringstream text;
      text << file.rdbuf();
      if (path.starts_with("core/formats/")) continue;
      for (const char* asked :
           {"format().name ==", "format().name !=", "format() ==", "format() !=", "encoding()",
            "is_safetensors", "kDcpFormat", "kSafetensorsFormat"})
        CHECK_MESSAGE(text.str().find(asked) == std::string::npos, path << ": " << asked);
    }
  }
}
