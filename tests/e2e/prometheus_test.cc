// What a real Prometheus reads from /metrics.

#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include <filesystem>
#include <map>
#include <regex>
#include <set>

#include "forget_images.h"
#include "kymo/version.h"
#include "programs.h"
#include "support/real_criu.h"

namespace kymo::test {
namespace {

Outcome get(const std::string& url) {
  return run({"curl", "-sS", "--max-time", "60", url});
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
  EXPECT_NE(metrics.find("kymo_stood_still_seconds_count 1\n"), std::string::npos) << metrics;
  EXPECT_NE(metrics.find("\nkymo_start_time_seconds "), std::string::npos) << metrics;
  const std::string info = "kymo_build_info{version=\"" KYMO_VERSION "\",criu=\"";
  EXPECT_NE(metrics.find(info), std::string::npos) << metrics;
  EXPECT_EQ(metrics.find(kymod.folder().path()), std::string::npos);
  EXPECT_EQ(metrics.find("churn"), std::string::npos);
  for (std::size_t at = 0; (at = metrics.find("work\"", at)) != std::string::npos; ++at) {
    const std::size_t line = metrics.rfind('\n', at) + 1;
    EXPECT_EQ(metrics.find("kymo_last_success_", line), line) << metrics.substr(line, 80);
  }
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
                "--path-as-is", "--max-time", "60", "-w", "%{http_code}", "-H", "Host: " + host,
                "http://" + kymod.http() + path})
        .out;
  };
  const std::string own = kymod.http();
  const std::string metrics = as_nobody("/metrics", own);
  EXPECT_NE(metrics.find("kymo_processes_managed 1\n"), std::string::npos) << metrics;
  EXPECT_EQ(metrics.find(kymod.folder().path()), std::string::npos);
  EXPECT_EQ(metrics.find(CHURN_PROGRAM), std::string::npos);
  EXPECT_EQ(as_nobody("/healthz", "localhost"), "ok\n200");
  const auto status = [&](const std::string& path) {
    const std::string answer = as_nobody(path, own);
    EXPECT_EQ(answer.find(kymod.folder().path()), std::string::npos) << answer;
    return answer.substr(answer.size() - 3);
  };
  for (const char* path : {"/jobs", "/metrics/../../etc/passwd", "/../state/kymo.db"}) {
    EXPECT_EQ(status(path), "404") << path;
  }
  for (const char* path : {"/", "/api/jobs", "/api/live", "/recording", "/api/jobs?token=guess"}) {
    EXPECT_EQ(status(path), "401") << path;
  }
  const std::string rebound = as_nobody("/metrics", "evil.example");
  EXPECT_EQ(rebound.substr(rebound.size() - 3), "403");
  EXPECT_EQ(rebound.find("kymo_"), std::string::npos) << rebound;
}

// All values of members with this name, anywhere in the document.
void collect(const nlohmann::json& node, const std::string& key, std::vector<std::string>& out) {
  for (const auto& [name, value] : node.items()) {
    if (node.is_object() && name == key && value.is_string()) out.push_back(value);
    if (value.is_structured()) collect(value, key, out);
  }
}

std::string replaced(std::string text, const std::string& what, const std::string& by) {
  for (std::size_t at = text.find(what); at != text.npos; at = text.find(what, at + by.size())) {
    text.replace(at, what.size(), by);
  }
  return text;
}

// The metrics of an expression that /metrics does not have, and the labels that its series do not
// have.
std::vector<std::string> unknown_in(const std::string& expression, const std::string& metrics) {
  std::vector<std::string> unknown;
  static const std::regex kSelector(R"((kymo_\w+)(\{[^}]*\})?)");
  static const std::regex kLabel(R"rule((\w+)="(\w+)")rule");
  for (std::sregex_iterator it(expression.begin(), expression.end(), kSelector), end; it != end;
       ++it) {
    const std::string name = (*it)[1];
    const std::string labels = (*it)[2];
    const std::string begin = "\n" + name;
    if (metrics.find(begin + " ") == metrics.npos && metrics.find(begin + "{") == metrics.npos) {
      unknown.push_back(name);
    }
    for (std::sregex_iterator label(labels.begin(), labels.end(), kLabel); label != end; ++label) {
      const std::regex series("\n" + name + R"(\{[^}]*)" + label->str());
      if (!std::regex_search(metrics, series)) unknown.push_back(name + " " + label->str());
    }
  }
  return unknown;
}

