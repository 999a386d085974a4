#include "tools/shapes.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <fmt/format.h>
#include <numbers>

#include "core/base/error.h"
#include "training/data/random.h"

namespace plexaura {

namespace {

using std::numbers::pi;

struct Point {
  double x = 0;
  double y = 0;
};

struct Colour {
  double red = 0;
  double green = 0;
  double blue = 0;
};

Colour mix(const Colour& a, const Colour& b, double share_of_b) {
  return {std::lerp(a.red, b.red, share_of_b), std::lerp(a.green, b.green, share_of_b),
          std::lerp(a.blue, b.blue, share_of_b)};
}

double brightness(const Colour& colour) {
  return 0.3 * colour.red + 0.59 * colour.green + 0.11 * colour.blue;
}

struct Brightness {
  double least = 0;
  double most = 1;
};

constexpr Brightness dark{0.05, 0.4};
constexpr Brightness light{0.6, 0.95};

// Returns a random colour of any hue with this range of brightness.
Colour random_colour(Brightness range, Random& random) {
  while (true) {
    const Colour colour{random.uniform(), random.uniform(), random.uniform()};
    if (brightness(colour) >= range.least && brightness(colour) <= range.most) return colour;
  }
}

Point rotate(Point p, double angle) {
  return {p.x * std::cos(angle) - p.y * std::sin(angle), p.x * std::sin(angle) + p.y * std::cos(angle)};
}

// Outlines around the origin, about as large as the unit circle. A function returns a negative number inside,
// and approximately the distance near the edge. `proportion` from 0 to 1 varies the shape within its kind.
double circle(Point p, double proportion) { return std::hypot(p.x, p.y * (1 + 0.25 * proportion)) - 0.9; }

double ring(Point p, double proportion) {
  return std::abs(std::hypot(p.x, p.y) - 0.78) - (0.12 + 0.1 * proportion);
}

double square(Point p, double proportion) {
  return std::max(std::abs(p.x), std::abs(p.y) * (1 + 0.35 * proportion)) - 0.8;
}

double triangle(Point p, double proportion) {
  p.x *= 1 + 0.3 * proportion;
  double edge = p.y;
  for (const double side : {-1.0, 1.0})
    edge = std::max(edge, side * p.x * std::sin(pi / 3) - p.y * std::cos(pi / 3));
  return edge - 0.52;
}

double star(Point p, double proportion) {
  const int points = proportion < 0.5 ? 5 : 6;
  const double half = pi / points;
  const double inner = 0.4;
  const double angle = std::abs(std::remainder(std::atan2(p.y, p.x), 2 * half));
  const double radius = std::hypot(p.x, p.y);
  const Point folded{radius * std::cos(angle), radius * std::sin(angle)};
  // The edge goes from a tip at (1, 0) to the notch at angle `half`.
  const Point notch{inner * std::cos(half), inner * std::sin(half)};
  const Point along{notch.x - 1, notch.y};
  return ((folded.x - 1) * along.y - folded.y * along.x) / std::hypot(along.x, along.y);
}

double cross(Point p, double proportion) {
  const double width = 0.22 + 0.1 * proportion;
  const Point a{std::abs(p.x), std::abs(p.y)};
  return std::min(std::max(a.x - 0.95, a.y - width), std::max(a.x - width, a.y - 0.95));
}

using Outline = double (*)(Point, double);
constexpr std::array<Outline, 6> outlines{circle, ring, square, triangle, star, cross};

// A pattern of two colours over the plane.
class Pattern {
 public:
  // The second colour is a mix of the first one and another of the range; `contrast` from 0 to 1 is the share
  // of the other.
  Pattern(Brightness range, double contrast, Random& random)
      : first_(random_colour(range, random)),
        second_(mix(first_, random_colour(range, random), contrast)),
        style_(random.below(styles)),
        angle_(random.uniform(0, pi)),
        waves_(random.uniform(1.2, 3)),
        phase_(random.uniform(0, 2 * pi)) {}

  Colour at(Point p) const { return mix(first_, second_, share_of_second(rotate(p, angle_))); }

 private:
  static constexpr std::uint64_t styles = 5;

  double share_of_second(Point p) const {
    const double across = std::sin(2 * pi * waves_ * p.x + phase_);
    const double down = std::sin(2 * pi * waves_ * p.y + phase_);
    switch (style_) {
      case 0:
        return 0;  // a plain surface
      case 1:
        return std::clamp(0.5 + 0.5 * p.x, 0.0, 1.0);  // gradient
      case 2:
        return std::clamp(0.5 + 3 * across, 0.0, 1.0);  // stripes
      case 3:
        return std::clamp(0.5 + 4 * across * down, 0.0, 1.0);  // checks
      default:
        return std::clamp(4 * (across + down) - 4, 0.0, 1.0);  // spots
    }
  }

