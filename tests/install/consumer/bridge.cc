// Serves a registry through the installed bridge to prometheus-cpp, and checks the resulting text.

#include <kymo/prometheus.h>
#include <kymo/registry.h>
#include <prometheus/collectable.h>
#include <prometheus/text_serializer.h>

#include <cstdio>
#include <string>

int main() {
  kymo::Registry registry;
  const auto busy = registry.counter(
      {.name = "busy_us", .help = "Time at work", .unit = kymo::Unit::microseconds});
  if (!busy) {
    std::fprintf(stderr, "%s\n", busy.error().message.c_str());
    return 1;
  }
  busy->add(2'500'000);
  const auto collectable = kymo::make_prometheus_collectable(registry);
  const std::string text = prometheus::TextSerializer().Serialize(collectable->Collect());
  std::fputs(text.c_str(), stdout);
  return text.find("\nbusy_seconds_total 2.5") != std::string::npos ? 0 : 1;
}