TEST(PrometheusTest, DashboardAndAlertsAskForWhatIsServedAndNothingElse) {
  KYMO_NEEDS_CRIU();
  Kymod kymod;
  kymod.start();
  static_cast<void>(kymod.churn(8, "work"));
  EXPECT_EQ(kymod.kymo({"dump", "process", "work", "--leave-running"}).exit_code, 0);
  EXPECT_EQ(kymod.kymo({"dump", "process", "work", "--dir", "/usr"}).exit_code, 1);
  const std::string metrics = get("http://" + kymod.http() + "/metrics").out;
  const std::string docs = KYMO_SOURCE_DIR "/docs/";
  EXPECT_EQ(unknown_in("kymo_phase > kymo_nothing{a=\"b\"}", metrics).front(), "kymo_nothing");
  EXPECT_EQ(unknown_in("kymo_dumps_total{result=\"meh\"}", metrics).size(), 1U);
  const std::string alerts = read_file(docs + "alerts.yml");
  for (const std::string& name : unknown_in(alerts, metrics)) {
    ADD_FAILURE() << "docs/alerts.yml uses a metric that /metrics does not have: " << name;
  }
  const auto dashboard = nlohmann::json::parse(read_file(docs + "grafana/kymo.json"));
  std::vector<std::string> expressions;
  collect(dashboard, "expr", expressions);
  EXPECT_GT(expressions.size(), 20U);
  std::string rules = "groups:\n- name: dashboard\n  rules:\n";
  std::string all = alerts;
  for (std::string expression : expressions) {
    for (const std::string& name : unknown_in(expression, metrics)) {
      ADD_FAILURE() << "the dashboard uses a metric that /metrics does not have: " << name;
    }
    expression = replaced(replaced(expression, "$__rate_interval", "5m"), "$", "");
    rules += "  - record: r" + std::to_string(rules.size()) + "\n    expr: |\n      " + expression +
             "\n";
    all += expression;
  }
  const Outcome parsed =
      run({"promtool", "check", "rules", kymod.folder().file("dashboard.yml", rules)});
  EXPECT_EQ(parsed.exit_code, 0) << parsed.out << parsed.err;
  // The other direction: each metric of kymod must be on a panel.
  static const std::regex kType(R"(# TYPE (kymo_\w+) (\w+))");
  for (std::sregex_iterator it(metrics.begin(), metrics.end(), kType), end; it != end; ++it) {
    const std::string name = (*it)[1].str() + ((*it)[2] == "histogram" ? "_bucket" : "");
    EXPECT_NE(all.find(name + "{"), all.npos) << name << " is on no panel";
  }
}

TEST(PrometheusTest, TheAlertsFireWhenTheyShouldAndAreAllTested) {
  const std::string docs = KYMO_SOURCE_DIR "/docs/";
  const Outcome checked = run({"promtool", "check", "rules", docs + "alerts.yml"});
  EXPECT_EQ(checked.exit_code, 0) << checked.out << checked.err;
  const std::string tests = KYMO_SOURCE_DIR "/tests/monitoring/alerts_test.yml";
  const Outcome tested = run({"promtool", "test", "rules", tests});
  EXPECT_EQ(tested.exit_code, 0) << tested.out << tested.err;
  const std::string alerts = read_file(docs + "alerts.yml");
  const std::string cases = read_file(tests);
  const std::string page = read_file(docs + "metrics.md");
  static const std::regex kAlert(R"(- alert: (\w+))");
  int count = 0;
  for (std::sregex_iterator it(alerts.begin(), alerts.end(), kAlert), end; it != end; ++it) {
    ++count;
    const std::string name = (*it)[1];
    EXPECT_NE(cases.find("alertname: " + name + "\n        exp_alerts:\n          - "), cases.npos)
        << name << " has no test in which it fires";
    EXPECT_NE(cases.find("alertname: " + name + ", exp_alerts: []"), cases.npos)
        << name << " has no test in which it does not fire";
    EXPECT_NE(page.find("`" + name + "`"), page.npos) << name << " is not in docs/metrics.md";
  }
  EXPECT_GE(count, 8);
}

