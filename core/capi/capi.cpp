// Implements shardwright.h: each function calls one of core/verbs.
#include <pthread.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <memory>
#include <new>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include "core/base/stop_requests.h"
#include "core/base/threads.h"
#include "core/base/version.h"
#include "core/capi/shardwright.h"
#include "core/formats/items/items.h"
#include "core/io/remote/remote_path.h"
#include "core/report/answers.h"
#include "core/report/ci_forms.h"
#include "core/report/hash_report.h"
#include "core/report/report.h"
#include "core/report/statistics_report.h"
#include "core/verbs/run/newest_step.h"
#include "core/verbs/values/quantised_parts.h"
#include "core/verbs/values/read_elements.h"
#include "core/verbs/verbs.h"

struct shw_checkpoint {
  shw::verbs::Opened opened;
  std::string path, format;
  std::string folder;  // absolute path of local files that can be read as they are; otherwise empty
  shw_progress progress = nullptr;
  void* context = nullptr;
};

namespace {

using namespace shw;
using Clock = std::chrono::steady_clock;

struct LastError {
  Error error;
  shw_error seen{"usage", "", "", -1, "", ""};
};

LastError& last_error() {
  thread_local LastError error;
  return error;
}

void remember(Error error) {
  LastError& last = last_error();
  last.error = std::move(error);
  const Error& met = last.error;
  last.seen = {error_code(met.kind),
               met.message.c_str(),
               met.place.file.c_str(),
               met.place.offset ? static_cast<std::int64_t>(*met.place.offset) : -1,
               met.place.tensor.c_str(),
               met.advice.c_str()};
}

// Catches exceptions, because none may reach C. Core throws only if memory runs out.
template <class Work>
auto catch_exceptions(Work work) -> decltype(work()) {
  try {
    return work();
  } catch (const std::bad_alloc&) {
    return fail(ErrorKind::kIo, "the system gives no more memory");
  } catch (const std::exception& error) {
    return fail(ErrorKind::kIo, error.what());
  }
}

// Blocks SIGPIPE, which would end the caller's program when this library writes to an ssh that has
// ended. Threads that start meanwhile inherit that.
class SigpipeBlock {
 public:
  SigpipeBlock() {
    sigemptyset(&sigpipe_);
    sigaddset(&sigpipe_, SIGPIPE);
    sigset_t pending;
    sigemptyset(&pending);
    ::sigpending(&pending);
    was_pending_ = sigismember(&pending, SIGPIPE) == 1;
    ::pthread_sigmask(SIG_BLOCK, &sigpipe_, &before_);
  }
  ~SigpipeBlock() {
    const timespec no_wait{};
    while (!was_pending_ && ::sigtimedwait(&sigpipe_, nullptr, &no_wait) < 0 && errno == EINTR) {
    }
    ::pthread_sigmask(SIG_SETMASK, &before_, nullptr);
  }
  SigpipeBlock(const SigpipeBlock&) = delete;
  SigpipeBlock& operator=(const SigpipeBlock&) = delete;