  Colour first_;
  Colour second_;
  std::uint64_t style_;
  double angle_;
  double waves_;
  double phase_;
};

// One shape with its own proportions, place, size, rotation and surface.
class Figure {
 public:
  Figure(Outline outline, Point centre, double radius, Random& random)
      : outline_(outline),
        centre_(centre),
        radius_(radius),
        rotation_(random.uniform(-most_turn, most_turn)),
        proportion_(random.uniform()),
        surface_(light, 1, random) {}

  // Returns the share of the pixel at a point that the shape covers, from 0 to 1. `pixel` is the side of a
  // pixel.
  double cover(Point p, double pixel) const {
    return std::clamp(0.5 - outline_(local(p), proportion_) * radius_ / pixel, 0.0, 1.0);
  }
  Colour colour_at(Point p) const { return surface_.at(local(p)); }

 private:
  static constexpr double most_turn = 0.5;  // largest rotation in radians, in either direction

  Point local(Point p) const {
    return rotate({(p.x - centre_.x) / radius_, (p.y - centre_.y) / radius_}, rotation_);
  }

  Outline outline_;
  Point centre_;
  double radius_;
  double rotation_;
  double proportion_;
  Pattern surface_;
};

// An image over the square from (-1, -1) to (1, 1). It has shapes of one kind in most cells of a grid, so
// that they do not overlap.
class Scene {
 public:
  Scene(Outline outline, Random& random) : background_(dark, 0.5, random), noise_(random.uniform(0, 0.08)) {
    const auto cells = static_cast<int>(2 + random.below(2));  // number of cells along a side
    const int count = cells * cells;
    const auto always_full = static_cast<int>(random.below(static_cast<std::uint64_t>(count)));
    for (int cell = 0; cell < count; ++cell)
      if (random.uniform() < 0.8 || cell == always_full)
        figures_.push_back(figure_in_cell(outline, cell % cells, cell / cells, 1.0 / cells, random));
  }

  Colour at(Point p, double pixel) const {
    Colour colour = background_.at(p);
    for (const Figure& figure : figures_)
      if (const double cover = figure.cover(p, pixel); cover > 0)
        colour = mix(colour, figure.colour_at(p), cover);
    return colour;
  }

  double noise() const { return noise_; }

 private:
  static Figure figure_in_cell(Outline outline, int column, int row, double half_cell, Random& random) {
    const double radius = half_cell * random.uniform(0.65, 0.95);
    const double room = half_cell - radius;
    const Point centre{(2 * column + 1) * half_cell - 1 + random.uniform(-room, room),
                       (2 * row + 1) * half_cell - 1 + random.uniform(-room, room)};
    return {outline, centre, radius, random};
  }

  Pattern background_;
  double noise_;
  std::vector<Figure> figures_;
};

std::uint8_t to_byte(double value) {
  return static_cast<std::uint8_t>(std::lround(255 * std::clamp(value, 0.0, 1.0)));
}

}  // namespace

const std::vector<std::string>& shape_names() {
  static const std::vector<std::string> names{"circle", "ring", "square", "triangle", "star", "cross"};
  return names;
}

Image draw_shapes(std::int64_t kind, std::int64_t size, std::uint64_t seed) {
  if (kind < 0 || kind >= static_cast<std::int64_t>(outlines.size()))
    throw UserError(
        fmt::format("shape {} does not exist; shapes go from 0 to {}", kind, outlines.size() - 1));
  if (size < 8)
    throw UserError(fmt::format("an image of {} pixels is too small for a shape; give 8 or more", size));
  Random random{seed, static_cast<std::uint64_t>(kind)};
  const Scene scene(outlines[static_cast<std::size_t>(kind)], random);
  const double pixel = 2 / static_cast<double>(size);
  Image image{size, size, {}};
  image.pixels.reserve(static_cast<std::size_t>(size * size * 3));
  for (std::int64_t y = 0; y < size; ++y)
    for (std::int64_t x = 0; x < size; ++x) {
      const Colour colour = scene.at(
          {(static_cast<double>(x) + 0.5) * pixel - 1, (static_cast<double>(y) + 0.5) * pixel - 1}, pixel);
      for (const double channel : {colour.red, colour.green, colour.blue})
        image.pixels.push_back(to_byte(channel + random.uniform(-scene.noise(), scene.noise())));
    }
  return image;
}

}  // namespace plexaura
