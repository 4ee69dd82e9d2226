#include "profiler/kept/sqlite_store.h"

#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <map>
#include <set>
#include <unordered_map>
#include <utility>

#include "profiler/kept/bodies.h"
#include "profiler/kept/sqlite_tables.h"

namespace kymo::profiles {
namespace {

using stacks::NamedProfile;
using stacks::Weight;
using store::Blob;
using store::Database;
using store::Row;
using store::Value;

// Minutes. A stack or function that is seen again is marked as used for this long at once, so that
// it is not written in every minute.
constexpr std::int64_t kMarkedFor = 60;

std::int64_t signed_of(std::uint64_t number) {
  return static_cast<std::int64_t>(number);
}

std::uint64_t count_of(const Row& row, int column) {
  return static_cast<std::uint64_t>(std::max<std::int64_t>(0, row.integer(column)));
}

Weight weight_of(const Row& row, int column) {
  return {count_of(row, column), count_of(row, column + 1)};
}

// Rounded to the nearest.
Weight average(const Weight& sum, std::uint64_t parts) {
  if (parts <= 1) return sum;
  return {(sum.samples + parts / 2) / parts, (sum.value + parts / 2) / parts};
}

std::int64_t number_of(Type type) {
  return static_cast<std::int64_t>(type);
}

}  // namespace

// The rows of a minute: by service and stack, as they are stored.
struct SqliteStore::Sums {
  std::map<std::pair<std::int64_t, std::int64_t>, Weight> rows;
  std::map<std::int64_t, Weight> services;
  Weight all;
};

Result<std::unique_ptr<SqliteStore>> SqliteStore::open(const std::string& path) {
  Result<std::unique_ptr<Database>> db = Database::open(path);
  if (!db) return db.error();
  std::unique_ptr<SqliteStore> opened(new SqliteStore(*std::move(db), path));
  for (const std::string_view statement : kSetUp) {
    if (Result<void> set = opened->db_->run("set up", statement); !set) return set.error();
  }
  const Result<void> ready = opened->db_->transaction([&]() -> Result<void> {
    const Result<std::uint64_t> tables =
        opened->number("SELECT count(*) FROM sqlite_master WHERE type = 'table'");
    if (!tables) return tables.error();
    return *tables == 0 ? opened->run_all(kTables) : opened->update(signed_of(*tables));
  });
  if (!ready) return ready.error();
  return opened;
}

Result<std::unique_ptr<SqliteStore>> SqliteStore::open_to_read(const std::string& path) {
  struct stat info {};
  if (::stat(path.c_str(), &info) != 0) return system_error("open " + path, errno);
  Result<std::unique_ptr<Database>> db = Database::open(path, Database::Access::read);
  if (!db) return db.error();
  std::unique_ptr<SqliteStore> opened(new SqliteStore(*std::move(db), path));
  if (Result<void> ours = opened->check_version(1); !ours) return ours.error();
  return opened;
}

Result<void> SqliteStore::run_all(std::span<const std::string_view> statements) {
  Result<void> done;
  for (const std::string_view statement : statements) {
    if (done) done = db_->run("make the tables", statement);
  }
  return done;
}

// Gives a file of an earlier version the tables of this one.
Result<void> SqliteStore::update(std::int64_t tables) {
  if (Result<void> ours = check_version(tables); !ours) return ours;
  const Result<std::uint64_t> version = number("PRAGMA user_version");
  if (!version) return version.error();
  Result<void> done;
  if (*version < 2) done = run_all(kFromVersion1);
  if (done && *version < 3) done = run_all(kFromVersion2);
  return done;
}

Result<void> SqliteStore::check_version(std::int64_t tables) {
  const Result<std::uint64_t> application = number("PRAGMA application_id");
  if (!application) return application.error();
  if (tables != 0 && signed_of(*application) != kApplication) {
    return Error{
        Code::invalid_argument,
        path_ + " is a SQLite database, but does not hold stack profiles: name another folder"};
  }
  const Result<std::uint64_t> version = number("PRAGMA user_version");
  if (!version) return version.error();
  if (signed_of(*version) > kVersion) {
    return Error{Code::failed_precondition, path_ + " has format version " +
                                                std::to_string(*version) +
                                                ", and this program reads version " +
                                                std::to_string(kVersion) + ": use a newer kymod"};
  }
  return {};
}

Result<std::uint64_t> SqliteStore::number(std::string_view sql, const std::vector<Value>& values) {
  std::uint64_t number = 0;
  Result<void> read =
      db_->run("read a number", sql, values, [&](const Row& row) { number = count_of(row, 0); });
  return read ? Result<std::uint64_t>(number) : read.error();
}

// The id of something that is stored once. It is stored now if it is not there.
Result<std::int64_t> SqliteStore::intern(Table table, std::string_view body, std::int64_t taken) {
  const bool stacks = table == Table::stacks;
  const std::int64_t hash = hash_of(body);
  std::int64_t id = 0;
  std::int64_t last = 0;
  const auto compare = [&](const Row& row) {
    if (row.bytes(1) != body) return;  // another one with this hash
    id = row.integer(0);
    last = row.integer(2);
  };
  Result<void> done = db_->run("find a stack",
                               stacks ? "SELECT id, body, last FROM stacks WHERE hash = ?"
                                      : "SELECT id, body, last FROM functions WHERE hash = ?",
                               {hash}, compare);
  if (done && id == 0) {
    done =
        db_->run("add a stack",
                 stacks ? "INSERT INTO stacks (hash, body, last) VALUES (?, ?, ?) RETURNING id"
                        : "INSERT INTO functions (hash, body, last) VALUES (?, ?, ?) RETURNING id",
                 {hash, Blob{body}, taken}, [&](const Row& row) { id = row.integer(0); });
  } else if (done && last < taken) {
    done = db_->run("mark a stack",
                    stacks ? "UPDATE stacks SET last = ? WHERE id = ?"
                           : "UPDATE functions SET last = ? WHERE id = ?",
                    {taken + kMarkedFor, id});
  }
  return done ? Result<std::int64_t>(id) : done.error();
}

Result<std::int64_t> SqliteStore::service_id(const std::string& text) {
  std::int64_t id = 0;
  const auto take = [&](const Row& row) { id = row.integer(0); };
  Result<void> done =
      db_->run("find a service", "SELECT id FROM services WHERE name = ?", {text}, take);
  if (done && id == 0) {
    done = db_->run("add a service", "INSERT INTO services (name) VALUES (?) RETURNING id", {text},
                    take);
  }
  return done ? Result<std::int64_t>(id) : done.error();
}

Result<void> SqliteStore::add(const Minute& minute) {
  return db_->transaction([&]() -> Result<void> {
    const Result<std::uint64_t> before =
        number("SELECT count(*) FROM minutes WHERE minute = ? AND type = ? AND begin_unix_ns = ?",
               {minute.minute, number_of(minute.type), minute.begin_unix_ns});
    if (!before) return before.error();
    return *before == 0 ? add_stacks(minute) : Result<void>();
  });
}

// The place of a minute that is added now. The parts and types of a minute have one place if they come one
// after the other.
Result<std::int64_t> SqliteStore::place_in_order(std::int64_t minute) {
  std::int64_t place = 1;
  Result<void> read = db_->run(
      "find the newest minute", "SELECT taken, minute FROM minutes ORDER BY taken DESC LIMIT 1", {},
      [&](const Row& row) { place = row.integer(0) + (row.integer(1) == minute ? 0 : 1); });
  return read ? Result<std::int64_t>(place) : read.error();
}

Result<void> SqliteStore::add_stacks(const Minute& minute) {
  const Result<std::int64_t> taken = place_in_order(minute.minute);
  if (!taken) return taken.error();
  std::vector<std::uint64_t> functions;
  for (const NamedProfile::Function& function : minute.profile.functions) {
    const Result<std::int64_t> id = intern(Table::functions, body_of(function), *taken);
    if (!id) return id.error();
    functions.push_back(static_cast<std::uint64_t>(*id));
  }
  Sums sums;
  for (const NamedProfile::Stack& stack : minute.profile.stacks) {
    StoredStack stored{stack.process, stack.truncated, {}};
    for (const std::uint32_t function : stack.functions) {
      stored.functions.push_back(functions[function]);
    }
    const Result<std::int64_t> id = intern(Table::stacks, body_of(stored), *taken);
    if (!id) return id.error();
    const Result<std::int64_t> service = service_id(stack.service);
    if (!service) return service.error();
    sums.rows[{*service, *id}] += stack.weight;
    sums.services[*service] += stack.weight;
    sums.all += stack.weight;
  }
  return add_rows(minute, sums, *taken);
}

Result<void> SqliteStore::add_rows(const Minute& minute, const Sums& sums, std::int64_t taken) {
  const std::int64_t type = number_of(minute.type);
  for (const auto& [key, weight] : sums.rows) {
    Result<void> added =
        db_->run("add a row",
                 "INSERT INTO rows VALUES (?, ?, ?, ?, ?, ?) ON CONFLICT DO UPDATE SET "
                 "samples = samples + excluded.samples, ns = ns + excluded.ns",
                 {key.first, type, minute.minute, key.second, signed_of(weight.samples),
                  signed_of(weight.value)});
    if (!added) return added;
  }
  for (const auto& [service, weight] : sums.services) {
    Result<void> added = db_->run(
        "add a total",
        "INSERT INTO totals VALUES (?, ?, ?, ?, ?) ON CONFLICT DO UPDATE SET "
        "samples = samples + excluded.samples, ns = ns + excluded.ns",
        {service, type, minute.minute, signed_of(weight.samples), signed_of(weight.value)});
    if (!added) return added;
  }
  const NamedProfile& profile = minute.profile;
  return db_->run("add a minute", "INSERT INTO minutes VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)",
                  {minute.minute, type, minute.begin_unix_ns, signed_of(profile.duration_ns),
                   signed_of(profile.period_ns), signed_of(profile.lost),
                   signed_of(sums.rows.size()), signed_of(sums.all.samples), taken});
}

Result<std::uint64_t> SqliteStore::used_bytes() {
  const Result<std::uint64_t> pages = number("PRAGMA page_count");
  const Result<std::uint64_t> unused = pages ? number("PRAGMA freelist_count") : pages;
  const Result<std::uint64_t> size = unused ? number("PRAGMA page_size") : unused;
  return size ? Result<std::uint64_t>((*pages - *unused) * *size) : size;
}

Result<Removed> SqliteStore::keep_within(const Limits& limits) {
  constexpr std::uint64_t kPart = 16;
  Removed removed;
  for (bool first = true;; first = false) {
    const Result<Extent> kept = extent();
    if (!kept) return kept.error();
    const bool no_room = limits.bytes != 0 && kept->bytes > limits.bytes && kept->minutes > 1;
    const bool by_age = first && limits.minutes != 0;
    if (!no_room && !by_age) return removed;
    Result<std::vector<Taken>> minutes = oldest(std::max<std::uint64_t>(1, kept->minutes / kPart));
    const Result<std::uint64_t> newest =
        minutes ? number("SELECT max(taken) FROM minutes") : minutes.error();
    if (!newest) return newest.error();
    const std::int64_t kept_from = signed_of(*newest) - limits.minutes;
    if (!no_room) {
      std::erase_if(*minutes, [&](const Taken& one) { return one.taken >= kept_from; });
      if (minutes->empty()) return removed;
    }
    if (Result<void> done = remove(*minutes); !done) return done.error();
    const auto [begin, end] =
        std::minmax_element(minutes->begin(), minutes->end(),
                            [](const Taken& a, const Taken& b) { return a.minute < b.minute; });
    removed.add(
        {no_room ? 0 : minutes->size(), no_room ? minutes->size() : 0, begin->minute, end->minute});
  }
}

// The minutes that were taken first, the oldest first. A minute to which more was added later, because the clock
// went back, is as new as its newest part.
Result<std::vector<SqliteStore::Taken>> SqliteStore::oldest(std::uint64_t most) {
  std::vector<Taken> minutes;
  Result<void> read = db_->run(
      "list the oldest minutes",
      "SELECT minute, max(taken) AS newest FROM minutes GROUP BY minute ORDER BY newest LIMIT ?",
      {signed_of(most)}, [&](const Row& row) {
        minutes.push_back({row.integer(0), row.integer(1)});
      });
  return read ? Result<std::vector<Taken>>(std::move(minutes)) : read.error();
}

Result<void> SqliteStore::remove(const std::vector<Taken>& minutes) {
  std::set<std::int64_t> old;
  for (const Taken& one : minutes) old.insert(one.minute);
  // As few ranges as possible: none has a minute that stays.
  std::vector<Range> ranges;
  bool follows = false;
  Result<void> done =
      db_->run("list the minutes", "SELECT DISTINCT minute FROM minutes ORDER BY minute", {},
               [&](const Row& row) {
                 const std::int64_t minute = row.integer(0);
                 if (!old.contains(minute)) {
                   follows = false;
                 } else if (std::exchange(follows, true)) {
                   ranges.back().end = minute + 1;
                 } else {
                   ranges.push_back({minute, minute + 1});
                 }
               });
  if (!done) return done;
  done = db_->transaction([&] {
    Result<void> removed;
    for (const Range& range : ranges) {
      if (removed) removed = remove_range(range);
    }
    for (const std::string_view statement :
         {"DELETE FROM stacks WHERE last < "
          "(SELECT coalesce(min(taken), 9223372036854775807) FROM minutes)",
          "DELETE FROM functions WHERE last < "
          "(SELECT coalesce(min(taken), 9223372036854775807) FROM minutes)",
          "DELETE FROM services WHERE id NOT IN (SELECT service FROM totals)"}) {
      if (removed) removed = db_->run("remove what is old", statement);
    }
    return removed;
  });
  return done ? db_->run("give back space", "PRAGMA incremental_vacuum") : done;
}

Result<void> SqliteStore::remove_range(const Range& range) {
  // There may be very many services: whoever runs on the machine chooses the names of processes.
  std::vector<std::pair<std::int64_t, std::int64_t>> old;
  Result<void> removed =
      db_->run("list the services",
               "SELECT DISTINCT service, type FROM totals WHERE minute >= ? AND minute < ?",
               {range.begin, range.end},
               [&](const Row& row) { old.emplace_back(row.integer(0), row.integer(1)); });
  for (const auto& [service, type] : old) {
    if (!removed) return removed;
    removed =
        db_->run("remove old rows",
                 "DELETE FROM rows WHERE service = ? AND type = ? AND minute >= ? AND minute < ?",
                 {service, type, range.begin, range.end});
  }
  for (const std::string_view statement :
       {"DELETE FROM totals WHERE minute >= ? AND minute < ?",
        "DELETE FROM minutes WHERE minute >= ? AND minute < ?"}) {
    if (removed) removed = db_->run("remove what is old", statement, {range.begin, range.end});
  }
  return removed;
}

Result<std::vector<ServiceTotal>> SqliteStore::services(const Range& range) {
  std::vector<ServiceTotal> all;
  Result<void> read = db_->run(
      "list the services",
      "SELECT name, type, sum(samples), sum(ns), count(*) FROM totals JOIN services ON id = "
      "service "
      "WHERE minute >= ? AND minute < ? GROUP BY service, type ORDER BY sum(ns) DESC, name",
      {range.begin, range.end}, [&](const Row& row) {
        const std::optional<Service> service = service_in(row.text(0));
        if (!service || row.integer(1) < 0 || count_of(row, 1) >= all_types().size()) return;
        const auto type = static_cast<Type>(row.integer(1));
        const std::uint64_t minutes = facts_of(type).level ? count_of(row, 4) : 1;
        all.push_back({*service, type, average(weight_of(row, 2), minutes)});
      });
  std::stable_sort(all.begin(), all.end(), [](const ServiceTotal& a, const ServiceTotal& b) {
    return a.weight.value > b.weight.value;
  });
  return read ? Result<std::vector<ServiceTotal>>(std::move(all)) : read.error();
}

// The ids of the services that are asked for.
Result<std::vector<std::int64_t>> SqliteStore::service_ids(const Query& query) {
  std::vector<std::int64_t> ids;
  const auto take = [&](const Row& row) { ids.push_back(row.integer(0)); };
  Result<void> read = query.service
                          ? db_->run("find a service", "SELECT id FROM services WHERE name = ?",
                                     {text_of(*query.service)}, take)
                          : db_->run("list the services", "SELECT id FROM services", {}, take);
  return read ? Result<std::vector<std::int64_t>>(std::move(ids)) : read.error();
}

Result<std::vector<MinuteTotal>> SqliteStore::totals(const Query& query) {
  const Result<std::vector<std::int64_t>> services = service_ids(query);
  if (!services) return services.error();
  std::map<std::int64_t, Weight> minutes;
  for (const std::int64_t service : *services) {
    Result<void> read =
        db_->run("read totals",
                 "SELECT minute, samples, ns FROM totals WHERE service = ? AND type = ? AND "
                 "minute >= ? AND minute < ?",
                 {service, number_of(query.type), query.range.begin, query.range.end},
                 [&](const Row& row) { minutes[row.integer(0)] += weight_of(row, 1); });
    if (!read) return read.error();
  }
  std::vector<MinuteTotal> all;
  for (const auto& [minute, weight] : minutes) all.push_back({minute, weight});
  return all;
}

Result<std::vector<CoveredMinute>> SqliteStore::covered(Type type, const Range& range) {
  std::vector<CoveredMinute> minutes;
  Result<void> read = db_->run(
      "read minutes",
      "SELECT minute, covered_ns FROM minutes WHERE type = ? AND minute >= ? AND minute < ? "
      "ORDER BY minute",
      {number_of(type), range.begin, range.end}, [&](const Row& row) {
        minutes.push_back({row.integer(0), count_of(row, 1)});
      });
  return read ? Result<std::vector<CoveredMinute>>(std::move(minutes)) : read.error();
}

// The sum of each stack, the one with the most time first.
Result<std::vector<std::pair<std::int64_t, Weight>>> SqliteStore::sums_of(const Query& query) {
  const Result<std::vector<std::int64_t>> services = service_ids(query);
  if (!services) return services.error();
  std::unordered_map<std::int64_t, Weight> sums;
  for (const std::int64_t service : *services) {
    if (Result<void> added = add_sums(service, query, sums); !added) return added.error();
  }
  std::vector<std::pair<std::int64_t, Weight>> sorted(sums.begin(), sums.end());
  std::sort(sorted.begin(), sorted.end(), [](const auto& a, const auto& b) {
    return a.second.value != b.second.value ? a.second.value > b.second.value : a.first < b.first;
  });
  return sorted;
}

Result<void> SqliteStore::add_sums(std::int64_t service, const Query& query,
                                   std::unordered_map<std::int64_t, Weight>& sums) {
  const std::vector<Value> asked{service, number_of(query.type), query.range.begin,
                                 query.range.end};
  const Result<std::uint64_t> minutes = number(
      "SELECT count(*) FROM totals WHERE service = ? AND type = ? AND minute >= ? AND "
      "minute < ?",
      asked);
  if (!minutes) return minutes.error();
  std::unordered_map<std::int64_t, Weight> own;
  Result<void> read = db_->run(
      "read rows",
      "SELECT stack, samples, ns FROM rows WHERE service = ? AND type = ? AND minute >= ? AND "
      "minute < ?",
      asked, [&](const Row& row) { own[row.integer(0)] += weight_of(row, 1); });
  for (const auto& [stack, weight] : own) {
    sums[stack] += facts_of(query.type).level ? average(weight, *minutes) : weight;
  }
  return read;
}

Result<NamedProfile> SqliteStore::profile(const Query& query) {
  const Result<std::vector<std::pair<std::int64_t, Weight>>> sums = sums_of(query);
  if (!sums) return sums.error();
  NamedProfile profile;
  profile.quantity = quantity_of(query.type);
  if (Result<void> loaded = load(*sums, query.most_bytes, profile); !loaded) return loaded.error();
  if (Result<void> added = add_coverage(query, profile); !added) return added.error();
  return profile;
}

struct SqliteStore::Loading {
  NamedProfile& profile;
  std::unordered_map<std::uint64_t, std::uint32_t> places;  // of functions, by their ids
  std::uint64_t bytes = 0;
};

// Adds the stacks and their functions.
Result<void> SqliteStore::load(const std::vector<std::pair<std::int64_t, Weight>>& sums,
                               std::uint64_t most_bytes, NamedProfile& profile) {
  Loading loading{profile, {}, 0};
  NamedProfile::Stack rest{kRareStacks, {}, false, {}};
  for (const auto& [id, weight] : sums) {
    if (most_bytes != 0 && loading.bytes >= most_bytes) {
      rest.weight += weight;
      continue;
    }
    if (Result<void> loaded = load_stack(id, weight, loading); !loaded) return loaded;
  }
  if (rest.weight.value != 0) profile.stacks.push_back(std::move(rest));
  return {};
}

Result<void> SqliteStore::load_stack(std::int64_t id, const Weight& weight, Loading& loading) {
  std::optional<StoredStack> stored;
  Result<void> read = db_->run("read a stack", "SELECT body FROM stacks WHERE id = ?", {id},
                               [&](const Row& row) { stored = stack_in(row.bytes(0)); });
  if (!read) return read;
  if (!stored) return Error{Code::data_loss, path_ + ": a stack in it is damaged"};
  NamedProfile::Stack stack{stored->process, {}, stored->truncated, weight};
  for (const std::uint64_t function : stored->functions) {
    const Result<std::uint32_t> place = place_of(function, loading);
    if (!place) return place.error();
    stack.functions.push_back(*place);
  }
  loading.bytes += sizeof(stack) + stack.functions.size() * sizeof(std::uint64_t);
  loading.profile.stacks.push_back(std::move(stack));
  return {};
}

Result<std::uint32_t> SqliteStore::place_of(std::uint64_t function, Loading& loading) {
  std::vector<NamedProfile::Function>& functions = loading.profile.functions;
  const auto [place, added] =
      loading.places.try_emplace(function, static_cast<std::uint32_t>(functions.size()));
  if (!added) return place->second;
  std::optional<NamedProfile::Function> found;
  Result<void> read = db_->run("read a function", "SELECT body FROM functions WHERE id = ?",
                               {signed_of(function)}, [&](const Row& row) {
                                 found = function_in(row.bytes(0));
                                 loading.bytes += row.bytes(0).size();
                               });
  if (!read) return read.error();
  if (!found) return Error{Code::data_loss, path_ + ": a function in it is damaged"};
  functions.push_back(*std::move(found));
  return place->second;
}

// Adds for how long samples were taken, how often, and how many were lost.
Result<void> SqliteStore::add_coverage(const Query& query, NamedProfile& profile) {
  return db_->run("read minutes",
                  "SELECT sum(covered_ns), min(period_ns), max(period_ns), sum(lost) FROM minutes "
                  "WHERE type = ? AND minute >= ? AND minute < ?",
                  {number_of(query.type), query.range.begin, query.range.end}, [&](const Row& row) {
                    profile.duration_ns = count_of(row, 0);
                    if (row.integer(1) == row.integer(2)) profile.period_ns = count_of(row, 1);
                    profile.lost = count_of(row, 3);
                  });
}

Result<Extent> SqliteStore::extent() {
  Extent extent;
  Result<void> read =
      db_->run("read minutes",
               "SELECT min(minute), max(minute), count(DISTINCT minute), sum(rows), sum(samples) "
               "FROM minutes",
               {}, [&](const Row& row) {
                 extent.oldest = row.integer(0);
                 extent.newest = row.integer(1);
                 extent.minutes = count_of(row, 2);
                 extent.rows = count_of(row, 3);
                 extent.samples = count_of(row, 4);
               });
  if (!read) return read.error();
  const Result<std::uint64_t> stacks = number("SELECT count(*) FROM stacks");
  const Result<std::uint64_t> bytes = stacks ? used_bytes() : stacks;
  if (!bytes) return bytes.error();
  extent.stacks = *stacks;
  extent.bytes = *bytes;
  return extent;
}

}  // namespace kymo::profiles
