// A file that a random program can read from.
#pragma once

#include <algorithm>
#include <memory>
#include <string>

#include "core/memory_sink.h"
#include "core/model/builder.h"
#include "core/program/random_program.h"

namespace shw::test {

inline std::shared_ptr<const Checkpoint> random_input(const Program& program, Dice& dice) {
  std::uint64_t length = 0;
  for (const ProgramSource& source : program.sources)
    length = std::max(length, source.offset + source.length);
  Bytes bytes(static_cast<std::size_t>(length));
  for (std::byte& byte : bytes) byte = static_cast<std::byte>(dice.pick(0, 255));
  std::string name = program.sources.empty() ? "none" : program.names[program.sources[0].file];
  CheckpointBuilder builder;
  builder.set_directory(memory_directory("/ck", {{name, std::move(bytes)}}));
  return builder.finish();
}

}  // namespace shw::test