 private:
  sigset_t sigpipe_{}, before_{};
  bool was_pending_ = false;
};

// Runs `work(progress)`; while it runs, the caller's thread calls `said`.
template <class Work>
auto run(shw_progress said, void* context, Work work) -> decltype(work(nullptr)) {
  const SigpipeBlock block;
  Progress progress;
  if (said == nullptr) return catch_exceptions([&] { return work(&progress); });
  auto done = run_on_own_thread([&] { return catch_exceptions([&] { return work(&progress); }); });
  while (done.wait_for(std::chrono::milliseconds(100)) == std::future_status::timeout) {
    if (said(context, progress.done, progress.total) == 0 || progress.cancelled) continue;
    stop_requests.fetch_add(1);  // the only flag that waits for a server observe
    progress.cancel();
  }
  return done.get();
}

template <class Work>
auto run(const shw_checkpoint& checkpoint, Work work) {
  return run(checkpoint.progress, checkpoint.context, std::move(work));
}

int to_return_code(Status status) {
  if (status) return 0;
  remember(std::move(status).error());
  return -1;
}

char* text_of(Result<std::string> text) {
  if (text) {
    // malloc, because the caller may free it after this library was unloaded.
    if (auto* copy = static_cast<char*>(std::malloc(text->size() + 1))) {
      std::memcpy(copy, text->c_str(), text->size() + 1);
      return copy;
    }
    text = fail(ErrorKind::kIo, "the system gives no more memory");
  }
  remember(std::move(text).error());
  return nullptr;
}

// Returns the JSON that the command line prints.
template <class Work>
char* answer(const shw_checkpoint* checkpoint, Work work) {
  const auto began = Clock::now();
  return text_of(run(*checkpoint, [&](Progress* progress) -> Result<std::string> {
    SHW_TRY(std::string json, work(progress));
    const std::chrono::duration<double> took = Clock::now() - began;
    return with_answer_header(std::move(json),
                              {checkpoint->path, checkpoint->format, took.count()});
  }));
}

std::vector<std::string> names_of(const char* name) {
  return name == nullptr ? std::vector<std::string>{} : std::vector<std::string>{name};
}

// Empty for remote checkpoints, and for those whose files are computed while reading.
std::string local_folder(const Checkpoint& model) {
  const auto& directory = model.directory();
  if (directory == nullptr || is_remote(directory->name()) || !directory->made_of().empty())
    return {};
  std::error_code failed;
  const auto folder = std::filesystem::absolute(directory->name(), failed);
  return failed || !std::filesystem::is_directory(folder, failed) ? std::string() : folder.string();
}

Result<std::unique_ptr<shw_checkpoint>> opened(const char* path, const shw_options& options,
                                               Progress* progress) {
  if (path == nullptr) return fail(ErrorKind::kUsage, "the path of the checkpoint is NULL");
  // No message shows a password then; opening recalls it.
  VerbOptions asked;
  asked.checkpoint = without_secrets(path);
  if (options.spec != nullptr) asked.spec = without_secrets(options.spec);
  if (options.against != nullptr) asked.against = without_secrets(options.against);
  if (options.mesh != nullptr) asked.mesh = options.mesh;
  if (options.memory_bytes != 0) asked.memory = options.memory_bytes;
  SHW_CHECK(verbs::resolve_newest_steps(asked, progress));
  SHW_TRY(auto opened, verbs::open(asked, progress));
  auto checkpoint = std::make_unique<shw_checkpoint>();
  checkpoint->opened = std::move(opened);
  checkpoint->path = verbs::resolved_path(asked.checkpoint);
  checkpoint->folder = local_folder(*checkpoint->opened.checkpoint);
  checkpoint->format = checkpoint->opened.checkpoint->format().name;
  checkpoint->progress = options.progress;
  checkpoint->context = options.context;
  return checkpoint;
}

const Checkpoint& model_of(const shw_checkpoint* checkpoint) {
  return *checkpoint->opened.checkpoint;
}

Result<TensorId> tensor_at(const shw_checkpoint* checkpoint, std::uint64_t index) {
  if (index < model_of(checkpoint).tensor_count())
    return static_cast<TensorId>(static_cast<std::uint32_t>(index));
  return fail(ErrorKind::kUsage, "there is no tensor with the index " + std::to_string(index));
}

// Writes only as much of a struct as the caller's version has.
template <class Struct>
Status give(Struct& out, Struct filled) {
  if (out.size < 2 * sizeof(std::uint32_t))
    return fail(ErrorKind::kUsage, "the field size of the struct is not its sizeof");
  filled.size = out.size;
  std::memcpy(&out, &filled, std::min<std::size_t>(out.size, sizeof(Struct)));
  return {};
}

Status fill_tensor_struct(const shw_checkpoint* checkpoint, std::uint64_t index, shw_tensor& out) {
  SHW_TRY(const TensorId tensor, tensor_at(checkpoint, index));
  const Checkpoint& model = model_of(checkpoint);
  const std::string_view fqn = model.fqn(tensor);
  const ExtentsView shape = model.shape(tensor);
  const Dtype dtype = model.dtype(tensor);
  return give(
      out,
      {0, fqn.data(), fqn.size(), name(dtype).data(), static_cast<std::uint32_t>(size_of(dtype)),
       static_cast<std::uint32_t>(shape.size()), shape.data(), model.chunks(tensor).size()});
}

Result<ChunkId> chunk_at(const shw_checkpoint* checkpoint, std::uint64_t index,
                         std::uint64_t number) {
  SHW_TRY(const TensorId tensor, tensor_at(checkpoint, index));
  const Checkpoint& model = model_of(checkpoint);
  const auto chunks = model.chunks(tensor);
  if (number < chunks.size()) return chunks[static_cast<std::uint32_t>(number)];
  return fail(ErrorKind::kUsage, "the tensor has no chunk " + std::to_string(number),
              Place{.file = {}, .tensor = std::string(model.fqn(tensor))});
}

Status fill_chunk_struct(const shw_checkpoint* checkpoint, std::uint64_t index,
                         std::uint64_t number, shw_chunk& out) {
  SHW_TRY(const ChunkId chunk, chunk_at(checkpoint, index, number));
  const Checkpoint& model = model_of(checkpoint);
  const auto item = model.item(chunk);
  const bool has_file = item && item->file != FileId::kNone;
  const auto writer = model.writer(chunk);
  const ExtentsView offsets = model.offsets(chunk), sizes = model.sizes(chunk);
  return give(
      out, {0, static_cast<std::uint32_t>(std::min(offsets.size(), sizes.size())), offsets.data(),
            sizes.data(), has_file ? model.file(item->file).path.c_str() : nullptr,
            item ? item->offset : 0, item ? item->length : 0,
            writer ? static_cast<std::int64_t>(*writer) : -1});
}

Result<bool> run_into(const shw_checkpoint* checkpoint, std::uint64_t index, std::uint64_t number,
                      shw_run& out) {
  SHW_TRY(const ChunkId chunk, chunk_at(checkpoint, index, number));
  const Checkpoint& model = model_of(checkpoint);
  if (checkpoint->folder.empty()) return false;
  SHW_TRY(const auto runs, ranges(model, chunk, whole(copy_of(model.sizes(chunk)))));
  if (!runs || runs->size() != 1 || runs->front().file == FileId::kNone) return false;
  const ByteRun& run = runs->front();
  const FileRow& file = model.file(run.file);
  const bool is_there =
      file.safe && file.size >= run.length && run.offset <= file.size - run.length;
  if (!is_there || model.directory()->is_made(file.path)) return false;
  thread_local std::string path;
  path = checkpoint->folder + "/" + file.path;
  SHW_CHECK(give(out, {0, path.c_str(), run.offset, run.length}));
  return true;
}

Status copy_elements_to_buffer(const shw_checkpoint* checkpoint, std::uint64_t index,
                               const std::int64_t* start, const std::int64_t* stop, void* out,
                               std::uint64_t bytes) {
  SHW_TRY(const TensorId tensor, tensor_at(checkpoint, index));
  Box box;
  for (std::size_t d = 0; d < model_of(checkpoint).shape(tensor).size(); ++d) {
    if (start[d] < 0 || stop[d] < start[d])
      return fail(ErrorKind::kUsage, "the box is not inside the tensor");
    box.offsets.push_back(start[d]);
    box.sizes.push_back(stop[d] - start[d]);
  }
  return run(*checkpoint, [&](Progress* progress) {
    return verbs::read_elements(model_of(checkpoint), tensor, box,
                                {static_cast<std::byte*>(out), static_cast<std::size_t>(bytes)},
                                progress);
  });
}

}  // namespace

