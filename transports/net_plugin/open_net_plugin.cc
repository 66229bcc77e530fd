#include <mutex>
#include <utility>

#include "transports/net_plugin.h"
#include "transports/net_plugin/end.h"
#include "transports/net_plugin/engine.h"

namespace tutti {
namespace {

Status of_parent() { return unsupported("a forked process cannot use the network plugin of its parent"); }

// A NetEnd with its lock. In a forked child calls have no effect, and the end is leaked.
class NetPluginCarrier : public Carrier {
 public:
  NetPluginCarrier(std::shared_ptr<NetEngine> engine, std::unique_ptr<NetEnd> end)
      : engine_(std::move(engine)), end_(std::move(end)) {}
  ~NetPluginCarrier() override {
    if (!engine_->of_this_process()) {
      (void)end_.release();
      return;
    }
    const std::lock_guard lock(engine_->mutex());
    end_.reset();
  }

  std::string name() const override { return "net_plugin " + engine_->plugin().name(); }
  std::string describe() const override { return end_->describe(); }
  std::vector<std::byte> address() const override { return end_->address(); }
  Status connect(std::span<const std::byte> address) override {
    if (!engine_->of_this_process()) return of_parent();
    const std::lock_guard lock(engine_->mutex());
    return end_->connect(address);
  }

  Result<LaneMemory> allocate(std::size_t bytes) override { return HalfLane::allocate_shared(bytes); }
  // The landing is empty, because this end finds slots by message numbers.
  Result<std::vector<std::byte>> register_reader(std::uint32_t lane, const HalfLane& reading) override {
    if (!engine_->of_this_process()) return of_parent();
    const std::lock_guard lock(engine_->mutex());
    end_->register_reader(lane, reading);
    return std::vector<std::byte>();
  }
  Status attach(std::uint32_t lane, const HalfLane& writing, std::span<const std::byte> landing) override {
    if (!engine_->of_this_process()) return of_parent();
    if (!landing.empty()) return remote_error("received a malformed lane address of a network plugin");
    const std::lock_guard lock(engine_->mutex());
    end_->attach(lane, writing);
    return {};
  }
  void forget(std::uint32_t lane, LaneEnd end) override {
    if (!engine_->of_this_process()) return;
    LaneMemory freed;  // Freed after the lock is released.
    const std::lock_guard lock(engine_->mutex());
    freed = end_->forget(lane, end);
  }

  Result<bool> put(const MessageHead& head, const std::byte* data) override {
    if (!engine_->of_this_process()) return of_parent();
    const std::lock_guard lock(engine_->mutex());
    return end_->put(head, data);
  }
  Result<bool> credit(std::uint32_t lane, std::uint64_t taken) override {
    if (!engine_->of_this_process()) return of_parent();
    const std::lock_guard lock(engine_->mutex());
    end_->credit(lane, taken);
    return true;
  }
  Status advance(CarrierEvents& events) override {
    if (!engine_->of_this_process()) return of_parent();
    const std::lock_guard lock(engine_->mutex());
    return end_->advance(events);
  }
  bool flushed() override {
    if (!engine_->of_this_process()) return true;
    const std::lock_guard lock(engine_->mutex());
    return end_->flushed();
  }
  bool acknowledged() const override {
    if (!engine_->of_this_process()) return true;
    const std::lock_guard lock(engine_->mutex());
    return end_->acknowledged();
  }
  bool finish() override {
    if (!engine_->of_this_process()) return true;
    const std::lock_guard lock(engine_->mutex());
    return end_->finish();
  }
  bool expects_messages() const override {
    if (!engine_->of_this_process()) return false;
    const std::lock_guard lock(engine_->mutex());
    return end_->expects_messages();
  }

  int descriptor() const override { return end_->descriptor(); }
  bool arm() override {
    if (!engine_->of_this_process()) return true;
    const std::lock_guard lock(engine_->mutex());
    return end_->arm();
  }

 private:
  std::shared_ptr<NetEngine> engine_;
  std::unique_ptr<NetEnd> end_;
};

class NetPluginSource : public CarrierSource {
 public:
  explicit NetPluginSource(std::shared_ptr<NetEngine> engine) : engine_(std::move(engine)) {}

  Result<std::unique_ptr<Carrier>> make() override {
    if (!engine_->of_this_process()) return of_parent();
    const std::lock_guard lock(engine_->mutex());
    std::unique_ptr<NetEnd> end = TUTTI_TRY(NetEnd::make(*engine_));
    return std::unique_ptr<Carrier>(std::make_unique<NetPluginCarrier>(engine_, std::move(end)));
  }

 private:
  std::shared_ptr<NetEngine> engine_;
};

}  // namespace

Result<std::unique_ptr<CarrierSource>> open_net_plugin(const NetPluginOptions& options) {
  std::shared_ptr<NetEngine> engine = TUTTI_TRY(NetEngine::make(options));
  return std::unique_ptr<CarrierSource>(std::make_unique<NetPluginSource>(std::move(engine)));
}

Result<std::string> describe_net_plugin(const NetPluginOptions& options) {
  const std::shared_ptr<NetEngine> engine = TUTTI_TRY(NetEngine::make(options));
  std::string text = engine->plugin().description();
  for (const NetEngine::Device& device : engine->devices())
    text += ", " + device.properties.name + " of " + std::to_string(device.properties.megabits_per_second) + " Mbit/s";
  return text;
}

}  // namespace tutti
