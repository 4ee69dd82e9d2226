// The HTTP port of a running kymod: earlier rows, the controls of the recorder, and clients that
// stop reading.

#include <gtest/gtest.h>
#include <poll.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <set>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

#include "base/file.h"
#include "programs.h"
#include "support/loopback.h"
#include "support/real_criu.h"

namespace kymo::test {
namespace {

// A kymod that keeps one second in memory. The rest is in parts of two seconds.
Kymod recording_in_parts(const TemporaryDirectory& folder, const std::string& name) {
  return Kymod({"--profiling-keep", "1", "--profiling-metrics-log", folder.path() + "/" + name,
                "--profiling-log-rotate-after", "2", "--profiling-metrics", "profiler_rows,phase",
                "--http-controls"});
}

std::uint64_t now_ns(const Kymod& kymod) {
  return ask(kymod, "/api/status").body["recorder"]["now_ns"];
}

constexpr std::uint64_t kEndNs = 6'500'000'000;

// The number of ticks before kEndNs that the list of gaps reports as missed. The last gap may reach
// beyond.
double ticks_in_gaps(const nlohmann::json& gaps) {
  double ticks = 0;
  for (const nlohmann::json& gap : gaps) {
    const auto start = static_cast<double>(gap["start_ns"].get<std::uint64_t>());
    const auto end = static_cast<double>(gap["end_ns"].get<std::uint64_t>());
    const double inside = end <= kEndNs ? 1 : (kEndNs - start) / (end - start);
    ticks += gap["ticks"].get<double>() * inside;
  }
  return ticks;
}

// --- what was recorded earlier -------------------------------------------------------------------

TEST(WebPastTest, WhatLeftMemoryComesOutOfTheFileAndItsParts) {
  KYMO_NEEDS_CRIU();
  for (const std::string name : {"all.tsv", "all.tsv.zst"}) {
    const TemporaryDirectory folder;
    Kymod kymod = recording_in_parts(folder, name);
    kymod.start();
    // Waits until the first seconds are no longer in memory (which keeps 3.5 s and a slot) and the
    // file has the whole range, which is in the ring for a second.
    ASSERT_TRUE(eventually([&] { return now_ns(kymod) > 8'500'000'000; }));
    const nlohmann::json status = ask(kymod, "/api/status").body["recorder"];
    const std::string past =
        "/api/past?columns=profiler_rows,phase&from_ns=0&to_ns=" + std::to_string(kEndNs);
    const Answer all = ask(kymod, past + "&points=10000");
    ASSERT_EQ(all.status, 200) << all.body;
    EXPECT_EQ(all.body["span_ns"], 0) << "every row";
    const std::vector<std::uint64_t> times = all.body["time"];
    const std::vector<std::uint64_t> rows = all.body["columns"][0]["last"];
    EXPECT_EQ(status["first_ns"], times.at(0));
    const double missed = ticks_in_gaps(all.body["gaps"]);
    // The first tick is due when the threads have started.
    const std::uint64_t first_ms = times.at(0) / 1'000'000;
    const double due = 6501 - static_cast<double>(first_ms);
    EXPECT_NEAR(static_cast<double>(times.size()) + missed, due, 3)
        << name << ": no row may be lost at the end of a part; " << missed << " ticks missed";
    EXPECT_TRUE(std::is_sorted(times.begin(), times.end()));
    EXPECT_EQ(std::adjacent_find(times.begin(), times.end()), times.end())
        << "no row may come twice";
    EXPECT_TRUE(std::is_sorted(rows.begin(), rows.end()));

    const Answer thin = ask(kymod, past + "&points=65");
    const std::uint64_t span_ns = thin.body["span_ns"];
    EXPECT_EQ(span_ns, 100'000'000U);
    std::set<std::uint64_t> spans;  // the spans of time that have a row
    for (const std::uint64_t time : times) spans.insert(time / span_ns);
    EXPECT_NEAR(static_cast<double>(thin.body["time"].size()), static_cast<double>(spans.size()),
                2);
    // Over windows of 10 ms that end at each row.
    double highest = 0;
    for (std::size_t i = 0, begin = 0; i < times.size(); ++i) {
      while (begin + 1 < i && times[i] - times[begin + 1] >= 10'000'000) ++begin;
      const std::uint64_t passed = times[i] - times[begin];
      if (passed < 10'000'000) continue;
      highest = std::max(
          highest, static_cast<double>(rows[i] - rows[begin]) * 1e9 / static_cast<double>(passed));
    }
    double highest_thin = 0;
    for (const auto& rate : thin.body["columns"][0]["high"]) {
      if (rate.is_number()) highest_thin = std::max(highest_thin, rate.get<double>());
    }
    EXPECT_DOUBLE_EQ(highest, highest_thin) << "the thinned rows must keep each maximum";
  }
}

// Only with KYMO_TEST_LONG=1, because it records for a quarter of a minute.
TEST(WebPastTest, OfMoreThanIsReadThereIsAnOutline) {
  KYMO_NEEDS_CRIU();
  if (std::getenv("KYMO_TEST_LONG") == nullptr) GTEST_SKIP() << "only with KYMO_TEST_LONG=1";
  const TemporaryDirectory folder;
  Kymod kymod({"--profiling-keep", "1", "--profiling-metrics-log", folder.path() + "/all.tsv",
               "--profiling-metrics-rate-us", "10"});
  kymod.start();
  ASSERT_TRUE(eventually(
      [&] { return std::filesystem::file_size(folder.path() + "/all.tsv") > (400U << 20U); },
      std::chrono::seconds(90)));
  const std::uint64_t to = now_ns(kymod);
  const Answer all =
      ask(kymod, "/api/past?columns=profiler_rows,phase&from_ns=0&to_ns=" + std::to_string(to) +
                     "&points=1000");
  ASSERT_EQ(all.status, 200) << all.body;
  ASSERT_GE(all.body["left_out"].size(), 1U) << all.body;
  EXPECT_NE(all.body["left_out"][0].get<std::string>().find("one of them read for each point"),
            std::string::npos);
  const std::vector<std::uint64_t> times = all.body["time"];
  EXPECT_GT(times.size(), 700U);
  EXPECT_LE(times.size(), 1001U);
  EXPECT_TRUE(std::is_sorted(times.begin(), times.end()));
  EXPECT_LT(times.front(), to / 100);
  EXPECT_GT(times.back(), to - to / 100);
  // Of the rows that are no longer in memory, the mean rates from point to point must add up to the
  // count.
  const nlohmann::json& rows = all.body["columns"][0];
  double counted = 0;
  std::size_t i = 1;
  for (; i < times.size() && times[i] + 6'000'000'000 < to; ++i) {
    const double rate = (rows["low"][i].get<double>() + rows["high"][i].get<double>()) / 2;
    counted += rate * static_cast<double>(times[i] - times[i - 1]) / 1e9;
  }
  const auto grown = static_cast<double>(rows["last"][i - 1].get<std::uint64_t>() -
                                         rows["last"].front().get<std::uint64_t>());
  EXPECT_NEAR(counted, grown, 0.02 * grown);
}

TEST(WebPastTest, WhatIsWrongIsOneClearLine) {
  KYMO_NEEDS_CRIU();
  const TemporaryDirectory folder;
  Kymod kymod = recording_in_parts(folder, "all.tsv");
  kymod.start();
  const auto refused = [&](const std::string& query, int status, const std::string& word) {
    const Answer answer = ask(kymod, "/api/past?" + query);
    EXPECT_EQ(answer.status, status) << query << ": " << answer.body;
    EXPECT_NE(answer.message().find(word), std::string::npos) << answer.message();
    EXPECT_EQ(answer.message().find('\n'), std::string::npos);
  };
  refused("columns=phase", 400, "from_ns is missing");
  refused("columns=phase&from_ns=1", 400, "to_ns is missing");
  refused("columns=phase&from_ns=9&to_ns=3", 400, "from_ns=9 is not before to_ns=3");
  refused("columns=phase&from_ns=3&to_ns=3", 400, "from_ns=3 is not before to_ns=3");
  refused("columns=phase&from_ns=-1&to_ns=3", 400, "wanted a number");
  refused("columns=phase&from_ns=0&to_ns=99999999999999999999", 400, "wanted a number");
  refused("columns=phase&from_ns=0&to_ns=9&points=0", 400, "give a number from 1");
  refused("columns=phase&from_ns=0&to_ns=9&points=1000000", 400, "wanted a number");
  refused("columns=none&from_ns=0&to_ns=9", 404, "'none' is not recorded");
  refused("from_ns=0&to_ns=9", 400, "columns is missing");
  const Answer huge = ask(kymod, "/api/past?columns=phase&from_ns=0&to_ns=9223372036854775807");
  EXPECT_EQ(huge.status, 200) << "a range may be longer than the recording";
  EXPECT_LE(huge.body["time"].size(), 2001U);
  const Answer empty =
      ask(kymod, "/api/past?columns=phase&from_ns=9000000000000000000&to_ns=9000000000000000001");
  EXPECT_EQ(empty.status, 200);
  EXPECT_EQ(empty.body["columns"].size(), 1U);
}

// --- the recorder's controls ---------------------------------------------------------------------

TEST(WebRecorderTest, TheCommandAndThePageStartStopAndSet) {
  KYMO_NEEDS_CRIU();
  const TemporaryDirectory folder;
  Kymod kymod = recording_in_parts(folder, "all.tsv");
  kymod.start();
  const std::string first = folder.path() + "/all.tsv";
  EXPECT_EQ(kymod.kymo_json({"recorder"})["log_path"], first);
  EXPECT_EQ(kymod.kymo_json({"recorder", "stop"})["running"], false);
  EXPECT_EQ(ended_metadata(first)["stats"]["rows_written"],
            read_recording(first).at("Time (ns)").size());
  EXPECT_EQ(kymod.kymo({"recorder", "stop"}).err, "kymo: recorder: it is not running\n");

  const Answer started =
      ask(kymod, "/api/recorder?action=start&interval_us=500&metrics=phase", "POST");
  ASSERT_EQ(started.status, 200) << started.body;
  const std::string second = folder.path() + "/all-2.tsv";
  EXPECT_EQ(started.body["log_path"], second);
  EXPECT_EQ(started.body["interval_ns"], 500'000);
  EXPECT_EQ(kymod.kymo_json({"recorder", "status"})["metrics"], "phase");
  const std::string third = folder.path() + "/other.tsv";
  const nlohmann::json set =
      kymod.kymo_json({"recorder", "set", "--rate-us", "2000", "--metrics", "all", "--log", third});
  EXPECT_EQ(set["log_path"], third);
  EXPECT_EQ(set["metrics"], "all");
  const nlohmann::json ended = ended_metadata(second);
  EXPECT_EQ(ended["interval_ns"], 500'000);
  EXPECT_EQ(ended["columns"].size(), 1U);

  for (const auto& [query, word] : std::vector<std::pair<std::string, std::string>>{
           {"action=start", "it is already running"},
           {"action=jump", "there are start, stop and set"},
           {"", "there are start, stop and set"},
           {"action=set", "nothing to set"},
           {"action=set&interval_us=0", "must be 1 to"},
           {"action=set&interval_us=1e3", "wanted a number"},
           {"action=set&metrics=none", "stop the recorder"},
           {"action=set&metrics=phas", "phase"}}) {
    const Answer refused = ask(kymod, "/api/recorder?" + query, "POST");
    EXPECT_GE(refused.status, 400) << query;
    EXPECT_NE(refused.message().find(word), std::string::npos) << refused.message();
    EXPECT_EQ(refused.message().find('\n'), std::string::npos);
  }
  EXPECT_EQ(ask(kymod, "/api/recorder?action=stop").status, 404) << "a GET must change nothing";
  EXPECT_EQ(kymod.kymo({"recorder", "set", "--rate-us", "0"}).exit_code, 2);
  EXPECT_NE(kymod.kymo({"recorder", "set", "--log", third + "/x"}).exit_code, 0);
  EXPECT_TRUE(kymod.kymo_json({"recorder"})["running"])
      << "if a change fails, the recorder must run as before";

  // A dump after the failed change has a recording of the recorder that still runs.
  static_cast<void>(kymod.churn(8, "work"));
  const nlohmann::json dump = kymod.kymo_json({"dump", "process", "work", "--leave-running"});
  EXPECT_EQ(kymod.kymo_json({"recorder", "stop"})["running"], false);
  EXPECT_EQ(ended_metadata(dump["recording"])["interval_ns"], 2'000'000);
  EXPECT_NE(kymod.kymo({"snapshot"}).err.find("kymo recorder start"), std::string::npos);
  const nlohmann::json without = kymod.kymo_json({"dump", "process", "work", "--leave-running"});
  EXPECT_EQ(without["recording"], "");
  EXPECT_TRUE(kymod.logs("recorder: stopped by kymo")) << kymod.log();
  EXPECT_TRUE(kymod.logs("recorder: started by the page"));
}

TEST(WebRecorderTest, ThePageOnlyReadsUnlessItMay) {
  KYMO_NEEDS_CRIU();
  Kymod kymod;
  kymod.start();
  const Answer refused = ask(kymod, "/api/recorder?action=stop", "POST");
  EXPECT_EQ(refused.status, 403);
  EXPECT_EQ(refused.message(),
            "the page may only read: start kymod with --http-controls, or use kymo recorder");
  EXPECT_TRUE(kymod.kymo_json({"recorder"})["running"]);
}

// --- a browser -----------------------------------------------------------------------------------

// A script in place of a browser. It writes its arguments to a file, and then runs `more`.
std::string noting_browser(const TemporaryDirectory& folder, const std::string& more) {
  return folder.file("browser",
                     "#!/bin/sh\necho \"$@\" >" + folder.path() + "/words\n" + more + "\n", 0755);
}

struct Redirect {
  std::string path;  // of the file that the browser must open
  std::string text;
};

Redirect redirect_of(const TemporaryDirectory& folder) {
  const std::string words = read_file(folder.path() + "/words");
  EXPECT_EQ(words.rfind("file://", 0), 0U) << words;
  EXPECT_EQ(words.find("ticket"), std::string::npos) << words;
  EXPECT_EQ(words.find("token"), std::string::npos) << words;
  const std::string path = words.substr(7, words.find('\n') - 7);
  return {path, read_file(path)};
}

unsigned mode_of(const std::string& path) {
  struct stat info {};
  EXPECT_EQ(lstat(path.c_str(), &info), 0) << path;
  return info.st_mode & 07777U;
}

TEST(WebOpenTest, TheBrowserIsGivenAFileThatItsOwnerAloneCanRead) {
  KYMO_NEEDS_CRIU();
  Kymod kymod;
  kymod.start();
  const TemporaryDirectory folder;
  const std::string browser = noting_browser(folder, "");
  const auto open = [&](const std::vector<std::string>& where) {
    std::vector<std::string> command{"env", "-u",   "XDG_RUNTIME_DIR",
                                     "-u",  "HOME", "BROWSER=" + browser};
    command.insert(command.end(), where.begin(), where.end());
    command.insert(command.end(), {KYMO_PROGRAM, "web", "--open", "--socket", kymod.socket()});
    return run(command);
  };
  for (const auto& [variable, below] :
       {std::pair("XDG_RUNTIME_DIR", "/kymograph"), std::pair("HOME", "/.cache/kymograph")}) {
    const std::string home = folder.folder(variable);
    for (int i = 0; i < 2; ++i) {
      const Outcome opened = open({variable + ("=" + home)});
      EXPECT_EQ(opened.exit_code, 0) << opened.err;
    }
    const Redirect redirect = redirect_of(folder);
    EXPECT_EQ(redirect.path, home + below + "/open.html");
    EXPECT_EQ(mode_of(redirect.path), 0600U);
    EXPECT_EQ(mode_of(home + below), 0700U);
    const std::size_t at = redirect.text.find("url=http://" + kymod.http() + "/?ticket=");
    ASSERT_NE(at, std::string::npos) << redirect.text;
    const std::string link = redirect.text.substr(at + 4, redirect.text.find('"', at) - at - 4);
    const auto status = [&] {
      return run({"curl", "-sS", "-o", "/dev/null", "-w", "%{http_code}", link}).out;
    };
    EXPECT_EQ(status(), "302");
    EXPECT_EQ(status(), "401") << "the link must work only once";
  }
  // If other users could put a link into the folder, kymod must write nothing there.
  const std::string shared = folder.folder("shared");
  ASSERT_EQ(mkdir((shared + "/kymograph").c_str(), 0700), 0);
  ASSERT_EQ(chmod((shared + "/kymograph").c_str(), 0750), 0);
  const Outcome refused = open({"XDG_RUNTIME_DIR=" + shared});
  EXPECT_EQ(refused.exit_code, 1);
  EXPECT_NE(refused.err.find("must be a folder of yours with mode 0700"), std::string::npos)
      << refused.err;
  EXPECT_FALSE(std::filesystem::exists(shared + "/kymograph/open.html"));
  const Outcome nowhere = open({});
  EXPECT_EQ(nowhere.exit_code, 1);
  EXPECT_NE(nowhere.err.find("open the address yourself"), std::string::npos) << nowhere.err;
}

// kymo view blocks SIGINT and SIGTERM and waits for them.
TEST(WebOpenTest, ABrowserThatAViewStartsCanBeInterrupted) {
  KYMO_NEEDS_CRIU();
  const TemporaryDirectory folder;
  {
    Kymod kymod({"--profiling-metrics-log", folder.path() + "/all.tsv"});
    kymod.start();
    ASSERT_TRUE(eventually([&] { return now_ns(kymod) > 300'000'000; }));
    EXPECT_EQ(kymod.stop(SIGTERM), 0);
  }
  const std::string browser = noting_browser(
      folder, "grep SigBlk /proc/self/status >" + folder.path() + "/blocked\nkill $PPID");
  const Outcome viewed = run({"env", "BROWSER=" + browser, "XDG_RUNTIME_DIR=" + folder.path(),
                              KYMO_PROGRAM, "view", folder.path() + "/all.tsv", "--open"});
  EXPECT_EQ(viewed.exit_code, 0) << viewed.err;
  EXPECT_EQ(read_file(folder.path() + "/blocked"), "SigBlk:\t0000000000000000\n");
  EXPECT_NE(redirect_of(folder).text.find("/?ticket="), std::string::npos);
}

// --- clients that stand still --------------------------------------------------------------------

FileDescriptor connect_to(const std::string& address, bool small) {
  return connect_to_loopback(std::stoi(address.substr(address.find(':') + 1)), small ? 4096 : 0);
}

void send_request(const FileDescriptor& fd, const std::string& address, const std::string& path,
                  const std::string& more = "") {
  const std::string text = "GET " + path + " HTTP/1.1\r\nHost: " + address + "\r\n" + more + "\r\n";
  ASSERT_EQ(write(fd.get(), text.data(), text.size()), static_cast<ssize_t>(text.size()));
}

// Whether the complete answer comes, with status 200.
bool is_answered(const std::string& address, const std::string& path) {
  const FileDescriptor fd = connect_to(address, false);
  send_request(fd, address, path, "Connection: close\r\n");
  std::string reply;
  std::array<char, 16384> piece{};
  for (ssize_t got = 1; got > 0;) {
    got = read(fd.get(), piece.data(), piece.size());
    if (got > 0) reply.append(piece.data(), static_cast<std::size_t>(got));
  }
  return reply.substr(0, 15) == "HTTP/1.1 200 OK";
}

std::string all_columns(const Kymod& kymod) {
  std::string columns;
  for (const nlohmann::json& column : ask(kymod, "/api/columns").body) {
    columns += (columns.empty() ? "" : ",") + column["name"].get<std::string>();
  }
  return columns;
}

// Opens event streams of all rows of all metrics of the last ten seconds, and reads nothing. This
// fills each buffer on the way at once.
std::vector<FileDescriptor> stand_still(const Kymod& kymod, const std::string& token, int count) {
  const std::string columns = all_columns(kymod);
  std::vector<FileDescriptor> clients;
  for (int i = 0; i < count; ++i) {
    clients.push_back(connect_to(kymod.http(), true));
    send_request(clients.back(), kymod.http(),
                 "/api/live?per_second=0&back_ns=10000000000&columns=" + columns,
                 "Authorization: Bearer " + token + "\r\n");
  }
  return clients;
}

TEST(WebStreamTest, WhatHasGatheredComesInPiecesAndEachRowOnce) {
  KYMO_NEEDS_CRIU();
  Kymod kymod;
  kymod.start();
  ASSERT_TRUE(eventually([&] { return now_ns(kymod) > 2'000'000'000; }));
  const Outcome curl =
      run({"sh", "-c", "curl -sSgN -H \"$0\" \"$1\" | head -c 1000000",
           "Authorization: Bearer " + token_of(kymod),
           "http://" + kymod.http() +
               "/api/live?per_second=0&back_ns=10000000000&columns=" + all_columns(kymod)});
  std::istringstream lines(curl.out);
  std::vector<std::uint64_t> times;
  std::size_t largest = 0;
  std::size_t pieces = 0;
  bool samples = false;
  for (std::string line; std::getline(lines, line);) {
    if (line.rfind("event: ", 0) == 0) samples = line == "event: samples";
    if (!samples || line.rfind("data: ", 0) != 0) continue;
    const nlohmann::json data = nlohmann::json::parse(line.substr(6), nullptr, false);
    if (data.is_discarded()) break;  // the last event, which was cut
    largest = std::max(largest, data["time"].size() * data["columns"].size());
    ++pieces;
    for (const std::uint64_t time : data["time"]) times.push_back(time);
  }
  EXPECT_GT(pieces, 1U);
  EXPECT_LE(largest, std::size_t{1} << 15U)
      << "an event must not have more values than this (spans times columns)";
  EXPECT_GT(largest, std::size_t{1} << 14U) << "the test needs rows that had gathered";
  EXPECT_TRUE(std::is_sorted(times.begin(), times.end()));
  EXPECT_EQ(std::adjacent_find(times.begin(), times.end()), times.end()) << "no row may come twice";
}

TEST(WebFloodTest, ThousandConnectionsLeaveKymodItsDescriptorsAndItsJobs) {
  KYMO_NEEDS_CRIU();
  rlimit before{};
  ASSERT_EQ(getrlimit(RLIMIT_NOFILE, &before), 0);
  rlimit few = before;
  few.rlim_cur = 320;
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &few), 0);
  Kymod kymod;
  kymod.start();
  rlimit many = before;
  many.rlim_cur = std::min<rlim_t>(4096, before.rlim_max);
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &many), 0);
  static_cast<void>(kymod.churn(4, "work"));
  std::vector<FileDescriptor> flood;
  const auto connect_some = [&] {
    for (int i = 0; i < 500; ++i) {
      flood.push_back(connect_to(kymod.http(), true));
      std::size_t written = 0;
      static_cast<void>(write_all(flood.back().get(), "GET /", &written));
    }
  };
  connect_some();
  EXPECT_EQ(kymod.job("work")["state"], "running");
  EXPECT_TRUE(is_answered(kymod.http(), "/healthz"));
  connect_some();
  const nlohmann::json dump = kymod.kymo_json({"dump", "process", "work"});
  EXPECT_EQ(kymod.job("work")["state"], "dumped");
  connect_some();
  EXPECT_EQ(kymod.kymo({"restore", dump["directory"]}).exit_code, 0);
  EXPECT_EQ(kymod.job("work")["state"], "running");
  setrlimit(RLIMIT_NOFILE, &before);
}

// `scripts/bench stalled` measures how fast they are.
TEST(WebStalledTest, FiftyStreamsThatStandStillLeaveMetricsAndHealthAnswering) {
  KYMO_NEEDS_CRIU();
  Kymod kymod;
  kymod.start();
  std::vector<FileDescriptor> clients = stand_still(kymod, token_of(kymod), 50);
  // Each client gets an answer: a stream or status 429.
  for (const FileDescriptor& client : clients) {
    pollfd waits{client.get(), POLLIN, 0};
    EXPECT_EQ(poll(&waits, 1, 60'000), 1);
  }
  for (int i = 0; i < 20; ++i) {
    for (const char* path : {"/metrics", "/healthz"}) {
      ASSERT_TRUE(is_answered(kymod.http(), path)) << path;
    }
  }
  // The clients also do not read while kymod stops.
  EXPECT_EQ(kymod.stop(SIGTERM), 0) << kymod.log();
}

}  // namespace
}  // namespace kymo::test