int shw_api_version(void) {
  return SHW_API_VERSION;
}

const char* shw_version(void) {
  static const std::string version = std::string(kProgramVersion) + " " + kProgramCommit;
  return version.c_str();
}

shw_checkpoint* shw_open(const char* path, const shw_options* options) {
  shw_options asked{};
  if (options != nullptr)
    std::memcpy(&asked, options, std::min<std::size_t>(options->size, sizeof asked));
  auto result = run(asked.progress, asked.context,
                    [&](Progress* progress) { return opened(path, asked, progress); });
  if (result) return result->release();
  remember(std::move(result).error());
  return nullptr;
}

const char* shw_public_path(const char* path) {
  thread_local std::string shown;
  auto hidden = catch_exceptions([&]() -> Result<std::string> {
    if (path == nullptr) return fail(ErrorKind::kUsage, "the path is NULL");
    return without_secrets(path);
  });
  if (!hidden) {
    remember(std::move(hidden).error());
    return nullptr;
  }
  shown = std::move(*hidden);
  return shown.c_str();
}

void shw_close(shw_checkpoint* checkpoint) {
  const SigpipeBlock block;
  delete checkpoint;
}

const char* shw_format(const shw_checkpoint* checkpoint) {
  return checkpoint->format.c_str();
}

const char* shw_path(const shw_checkpoint* checkpoint) {
  return checkpoint->path.c_str();
}

