#include <sys/random.h>

#include <cstring>
#include <mutex>
#include <span>
#include <utility>

#include "transports/ucx.h"
#include "transports/ucx/end.h"
#include "transports/ucx/engine.h"

namespace tutti {
namespace {

// A UcxEnd with its lock.
class UcxCarrier : public Carrier {
 public:
  UcxCarrier(std::shared_ptr<UcxEngine> engine, std::unique_ptr<UcxEnd> end)
      : engine_(std::move(engine)), end_(std::move(end)) {}
  ~UcxCarrier() override {
    std::unique_lock lock(engine_->mutex());
    engine_->close(std::move(end_), lock);
  }

  std::string name() const override { return "ucx"; }
  std::string describe() const override { return std::string("ucx, version ") + ucx().get_version_string(); }

  std::vector<std::byte> address() const override { return end_->address(); }
  Status connect(std::span<const std::byte> address) override {
    const std::lock_guard lock(engine_->mutex());
    return end_->connect(address);
  }

  Result<LaneMemory> allocate(std::size_t bytes) override { return engine_->allocate(bytes); }
  Result<RegisteredRegion> register_device_memory(const DeviceRegion& region) override {
    return engine_->register_device_memory(region);
  }
  // The landing contains no addresses, because this end finds slots by message numbers.
  Result<std::vector<std::byte>> register_reader(std::uint32_t lane, const HalfLane& reading) override {
    const std::lock_guard lock(engine_->mutex());
    const UcxLanding landing = end_->register_reader(lane, reading);
    const auto bytes = std::as_bytes(std::span(&landing, 1));
    return std::vector<std::byte>(bytes.begin(), bytes.end());
  }
  Status attach(std::uint32_t lane, const HalfLane& writing, std::span<const std::byte> landing) override {
    UcxLanding known;
    if (landing.size() != sizeof known) return remote_error("received a malformed UCX lane address");
    std::memcpy(&known, landing.data(), sizeof known);
    const std::lock_guard lock(engine_->mutex());
    end_->attach(lane, writing, known);
    return {};
  }
  void forget(std::uint32_t lane, LaneEnd end) override {
    std::vector<LaneMemory> freed;  // Freed after the lock is released.
    const std::lock_guard lock(engine_->mutex());
    freed = end_->forget(lane, end);
  }

  // Always succeeds, because UCX queues what it cannot send at once.
  Result<bool> put(const MessageHead& head, const std::byte* data) override {
    const std::lock_guard lock(engine_->mutex());
    TUTTI_CHECK_OK(end_->put(head, data));
    return true;
  }
  Result<bool> credit(std::uint32_t lane, std::uint64_t taken) override {
    const std::lock_guard lock(engine_->mutex());
    return end_->credit(lane, taken);
  }
  Status advance(CarrierEvents& events) override {
    const std::lock_guard lock(engine_->mutex());
    engine_->progress();
    return end_->notify(events);
  }
  bool flushed() override {
    const std::lock_guard lock(engine_->mutex());
    return end_->flushed();
  }

  int descriptor() const override { return end_->descriptor(); }
  bool arm() override {
    const std::lock_guard lock(engine_->mutex());
    return end_->arm();
  }

 private:
  std::shared_ptr<UcxEngine> engine_;
  std::unique_ptr<UcxEnd> end_;
};

class UcxSource : public CarrierSource {
 public:
  explicit UcxSource(std::shared_ptr<UcxEngine> engine) : engine_(std::move(engine)) {}

  Result<std::unique_ptr<Carrier>> make() override {
    std::uint64_t token = 0;
    if (::getrandom(&token, sizeof token, 0) != sizeof token) return system_error("getrandom");
    const std::lock_guard lock(engine_->mutex());
    std::unique_ptr<UcxEnd> end = TUTTI_TRY(UcxEnd::make(*engine_, token));
    engine_->add(token, *end);
    return std::unique_ptr<Carrier>(std::make_unique<UcxCarrier>(engine_, std::move(end)));
  }

 private:
  std::shared_ptr<UcxEngine> engine_;
};

}  // namespace

Result<std::unique_ptr<CarrierSource>> open_ucx() {
  std::shared_ptr<UcxEngine> engine = TUTTI_TRY(UcxEngine::make());
  return std::unique_ptr<CarrierSource>(std::make_unique<UcxSource>(std::move(engine)));
}

Result<std::vector<RegionAccess>> describe_region_access_by_ucx(const DeviceRegion& region) {
  const std::shared_ptr<UcxEngine> engine = TUTTI_TRY(UcxEngine::make());
  Result<RegisteredRegion> reached = engine->register_device_memory(region);
  std::vector<RegionAccess> accesses;
  accesses.push_back({"ucx", reached.ok() ? Result<std::string>("by UCX") : std::move(reached).status()});
  return accesses;
}

Result<std::string> describe_ucx() {
  TUTTI_CHECK_OK(ucx_library());
  return std::string("version ") + ucx().get_version_string();
}

}  // namespace tutti
