#include "core/exec/write_files.h"

#include <algorithm>
#include <atomic>
#include <mutex>

#include "core/base/checked.h"
#include "core/base/parallel.h"
#include "core/io/copy_range.h"

namespace shw {
namespace {

// Copies are cut into pieces of it, so that one large file keeps every thread busy.
constexpr std::uint64_t kCopyPiece = std::uint64_t{64} << 20;

// Something that stands in a file: which of LaidOut's lists it is in, and where.
struct Part {
  enum class Is : std::uint8_t { kBytes, kCopy, kMade } is = Is::kBytes;
  std::uint32_t file = 0;
  std::size_t index = 0;
  std::uint64_t offset = 0, length = 0;
  std::uint64_t skipped = 0;  // of the copy, in front of this piece
};

// Of all files, file by file and from the front to the back.
std::vector<Part> parts_of(const LaidOut& laid_out) {
  std::vector<Part> parts;
  for (std::size_t i = 0; i < laid_out.before.size(); ++i) {
    const OutputBytes& bytes = laid_out.before[i];
    parts.push_back({Part::Is::kBytes, bytes.file, i, bytes.offset, bytes.bytes.size()});
  }
  for (std::size_t i = 0; i < laid_out.copies.size(); ++i) {
    const OutputCopy& copy = laid_out.copies[i];
    for (std::uint64_t done = 0; done < copy.length; done += kCopyPiece) {
      parts.push_back({Part::Is::kCopy, copy.file, i, copy.offset + done,
                       std::min(kCopyPiece, copy.length - done), done});
    }
  }
  for (std::size_t i = 0; i < laid_out.made.size(); ++i) {
    const MadeTile& made = laid_out.made[i];
    parts.push_back({Part::Is::kMade, made.file, i, made.offset, made.length});
  }
  std::stable_sort(parts.begin(), parts.end(), [](const Part& a, const Part& b) {
    return a.file != b.file ? a.file < b.file : a.offset < b.offset;
  });
  return parts;
}

// Each lies inside of its file, behind the one before.
Status check_parts(const LaidOut& laid_out, const std::vector<Part>& parts) {
  std::uint64_t end = 0;
  for (std::size_t i = 0; i < parts.size(); ++i) {
    const Part& part = parts[i];
    if (i == 0 || parts[i - 1].file != part.file) end = 0;
    const LaidOut::File& file = laid_out.files[part.file];
    auto next = checked_add(part.offset, part.length);
    if (part.offset < end)
      return fail(ErrorKind::kIo, "two parts of a new file would lie at one place",
                  {file.path, part.offset});
    if (!next || *next > file.size)
      return fail(ErrorKind::kIo, "a part of a new file would lie beyond its end",
                  {file.path, part.offset});
    end = *next;
  }
  return {};
}

// A file that is open from its first part to its last.
struct OpenFile {
  std::mutex guard;
  std::unique_ptr<OutputFile> file;
  std::atomic<std::size_t> left{0};
};

struct Writing {
  const FormatWriter& writer;
  const Outputs& outputs;
  const LaidOut& laid_out;
  const MakeTile& make;
  WritableDirectory& directory;
  Progress* progress;
  std::vector<Part> parts;
  std::vector<std::uint32_t> checksums;  // of made tiles; each is written by one thread
  std::vector<OpenFile> files;

  Result<OutputFile*> open(std::uint32_t index) {
    OpenFile& file = files[index];
    std::lock_guard lock(file.guard);
    if (file.file == nullptr) {
      SHW_TRY(file.file, directory.create_file(laid_out.files[index].path));
    }
    return file.file.get();
  }

  Status write(const Part& part, OutputFile& file) {
    switch (part.is) {
      case Part::Is::kBytes:
        return file.write_at(part.offset, laid_out.before[part.index].bytes);
      case Part::Is::kCopy: {
        const OutputCopy& copy = laid_out.copies[part.index];
        SHW_TRY(auto source, outputs.source->directory()->open(copy.from));
        return copy_range(*source, copy.begin + part.skipped, part.length, file, part.offset,
                          progress);
      }
      case Part::Is::kMade: {
        SHW_TRY(checksums[part.index], make(part.index, file));
        return {};
      }
    }
    return {};
  }

  // What depends on the bytes of all parts, and the end.
  Status finish(std::uint32_t index, OutputFile& file) {
    if (writer.seal_file != nullptr) {
      SHW_TRY(auto around, writer.seal_file(outputs, laid_out, index, checksums));
      for (const OutputBytes& bytes : around) SHW_CHECK(file.write_at(bytes.offset, bytes.bytes));
    }
    SHW_CHECK(file.finish(laid_out.files[index].size));
    files[index].file.reset();
    return {};
  }

  Status write_part(std::size_t i) {
    if (is_cancelled(progress)) return cancelled_error();
    const Part& part = parts[i];
    SHW_TRY(OutputFile * file, open(part.file));
    SHW_CHECK(write(part, *file));
    return --files[part.file].left == 0 ? finish(part.file, *file) : Status{};
  }
};

}  // namespace

Status write_files(const FormatWriter& writer, const Outputs& outputs, const LaidOut& laid_out,
                   const MakeTile& make, WritableDirectory& directory, Progress* progress) {
  Writing writing{writer,
                  outputs,
                  laid_out,
                  make,
                  directory,
                  progress,
                  parts_of(laid_out),
                  std::vector<std::uint32_t>(laid_out.made.size()),
                  std::vector<OpenFile>(laid_out.files.size())};
  SHW_CHECK(check_parts(laid_out, writing.parts));
  for (const Part& part : writing.parts) ++writing.files[part.file].left;
  // They hold nothing but what seals them.
  std::vector<std::uint32_t> without_parts;
  for (std::uint32_t i = 0; i < laid_out.files.size(); ++i) {
    if (writing.files[i].left == 0) without_parts.push_back(i);
  }
  SHW_CHECK(
      each_in_parallel(writing.parts.size(), [&](std::size_t i) { return writing.write_part(i); }));
  for (std::uint32_t file : without_parts) {
    SHW_TRY(OutputFile * empty, writing.open(file));
    SHW_CHECK(writing.finish(file, *empty));
  }
  return {};
}

}  // namespace shw
