#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "base/json_text.h"
#include "base/own_folder.h"
#include "checkpoint/runtimes/table.h"
#include "client/client.h"
#include "confined.h"
#include "instant_option.h"
#include "lens/report/flame_diff.h"
#include "lens/report/flame_page.h"
#include "lens/report/human.h"
#include "lens/report/kept_profiles.h"
#include "lens/report/profile_diff.h"
#include "lens/report/table.h"
#include "lens/report/weight.h"
#include "print.h"
#include "profiler/kept/reading.h"
#include "profiler/kept/sqlite_store.h"
#include "profiler/stacks/comparison.h"
#include "profiler/stacks/frame_tree.h"
#include "profiler/stacks/output.h"
#include "profiles/profile_file.h"
#include "profiles/profile_text.h"
#include "verbs.h"

namespace kymo::cli {
namespace {

using profiles::Query;
using profiles::Service;

constexpr std::int64_t kHourNs = 3600 * std::int64_t{1'000'000'000};

struct ProfilesArguments {
  std::string service;  // empty: the list of services
  bool all = false;     // the sum of all
  std::string directory;
  std::string from;
  std::string to;
  std::string compared;  // "before", the beginning of the other range, or a path; empty: none
  bool off_cpu = false;
  std::string kind;
  std::string output;
  std::string sort;
  std::size_t rows = 20;
};

// What is shown, and where it is kept.
struct Shown {
  Query query;
  std::unique_ptr<profiles::Store> store;

  // The time that the numbers are of: the whole minutes that touch what was asked for.
  [[nodiscard]] std::int64_t from_unix_ns() const {
    return query.range.begin * profiles::kNanosPerMinute;
  }
  [[nodiscard]] std::int64_t to_unix_ns() const {
    return query.range.end * profiles::kNanosPerMinute;
  }
};

Result<std::string> directory_of(const ProfilesArguments& arguments, const Context& context) {
  if (!arguments.directory.empty()) return arguments.directory;
  Result<client::Client> client = client::Client::connect(context.socket);
  if (!client) return client.error();
  const Result<v1::HealthResponse> health = client->health();
  if (!health) return health.error();
  if (!health->profiles_directory().empty()) return health->profiles_directory();
  return Error{Code::failed_precondition,
               "kymod keeps no profiles: start it with --profiles=FOLDER, or name a folder of "
               "profiles with --directory"};
}

// SQLite reads the file with all rights of this process. So no other user may be able to change it,
// or to put files beside it.
// Errors: another user could change it. A file that is missing or cannot be read is no error here:
//         opening it reports that.
Result<void> check_owner(const std::string& directory) {
  const std::string path = directory + "/" + profiles::SqliteStore::kFileName;
  const Result<void> own = check_own_path(path);
  if (own || own.error().errno_value != 0) return {};
  return Error{own.error().code, own.error().message + ": to look at foreign profiles, copy " +
                                     path + " to a folder of your own"};
}

double share_of(const stacks::Weight& part, std::uint64_t whole_ns) {
  return whole_ns == 0 ? 0 : static_cast<double>(part.value) / static_cast<double>(whole_ns);
}

std::string range_text(const Shown& shown) {
  return local_time(shown.from_unix_ns()) + " to " + local_time(shown.to_unix_ns());
}

std::string extent_text(const profiles::Extent& extent) {
  if (extent.minutes == 0) return "no minute is kept yet: kymod writes each minute when it is over";
  return report::with_commas(extent.minutes) +
         (extent.minutes == 1 ? " minute is kept, from " : " minutes are kept, from ") +
         local_time(extent.oldest * profiles::kNanosPerMinute) + " to " +
         local_time((extent.newest + 1) * profiles::kNanosPerMinute) + ", in " +
         report::bytes(extent.bytes);
}

// The entries that each answer in JSON begins with.
nlohmann::ordered_json head_of(const Shown& shown) {
  return {{"format_version", 1},
          {"type", profiles::name_of(shown.query.type)},
          {"from_unix_ns", shown.from_unix_ns()},
          {"to_unix_ns", shown.to_unix_ns()}};
}

using Services = std::vector<profiles::ServiceTotal>;

std::string upper(std::string text) {
  std::transform(text.begin(), text.end(), text.begin(),
                 [](unsigned char c) { return std::toupper(c); });
  return text;
}

std::vector<std::string> kind_names() {
  std::vector<std::string> names;
  for (const profiles::TypeFacts& facts : profiles::all_types()) names.emplace_back(facts.name);
  return names;
}

void print_services(const Services& services, const Shown& shown, std::size_t most) {
  std::uint64_t sum_ns = 0;
  for (const profiles::ServiceTotal& one : services) sum_ns += one.weight.value;
  using Align = report::Table::Align;
  const stacks::Quantity quantity = quantity_of(shown.query.type);
  report::Table table({{upper(facts_of(quantity).what)},
                       {"SHARE"},
                       {upper(facts_of(quantity).counted)},
                       {"SERVICE", Align::left}});
  for (const profiles::ServiceTotal& one : services) {
    if (most-- == 0) break;
    table.add({report::value_text(quantity, one.weight.value),
               report::percent(share_of(one.weight, sum_ns)),
               report::with_commas(one.weight.samples),
               report::printable(profiles::text_of(one.service))});
  }
  std::printf("%s\n%s", range_text(shown).c_str(), table.empty() ? "" : "\n");
  if (!table.empty()) std::fputs(table.str(0).c_str(), stdout);
}

// The kinds that are not shown, and that a service has.
std::string other_kinds(const Services& all, profiles::Type shown) {
  std::string text;
  for (const profiles::TypeFacts& facts : profiles::all_types()) {
    const bool seen = std::any_of(all.begin(), all.end(),
                                  [&](const auto& one) { return one.type == facts.type; });
    if (seen && facts.type != shown) text += (text.empty() ? "" : ", ") + std::string(facts.name);
  }
  return text;
}

void list(const ProfilesArguments& arguments, const Shown& shown, Context& context) {
  Result<Services> services = shown.store->services(shown.query.range);
  if (!services) return fail(context, services.error());
  const std::string others = other_kinds(*services, shown.query.type);
  std::erase_if(*services, [&](const auto& one) { return one.type != shown.query.type; });
  const Result<profiles::Extent> extent = shown.store->extent();
  if (!extent) return fail(context, extent.error());
  if (!context.json) {
    print_services(*services, shown, arguments.rows);
    if (services->empty()) std::fputs("no samples in this time\n", stdout);
    if (!others.empty()) std::printf("\nother kinds in this time (--kind): %s\n", others.c_str());
    std::printf("\n%s\n", extent_text(*extent).c_str());
    return;
  }
  nlohmann::ordered_json json = head_of(shown);
  json["kept"] = report::json_of(*extent);
  json["services"] = nlohmann::ordered_json::array();
  for (const profiles::ServiceTotal& one : *services) {
    json["services"].push_back(report::json_of(one));
  }
  std::printf("%s\n", json_text(json, 2).c_str());
}

// Finds the service by its text, such as "job:web", or by its name alone if only one has it. A container that is a job,
// such as "podman:web", is found by the name of its job.
Result<Service> find_service(const std::string& asked, const Shown& shown) {
  if (const auto exact = profiles::service_in(asked)) return *exact;
  const auto container = runtime::container_name_in(asked);
  Result<Services> services = shown.store->services(shown.query.range);
  if (!services) return services.error();
  std::erase_if(*services, [&](const profiles::ServiceTotal& one) {
    const bool is_its_job =
        container && one.service.kind == Service::Kind::job && one.service.name == container->name;
    return one.service.name != asked && !is_its_job;
  });
  std::vector<Service> found;
  for (const profiles::ServiceTotal& one : *services) {
    if (one.type == shown.query.type) found.push_back(one.service);
  }
  if (found.size() == 1) return found.front();
  std::string names;
  for (const Service& one : found) {
    names += (names.empty() ? "" : " and ") + profiles::text_of(one);
  }
  if (!found.empty()) {
    return Error{Code::invalid_argument, asked + " is not clear: there are " + names};
  }
  if (const std::string others = other_kinds(*services, shown.query.type); !others.empty()) {
    return Error{Code::not_found, asked + " has no samples of the kind " +
                                      profiles::name_of(shown.query.type) + " from " +
                                      range_text(shown) + ": name another one (--kind): " + others};
  }
  return Error{Code::not_found, "no service " + asked + " has samples from " + range_text(shown) +
                                    ": kymo profiles lists the services that have samples"};
}

std::string title_of(const Shown& shown) {
  const std::string what =
      shown.query.service ? profiles::text_of(*shown.query.service) : "All services";
  const bool cpu = shown.query.type == profiles::Type::cpu;
  return what + (cpu ? "" : ", " + profiles::title_of(shown.query.type)) + ", " + range_text(shown);
}

// What is written to the file; of a page, its data.
std::string content_of(const ProfilesArguments& arguments, const Shown& shown, const Taken& taken,
                       const stacks::Hottest& hottest, const stacks::NamedProfile& profile) {
  switch (profile_format(arguments.output)) {
    case ProfileFormat::pprof:
      return stacks::pprof(profile, shown.from_unix_ns());
    case ProfileFormat::folded:
      return stacks::folded(profile);
    case ProfileFormat::page: {
      nlohmann::ordered_json about = profile_json(taken, hottest, 0);
      about["title"] = title_of(shown);
      return report::flame_data(std::move(about), stacks::frame_tree(profile));
    }
    case ProfileFormat::none:
      break;
  }
  return {};
}

void print_profile_json(const Shown& shown, const nlohmann::ordered_json& profile,
                        const std::vector<profiles::MinuteTotal>& minutes) {
  nlohmann::ordered_json json = head_of(shown);
  if (shown.query.service) json["service"] = profiles::text_of(*shown.query.service);
  json["minutes"] = nlohmann::ordered_json::array();
  for (const profiles::MinuteTotal& one : minutes) {
    json["minutes"].push_back({{"unix_ns", one.minute * profiles::kNanosPerMinute},
                               {"samples", one.weight.samples},
                               {facts_of(quantity_of(shown.query.type)).unit, one.weight.value}});
  }
  json["profile"] = profile;
  std::printf("%s\n", json_text(json, 2).c_str());
}

void show_profile(const ProfilesArguments& arguments, const Shown& shown, Context& context) {
  const auto minutes = shown.store->totals(shown.query);
  if (!minutes) return fail(context, minutes.error());
  const Result<stacks::NamedProfile> profile = shown.store->profile(shown.query);
  if (!profile) return fail(context, profile.error());
  if (profile->stacks.empty()) {
    return fail(context, {Code::not_found, title_of(shown) + ": there are no samples"});
  }
  const stacks::Hottest hottest =
      stacks::hottest(*profile, order_of(arguments.sort, profile->quantity));
  stacks::SourceCounts counts;
  counts.lost = profile->lost;
  const Taken taken{profile->quantity, profile->period_ns, profile->duration_ns, 0, counts};
  if (context.quiet) {
    // The file is all that is wanted.
  } else if (context.json) {
    print_profile_json(shown, profile_json(taken, hottest, arguments.rows), *minutes);
  } else {
    constexpr std::int64_t kBars = 60;
    std::printf("%s\n%s\n%s%s", report::printable(title_of(shown)).c_str(),
                report::bars_of(profiles::steps_of(shown.query.range, kBars, *minutes, {})).c_str(),
                profile_summary(taken, hottest).c_str(),
                profile_table(profile->quantity, hottest, arguments.rows).c_str());
  }
  if (arguments.output.empty()) return;
  write_profile(arguments.output, content_of(arguments, shown, taken, hottest, *profile), context);
}

void refuse_profiles(Context& context, const std::string& why) {
  say("profiles: " + why + " (see kymo profiles --help)");
  context.exit_code = kWrongUsage;
}

// The range that is compared with the one that is shown.
// Errors: invalid_argument: they overlap.
Result<Shown> other_range(const ProfilesArguments& arguments, const Shown& shown) {
  std::optional<std::int64_t> begin;
  if (arguments.compared != "before") {
    begin = instant_of("--compare", arguments.compared, unix_ns()) / profiles::kNanosPerMinute;
  }
  const auto range = profiles::compared_range(shown.query.range, begin);
  if (!range) {
    return Error{Code::invalid_argument, "--compare " + arguments.compared +
                                             ": this range overlaps the one that is shown, " +
                                             range_text(shown)};
  }
  Shown other;
  other.query = shown.query;
  other.query.range = *range;
  return other;
}

// Prints it, and makes the data of the page if one is wanted.
void print_comparison(const ProfilesArguments& arguments, const std::string& name,
                      const stacks::NamedProfile& before, const Shown& shown,
                      const stacks::NamedProfile& after, Context& context, std::string& page) {
  Result<stacks::Comparison> comparison = stacks::compare(before, after);
  if (!comparison) return fail(context, comparison.error());
  const report::ProfileDiff diff{name, title_of(shown), *std::move(comparison)};
  if (!arguments.output.empty()) {
    page = report::flame_diff_data(diff, stacks::compared_tree(before, after));
  }
  if (context.quiet) return;
  const std::string text = context.json ? json_text(report::json_of(diff, {}), 2) + "\n"
                                        : report::text_of(diff, arguments.rows, {});
  std::fputs(text.c_str(), stdout);
}

// Whether --compare names a file or a checkpoint, and no time.
bool names_path(const std::string& compared) {
  const ProfileFormat format = profile_format(compared);
  return compared.find('/') != std::string::npos || format == ProfileFormat::pprof ||
         format == ProfileFormat::folded;
}

// A file of unknown origin is read in a process without rights.
std::string compare_with_file(const ProfilesArguments& arguments, const Shown& shown,
                              const stacks::NamedProfile& after, Context& context) {
  std::error_code unknown;
  const bool checkpoint = std::filesystem::is_directory(arguments.compared, unknown);
  const std::string path = arguments.compared + (checkpoint ? "/recordings/dump.pb.gz" : "");
  client::end_threads();  // the process that reads it is forked
  return make_confined(context, {path}, 1, [&](std::vector<std::string>& made) {
    Result<stacks::NamedProfile> before = read_to_compare(path, quantity_of(shown.query.type));
    if (!before) return fail(context, before.error());
    const Result<void> kept = profiles::keep_comparable(*before, shown.query.service, path);
    if (!kept) return fail(context, kept.error());
    print_comparison(arguments, path, *before, shown, after, context, made[0]);
  })[0];
}

void compare(const ProfilesArguments& arguments, const Shown& shown, Context& context) {
  const bool path = names_path(arguments.compared);
  const Result<Shown> other = path ? Result<Shown>(Shown()) : other_range(arguments, shown);
  if (!other) return refuse_profiles(context, other.error().message);
  const Result<stacks::NamedProfile> after = shown.store->profile(shown.query);
  if (!after) return fail(context, after.error());
  if (path) {
    std::string page = compare_with_file(arguments, shown, *after, context);
    if (!page.empty()) write_profile(arguments.output, std::move(page), context);
    return;
  }
  const Result<stacks::NamedProfile> before = shown.store->profile(other->query);
  if (!before) return fail(context, before.error());
  if (before->sum().samples == 0) {
    return fail(context, Error{Code::failed_precondition,
                               title_of(*other) + ": there are no samples to compare with"});
  }
  std::string page;
  print_comparison(arguments, title_of(*other), *before, shown, *after, context, page);
  if (!page.empty()) write_profile(arguments.output, std::move(page), context);
}

void show(const ProfilesArguments& arguments, Context& context) {
  const bool listed = arguments.service.empty() && !arguments.all;
  if (!arguments.service.empty() && arguments.all) {
    return refuse_profiles(context, "name a service, or give --all");
  }
  if (listed && !(arguments.output.empty() && arguments.compared.empty())) {
    return refuse_profiles(context, "--output and --compare need a service, or --all");
  }
  if (context.quiet && arguments.output.empty()) {
    return refuse_profiles(context,
                           "--quiet hides the profiles, which are the only output: use it "
                           "together with --output");
  }
  if (!arguments.output.empty() && !arguments.compared.empty() &&
      profile_format(arguments.output) != ProfileFormat::page) {
    return refuse_profiles(context, "--compare writes only a flame graph: --output FILE.html");
  }
  if (const Result<void> good = check_profile_output(arguments.output); !good) {
    if (good.error().code == Code::invalid_argument)
      return refuse_profiles(context, good.error().message);
    return fail(context, good.error());
  }
  Shown shown;
  const std::int64_t now = unix_ns();
  const std::int64_t to = arguments.to.empty() ? now : instant_of("--to", arguments.to, now);
  const std::int64_t from =
      arguments.from.empty() ? to - kHourNs : instant_of("--from", arguments.from, now);
  if (from >= to) {
    return refuse_profiles(
        context, "the range ends before it begins: " + local_time(from) + " to " + local_time(to));
  }
  shown.query.range = profiles::minutes_of(from, to);
  shown.query.type = arguments.off_cpu
                         ? profiles::Type::off_cpu
                         : profiles::type_named(arguments.kind).value_or(profiles::Type::cpu);
  const Result<std::string> directory = directory_of(arguments, context);
  if (!directory) return fail(context, directory.error());
  if (const Result<void> own = check_owner(*directory); !own) return fail(context, own.error());
  Result<std::unique_ptr<profiles::Store>> store = profiles::open_kept(*directory);
  if (!store) return fail(context, store.error());
  shown.store = *std::move(store);
  if (listed) return list(arguments, shown, context);
  if (!arguments.all) {
    const Result<Service> service = find_service(arguments.service, shown);
    if (!service) return fail(context, service.error());
    shown.query.service = *service;
  }
  if (!arguments.compared.empty()) return compare(arguments, shown, context);
  show_profile(arguments, shown, context);
}

}  // namespace

void add_profiles(CLI::App& app, Context& context) {
  auto arguments = std::make_shared<ProfilesArguments>();
  CLI::App* verb = app.add_subcommand(
      "profiles", "Show the stack profiles that kymod --profiles keeps: what ran here, and where");
  verb->fallthrough();
  verb->add_option("service", arguments->service,
                   "Show the functions of this service: job:NAME, container:ID, process:NAME, or "
                   "its name alone (default: list the services)");
  verb->add_flag("-a,--all", arguments->all, "Show the functions of all services together");
  verb->add_option("--from", arguments->from,
                   "Start of the time that is shown, in whole minutes: 2h (ago), 15:30, or "
                   "\"2026-11-25 15:30\" (default: an hour before its end)")
      ->option_text("INSTANT");
  verb->add_option("--to", arguments->to, "End of the time that is shown (default: now)")
      ->option_text("INSTANT");
  verb->add_option(
          "--compare", arguments->compared,
          "Find the functions whose share differs beyond noise. Compare with: the time of the same "
          "length just before (before), the time of that length that begins at INSTANT, a file "
          "(pprof or folded), or the dump of a checkpoint (its directory)")
      ->option_text("before|INSTANT|FILE|DIRECTORY");
  verb->add_option("--kind", arguments->kind,
                   "Show these profiles: cpu, off-cpu, or those that programs of Go make, such as "
                   "go-heap (default: cpu)")
      ->check(CLI::IsMember(kind_names()));
  verb->add_flag("--off-cpu", arguments->off_cpu,
                 "Show where threads waited, instead of where they used CPU time");
  verb->add_option("--directory", arguments->directory,
                   "Folder in which the profiles are kept (default: that of the running kymod)")
      ->envname("KYMO_PROFILES");
  verb->add_option(
      "-o,--output", arguments->output,
      "Also write the stacks to this file: .html (a flame graph), .pb.gz or .pprof "
      "(pprof), .folded or .txt (stacks for other flame graphs); with --compare: .html, the "
      "flame graph of both");
  verb->add_option("--sort", arguments->sort, "Order of the functions (default: self)")
      ->check(CLI::IsMember({"self", "total"}));
  verb->add_option("--rows", arguments->rows, "Number of services or functions to print")
      ->check(CLI::NonNegativeNumber)
      ->capture_default_str();
  verb->add_flag("--json", context.json, "Print JSON");
  add_quiet_option(*verb, context);
  verb->callback([&context, arguments] { show(*arguments, context); });
}

}  // namespace kymo::cli
