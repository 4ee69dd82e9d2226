#include "report/plot.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdint>
#include <string_view>
#include <utility>
#include <vector>

#include "analysis/quality.h"
#include "analysis/recording.h"
#include "analysis/series.h"
#include "report/curves.h"
#include "report/gnuplot.h"
#include "report/human.h"
#include "report/phases.h"

namespace kymo::report {
namespace {

using analysis::Point;
using analysis::Series;
using analysis::Summary;

constexpr std::chrono::seconds kTimeLimit(60);
constexpr std::size_t kMaxPoints = 1500;
constexpr std::uint64_t kRateWindows = 400;
constexpr int kWidth = 1400;
constexpr int kHeight = 940;
constexpr std::size_t kMaxPhases = 24;  // with more in the legend, the curves would have no room
constexpr std::size_t kLegendColumns = 4;

// Okabe and Ito's colours, which most people can distinguish. Some are darkened for a white page.
constexpr std::array<const char*, 4> kCurveColours = {"#0072b2", "#d55e00", "#009e73", "#aa4499"};
constexpr std::array<const char*, 8> kPhaseColours = {"#88ccee", "#ddcc77", "#e08090", "#44aa99",
                                                      "#b988c6", "#b3b35c", "#6699cc", "#ee9977"};

// The unit of an axis. Values are divided by `divisor`.
struct Scale {
  double divisor = 1;
  std::string unit;
};

Scale time_scale(double ns) {
  if (ns >= 1e9) {
    return {1e9, "s"};
  }
  return ns >= 1e6 ? Scale{1e6, "ms"} : Scale{1e3, "µs"};
}

Scale value_scale(double highest, Unit unit) {
  constexpr std::array<const char*, 5> kBytes = {"B", "KiB", "MiB", "GiB", "TiB"};
  constexpr std::array<const char*, 4> kThousands = {"", "thousand ", "million ", "billion "};
  Scale scale;
  if (unit == Unit::nanoseconds || unit == Unit::microseconds) {
    const double to_ns = unit == Unit::microseconds ? 1e3 : 1;
    scale = time_scale(highest * to_ns);
    scale.divisor /= to_ns;
    return scale;
  }
  const bool in_bytes = unit == Unit::bytes;
  const double step = in_bytes ? 1024 : 1000;
  std::size_t power = 0;
  const std::size_t last_power = (in_bytes ? kBytes.size() : kThousands.size()) - 1;
  while (power < last_power && highest / scale.divisor >= step * 2) {
    scale.divisor *= step;
    ++power;
  }
  scale.unit = in_bytes ? kBytes.at(power)
                        : kThousands.at(power) + std::string(unit == Unit::pages ? "pages" : "");
  return scale;
}

// A point of a curve. A new piece of the curve begins after missing rows.
struct Sample {
  double time = 0;  // ns
  double value = 0;
  bool begins_piece = false;
};

// Writes the script of one picture.
class Drawing {
 public:
  Drawing(const Summary& summary, CurveChoice choice, PictureFormat format)
      : summary_(summary),
        choice_(std::move(choice)),
        format_(format),
        phases_(phases_of(summary)),
        duration_(static_cast<double>(std::max<std::uint64_t>(summary.duration_ns(), 1))),
        time_(time_scale(duration_)),
        gaps_(visible_gaps()) {}

  std::string script(const std::vector<Series>& left, const std::vector<Series>& right) {
    settings();
    title();
    const double top = phase_strip();
    const double middle = 0.08 + (top - 0.08) * 0.42;
    totals(left, right, middle + 0.035, top - 0.045);
    rates(left, 0.08, middle - 0.035);
    text_ += "unset multiplot\nunset output\n";
    return std::move(text_);
  }

 private:
  void settings() {
    text_ += format_ == PictureFormat::png
                 ? fmt::format(
                       "set terminal pngcairo size {},{} font 'DejaVu Sans,11' noenhanced "
                       "background '#ffffff'\n",
                       kWidth, kHeight)
                 : fmt::format(
                       "set terminal svg size {},{} font 'DejaVu Sans,14' noenhanced "
                       "background '#ffffff'\n",
                       kWidth, kHeight);
    text_ +=
        "set encoding utf8\nset multiplot\n"
        "set lmargin at screen 0.075\nset rmargin at screen 0.925\n"
        "set border 3 linecolor '#444444' linewidth 1\n"
        "set tics out nomirror textcolor '#222222'\nset xtics nomirror\nset ytics nomirror\n"
        "set key textcolor '#222222'\n"
        "set style line 100 linecolor '#dddddd' linewidth 0.6\nset grid linestyle 100\n";
    text_ += fmt::format("set xrange [{:.9g}:{:.9g}]\n", x(summary_.first_ns), x(summary_.last_ns));
  }

