// Trains a network to read handwritten digits on four ranks, with compressed gradients. With error feedback it
// converges as with float32.
#include <algorithm>
#include <cmath>
#include <fstream>
#include <numeric>
#include <random>
#include <vector>

#include "tests/api/ranks.h"

namespace tutti::test {
namespace {

using Floats = std::vector<float>;

constexpr int kRanks = 4;
constexpr std::size_t kPixels = 64, kHidden = 48, kDigits = 10;
constexpr std::size_t kFirst = (kPixels + 1) * kHidden;  // Weights of a layer; the last is the bias.
constexpr std::size_t kWeights = kFirst + (kHidden + 1) * kDigits;
constexpr std::size_t kBatch = 16;  // Images of a rank in a step.
constexpr float kRate = 0.5F;
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr int kSteps = 24;  // Too few steps to distinguish the long-term effects of rounding.
#else
constexpr int kSteps = 400;
#endif

struct Image {
  std::size_t digit = 0;
  float pixels[kPixels + 1];
};

std::vector<Image> read_images() {
  std::ifstream file(TUTTI_DIGITS);
  std::vector<Image> images;
  for (std::string line; std::getline(file, line);) {
    if (line.size() != 1 + kPixels) continue;  // Skips lines that are not images: the weights of the layers come first.
    Image& image = images.emplace_back();
    image.digit = static_cast<std::size_t>(line[0] - '0');
    for (std::size_t i = 0; i < kPixels; ++i) image.pixels[i] = static_cast<float>(line[1 + i] - 'a') / 16;
    image.pixels[kPixels] = 1;
  }
  return images;
}

Floats first_weights() {
  std::mt19937 random(1);
  std::normal_distribution<float> normal;
  Floats weights(kWeights);
  for (std::size_t i = 0; i < kWeights; ++i)
    weights[i] = normal(random) / std::sqrt(static_cast<float>(i < kFirst ? kPixels : kHidden));
  return weights;
}

// Returns the cross entropy of an image, and adds `share` of its gradient to `gradient` unless that is null.
float learn(const Image& image, const Floats& weights, float share, float* gradient) {
  float hidden[kHidden + 1], scores[kDigits];
  for (std::size_t h = 0; h < kHidden; ++h)
    hidden[h] =
        std::tanh(std::inner_product(image.pixels, image.pixels + kPixels + 1, &weights[h * (kPixels + 1)], 0.0F));
  hidden[kHidden] = 1;
  for (std::size_t d = 0; d < kDigits; ++d)
    scores[d] = std::inner_product(hidden, hidden + kHidden + 1, &weights[kFirst + d * (kHidden + 1)], 0.0F);
  const float largest = *std::max_element(scores, scores + kDigits);
  float total = 0;
  for (float& score : scores) total += score = std::exp(score - largest);
  const float loss = std::log(total) - std::log(scores[image.digit]);
  if (gradient == nullptr) return loss;
  float back[kHidden] = {};
  for (std::size_t d = 0; d < kDigits; ++d) {
    const float error = share * (scores[d] / total - (d == image.digit ? 1.0F : 0.0F));
    const std::size_t row = kFirst + d * (kHidden + 1);
    for (std::size_t h = 0; h <= kHidden; ++h) gradient[row + h] += error * hidden[h];
    for (std::size_t h = 0; h < kHidden; ++h) back[h] += error * weights[row + h];
  }
  for (std::size_t h = 0; h < kHidden; ++h) {
    const float error = back[h] * (1 - hidden[h] * hidden[h]);
    for (std::size_t i = 0; i <= kPixels; ++i) gradient[h * (kPixels + 1) + i] += error * image.pixels[i];
  }
  return loss;
}

struct Variant {
  const char* compression = nullptr;
  bool feedback = false;
};

struct Trained {
  Floats weights;   // The same on all ranks.
  double loss = 0;  // Mean over all images.
};

// Result after kSteps steps of gradient descent.
Trained train(const std::vector<Image>& images, const Variant& variant) {
  const Ranks ranks(kRanks);
  std::vector<Floats> trained(kRanks);
  ranks.run([&](int rank, tutti_comm comm) {
    tutti_comm_options options = TUTTI_COMM_OPTIONS_DEFAULT;
    options.compression = variant.compression;
    tutti_comm view = nullptr;
    TUTTI_EXPECT_OK(tutti_comm_with_options(comm, &options, &view));
    Floats weights = first_weights(), gradient(kWeights), residual(kWeights, 0);
    if (variant.feedback) {
      TUTTI_EXPECT_OK(tutti_residual_attach(gradient.data(), kWeights, tutti_float32, residual.data(), view));
    }
    for (int step = 0; step < kSteps; ++step) {
      std::fill(gradient.begin(), gradient.end(), 0.0F);
      const std::size_t batch = static_cast<std::size_t>(step * kRanks + rank) * kBatch;
      for (std::size_t i = 0; i < kBatch; ++i)
        learn(images[(batch + i) % images.size()], weights, 1.0F / kBatch, gradient.data());
      TUTTI_EXPECT_OK(
          tutti_all_reduce(gradient.data(), gradient.data(), kWeights, tutti_float32, tutti_avg, view, nullptr));
      for (std::size_t i = 0; i < kWeights; ++i) weights[i] -= kRate * gradient[i];
    }
    trained[static_cast<std::size_t>(rank)] = weights;
    TUTTI_EXPECT_OK(tutti_comm_destroy(view));
  });
  for (const Floats& weights : trained) EXPECT_EQ(weights, trained.front());
  double loss = 0;
  for (const Image& image : images) loss += learn(image, trained.front(), 0, nullptr);
  return {trained.front(), loss / static_cast<double>(images.size())};
}

double distance(const Floats& a, const Floats& b) {
  double squares = 0;
  for (std::size_t i = 0; i < a.size(); ++i) squares += std::pow(static_cast<double>(a[i]) - b[i], 2);
  return std::sqrt(squares);
}

TEST(Training, ConvergesAsWithFloat32_WithErrorFeedback) {
  const std::vector<Image> images = read_images();
  ASSERT_EQ(images.size(), 1024U);
  const Trained exact = train(images, {});
  const double training_distance = distance(exact.weights, first_weights());
  struct Off {
    double loss, weights;  // Relative errors; weights relative to the distance that training moved them.
  };
  const auto off = [&](const Variant& variant) {
    const Trained trained = train(images, variant);
    const Off found = {trained.loss / exact.loss - 1, distance(trained.weights, exact.weights) / training_distance};
    std::printf("%s %-16s loss %.5f, %+.3f %%; weights off by %.3f %%\n", variant.compression,
                variant.feedback ? "with feedback" : "without feedback", trained.loss, 100 * found.loss,
                100 * found.weights);
    return found;
  };
  std::printf("%d steps, float32         loss %.5f\n", kSteps, exact.loss);
  EXPECT_LT(exact.loss, kSteps < 100 ? 2 : 0.1);
  const Off fine = off({"int8", true}), fine_drifting = off({"int8", false});
  const Off coarse = off({"int4", true}), coarse_drifting = off({"int4", false});
  EXPECT_LT(std::abs(fine.loss), 0.005);
  if (kSteps < 100) return;
  EXPECT_LT(fine.weights, fine_drifting.weights / 3);
  EXPECT_LT(coarse.weights, coarse_drifting.weights / 3);
  EXPECT_LT(std::abs(coarse.loss), std::abs(coarse_drifting.loss));
}

}  // namespace
}  // namespace tutti::test
