#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/sqlite/database.h"
#include "profiler/kept/store.h"

namespace kymo::profiles {

// Profiles in a SQLite file.
//
// Stacks and functions are stored once, whatever minute or service they are in, and found by a
// hash. A row of a minute has only numbers. A transaction is a minute, so a program that is killed
// leaves no half minute, and readers see none.
//
// Cost: 20 to 30 bytes a row.
class SqliteStore : public Store {
 public:
  // The name of the file in the folder of the profiles.
  static constexpr const char* kFileName = "profiles.db";

  // Opens the file, or makes it.
  // Errors: data_loss: it is damaged; invalid_argument: it is another database;
  //         failed_precondition: a newer kymod has written it.
  static Result<std::unique_ptr<SqliteStore>> open(const std::string& path);
  // Opens it only to read.
  // Errors: also not_found.
  static Result<std::unique_ptr<SqliteStore>> open_to_read(const std::string& path);

  Result<void> add(const Minute& minute) override;
  Result<Removed> keep_within(const Limits& limits) override;
  Result<std::vector<ServiceTotal>> services(const Range& range) override;
  Result<std::vector<MinuteTotal>> totals(const Query& query) override;
  Result<std::vector<CoveredMinute>> covered(Type type, const Range& range) override;
  Result<stacks::NamedProfile> profile(const Query& query) override;
  Result<Extent> extent() override;

 private:
  // A table of things that are stored once.
  enum class Table : std::uint8_t { functions, stacks };
  struct Sums;

  SqliteStore(std::unique_ptr<store::Database> db, std::string path)
      : db_(std::move(db)), path_(std::move(path)) {}

  Result<void> run_all(std::span<const std::string_view> statements);
  Result<void> update(std::int64_t tables);
  Result<void> check_version(std::int64_t tables);
  Result<std::int64_t> intern(Table table, std::string_view body, std::int64_t taken);
  Result<std::int64_t> service_id(const std::string& text);
  Result<std::vector<std::int64_t>> service_ids(const Query& query);
  Result<std::int64_t> place_in_order(std::int64_t minute);
  Result<void> add_stacks(const Minute& minute);
  Result<void> add_rows(const Minute& minute, const Sums& sums, std::int64_t taken);
  // A minute, and its place in the order in which minutes were taken.
  struct Taken {
    std::int64_t minute = 0;
    std::int64_t taken = 0;
  };
  Result<std::vector<Taken>> oldest(std::uint64_t most);
  Result<void> remove(const std::vector<Taken>& minutes);
  Result<void> remove_range(const Range& range);
  Result<std::uint64_t> number(std::string_view sql, const std::vector<store::Value>& values = {});
  Result<std::uint64_t> used_bytes();
  Result<std::vector<std::pair<std::int64_t, stacks::Weight>>> sums_of(const Query& query);
  Result<void> add_sums(std::int64_t service, const Query& query,
                        std::unordered_map<std::int64_t, stacks::Weight>& sums);
  // The stacks and functions of a profile while they are read.
  struct Loading;
  Result<void> load(const std::vector<std::pair<std::int64_t, stacks::Weight>>& sums,
                    std::uint64_t most_bytes, stacks::NamedProfile& profile);
  Result<void> load_stack(std::int64_t id, const stacks::Weight& weight, Loading& loading);
  Result<std::uint32_t> place_of(std::uint64_t function, Loading& loading);
  Result<void> add_coverage(const Query& query, stacks::NamedProfile& profile);

  std::unique_ptr<store::Database> db_;
  std::string path_;
};

}  // namespace kymo::profiles
