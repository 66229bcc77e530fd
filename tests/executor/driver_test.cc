// Errors about missing or failing functions of the CUDA driver, and the real driver if there is a GPU.
#include "src/executor/cuda/driver.h"

#include <gtest/gtest.h>

#include <string>

#include "src/executor/thread_block/device.h"

namespace tutti::test {
namespace {

bool mentions(const Status& status, const std::string& words) {
  return status.message().find(words) != std::string::npos;
}

CUresult fail(CUcontext) { return CUDA_ERROR_CONTEXT_IS_DESTROYED; }
CUresult work(CUcontext) { return CUDA_SUCCESS; }

TEST(CudaDriver, ReportsMissingFunctions) {
  const Driver played = {.find = [](const char* name) {
    return std::string(name) == "cuCtxPushCurrent" ? reinterpret_cast<void*>(work) : nullptr;
  }};
  EXPECT_TRUE(played.push_context.known());
  EXPECT_TRUE(played.push_context(nullptr).ok());
  EXPECT_FALSE(played.pushes_contexts());
  EXPECT_FALSE(played.has_virtual_memory());
  const Status missing = played.write_word(nullptr, 0, 0, 0);
  EXPECT_EQ(missing.code(), Code::unsupported);
  EXPECT_TRUE(mentions(missing, "cuStreamWriteValue32")) << missing.message();
  EXPECT_TRUE(mentions(missing, driver_version() == 0 ? "libcuda.so.1" : "CUDA " + version_text(driver_version())))
      << missing.message();
}

TEST(CudaDriver, ReportsFailedFunctionAndError) {
  const Driver played = {.find = [](const char*) { return reinterpret_cast<void*>(fail); }};
  const Status failed = played.push_context(nullptr);
  EXPECT_EQ(failed.code(), Code::system);
  EXPECT_TRUE(mentions(failed, "cuCtxPushCurrent: ")) << failed.message();
  EXPECT_TRUE(mentions(failed, "709)")) << failed.message();
}

TEST(CudaDriver, FormatsVersion) {
  EXPECT_EQ(version_text(12040), "12.4");
  EXPECT_EQ(version_text(13000), "13.0");
}

TEST(CudaDriver, HasAllFunctions_OnGpu) {
  if (!find_device().ok()) GTEST_SKIP() << "there is no GPU";
  EXPECT_TRUE(driver().pushes_contexts());
  EXPECT_TRUE(driver().has_virtual_memory());
  EXPECT_TRUE(driver().address_range.known() && driver().range_handle.known() && driver().write_word.known() &&
              driver().await_word.known());
  int answer = 0;
  const Status failed = driver().attribute(&answer, CU_DEVICE_ATTRIBUTE_MAX, 1'000'000);
  EXPECT_TRUE(mentions(failed, "cuDeviceGetAttribute: ") && mentions(failed, "(CUDA_ERROR_")) << failed.message();
}

}  // namespace
}  // namespace tutti::test