// The values of a counter in /metrics, by its label `result`.
std::map<std::string, std::string> results_of(const std::string& metrics, const std::string& name) {
  const std::regex line(name + "\\{result=\"(\\w+)\"\\} (\\d+)");
  std::map<std::string, std::string> out;
  for (std::sregex_iterator it(metrics.begin(), metrics.end(), line), end; it != end; ++it) {
    out[(*it)[1]] = (*it)[2];
  }
  return out;
}

// Whether docs/alerts.yml fires the alert if /metrics changes from one text to the other.
bool fires(const Kymod& kymod, const std::string& alert, const std::string& before,
           const std::string& after) {
  auto then = results_of(before, "kymo_restores_total");
  std::string series;
  for (const auto& [result, value] : results_of(after, "kymo_restores_total")) {
    series += "      - {series: 'kymo_restores_total{result=\"" + result + "\"}', values: '" +
              then[result] + "x5 " + value + "x10'}\n";
  }
  EXPECT_FALSE(series.empty()) << after;
  const std::string file = kymod.folder().file(
      "fires.yml", "rule_files: [" KYMO_SOURCE_DIR
                   "/docs/alerts.yml]\nevaluation_interval: 1m\ntests:\n  - interval: 1m\n"
                   "    input_series:\n" +
                       series + "    alert_rule_test:\n      - {eval_time: 8m, alertname: " +
                       alert + ", exp_alerts: []}\n");
  const Outcome tested = run({"promtool", "test", "rules", file});
  const std::string said = tested.out + tested.err;
  EXPECT_EQ(tested.exit_code != 0, said.find("alertname:" + alert) != std::string::npos ||
                                       said.find("alertname: " + alert) != std::string::npos)
      << said;
  return tested.exit_code != 0;
}

TEST(PrometheusTest, ARequestThatIsWrongPagesNobodyAndAFailureDoes) {
  KYMO_NEEDS_CRIU();
  Kymod kymod;
  kymod.start();
  static_cast<void>(kymod.churn(8, "work"));
  const std::string dir = kymod.kymo_json({"dump", "process", "work"})["directory"];
  const auto metrics = [&] { return get("http://" + kymod.http() + "/metrics").out; };
  const std::string before = metrics();
  EXPECT_EQ(kymod.kymo({"restore", "/nonexistent"}).exit_code, 1);
  const std::string refused = metrics();
  EXPECT_EQ(results_of(refused, "kymo_restores_total")["refused"], "1") << refused;
  EXPECT_FALSE(fires(kymod, "KymoRestoresFail", before, refused));
  // Damaged images are refused as well, and have an alert of their own. Without the list of the images, only CRIU finds
  // this one damaged, when it reads it.
  forget_images(dir);
  std::filesystem::resize_file(dir + "/images/timens-0.img", 20);
  EXPECT_EQ(kymod.kymo({"restore", dir}).exit_code, 1);
  const std::string failed = metrics();
  EXPECT_EQ(results_of(failed, "kymo_restores_total")["error"], "1") << failed;
  EXPECT_TRUE(fires(kymod, "KymoRestoresFail", refused, failed));
}

// Ends a process at the end of the test, also if the test fails.
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
  // Prometheus chooses a port for port 0. ss(8) shows which one.
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
        const auto reply = nlohmann::json::parse(answer, nullptr, false);
        if (!reply.is_object() || reply.value("status", "") != "success") return false;
        const auto& result = reply["data"]["result"];
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