uint64_t shw_tensor_count(const shw_checkpoint* checkpoint) {
  return model_of(checkpoint).tensor_count();
}

int64_t shw_find_tensor(const shw_checkpoint* checkpoint, const char* name, uint64_t name_bytes) {
  const auto tensor = model_of(checkpoint).find({name, static_cast<std::size_t>(name_bytes)});
  return tensor ? static_cast<std::int64_t>(index_of(*tensor)) : -1;
}

int shw_get_tensor(const shw_checkpoint* checkpoint, uint64_t tensor, shw_tensor* out) {
  return to_return_code(fill_tensor_struct(checkpoint, tensor, *out));
}

int shw_get_chunk(const shw_checkpoint* checkpoint, uint64_t tensor, uint64_t chunk,
                  shw_chunk* out) {
  return to_return_code(fill_chunk_struct(checkpoint, tensor, chunk, *out));
}

int shw_find_run(const shw_checkpoint* checkpoint, uint64_t tensor, uint64_t chunk, shw_run* out) {
  auto found = catch_exceptions([&] { return run_into(checkpoint, tensor, chunk, *out); });
  if (found) return *found ? 0 : 1;
  remember(std::move(found).error());
  return -1;
}

int shw_read(const shw_checkpoint* checkpoint, uint64_t tensor, const int64_t* start,
             const int64_t* stop, void* out, uint64_t bytes) {
  return to_return_code(copy_elements_to_buffer(checkpoint, tensor, start, stop, out, bytes));
}

char* shw_info(const shw_checkpoint* checkpoint) {
  return answer(checkpoint, [&](Progress*) -> Result<std::string> {
    return info_to_json(model_of(checkpoint));
  });
}

char* shw_list(const shw_checkpoint* checkpoint) {
  return answer(checkpoint, [&](Progress*) -> Result<std::string> {
    const Checkpoint& model = model_of(checkpoint);
    std::vector<std::uint32_t> tensors(model.tensor_count()), objects(model.objects().size());
    std::iota(tensors.begin(), tensors.end(), 0u);
    std::iota(objects.begin(), objects.end(), 0u);
    return list_to_json(model, tensors, objects, verbs::quantised_weights(model));
  });
}

char* shw_show(const shw_checkpoint* checkpoint, uint64_t tensor) {
  return answer(checkpoint, [&](Progress*) -> Result<std::string> {
    SHW_TRY(const TensorId id, tensor_at(checkpoint, tensor));
    const auto quantised = verbs::quantised_parts_of(model_of(checkpoint), id);
    return tensor_to_json(model_of(checkpoint), id, nullptr, 0, true,
                          quantised ? &*quantised : nullptr);
  });
}

char* shw_check(const shw_checkpoint* checkpoint, int data) {
  return answer(checkpoint, [&](Progress* progress) -> Result<std::string> {
    const auto depth = data != 0 ? std::optional(Depth::kData) : std::nullopt;
    SHW_TRY(const CheckReport report, verbs::check(checkpoint->opened, depth, progress));
    CheckContext beside{checkpoint->path};
    beside.checkpoint = checkpoint->opened.checkpoint.get();
    return check_to_json(report, beside);
  });
}

char* shw_stats(const shw_checkpoint* checkpoint, const char* name) {
  return answer(checkpoint, [&](Progress* progress) -> Result<std::string> {
    SHW_TRY(const auto tensors, verbs::stats(checkpoint->opened, names_of(name), progress));
    return statistics_to_json(tensors);
  });
}

char* shw_hash(const shw_checkpoint* checkpoint, const char* name) {
  return answer(checkpoint, [&](Progress* progress) -> Result<std::string> {
    SHW_TRY(const auto hashed, verbs::hash(checkpoint->opened, names_of(name), progress));
    return hashes_to_json(hashed);
  });
}

void shw_free(char* text) {
  std::free(text);
}

const shw_error* shw_last_error(void) {
  return &last_error().seen;
}
