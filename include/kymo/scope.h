#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "kymo/export.h"

namespace kymo {

class ScopeTree;

// The name of a scope or of its category. A string literal is kept without a copy. Pass a name that
// is made at run time as kymo::ScopeName(name); it is copied into the tree.
class ScopeName {
 public:
  consteval ScopeName(const char* literal) : text_(literal) {}  // NOLINT: implicit
  constexpr explicit ScopeName(std::string_view made) : text_(made), made_(true) {}

  [[nodiscard]] constexpr std::string_view text() const { return text_; }
  [[nodiscard]] constexpr bool made() const { return made_; }

 private:
  std::string_view text_;
  bool made_ = false;
};

struct ScopeOptions {
  ScopeName category = "";
  // It runs beside its siblings. It is shown, but its time is not added to the total.
  bool parallel = false;
  // It repeats what other scopes say: neither its time nor its bytes are added.
  bool redundant = false;
  // Other scopes count its bytes, so its bytes are not added. Its time is.
  bool bytes_redundant = false;
  // It only groups its parts. It has no time of its own; its name becomes a prefix of the names of
  // its parts.
  bool wrapper = false;
};

namespace detail {

struct ScopeNode;

// The scope to which the next scope of the calling thread will belong. If `tree` is null, nothing
// is recorded. constinit and initial-exec for the reason that counter.h gives.
struct ScopePosition {
  ScopeTree* tree = nullptr;
  std::uint32_t node = 0;
  bool parallel = false;  // mark new scopes as parallel
};
KYMO_API extern constinit thread_local ScopePosition scope_position
    __attribute__((tls_model("initial-exec")));

}  // namespace detail

// A span of work, timed from construction to destruction. It becomes a part of the scope that is
// open on this thread. A return or an exception ends it. An exception is noted as its error.
//
// Threads:   open, end and destroy it on one thread, the last opened first; add_bytes() and fail()
//            from any.
// Ownership: the tree owns what is recorded, and must outlive the scope.
// Errors:    none. If the tree has no room for a scope, it counts the scope as dropped. The parts
//            of this scope become parts of the next outer scope.
// Cost:      one load and a branch if nothing is recorded. Else two reads of the clock
//            (bench/scope).
class Scope {
 public:
  explicit Scope(ScopeName name, const ScopeOptions& options = {}) noexcept {
    if (detail::scope_position.tree != nullptr) [[unlikely]] {
      open(name, options);
    }
  }
  ~Scope() { end(); }
  Scope(const Scope&) = delete;
  Scope& operator=(const Scope&) = delete;

  // Adds bytes that this scope moved, without those of its parts.
  void add_bytes(std::uint64_t bytes) noexcept {
    if (node_ != nullptr) {
      count_bytes(bytes);
    }
  }
  // Does not compile: what is below one would be lost in silence.
  template <std::floating_point T>
  void add_bytes(T) const noexcept {
    static_assert(!std::floating_point<T>,
                  "kymo::Scope::add_bytes: bytes are whole numbers. Write "
                  "add_bytes(static_cast<std::uint64_t>(...)).");
  }
  // Notes why it failed. Only the first reason is kept.
  void fail(std::string_view error) noexcept {
    if (node_ != nullptr) {
      note_error(error);
    }
  }
  // Ends the scope before its destruction.
  void end() noexcept {
    if (node_ != nullptr) {
      close();
    }
  }
  [[nodiscard]] bool recorded() const noexcept { return node_ != nullptr; }

 private:
  KYMO_API void open(const ScopeName& name, const ScopeOptions& options) noexcept;
  KYMO_API void close() noexcept;
  KYMO_API void count_bytes(std::uint64_t bytes) noexcept;
  KYMO_API void note_error(std::string_view error) noexcept;

  detail::ScopeNode* node_ = nullptr;  // null: not recorded
  detail::ScopePosition outer_;
  std::uint32_t index_ = 0;
  int exceptions_ = 0;  // exceptions in flight when it was opened
};

// Adds a scope that was measured elsewhere, as a part of the scope that is open on this thread.
// `start_ns` is on CLOCK_MONOTONIC; 0 means that the scope has just ended.
KYMO_API void add_scope(ScopeName name, std::uint64_t start_ns, std::uint64_t duration_ns,
                        std::uint64_t bytes = 0, const ScopeOptions& options = {}) noexcept;

// One scope, as it is read from a tree.
struct ScopeRecord {
  static constexpr std::size_t kNoParent = static_cast<std::size_t>(-1);