  void title() {
    const auto& metadata = summary_.recording.metadata;
    std::string about = "Recording " + summary_.recording.path;
    std::string detail = duration(duration_) + ", " + with_commas(summary_.rows) + " rows";
    if (const auto capture = analysis::capture_of(summary_)) {
      detail += ", " + percent(capture->share()) + " of the ticks captured";
    }
    if (metadata) {
      detail += ", started " + wall_clock(metadata->start_unix_ns) + " on " + metadata->host;
    }
    text_ += fmt::format(
        "set label 1 {} at screen 0.02,0.972 left font ',15' textcolor '#111111'\n"
        "set label 2 {} at screen 0.02,0.945 left textcolor '#444444'\n",
        gnuplot_quoted(about), gnuplot_quoted(detail));
  }

  [[nodiscard]] double x(std::uint64_t time_ns) const {
    const std::uint64_t inside = std::clamp(time_ns, summary_.first_ns, summary_.last_ns);
    return static_cast<double>(inside) / time_.divisor;
  }

  // Draws a bar of the phases with a legend below it. Returns the upper limit for the curves on the
  // page.
  double phase_strip() {
    const std::size_t shown = std::min(phases_.size(), kMaxPhases);
    if (shown == 0) {
      // Draw an empty plot, because it has the title.
      empty_plot(0.90, 0.91);
      return 0.94;
    }
    constexpr double kBarTop = 0.920;
    constexpr double kBarBottom = 0.895;
    constexpr double kLine = 0.026;
    int object = 1;
    for (std::size_t i = 0; i < shown; ++i) {
      const Phase& phase = phases_[i];
      text_ += fmt::format(
          "set object {} rectangle from first {:.9g}, graph 0 to first {:.9g}, graph 1 "
          "fillcolor '{}' fillstyle solid border linecolor '{}'\n",
          object++, x(phase.begin_ns), x(phase.end_ns), colour(i), colour(i));
      const double left = 0.078 + 0.85 / kLegendColumns * static_cast<double>(i % kLegendColumns);
      const std::size_t legend_line = i / kLegendColumns + 1;
      const double y = kBarBottom - kLine * static_cast<double>(legend_line);
      text_ += fmt::format(
          "set object {} rectangle from screen {:.4f},{:.4f} to screen {:.4f},{:.4f} fillcolor "
          "'{}' "
          "fillstyle solid border linecolor '#666666'\n",
          object++, left, y - 0.006, left + 0.010, y + 0.007, colour(i));
      const std::string name = shortened(printable(phase.name), 26) + "  " +
                               duration(static_cast<double>(phase.end_ns - phase.begin_ns));
      text_ += fmt::format("set label {} {} at screen {:.4f},{:.4f} left textcolor '#222222'\n",
                           10 + i, gnuplot_quoted(name), left + 0.014, y);
    }
    empty_plot(kBarBottom, kBarTop);
    const std::size_t lines = (shown + kLegendColumns - 1) / kLegendColumns;
    return kBarBottom - kLine * static_cast<double>(lines) - 0.005;
  }

  void empty_plot(double bottom, double top) {
    text_ += fmt::format(
        "set tmargin at screen {:.4f}\nset bmargin at screen {:.4f}\n"
        "unset border\nunset tics\nunset key\nset yrange [0:1]\n"
        "plot NaN notitle\n"
        "unset object\nunset label\nset border 3\nset xtics out nomirror\nset ytics out nomirror\n"
        "set key\nset grid linestyle 100\n",
        top, bottom);
  }

  [[nodiscard]] static const char* colour(std::size_t phase) {
    return kPhaseColours.at(phase % kPhaseColours.size());
  }

  // Draws the phases as pale bands and the gaps as grey ones, behind the curves.
  void bands() {
    int object = 1;
    for (std::size_t i = 0; i < std::min(phases_.size(), kMaxPhases); ++i) {
      text_ += fmt::format(
          "set object {} rectangle from first {:.9g}, graph 0 to first {:.9g}, graph 1 behind "
          "fillcolor '{}' fillstyle transparent solid 0.16 noborder\n",
          object++, x(phases_[i].begin_ns), x(phases_[i].end_ns), colour(i));
    }
    for (const Gap& gap : gaps_) {
      text_ += fmt::format(
          "set object {} rectangle from first {:.9g}, graph 0 to first {:.9g}, graph 1 behind "
          "fillcolor '#777777' fillstyle pattern 4 border linecolor '#bbbbbb'\n",
          object++, x(gap.start_ns), x(gap.end_ns));
    }
  }

