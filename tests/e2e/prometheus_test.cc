// /metrics as Prometheus itself sees it.

#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include "programs.h"
#include "support/real_criu.h"

namespace kymo::test {
namespace {

Outcome get(const std::string& url) {
  return run({"curl", "-sS", "--max-time", "10", url});
}

TEST(PrometheusTest, TheTextIsCleanAndTellsNothingPrivate) {
  KYMO_NEEDS_CRIU();
  Kymod kymod;
  kymod.start();
  static_cast<void>(kymod.churn(8, "work"));
  const nlohmann::json dump = kymod.kymo_json({"dump", "process", "work"});
  const std::string metrics = get("http://" + kymod.http() + "/metrics").out;
  const std::string file = kymod.folder().file("metrics.txt", metrics);
  const Outcome lint = run({"sh", "-c", "promtool check metrics < " + file});
  EXPECT_EQ(lint.exit_code, 0) << lint.out << lint.err;
  EXPECT_EQ(lint.out + lint.err, "");
  EXPECT_NE(metrics.find("kymo_dumps_total{result=\"ok\"} 1\n"), std::string::npos) << metrics;
  const std::string pages = std::to_string(dump["stats"]["pages_written"].get<std::uint64_t>());
  EXPECT_NE(metrics.find("kymo_pages_written_total " + pages + "\n"), std::string::npos) << metrics;
  EXPECT_EQ(metrics.find(kymod.folder().path()), std::string::npos);
  EXPECT_EQ(metrics.find("churn"), std::string::npos);
  EXPECT_EQ(metrics.find("work\""), std::string::npos) << "a job's name is a label";
  for (const pid_t pid : {dump["pid"].get<pid_t>(), kymod.pid()}) {
    EXPECT_EQ(metrics.find('"' + std::to_string(pid) + '"'), std::string::npos);
  }
  EXPECT_EQ(get("http://" + kymod.http() + "/healthz").out, "ok\n");
}

TEST(PrometheusTest, AnybodyMayReadItUnderLoopbacksNamesAndNothingElse) {
  KYMO_NEEDS_CRIU();
  if (geteuid() != 0) GTEST_SKIP() << "needs root to become another user";
  Kymod kymod;
  kymod.start();
  static_cast<void>(kymod.churn(8, "work"));
  const auto as_nobody = [&](const std::string& path, const std::string& host) {
    return run({"setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", "curl", "-sS",
                "--path-as-is", "--max-time", "10", "-w", "%{http_code}", "-H", "Host: " + host,
                "http://" + kymod.http() + path})
        .out;
  };
  const std::string own = kymod.http();
  const std::string metrics = as_nobody("/metrics", own);
  EXPECT_NE(metrics.find("kymo_processes_managed 1\n"), std::string::npos) << metrics;
  EXPECT_EQ(metrics.find(kymod.folder().path()), std::string::npos);
  EXPECT_EQ(metrics.find(CHURN_PROGRAM), std::string::npos);
  EXPECT_EQ(as_nobody("/healthz", "localhost"), "ok\n200");
  for (const char* path : {"/", "/jobs", "/metrics/../../etc/passwd", "/../state/kymo.db"}) {
    EXPECT_EQ(as_nobody(path, own), "404") << path;
  }
  const std::string rebound = as_nobody("/metrics", "evil.example");
  EXPECT_EQ(rebound.substr(rebound.size() - 3), "403");
  EXPECT_EQ(rebound.find("kymo_"), std::string::npos) << rebound;
}

// A process that ends with the test, however that ends.
struct Ended {
  pid_t pid;
  ~Ended() { kill(pid, SIGTERM); }
};

TEST(PrometheusTest, ARealPrometheusScrapesIt) {
  KYMO_NEEDS_CRIU();
  Kymod kymod;
  kymod.start();
  static_cast<void>(kymod.churn(8, "work"));
  const std::string config =
      kymod.folder().file("prometheus.yml",
                          "global: {scrape_interval: 1s}\nscrape_configs:\n- job_name: kymod\n"
                          "  static_configs: [{targets: ['" +
                              kymod.http() + "']}]\n");
  // Port 0 is Prometheus' own choice; its log says which.
  const std::string log = kymod.path("prometheus.log");
  const Outcome started =
      run({"sh", "-c",
           "prometheus --config.file=" + config + " --storage.tsdb.path=" + kymod.path("tsdb") +
               " --web.listen-address=127.0.0.1:0 --log.format=json >" + log + " 2>&1 & echo $!"});
  const Ended ended{std::stoi(started.out)};
  const pid_t pid = ended.pid;
  std::string address;
  EXPECT_TRUE(eventually([&] {
    const Outcome listening =
        run({"sh", "-c", "ss -Hltnp | grep 'pid=" + std::to_string(pid) + ",' | awk '{print $4}'"});
    address = listening.out.substr(0, listening.out.find('\n'));
    return !address.empty();
  })) << read_file(log);
  std::string answer;
  EXPECT_TRUE(eventually(
      [&] {
        answer = get("http://" + address + "/api/v1/query?query=kymo_processes_managed").out;
        const auto json = nlohmann::json::parse(answer, nullptr, false);
        if (!json.is_object() || json.value("status", "") != "success") return false;
        const auto& result = json["data"]["result"];
        return result.size() == 1 && result[0]["value"][1] == "1";
      },
      std::chrono::seconds(30)))
      << answer;
  const auto up = nlohmann::json::parse(get("http://" + address + "/api/v1/query?query=up").out,
                                        nullptr, false);
  EXPECT_EQ(up["data"]["result"][0]["value"][1], "1");
}

}  // namespace
}  // namespace kymo::test