  std::size_t parent = kNoParent;  // index of the parent; smaller than the scope's own
  std::string name;
  std::string category;
  std::string error;
  std::uint64_t start_ns = 0;     // CLOCK_MONOTONIC, like a recording's start_monotonic_ns
  std::uint64_t duration_ns = 0;  // with its parts; 0 for a wrapper
  std::uint64_t bytes = 0;        // without its parts
  bool parallel = false;
  bool redundant = false;
  bool bytes_redundant = false;
  bool unfinished = false;     // still open; the duration is the time so far
  std::uint32_t thread = 0;    // the thread that opened it, as gettid(2) names it; 0: unknown
  std::uint64_t left_out = 0;  // of a root: the scopes of its tree that had no room

  friend bool operator==(const ScopeRecord&, const ScopeRecord&) = default;
};

// The trees that Profiler::add_scopes() was given, whole and in that order. In `scopes`, the parent
// of the root of each tree is ScopeRecord::kNoParent.
struct KeptScopes {
  std::vector<ScopeRecord> scopes;
  std::uint64_t trees = 0;  // given so far, also those that are not kept any more
};

// Records where a request, or any other piece of work, spends its time. A thread records into the
// tree while it has an EnterScope. Scopes find the tree through the thread, so no interface between
// the request and its innermost part has to pass the tree on.
//
// Threads:   every member from any thread, while others record.
// Ownership: owns what was recorded. Must outlive every Scope and EnterScope that refers to it.
// Errors:    the constructor may throw std::bad_alloc. Afterwards none: a scope beyond `limit`, or
//            without memory, is counted and left out.
// Cost:      4 KiB, and 4 KiB for each 64 further scopes.
class KYMO_API ScopeTree {
 public:
  static constexpr std::size_t kDefaultLimit = 4096;

  // Begins the root.
  explicit ScopeTree(ScopeName name, std::size_t limit = kDefaultLimit);
  ~ScopeTree();
  ScopeTree(const ScopeTree&) = delete;
  ScopeTree& operator=(const ScopeTree&) = delete;

  // Ends the root. A second call does nothing.
  void end() noexcept;
  // Notes why the whole work failed. Only the first reason is kept.
  void fail(std::string_view error) noexcept;

  // All scopes so far, in the order in which they were opened. The root is the first.
  [[nodiscard]] std::vector<ScopeRecord> records() const;
  // The number of scopes that were left out.
  [[nodiscard]] std::uint64_t dropped() const noexcept;
  // The tree as a table for a person: the duration of each scope without its parts, its category,
  // its bytes and its name, which is indented below the scope around it. The last lines are the time
  // in no scope, and the total. Times and bytes that are not in the total are in brackets
  // (docs/timing.md).
  [[nodiscard]] std::string table() const;

 private:
  friend class Scope;
  friend class ScopeContext;
  friend class EnterScope;
  friend void add_scope(ScopeName, std::uint64_t, std::uint64_t, std::uint64_t,
                        const ScopeOptions&) noexcept;
  struct State;
  std::unique_ptr<State> state_;
};

// The scope that is open on the calling thread. Hand it to a thread that does a part of its work.
class ScopeContext {
 public:
  static ScopeContext current() noexcept { return ScopeContext(detail::scope_position); }

 private:
  friend class EnterScope;
  explicit ScopeContext(const detail::ScopePosition& at) : at_(at) {}
  detail::ScopePosition at_;
};

// While it exists, the scopes that this thread opens go to a tree, or into a scope of another
// thread. Destroy nested ones in the reverse order of their construction.
class EnterScope {
 public:
  // Enters the root of the tree: this thread does the work.
  explicit EnterScope(ScopeTree& tree) noexcept : outer_(detail::scope_position) {
    detail::scope_position = {&tree, 0, false};
  }
  // Enters a scope that another thread has open and keeps open. Scopes that are opened here are
  // marked as parallel. Pass `parallel` = false if the other thread waits meanwhile.
  explicit EnterScope(const ScopeContext& context, bool parallel = true) noexcept
      : outer_(detail::scope_position) {
    detail::scope_position = context.at_;
    detail::scope_position.parallel = parallel;
  }
  ~EnterScope() { detail::scope_position = outer_; }
  EnterScope(const EnterScope&) = delete;
  EnterScope& operator=(const EnterScope&) = delete;

 private:
  detail::ScopePosition outer_;
};

}  // namespace kymo