  // The gaps that are wider than the distance between two points.
  [[nodiscard]] std::vector<Gap> visible_gaps() const {
    std::vector<Gap> visible;
    if (summary_.recording.gaps) {
      for (const Gap& gap : summary_.recording.gaps->longest) {
        const auto length = static_cast<double>(gap.end_ns - gap.start_ns);
        const bool inside = gap.end_ns > summary_.first_ns && gap.start_ns < summary_.last_ns;
        if (inside && length > 2 * duration_ / static_cast<double>(kMaxPoints)) {
          visible.push_back(gap);
        }
      }
    }
    return visible;
  }

  [[nodiscard]] bool gap_between(std::uint64_t from_ns, std::uint64_t to_ns) const {
    return std::any_of(gaps_.begin(), gaps_.end(), [&](const Gap& gap) {
      const std::uint64_t middle = gap.start_ns + (gap.end_ns - gap.start_ns) / 2;
      return from_ns <= middle && middle <= to_ns;
    });
  }

  [[nodiscard]] std::vector<Sample> values_of(const Series& series) const {
    std::vector<Sample> samples;
    std::uint64_t previous = summary_.first_ns;
    for (const Point& point : series.points) {
      samples.push_back({static_cast<double>(point.time_ns), static_cast<double>(point.last),
                         gap_between(previous, point.time_ns)});
      previous = point.time_ns;
    }
    return samples;
  }

  // Each sample has the rate from its time until the next sample.
  [[nodiscard]] std::vector<Sample> rates_of(const Series& series) const {
    const std::uint64_t piece = summary_.duration_ns() / kRateWindows;
    const std::uint64_t window = duration_ > 2e8 ? std::max(summary_.rate_window_ns, piece)
                                                 : std::max<std::uint64_t>(piece, 1);
    std::vector<Sample> samples;
    const Point* begin = nullptr;
    const Point* last = nullptr;
    bool begins_piece = true;
    const auto close_window = [&] {
      if (begin == nullptr || last == begin) {
        return;
      }
      const double grown =
          last->last > begin->last ? static_cast<double>(last->last - begin->last) : 0;
      const auto length = static_cast<double>(last->time_ns - begin->time_ns);
      samples.push_back({static_cast<double>(begin->time_ns), grown * 1e9 / length, begins_piece});
      begin = last;
      begins_piece = false;
    };
    for (const Point& point : series.points) {
      if (last == nullptr || gap_between(last->time_ns, point.time_ns)) {
        close_window();
        end_piece(samples, last);
        begin = &point;
        begins_piece = true;
      }
      last = &point;
      if (point.time_ns - begin->time_ns >= window) {
        close_window();
      }
    }
    close_window();
    end_piece(samples, last);
    return samples;
  }

  // The last value of a step curve needs a point at which its line ends.
  static void end_piece(std::vector<Sample>& samples, const Point* last) {
    if (last != nullptr && !samples.empty()) {
      samples.push_back({static_cast<double>(last->time_ns), samples.back().value, false});
    }
  }

  void data(const std::string& name, const std::vector<Sample>& samples, const Scale& scale) {
    text_ += "$" + name + " << END\n";
    for (const Sample& sample : samples) {
      text_ += fmt::format("{}{:.9g} {:.9g}\n", sample.begins_piece ? "\n" : "",
                           sample.time / time_.divisor, sample.value / scale.divisor);
    }
    text_ += "END\n";
  }

  static double highest(const std::vector<std::vector<Sample>>& curves) {
    double highest = 0;
    for (const auto& curve : curves) {
      for (const Sample& sample : curve) {
        highest = std::max(highest, sample.value);
      }
    }
    return highest;
  }

  [[nodiscard]] std::string name_of(const Series& series) const {
    return shortened(printable(summary_.columns.at(series.column).info.name), 48);
  }

  void panel(double bottom, double top) {
    text_ += fmt::format(
        "set tmargin at screen {:.4f}\nset bmargin at screen {:.4f}\n"
        "set key at graph 0.0, graph 1.0 left bottom Left reverse horizontal samplen 1.5\nset "
        "yrange [0:*]\n",
        top, bottom);
    bands();
  }

