// design: what a folder may include. The CMake targets keep most of it; this keeps all of it.
#include <doctest/doctest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

namespace {

namespace fs = std::filesystem;
using Words = std::vector<std::string>;

struct Layer {
  std::string folder;
  Words own;      // of our folders, what it may include
  Words foreign;  // prefixes of libraries' headers that it must not
};

// nlohmann_json and its like may be used by core, but never by its headers: see kInSourcesOnly.
const std::vector<Layer> kLayers = {
    {"core", {"core/"}, {"imgui", "GLFW", "GL/", "EGL/", "cuda", "nccl", "CLI/"}},
    // Inside core: what finds something never knows what mends it.
    {"core/spec",
     {"core/base/", "core/tensor/", "core/io/", "core/mesh/", "core/model/", "core/spec/"},
     {}},
    {"core/rules",
     {"core/base/", "core/tensor/", "core/io/", "core/mesh/", "core/tiles/", "core/formats/",
      "core/model/", "core/spec/", "core/facts/", "core/rules/"},
     {}},
    {"gpu",
     {"core/base/", "core/tensor/", "core/exec/", "core/cluster/", "gpu/"},
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
const Words kInSourcesOnly = {"nlohmann/", "zlib.h", "zstd.h", "xxhash.h", "hdf5.h", "mpi.h"};

bool starts_with_any(const std::string& text, const Words& prefixes) {
  return std::any_of(prefixes.begin(), prefixes.end(),
                     [&](const std::string& prefix) { return text.starts_with(prefix); });
}

bool is_ours(const std::string& include) {
  return starts_with_any(include, {"core/", "gpu/", "views/", "app/", "tests/"});
}

// What is wrong with one include of one file; empty where nothing is.
std::string violation(const Layer& layer, const std::string& file, const std::string& include) {
  if (is_ours(include) && !starts_with_any(include, layer.own)) return "may not be included here";
  if (starts_with_any(include, layer.foreign)) return "belongs to another layer";
  if (layer.folder == "views" && starts_with_any(include, kClosedToViews))
    return "opens files: views draw what they are given";
  bool header = file.ends_with(".h") && !file.ends_with("report/json.h");
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
  CHECK(planted("core/rules", "core/rules/a.cpp", "#include \"core/repair/plan.h\"\n").size() == 1);
  CHECK(planted("core/spec", "core/spec/a.cpp", "#include \"core/rules/check.h\"\n").size() == 1);
  CHECK(planted("views", "views/a.cpp", "#include \"core/formats/open.h\"\n").size() == 1);
  CHECK(planted("views", "views/a.cpp", "#include <thread>\n").size() == 1);
  CHECK(planted("views", "views/a.cpp", "#include <imgui.h>\n").empty());
  CHECK(planted("gpu", "gpu/a.cu", "#include \"core/model/checkpoint.h\"\n").size() == 1);
  CHECK(planted("app", "app/cli/a.cpp", "#include \"core/io/sink.h\"\n").empty());
}
