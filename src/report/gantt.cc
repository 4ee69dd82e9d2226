#include "report/gantt.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <vector>

#include "report/gnuplot.h"
#include "report/human.h"

namespace kymo::report {
namespace {

using criu::LogPhases;

constexpr std::chrono::seconds kGanttLimit(60);
constexpr int kPixelsWide = 1200;
constexpr int kPixelsALine = 34;
constexpr int kPixelsAround = 130;
constexpr std::size_t kMostProcesses = 12;
constexpr const char* kBar = "#0072b2";
constexpr const char* kProcessBar = "#d55e00";

struct Line {
  std::string label;
  const criu::Phase* phase;
  const char* colour;
};

// Joins spans that are less than half a pixel apart, because a log may have millions of spans.
std::vector<criu::PhaseSpan> drawn(const std::vector<criu::PhaseSpan>& spans,
                                   std::uint64_t total_us) {
  const std::uint64_t nearer_us = total_us / (2 * kPixelsWide);
  std::vector<criu::PhaseSpan> all;
  for (const criu::PhaseSpan& span : spans) {
    if (!all.empty() && span.begin_us - all.back().end_us < nearer_us) {
      all.back().end_us = span.end_us;
    } else {
      all.push_back(span);
    }
  }
  return all;
}

std::vector<Line> lines_of(const LogPhases& phases) {
  std::vector<Line> lines;
  for (const criu::Phase& phase : phases.phases) {
    lines.push_back({phase.name, &phase, kBar});
  }
  for (std::size_t i = 0; i < std::min(kMostProcesses, phases.processes.size()); ++i) {
    for (const criu::Phase& phase : phases.processes[i].phases) {
      lines.push_back(
          {fmt::format("{}: {}", phases.processes[i].pid, phase.name), &phase, kProcessBar});
    }
  }
  std::erase_if(lines, [](const Line& line) { return line.phase->spans.empty(); });
  return lines;
}

}  // namespace

std::string gantt_script(const LogPhases& phases, const std::string& title, PictureFormat format) {
  const std::vector<Line> lines = lines_of(phases);
  const auto count = static_cast<int>(lines.size());
  std::string text = fmt::format(
      "set terminal {} size {},{} font 'DejaVu Sans,{}' noenhanced background '#ffffff'\n"
      "set encoding utf8\nset title {} textcolor '#111111'\n"
      "set border 3 linecolor '#444444'\nset tics out nomirror textcolor '#222222'\n"
      "set xlabel 'ms since the log began' textcolor '#222222'\nset grid xtics linecolor "
      "'#dddddd'\n"
      "set xrange [0:{:.6g}]\nset yrange [{}:-1]\nunset key\n",
      format == PictureFormat::png ? "pngcairo" : "svg", kPixelsWide,
      kPixelsAround + kPixelsALine * std::max(1, count), format == PictureFormat::png ? 10 : 13,
      gnuplot_quoted(title), static_cast<double>(std::max<std::uint64_t>(1, phases.total_us)) / 1e3,
      count);
  std::string tics;
  int object = 1;
  for (int i = 0; i < count; ++i) {
    const Line& line = lines[static_cast<std::size_t>(i)];
    const std::string took = duration(static_cast<double>(line.phase->duration_us) * 1e3);
    tics +=
        (i == 0 ? "" : ", ") + gnuplot_quoted(line.label + "  " + took) + " " + std::to_string(i);
    for (const criu::PhaseSpan& span : drawn(line.phase->spans, phases.total_us)) {
      text += fmt::format(
          "set object {} rectangle from {:.6f},{} to {:.6f},{} fillcolor '{}' fillstyle solid "
          "border linecolor '{}'\n",
          object++, static_cast<double>(span.begin_us) / 1e3, i - 0.35,
          static_cast<double>(span.end_us) / 1e3, i + 0.35, line.colour, line.colour);
    }
  }
  return text + "set ytics (" + tics + ")\nplot 1/0\nunset output\n";
}

Result<void> draw_gantt(const LogPhases& phases, const std::string& title,
                        const std::string& path) {
  const Result<PictureFormat> format = picture_format(path);
  if (!format) {
    return format.error();
  }
  return run_gnuplot(gantt_script(phases, title, *format), path, kGanttLimit);
}

}  // namespace kymo::report