  void totals(const std::vector<Series>& left, const std::vector<Series>& right, double bottom,
              double top) {
    std::vector<std::vector<Sample>> curves;
    curves.reserve(left.size());
    std::vector<std::vector<Sample>> right_curves;
    right_curves.reserve(right.size());
    for (const Series& series : left) {
      curves.push_back(values_of(series));
    }
    for (const Series& series : right) {
      right_curves.push_back(values_of(series));
    }
    const Scale scale = value_scale(highest(curves), choice_.left_unit);
    const Scale right_scale = value_scale(highest(right_curves), choice_.right_unit);
    panel(bottom, top);
    text_ += fmt::format("set ylabel {} offset 1\nset format x ''\n",
                         gnuplot_quoted("total" + (scale.unit.empty() ? "" : ", " + scale.unit)));
    if (!right.empty()) {
      text_ += fmt::format("set border 11\nset y2tics\nset y2range [0:*]\nset y2label {}\n",
                           gnuplot_quoted(right_scale.unit));
    }
    std::string plots;
    for (std::size_t i = 0; i < curves.size(); ++i) {
      data(fmt::format("total{}", i), curves[i], scale);
      plots +=
          fmt::format("{}$total{} using 1:2 with lines linewidth 2.2 linecolor '{}' title {}",
                      i == 0 ? "" : ", ", i, kCurveColours.at(i), gnuplot_quoted(name_of(left[i])));
    }
    for (std::size_t i = 0; i < right_curves.size(); ++i) {
      data(fmt::format("right{}", i), right_curves[i], right_scale);
      plots += fmt::format(
          ", $right{} using 1:2 axes x1y2 with steps linewidth 1.6 dashtype 2 linecolor '{}' title "
          "{}",
          i, kCurveColours.at((curves.size() + i) % kCurveColours.size()),
          gnuplot_quoted(name_of(right[i]) + " (right)"));
    }
    text_ += "plot " + plots + "\n";
    text_ += "unset y2tics\nunset y2label\nset border 3\nunset object\n";
  }

  void rates(const std::vector<Series>& left, double bottom, double top) {
    std::vector<std::vector<Sample>> curves;
    curves.reserve(left.size());
    for (const Series& series : left) {
      curves.push_back(rates_of(series));
    }
    const Scale scale = value_scale(highest(curves), choice_.left_unit);
    panel(bottom, top);
    text_ += fmt::format(
        "set format x '%g'\nset xlabel {}\nset ylabel {} offset 1\n",
        gnuplot_quoted("time in the recording, " + time_.unit),
        gnuplot_quoted("rate, " + (scale.unit.empty() ? "" : scale.unit + " ") + "per second"));
    std::string plots;
    for (std::size_t i = 0; i < curves.size(); ++i) {
      data(fmt::format("rate{}", i), curves[i], scale);
      if (i == 0) {
        plots += fmt::format(
            "$rate0 using 1:2 with fillsteps fillstyle transparent solid 0.25 noborder "
            "linecolor '{}' notitle, ",
            kCurveColours.at(0));
      }
      plots +=
          fmt::format("{}$rate{} using 1:2 with steps linewidth 1.4 linecolor '{}' title {}",
                      i == 0 ? "" : ", ", i, kCurveColours.at(i), gnuplot_quoted(name_of(left[i])));
    }
    text_ += "plot " + plots + "\n";
  }

  const Summary& summary_;
  CurveChoice choice_;
  PictureFormat format_;
  std::vector<Phase> phases_;
  double duration_;
  Scale time_;
  std::vector<Gap> gaps_;
  std::string text_;
};

}  // namespace

Result<PictureFormat> picture_format(const std::string& path) {
  if (path.ends_with(".png")) {
    return PictureFormat::png;
  }
  if (path.ends_with(".svg")) {
    return PictureFormat::svg;
  }
  return Error{
      Code::invalid_argument,
      "draw " + path + ": a picture's name ends in .png or .svg, which chooses its format"};
}

Result<std::string> plot_script(const Summary& summary, PictureFormat format) {
  auto choice = choose_curves(summary);
  if (!choice) {
    return Error{
        Code::failed_precondition,
        "draw " + summary.recording.path + ": no counter of it moved, there is nothing to see"};
  }
  std::vector<std::size_t> columns = choice->left;
  columns.insert(columns.end(), choice->right.begin(), choice->right.end());
  const std::size_t split = choice->left.size();
  auto series = analysis::read_series(summary.recording.path,
                                      {columns, summary.first_ns, summary.last_ns, kMaxPoints});
  if (!series) {
    return series.error();
  }
  const auto middle = series->begin() + static_cast<std::ptrdiff_t>(split);
  return Drawing(summary, std::move(*choice), format)
      .script({series->begin(), middle}, {middle, series->end()});
}

Result<void> plot(const Summary& summary, const std::string& path) {
  auto format = picture_format(path);
  if (!format) {
    return format.error();
  }
  auto script = plot_script(summary, *format);
  if (!script) {
    return script.error();
  }
  return run_gnuplot(*script, path, kTimeLimit);
}

}  // namespace kymo::report
