#pragma once

#include <sys/types.h>

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/file.h"
#include "stacks/frame_row.h"

namespace kymo::stacks {

// A process without rights (confine/confine.h) that reads programs and libraries for the one that takes samples.
// Whoever may run a program chooses what is in its file. If a file ends this process or makes it work without end,
// only the stacks of that program are wrong. If it takes this process over, it can make all stacks wrong, and nothing else.
//
// It gets the open files one by one, and answers questions until this object or its program ends.
//
// Threads:   one.
// Ownership: the process.
// Cost:      a question: about 20 microseconds.
class ElfReader {
 public:
  // A question may take so much of the process's CPU time, and so much time in all: a disk may not answer.
  struct Patience {
    std::chrono::milliseconds cpu{1000};
    std::chrono::milliseconds time{10'000};
  };

  // Starts the process. If that is not possible, no file is an ELF file.
  ElfReader() : ElfReader(Patience()) {}
  explicit ElfReader(Patience patience);
  ~ElfReader();
  ElfReader(const ElfReader&) = delete;
  ElfReader& operator=(const ElfReader&) = delete;

  struct File {
    std::uint64_t id = 0;
    int fd = -1;              // -1: the vDSO
    std::uint64_t given = 0;  // to which of the processes it was given; 0: to none
  };

  // Gives a file to the process. `id` is a new one of this file. Nothing: it is no ELF file for this kind of machine.
  std::optional<std::vector<Segment>> open(File& file);
  // Nothing: the file says nothing about the address, or cannot be read.
  std::optional<FrameRow> row_at(File& file, std::uint64_t address);
  // The process closes the file.
  void forget(const File& file);

  // CPU time of all processes until now.
  [[nodiscard]] std::uint64_t cpu_ns() const;
  // 0: there is none.
  [[nodiscard]] pid_t pid() const { return pid_; }

 private:
  enum class Asked : std::uint8_t { open, row, forget };
  struct Question;

  void start();
  [[nodiscard]] bool runs() const;
  void end();
  std::optional<std::string> ask(const Question& question, int fd);
  [[nodiscard]] bool wait_for_answer() const;
  [[nodiscard]] std::uint64_t child_cpu_ns() const;
  static int serve(int socket);
  static bool send(int socket, const Question& question, int fd);

  Patience patience_;
  FileDescriptor socket_;
  pid_t pid_ = 0;
  std::uint64_t started_ = 0;  // how many processes
  bool answered_ = false;      // one of them
  bool unable_ = false;        // it makes no sense to start another one
  std::uint64_t ended_cpu_ns_ = 0;
};

}  // namespace kymo::stacks
